"""`urbe compare`, and the groups that `urbe evaluate` makes of runs, as a user runs them."""

import csv
import sys

import pytest

from urbe.cli import main
from urbe.cli.run_groups import Run, environment_id, grouped
from urbe.deep.presets import dqn, dqn_ube
from urbe.deep.settings import Network
from urbe.simulators import CartPole

SMALL = {"network": Network(hidden=(8, 8)), "capacity": 64, "warm_up": 32, "batch": 8}
OVER = ("--over", "half_length=0.25,1", "--episodes", 4)

MINE = """
class Left:
    def predict(self, obs): return 0


policy = Left()
nothing = 3
"""


@pytest.fixture(scope="module", autouse=True)
def _as_it_was():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("urbe.cli.worlds.set_up_jax", lambda: None)
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two agents, two seeds each, that have learned nothing."""
    folder = tmp_path_factory.mktemp("runs")
    pole = CartPole(time_limit=20)
    for seed in (0, 1):
        dqn(pole, seed=seed, **SMALL).save(folder / f"plain{seed}")
        dqn_ube(pole, seed=seed, **SMALL).save(folder / f"ube{seed}")
    (folder / "mine.py").write_text(MINE)
    return folder


@pytest.fixture
def command(runs, capsys, monkeypatch):
    monkeypatch.chdir(runs)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def run(*words):
        code = main([*map(str, words)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    yield run
    sys.modules.pop("mine", None)


def test_agents_are_grouped_compared_and_drawn(command, tmp_path):
    table, figure = tmp_path / "t.csv", tmp_path / "f.png"
    code, out, err = command(
        "compare", "plain0", "plain1", "ube0", "ube1", "mine:policy", *OVER, "--csv", table, "--figure", figure
    )
    assert (code, err) == (0, "")
    assert "ube1: dqn-ube, seed 1, after 0 steps." in out
    assert "mine:policy: a policy." in out
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [row["agent"] for row in rows[::4]] == ["dqn", "dqn-ube", "policy"]
    assert [row["seeds"] for row in rows[::4]] == ["2", "2", "1"]
    assert figure.read_bytes().startswith(b"\x89PNG")
    code, out, _ = command("compare", "plain0", "plain1", "ube0", "ube1", *OVER)
    assert "Worst case of dqn - dqn-ube: " in out
    assert command("compare", "plain0", "ube0", *OVER, "--quiet") == (0, "", "")


def test_evaluate_gives_one_table_for_all_seeds(command, tmp_path):
    figure = tmp_path / "f.png"
    code, out, _ = command("evaluate", "plain0", "plain1", "ube0", *OVER, "--greedy", "--figure", figure)
    assert code == 0
    assert out.count("worst seed") == 1
    assert "dqn\nhalf_length" in out.replace("half length", "half_length").replace("  ", "")
    assert "2 seeds (0, 1), 4 episodes each" in out
    assert out.count("seed 0; low and high are Student's") == 1  # that of the one run of the other agent
    assert figure.read_bytes().startswith(b"\x89PNG")
    _, out, _ = command("evaluate", "plain0", "plain1", *OVER, "--each")
    assert out.count("seed 0; low and high are Student's") == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("plain0", "mine:nothing"), "mine:nothing cannot be made (TypeError: 'int' object is not callable), expected"),
        (("plain0", "mine:absent"), "mine:absent cannot be made (AttributeError"),
        (("plain0", "nowhere:policy"), "nowhere:policy cannot be made (ModuleNotFoundError"),
        (("mine:policy",), "mine:policy has no environment to be evaluated on; give --env ID, or a run beside it."),
        (("plain0", "--figure", "f.gif"), "--figure f.gif ends in '.gif'"),
        (("plain0", "--csv", "t.xlsx"), "t.xlsx"),
        (("plain0", "--noisy"), "acting"),
        (("plain0", "--share", "0"), "--share is 0"),
    ],
)
def test_what_cannot_be_compared_is_said(command, words, message):
    code, _, err = command("compare", *words, *OVER)
    assert code == 2
    assert message in err


def test_groups_are_named_by_what_tells_them_apart():
    def run(path, seed, **settings):
        return Run(path, "dqn", None, seed, None, {"agent": "dqn", "settings": settings})

    runs = [run(f"r/b{b}s{s}", s, beta=b, rate=1) for b in (1, 2) for s in (0, 1)]
    assert {name: [each.path for each in members] for name, members in grouped(runs).items()} == {
        "dqn, beta 1": ["r/b1s0", "r/b1s1"],
        "dqn, beta 2": ["r/b2s0", "r/b2s1"],
    }
    twice = [run("r/a", 0), run("r/b", 0), run("r/c", 1)]
    assert [[each.path for each in members] for members in grouped(twice).values()] == [["r/a", "r/c"], ["r/b"]]


def test_the_environment_of_a_run_is_found_again():
    class Agent:
        class trainer:
            environment = "<TimeLimit<OrderEnforcing<PassiveEnvChecker<CartPoleEnv<CartPole-v1>>>>>"

    assert environment_id(Agent) == "CartPole-v1"
    Agent.trainer.environment = "<OrderEnforcing<Thermostat instance>>"
    assert environment_id(Agent) is None
    Agent.trainer.environment = "<PassiveEnvChecker<Thermostat<thermostat:Thermostat>>>"
    assert environment_id(Agent) == "thermostat:Thermostat"
