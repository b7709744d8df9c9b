"""States where the process ends, declared after a model was built."""

import numpy as np
import pytest

import urbe
from urbe.cli import main
from urbe.mdp.formats import write_mdp


@pytest.fixture
def maze():
    """0 waits or walks to 1, which is a goal that loops, with intervals, labels and a named set."""
    mdp = urbe.MDP.from_transitions(
        state=[0, 0, 0, 1], action=[0, 1, 1, 0], next_state=[0, 0, 1, 1], probability=None, lower=[1, 0.4, 0.4, 1],
        upper=[1, 0.6, 0.6, 1], reward=[-1.0, -1.0, -1.0, -7.0], discount=1.0, initial=0,
    )  # fmt: skip
    mdp = mdp.with_labels(states=["start", "goal"], actions=["wait", "walk"])
    return urbe.MDP(**{**vars(mdp), "propositions": {"done": np.array([1])}})


def test_a_goal_that_loops_becomes_terminal(maze):
    ended = maze.with_terminal(["goal"])
    assert maze.with_terminal("done").terminal.tolist() == [False, True]
    assert ended.terminal.tolist() == [False, True]
    assert (ended.n_rows, ended.rows.n_entries) == (2, 3)
    assert ended.labels == maze.labels
    assert ended.propositions["done"].tolist() == [1]
    np.testing.assert_array_equal(ended.bounds, [b[:3] for b in maze.bounds])
    found = urbe.solve(ended.with_discount(0.999999), urbe.Interval())
    assert found.value[0] == pytest.approx(-2.5, abs=1e-4)  # leaves with probability 0.4 at worst


def test_rewards_of_successors_and_ids_of_states():
    mdp = urbe.MDP.from_dense(np.full((3, 1, 3), 1 / 3), np.arange(9.0).reshape(3, 1, 3), discount=0.9)
    ended = mdp.with_terminal(mdp.n_states - 2)
    assert ended.rows.reward.tolist() == [0.0, 1.0, 2.0, 6.0, 7.0, 8.0]
    assert ended.row_state.tolist() == [0, 2]
    assert mdp.with_terminal([]).n_rows == 3
    assert mdp.with_terminal(np.array([True, False, False])).terminal.tolist() == [True, False, False]


def test_unknown_states_are_named(maze):
    with pytest.raises(ValueError, match=r"terminal\[0\] is 'exit', expected a state: 'start', 'goal'"):
        maze.with_terminal(["exit"])


def test_the_command_line_takes_states_and_sets_of_the_file(maze, tmp_path, capsys):
    path = tmp_path / "maze.npz"
    write_mdp(maze, path)
    for given in ("goal", "done"):
        assert main(["solve", str(path), "--terminal", given, "--discount", "0.5"]) == 0
        assert "-1.3333" in capsys.readouterr().out
    assert main(["convert", str(path), str(tmp_path / "ended.npz"), "--terminal", "done"]) == 0
    assert urbe.read_mdp(tmp_path / "ended.npz").terminal.tolist() == [False, True]
    capsys.readouterr()
    assert main(["solve", str(path), "--terminal", "exit"]) == 2
    assert "--terminal is 'exit', expected a state: 'start', 'goal'. The file has these sets of states: done." in (
        capsys.readouterr().err
    )
