"""Programs in the PRISM language through stormpy, and the error if it is not installed."""

import numpy as np
import pytest

import urbe

PROGRAM = """
mdp
const int N;
const double p = 0.9;
module grid
  x : [0..N] init 0;
  [east] x<N -> p : (x'=x+1) + (1-p) : (x'=x);
  [west] x>0 & x<N -> 1 : (x'=x-1);
  [] x=1 -> 1 : (x'=N);
endmodule
label "goal" = x=N;
label "low" = x<=1;
rewards "cost"
  [east] true : 1;
  [] true : 3;
endrewards
rewards "steps"
  true : 1;
endrewards
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "robot.prism"
    path.write_text(PROGRAM)
    return path


def test_states_actions_labels_and_rewards_have_the_names_of_the_program(program):
    pytest.importorskip("stormpy")
    mdp = urbe.read_mdp(program, discount=0.9, constants="N=3", reward="cost")
    assert set(mdp.labels.states) == {"x=0", "x=1", "x=2", "x=3"}
    assert set(mdp.labels.actions) == {"east", "west", "-"}
    named = {name: {mdp.labels.states[s] for s in states} for name, states in mdp.propositions.items()}
    assert named == {"goal": {"x=3"}, "low": {"x=0", "x=1"}}
    assert mdp.labels.states[int(np.argmax(mdp.initial))] == "x=0"
    assert [mdp.labels.states[s] for s in np.flatnonzero(mdp.terminal)] == ["x=3"]
    # the program by hand: x=0 .. x=3, always east, reward 1 a step until x=3
    east = mdp.labels.actions.index("east")
    steps = np.zeros(4)
    for _ in range(2000):
        steps[:3] = 1 + 0.9 * (0.9 * steps[1:] + 0.1 * steps[:3])
    policy = np.where(mdp.terminal, -1, east)
    value = urbe.evaluate_policy(mdp, policy).value
    assert value[[mdp.labels.states.index(f"x={x}") for x in range(3)]] == pytest.approx(steps[:3], abs=1e-6)


def test_the_model_survives_the_formats_of_the_field(program, tmp_path):
    pytest.importorskip("stormpy")
    mdp = urbe.read_mdp(program, discount=0.9, constants="N=4", reward="cost")
    value = urbe.solve(mdp).value
    for name in ("robot.tra", "robot.drn", "robot.npz", "robot.csv"):
        urbe.write_mdp(mdp, tmp_path / name)
        again = urbe.read_mdp(tmp_path / name, discount=0.9)
        assert {k: len(v) for k, v in again.propositions.items()} == {"goal": 1, "low": 2}, name
        assert np.sort(urbe.solve(again).value) == pytest.approx(np.sort(value), abs=1e-6), name


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"leaves N open; give constants='N=\.\.\.'"),
        ({"constants": "M=3"}, "leaves N open"),
        ({"constants": "N=3,M=1"}, "but constants has M"),
        ({"constants": "N=many"}, "does not take constants='N=many'"),
        ({"constants": "N=3"}, "has the rewards cost, steps; choose one, reward='cost'"),
        ({"constants": "N=3", "reward": "gain"}, "has the rewards cost, steps, but reward is 'gain'"),
    ],
)
def test_what_is_missing_is_named(program, given, message):
    pytest.importorskip("stormpy")
    with pytest.raises(urbe.ModelFileError, match=message):
        urbe.read_mdp(program, discount=0.9, **given)


def test_damage_missing_files_and_other_formats(tmp_path):
    pytest.importorskip("stormpy")
    bad = tmp_path / "bad.prism"
    bad.write_text("mdp\nmodule a\n x:[0..1]; [] x=0 -> 1:(y'=1);\nendmodule")
    with pytest.raises(urbe.ModelFileError, match=r"bad\.prism: is not a program in the PRISM language"):
        urbe.read_mdp(bad, discount=0.9)
    with pytest.raises(FileNotFoundError):
        urbe.read_mdp(tmp_path / "none.prism", discount=0.9)
    ctmc = tmp_path / "ctmc.prism"
    ctmc.write_text("ctmc\nmodule a\n x:[0..1]; <> x=0 -> 2:(x'=1);\nendmodule")
    with pytest.raises(urbe.ModelFileError, match=r"@type: found 'CTMC', expected one of MDP, DTMC"):
        urbe.read_mdp(ctmc, discount=0.9)


def test_programs_are_not_written_and_other_files_take_no_constants(tmp_path):
    mdp = urbe.library.garnet(3, 2, 2, seed=0)
    with pytest.raises(ValueError, match=r"is read and not written; expected \.tra"):
        urbe.write_mdp(mdp, tmp_path / "x.prism")
    urbe.write_mdp(mdp, tmp_path / "x.csv")
    with pytest.raises(ValueError, match=r"constants=N=3 is for programs in the PRISM language"):
        urbe.read_mdp(tmp_path / "x.csv", discount=0.9, constants="N=3")


def test_without_stormpy_the_extra_is_named(program, monkeypatch):
    monkeypatch.setattr("urbe.extras.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=r"PRISM language need stormpy, .*pip install \"urbe\[storm\]\""):
        urbe.read_mdp(program, discount=0.9, constants="N=3")


MACHINE = """mdp
module machine
  broken : bool init false;
  idle : bool init true;
  [run] !broken -> 0.9 : (idle'=false) + 0.1 : (broken'=true) & (idle'=false);
  [mend] broken -> (broken'=false) & (idle'=true);
endmodule
rewards "parts"
  broken : 5;
endrewards
rewards
  [run] true : 1;
endrewards
"""


def test_states_are_named_by_variables_that_are_true_too(tmp_path):
    pytest.importorskip("stormpy")
    path = tmp_path / "machine.prism"
    path.write_text(MACHINE)
    mdp = urbe.read_mdp(path, discount=0.9, reward="parts")
    assert mdp.labels.states == ("!broken & idle", "!broken & !idle", "broken & !idle")
    assert mdp.rows.expected_reward().tolist() == [0.0, 0.0, 5.0]
    with pytest.raises(urbe.ModelFileError, match=r"has the rewards .*those without a name"):
        urbe.read_mdp(path, discount=0.9)
