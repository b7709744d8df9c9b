"""`urbe evaluate` from the command line."""

import csv
import os
from functools import cache
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

from urbe.cli import main, worlds
from urbe.deep.presets import dqn_ube
from urbe.deep.saving.load import load
from urbe.deep.settings import Network
from urbe.evaluation.robustness import evaluate
from urbe.simulators import CartPole

SMALL = {"network": Network(hidden=(8, 8)), "capacity": 64, "warm_up": 32, "batch": 8}
OVER = ("--over", "half_length=0.25:1:4")


@pytest.fixture(scope="module", autouse=True)
def _as_it_was():
    """JAX's settings as they are, as a command line has a process of its own; and each agent is loaded once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("urbe.cli.worlds.set_up_jax", lambda: None)
        once = cache(load)
        patch.setattr(import_module("urbe.deep.saving.load"), "load", lambda path: once(os.path.realpath(path)))
        yield


@pytest.fixture(scope="module")
def agents(tmp_path_factory):
    """A saved agent that has learned nothing, under two names."""
    folder = tmp_path_factory.mktemp("agents")
    agent = dqn_ube(CartPole(time_limit=20), seed=3, **SMALL)
    agent.save(folder / "one")
    (folder / "two").symlink_to(folder / "one")
    return folder, agent


def run(capsys, *arguments):
    code = main(["evaluate", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_table_is_the_librarys(agents, capsys, tmp_path):
    folder, agent = agents
    path, each = tmp_path / "t.csv", tmp_path / "e.csv"
    files = ("--csv", path, "--episodes-csv", each, "--figure", tmp_path / "f.png")
    code, out, err = run(capsys, folder / "one", folder / "two", *OVER, "--episodes", 6, "--seed", 4, *files)
    assert (code, err) == (0, "")
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [row["agent"] for row in rows] == ["dqn-ube"] * 16
    assert [row["run"] for row in rows] == [str(folder / "one")] * 8 + [str(folder / "two")] * 8
    wanted = evaluate(agent, {"half_length": (0.25, 0.5, 0.75, 1.0)}, episodes=6, seed=4)
    for name in ("one", "two"):
        mine = [row for row in rows if row["run"] == str(folder / name)]
        for column, numbers in wanted.table().items():
            assert [row[column] for row in mine] == [str(number) for number in numbers.tolist()]
        assert f"{folder / name}: dqn-ube, seed 3, after 0 steps." in out
    assert out.count(str(wanted)) == 2
    worst = wanted.worst()
    assert f"Lowest mean: greedy, {worst['mean']:.4g} at half_length {worst['half_length']:g}" in out
    assert len(each.read_text().splitlines()) == 1 + 2 * 8 * 6
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")


def test_one_way_of_acting_alone_and_nothing_said(agents, capsys, tmp_path):
    folder, _ = agents
    path = tmp_path / "t.csv"
    code, out, _ = run(capsys, folder / "one", "--noisy", "--quiet", "--csv", path, *OVER, "--episodes", 6)
    assert (code, out) == (0, "")
    assert {row["acting"] for row in csv.DictReader(path.read_text().splitlines())} == {"noisy"}


def test_without_over_the_dynamics_are_nominal(agents, capsys):
    folder, agent = agents
    code, out, _ = run(capsys, folder / "one", "--episodes", 6)
    assert code == 0
    assert str(evaluate(agent, [{}], episodes=6)) in out
    assert "Lowest" not in out


def test_environments_of_gymnasium_are_made_by_name(agents, capsys):
    folder, agent = agents
    over = ("--over", "half_length=0.25,1", "--episodes", 6)
    code, out, _ = run(capsys, folder / "one", "--greedy", "--env", "urbe/CartPole-v0", *over)
    wanted = evaluate(agent, {"half_length": (0.25, 1.0)}, episodes=6, time_limit=500, acting="greedy")
    assert code == 0
    assert [line.split()[2] for line in out.splitlines()[2:4]] == [f"{mean:.4g}" for mean in wanted.table()["mean"]]
    code, _, err = run(capsys, folder / "one", "--env", "Nothing-v0")
    assert code == 2
    assert "--env Nothing-v0 cannot be made" in err


def test_an_agent_that_does_not_know_its_environment_needs_one(agents, capsys, monkeypatch):
    folder, agent = agents
    alone = SimpleNamespace(name="dqn", simulator=None, policy=agent.policy, seed=0, step=0)
    monkeypatch.setattr(import_module("urbe.deep.saving.load"), "load", lambda _: alone)
    code, _, err = run(capsys, folder / "one")
    assert code == 2
    assert "does not store the environment of its agent; give --env ID" in err
    code, out, _ = run(capsys, folder / "one", "--env", "CartPole-v1", "--episodes", 2, "--greedy")
    assert code == 0
    assert "2 episodes each" in out


def test_over_takes_ranges_and_lists():
    assert worlds.grid_of(["a=0.1:5:11"])["a"][-1] == 5.0
    assert np.allclose(np.diff(worlds.grid_of(["a=0.1:5:11"])["a"]), 0.49)
    assert worlds.grid_of(["a=1,2.5", "b=-3"]) == {"a": (1.0, 2.5), "b": (-3.0,)}
    assert worlds.grid_of([]) == [{}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--over", "length=1"], "'length' is not among the parameters of CartPole"),
        (["--over", "half_length"], "--over half_length cannot be read (it has no name and '=')"),
        (["--over", "half_length=1:2"], "(it has 1 ':', expected two), expected NAME=LOW:HIGH:COUNT"),
        (["--over", "half_length=1:2:0"], "count is 0, expected a whole number of at least 1"),
        (["--over", "half_length=a,b"], "could not convert string to float: 'a'"),
        (
            ["--over", "half_length=1", "half_length=2"],
            "half_length=2 cannot be read (half_length is given twice)",
        ),
        (["--over", "half_length=-1"], "half_length is -1.0, expected a number above 0"),
        (["--episodes", "0"], "episodes is 0"),
        (["--figure", "a.gif", *OVER], "--figure a.gif ends in '.gif', expected one of .png, .svg, .pdf"),
        (["--figure", "a.png"], "--figure draws over one parameter"),
        (["--figure", "a.png", *OVER, "force=1,2"], "--figure draws over one parameter"),
        (["--csv", "a.txt"], "ends in '.txt'"),
    ],
)
def test_what_is_wrong_is_said(agents, capsys, arguments, message):
    folder, _ = agents
    code, _, err = run(capsys, folder / "one", "--episodes", 3, *arguments)
    assert code == 2
    assert message in err


def test_a_run_that_is_not_there_is_named(capsys, tmp_path):
    code, _, err = run(capsys, tmp_path / "nothing")
    assert code == 2
    assert str(tmp_path / "nothing") in err


def test_help_teaches(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["evaluate", "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    for word in ("half_length=0.1:5:11", "both included", "Student's interval", "--figure", "--noisy", "examples:"):
        assert word in out


def test_a_run_that_is_not_there_is_named_with_what_may_be(capsys, tmp_path):
    code, _, err = run(capsys, tmp_path / "nosuch")
    assert code == 2
    assert "nosuch does not exist, expected the folder of a run (urbe train ... --out" in err
