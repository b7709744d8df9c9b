"""The command line from the user's side: arguments in, text, files and exit codes out."""

import csv
import io
import json
import os
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest

import urbe
from urbe.cli import main

MODEL = """\
idstatefrom,idaction,idstateto,probability,reward
0,0,0,0.5,1
0,0,1,0.5,1
0,1,1,1,0
1,0,0,0.3,2
1,0,1,0.7,2
1,1,1,1,1.5
"""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.csv"
    path.write_text(MODEL)
    return path


def run(capsys, *arguments):
    code = main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_json_is_what_solve_returns(model, capsys):
    code, out, _ = run(capsys, "solve", model, "--discount", 0.9, "--set", "l1", "--radius", 0.2, "--json")
    found = json.loads(out)
    wanted = urbe.solve(urbe.read_mdp(model, discount=0.9), urbe.L1Ball(0.2))
    assert code == 0
    assert found["converged"] is True
    assert found["policy"] == wanted.policy.tolist()
    for name in ("value", "lower", "upper", "q"):
        assert np.array_equal(found[name], getattr(wanted, name)), name


def test_the_package_runs_as_the_command():
    """`python -m urbe` gives its output and its exit codes."""
    for arguments, code in ((["--version"], 0), (["solve", "nowhere.csv", "--discount", "0.9"], 2)):
        found = subprocess.run([sys.executable, "-m", "urbe", *arguments], capture_output=True, text=True, check=False)
        assert found.returncode == code, found.stderr
        assert f"{found.stdout}{found.stderr}".startswith(("urbe 0", "urbe: nowhere.csv"))


def test_without_a_set_the_model_is_taken_as_it_is(model, capsys):
    code, out, _ = run(capsys, "solve", model, "--discount", 0.9, "--json")
    assert code == 0
    assert json.loads(out)["value"] == urbe.solve(urbe.read_mdp(model, discount=0.9)).value.tolist()


@pytest.mark.parametrize(
    ("options", "nature"),
    [
        (("--set", "kl", "--radius", 0.1), urbe.KLBall(0.1)),
        (("--set", "chi2", "--radius", 0.1), urbe.Chi2Ball(0.1)),
        (("--set", "likelihood", "--radius", 0.1), urbe.LikelihoodRegion(0.1)),
        (("--set", "l2", "--radius", 0.1, "--support", "all"), urbe.L2Ball(0.1, support="all")),
        (("--set", "linf", "--radius", 0.1), urbe.LInfBall(0.1)),
        (("--set", "contamination", "--radius", 0.1), urbe.Contamination(0.1)),
        (("--set", "l1", "--radius", 0.1, "--optimistic"), urbe.Optimistic(urbe.L1Ball(0.1))),
        (("--set", "l1", "--radius", 0.4, "--rectangular", "s"), urbe.SRectangular(urbe.L1Ball(0.4))),
    ],
)
def test_every_set_by_name(model, capsys, options, nature):
    code, out, _ = run(capsys, "solve", model, "--discount", 0.9, "--json", *options)
    wanted = urbe.solve(urbe.read_mdp(model, discount=0.9), nature)
    assert code == 0
    assert np.array_equal(json.loads(out)["value"], wanted.value)


def test_table_names_states_actions_and_bounds(model, capsys):
    code, out, _ = run(capsys, "solve", model, "--discount", 0.9, "--set", "l1", "--radius", 0.5)
    assert code == 0
    header = next(line for line in out.splitlines() if "state" in line and "action" in line)
    assert header.split() == ["state", "action", "value", "at", "least", "at", "most"]
    assert "Solved" in out


def test_output_is_the_policy(model, tmp_path, capsys):
    target = tmp_path / "policy.csv"
    code, out, _ = run(capsys, "solve", model, "--discount", 0.9, "--output", target, "--quiet")
    solution = urbe.solve(urbe.read_mdp(model, discount=0.9))
    rows = list(csv.DictReader(target.read_text().splitlines()))
    assert code == 0
    assert out == ""
    assert [int(row["idaction"]) for row in rows] == solution.policy.tolist()
    assert [float(row["value"]) for row in rows] == solution.value.tolist()


def test_budget_file_gives_radii_by_pair(model, tmp_path, capsys):
    budget = tmp_path / "budget.csv"
    budget.write_text("idstate,idaction,budget\n0,0,0.1\n0,1,0\n1,0,0.3\n1,1,0\n")
    code, out, _ = run(capsys, "solve", model, "--discount", 0.9, "--set", "l1", "--budget", budget, "--json")
    wanted = urbe.solve(urbe.read_mdp(model, discount=0.9), urbe.L1Ball([[0.1, 0.0], [0.3, 0.0]]))
    assert code == 0
    assert json.loads(out)["value"] == wanted.value.tolist()


def test_horizon(model, capsys):
    code, out, _ = run(capsys, "solve", model, "--discount", 0.9, "--horizon", 3, "--json")
    assert code == 0
    assert np.shape(json.loads(out)["value"]) == (4, 2)


def test_interval_set_reads_the_bounds_of_the_file(tmp_path, capsys):
    path = tmp_path / "model.tra"
    path.write_text("2 2 3\n0 0 0 [0.2,0.6]\n0 0 1 [0.4,0.8]\n1 0 1 [1.0,1.0]\n")
    (tmp_path / "model.srew").write_text("2 1\n1 1.0\n")
    code, out, _ = run(capsys, "solve", path, "--discount", 0.5, "--set", "interval", "--json")
    # nature keeps as much mass as it may at state 0: v0 = .5 (.6 v0 + .4 v1), v1 = 2
    assert code == 0
    assert json.loads(out)["value"] == pytest.approx([0.4 / 0.7, 2.0], abs=1e-6)


def test_convert_round_trip(model, tmp_path, capsys):
    there, back = tmp_path / "model.npz", tmp_path / "back.csv"
    assert run(capsys, "convert", model, there, "--discount", 0.9)[0] == 0
    assert run(capsys, "convert", there, back)[0] == 0
    first, second = urbe.read_mdp(model, discount=0.9), urbe.read_mdp(back, discount=0.9)
    assert np.array_equal(first.to_dense()[0], second.to_dense()[0])
    assert np.array_equal(first.to_dense()[1], second.to_dense()[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--discount", 0.9, "--radius", 0.1), "--set"),
        (("--discount", 0.9, "--set", "l1"), "--radius"),
        (("--discount", 0.9, "--set", "l1", "--radius", 3), "state 0, action 0"),
        (("--discount", 1.5), "discount"),
        ((), "discount"),
        (("--discount", 0.9, "--set", "chi2", "--radius", 0.1, "--rectangular", "s"), "chi2"),
        (("--discount", 0.9, "--set", "interval"), "bounds"),
        (("--discount", 0.9, "--horizon", 2, "--output", "x.csv"), "--horizon"),
        (("--discount", 1.0), "discount is 1"),
        (("--discount", 0.9, "--tolerance", -1), "tolerance"),
        (("--discount", 0.9, "--threads", 0), "threads"),
    ],
)
def test_bad_requests_exit_2_with_one_sentence(model, capsys, arguments, message):
    code, out, err = run(capsys, "solve", model, *arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("urbe: ")
    assert message in err


def test_missing_and_malformed_files_are_named(tmp_path, capsys):
    code, _, err = run(capsys, "solve", tmp_path / "absent.csv", "--discount", 0.9)
    assert code == 2
    assert "absent.csv" in err
    broken = tmp_path / "broken.csv"
    broken.write_text(MODEL.replace("0.3", "abc"))
    code, _, err = run(capsys, "solve", broken, "--discount", 0.9)
    assert code == 2
    assert "line 5" in err
    assert "abc" in err


def test_unreachable_tolerance_exits_1_and_writes_no_policy(model, tmp_path, capsys):
    target = tmp_path / "policy.csv"
    code, _, err = run(capsys, "solve", model, "--discount", 0.9, "--tolerance", 0, "--output", target)
    assert code == 1
    assert "rounding" in err
    assert not target.exists()


@pytest.mark.parametrize("command", [(), ("solve",), ("convert",), ("reproduce",)])
def test_help_teaches(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([*command, "--help"])
    assert stop.value.code == 0
    assert "usage: urbe" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["solve", "MODEL", "--discount", "0.9"], ["solve", "--help"]])
def test_a_reader_that_stops_reading_is_no_error(model, monkeypatch, capsys, arguments):
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        with suppress(SystemExit):  # of rich
            assert main([str(model) if each == "MODEL" else each for each in arguments]) == 1
        print("more", flush=True)  # as at exit
    monkeypatch.undo()
    assert capsys.readouterr().err == ""


def test_letters_that_the_output_lacks_are_escaped(tmp_path, monkeypatch):
    path = tmp_path / "model.csv"
    path.write_text("state,action,next_state,probability,reward\nmüde,ruhe,müde,1,0.5\n", "utf-8")
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "ascii"))
    assert main(["solve", str(path), "--discount", "0.9"]) == 0
    assert b"m\\xfcde" in written.getvalue()
