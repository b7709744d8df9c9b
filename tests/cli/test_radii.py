"""`urbe solve` over several radii."""

import json

import pytest

import urbe
from urbe.cli import main


@pytest.fixture
def model(tmp_path):
    mdp = urbe.library.riverswim(3, discount=0.95).with_labels(states=["bank", "mid", "far"], actions=["rest", "swim"])
    path = tmp_path / "river.npz"
    urbe.write_mdp(mdp, path)
    return path


def run(capsys, *arguments):
    code = main(["solve", *(str(a) for a in arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_values_policies_and_figure(model, capsys, tmp_path):
    figure, table = tmp_path / "price.svg", tmp_path / "price.csv"
    code, out, _ = run(capsys, model, "--set", "l1", "--radius", "0:1.2:5", "--figure", figure, "--csv", table)
    assert code == 0
    assert "L1Ball around the model; values from state bank" in out
    assert "on, state bank: rest." in out
    assert figure.read_text().startswith("<?xml")
    assert len(table.read_text().splitlines()) == 6


def test_json_is_what_python_gives(model, capsys):
    _, out, _ = run(capsys, model, "--set", "kl", "--radius", "0.1,0.4", "--json")
    found, wanted = json.loads(out), urbe.sensitivity(urbe.read_mdp(model), urbe.KLBall, [0.1, 0.4])
    assert found["robust_worst"] == wanted.robust_worst.tolist()
    assert found["actions"] == wanted.actions.tolist()
    assert found["states"] == ["bank", "mid", "far"]


def test_a_single_radius_is_drawn_too_and_policies_have_labels(model, capsys, tmp_path):
    code, out, _ = run(
        capsys, model, "--set", "l1", "--radius", 0.1, "--figure", tmp_path / "x.png", "--output", tmp_path / "p.csv"
    )
    assert code == 0
    assert "bank" in out
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "p.csv").read_text().splitlines()[1].startswith("bank,")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--radius", "0:1:5"), "--radius with several values needs --set, one of l1,"),
        (("--set", "interval", "--radius", "0:1:5"), "--radius with several values needs --set, one of l1,"),
        (("--set", "l1", "--radius", "0:1:5", "--rectangular", "s"), "cannot be combined with --rectangular s"),
        (("--set", "l1", "--radius", "0:1:5", "--optimistic"), "cannot be combined with --optimistic"),
        (
            ("--set", "l1", "--radius", "0:1:5", "--output", "p.csv"),
            "cannot be combined with --output; give one radius.",
        ),
        (("--set", "l1", "--radius", "0:3:4"), "expected a number in [0, 2]"),
        (("--set", "l1", "--radius", "0:1:5", "--figure", "x.gif"), "--figure x.gif ends in '.gif', expected one of"),
    ],
)
def test_errors_say_what_to_do(model, capsys, options, message):
    code, out, err = run(capsys, model, *options)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize("text", ["0:1", "a", "1:0:3", "0:1:1", "0.1,,0.2"])
def test_radii_that_are_none(model, capsys, text):
    with pytest.raises(SystemExit):
        main(["solve", str(model), "--set", "l1", "--radius", text])
    assert "expected a number, LOW:HIGH:COUNT such as 0:1:11" in capsys.readouterr().err


def test_brackets_in_labels_are_printed(tmp_path, capsys):
    path = tmp_path / "model.csv"
    path.write_text("state,action,next_state,probability,reward\nold [b],[red]go,end,1,2\nend,stay,end,1,0\n")
    assert main(["solve", str(path), "--discount", "0.9"]) == 0
    assert "old [b]  [red]go" in capsys.readouterr().out


def test_what_cannot_be_written_or_read_is_said_first(tmp_path, capsys):
    path = tmp_path / "model.csv"
    path.write_text("state,action,next_state,probability,reward\na,go,a,1,2\n")
    for arguments, message in (
        ([str(path), "--discount", "0.9", "--csv", "x.txt"], "urbe: --csv x.txt ends in '.txt', expected one of .csv"),
        ([str(path), "--discount", "0.9", "--csv", str(tmp_path / "no" / "x.csv")], "No such directory to write into"),
        (
            [str(path), "--discount", "0.9", "--set", "l1", "--radius", "3"],
            "urbe: --radius is 3 for state a, action go",
        ),
        ([str(tmp_path / "none.csv")], "none.csv: No such file or directory"),
    ):
        assert main(["solve", *arguments]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert message in captured.err


def test_a_given_policy_has_its_worst_case(model, capsys, tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_text("state,action\nfar,swim\nmid,swim\nbank,rest\n")
    how = ("--set", "l1", "--radius", "0.2", "--policy", mine, "--json")
    code, out, _ = run(capsys, model, *how)
    assert code == 0
    mdp = urbe.read_mdp(model)
    policy = {"bank": "rest", "mid": "swim", "far": "swim"}
    assert json.loads(out)["lower"] == urbe.evaluate_policy(mdp, policy, urbe.L1Ball(0.2)).lower.tolist()
    _, out, _ = run(capsys, model, "--horizon", 5, *how)
    over = urbe.evaluate_policy(mdp, policy, urbe.L1Ball(0.2), urbe.BackwardInduction(5))
    assert json.loads(out)["value"] == over.value.tolist()
    over.write(tmp_path / "steps.csv")
    code, _, err = run(capsys, model, "--policy", tmp_path / "steps.csv")
    assert (code, "--policy has a policy for each of 5 steps, expected --horizon 5." in err) == (2, True)
    code, _, err = run(capsys, model, "--set", "l1", "--radius", "0,1", "--policy", mine)
    assert (code, "cannot be combined with --policy; give one radius." in err) == (2, True)


def test_radii_over_a_horizon(model, capsys, tmp_path):
    figure = tmp_path / "price.svg"
    how = ("--set", "l1", "--radius", "0:1.2:4", "--horizon", 6)
    code, out, _ = run(capsys, model, *how, "--figure", figure)
    assert code == 0
    assert "Actions at the first of 6 steps:" in out or "At the first step the policy never changes." in out
    assert "step 1 of 6" in figure.read_text()
    _, out, _ = run(capsys, model, *how, "--json")
    wanted = urbe.sensitivity(urbe.read_mdp(model), urbe.L1Ball, [0.0, 0.4, 0.8, 1.2], horizon=6)
    assert json.loads(out)["robust_worst"] == wanted.robust_worst.tolist()
    assert json.loads(out)["actions"] == wanted.actions.tolist()
