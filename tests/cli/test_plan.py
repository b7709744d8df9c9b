"""`urbe plan` from the command line."""

import csv
import gzip
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import urbe
from urbe.cli import main
from urbe.rng import stream


def run(capsys, *arguments):
    code = main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def log(tmp_path):
    """400 transitions of a two-state machine under random actions."""
    rng = np.random.default_rng(0)
    stay = {(0, 0): 0.9, (0, 1): 0.5, (1, 0): 0.7, (1, 1): 0.2}
    lines, s = ["state,action,reward,next_state"], 0
    for _ in range(400):
        a = int(rng.integers(2))
        t = s if rng.random() < stay[s, a] else 1 - s
        lines.append(f"{s},{a},{1.0 - s - 0.1 * a},{t}")
        s = t
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("percentile", urbe.Percentile()),
        ("bci", urbe.BCI()),
        ("rsvf", urbe.RSVF()),
        ("var", urbe.VaRBellman()),
        ("hoeffding", urbe.HoeffdingSets()),
    ],
)
def test_json_is_what_plan_returns(log, capsys, name, method):
    code, out, _ = run(capsys, "plan", log, "--discount", 0.9, "--method", name, "--seed", 3, "--json")
    found = json.loads(out)
    posterior = urbe.Posterior.fit(urbe.read_log(log), discount=0.9)
    wanted = urbe.plan(posterior, method=method, rng=stream(3, "plan"))
    assert code == 0
    assert found["policy"] == wanted.policy.tolist()
    assert found["guaranteed"] == wanted.guaranteed.tolist()
    assert found["guaranteed_at_start"] == wanted.guaranteed_at_start
    assert found["worst_case"] == wanted.worst_case.tolist()
    assert found["held_out"]["quantile_0.05"] == wanted.held_out.percentile(0.05)
    assert found["nominal_held_out"]["below"] == wanted.nominal_held_out.below
    assert found["promise"] == wanted.promise


def test_table_and_policy_file(log, capsys, tmp_path):
    path = tmp_path / "policy.csv"
    code, out, _ = run(capsys, "plan", log, "--discount", 0.9, "--confidence", 0.8, "--output", path)
    assert code == 0
    assert "BCI(optimised=False) at confidence 0.8, from 400 transitions" in out
    assert "value on 200 held-out models" in out
    rows = list(csv.DictReader(path.read_text().splitlines()))
    posterior = urbe.Posterior.fit(urbe.read_log(log), discount=0.9)
    wanted = urbe.plan(posterior, confidence=0.8, rng=stream(0, "plan"))
    assert [int(row["idaction"]) for row in rows] == wanted.policy.tolist()
    assert [float(row["value"]) for row in rows] == wanted.guaranteed.tolist()


def test_a_model_says_what_is_feasible(log, capsys, tmp_path):
    path = tmp_path / "model.csv"
    lines = ["idstatefrom,idaction,idstateto,probability,reward"]
    lines += [f"{s},{a},{t},0.5,{1.0 - s - 0.1 * a}" for s in (0, 1) for a in (0, 1) for t in (0, 1)]
    path.write_text("\n".join(lines) + "\n")
    _, with_model, _ = run(capsys, "plan", log, "--discount", 0.9, "--model", path, "--json")
    _, without, _ = run(capsys, "plan", log, "--discount", 0.9, "--json")
    assert json.loads(with_model)["guaranteed"] == pytest.approx(json.loads(without)["guaranteed"], rel=1e-12)


def test_no_held_out_draws_are_null(log, capsys):
    _, out, _ = run(capsys, "plan", log, "--discount", 0.9, "--held-out", 0, "--json")
    assert json.loads(out)["held_out"]["below"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "--discount is missing"),
        (("--discount", 0.9, "--confidence", 1.0), "confidence"),
        (("--discount", 0.9, "--method", "var", "--draws", 10), "expected at least 80"),
    ],
)
def test_bad_input_is_refused(log, capsys, options, message):
    code, out, err = run(capsys, "plan", log, *options)
    assert code == 2
    assert out == ""
    assert message in err


def test_help_teaches(capsys):
    with pytest.raises(SystemExit):
        main(["plan", "--help"])
    out = capsys.readouterr().out
    assert "methods, from the highest guaranteed values to the lowest" in out
    assert "state,action,reward,next_state" in out


@pytest.mark.parametrize("kind", ["-", "fifo", "gzip"])
def test_a_log_comes_through_a_pipe(log, tmp_path, kind):
    content, name = log.read_bytes(), "-"
    if kind == "gzip":
        content = gzip.compress(content)
    if kind == "fifo":
        name = tmp_path / "pipe"
        os.mkfifo(name)
    command = [sys.executable, "-m", "urbe", "plan", str(name), "--discount", "0.9", "--json"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False)
    if kind == "fifo":
        name.write_bytes(content)
    out, _ = process.communicate(None if kind == "fifo" else content)
    assert process.returncode == 0
    wanted = urbe.plan(urbe.Posterior.fit(urbe.read_log(log), discount=0.9), seed=0)
    assert json.loads(out)["guaranteed"] == wanted.guaranteed.tolist()


def test_an_error_in_a_pipe_names_it_and_the_line(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("state,action,reward,next_state\n0,0,x,1\n",))
    writer.start()
    with pytest.raises(urbe.ModelFileError, match=r"pipe, line 2, column reward: found 'x', expected a number"):
        urbe.read_log(pipe)
    writer.join()
