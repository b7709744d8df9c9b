"""Models whose files hold costs: the best policy minimises them, and values are minus costs."""

import numpy as np
import pytest

import urbe
from urbe.cli import main
from urbe.mdp.formats import read_mdp, write_mdp

FORMATS = ("model.csv", "model.npz", "model.tra", "model.drn", "model.umb")


@pytest.fixture
def detour():
    """From 0 to the end: expensive at once, or cheap in two steps."""
    return urbe.MDP.from_transitions(
        state=[0, 0, 1], action=[0, 1, 0], next_state=[2, 1, 2], probability=[1.0, 1.0, 1.0], reward=[5.0, 1.0, 2.0],
        discount=1.0, terminal=[2],
    )  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_costs_are_minimised_in_every_format(detour, tmp_path, name):
    if name.endswith("umb"):
        pytest.importorskip("umbi")
    path = tmp_path / name
    write_mdp(detour, path)
    assert urbe.solve(read_mdp(path, discount=1.0)).policy[0] == 0  # as rewards, 5 is best
    cheap = urbe.solve(read_mdp(path, discount=1.0, costs=True))
    assert cheap.policy[0] == 1
    assert cheap.value == pytest.approx([-3.0, -2.0, 0.0], abs=1e-6)


def test_costs_keep_intervals_and_have_no_negative_zero(tmp_path):
    mdp = urbe.MDP.from_transitions(
        [0, 0], [0, 0], [0, 1], None, 0.0, discount=0.9, terminal=[1], lower=[0.1, 0.2], upper=[0.8, 0.9]
    )
    write_mdp(mdp, tmp_path / "model.npz")
    found = read_mdp(tmp_path / "model.npz", costs=True)
    assert not np.signbit(found.rows.reward).any()
    np.testing.assert_array_equal(found.bounds, mdp.bounds)


@pytest.mark.parametrize("ids", ["0,1", "here,there"])
@pytest.mark.parametrize("column", ["cost", "Costs"])
def test_a_column_of_costs_in_place_of_rewards(tmp_path, ids, column):
    one, two = ids.split(",")
    path = tmp_path / "model.csv"
    path.write_text(
        f"idstatefrom,idaction,idstateto,probability,{column}\n{one},0,{one},0.5,3\n{one},0,{two},0.5,3\n{two},0,{two},1,0\n"
    )
    assert read_mdp(path, discount=0.5).rows.expected_reward().tolist() == [-3.0, 0.0]


def test_a_table_of_costs():
    table = {"s": ["a", "a"], "a": ["x", "y"], "s_next": ["a", "a"], "p": [1, 1], "kosten": [4, 3]}
    mdp = urbe.MDP.from_columns(table, discount=0.5, names={"cost": "kosten"})
    assert urbe.solve(mdp).action_text(0) == "y"
    both = urbe.MDP.from_columns(table | {"reward": [1, 0], "cost": [9, 9]}, discount=0.5)
    assert both.rows.expected_reward().tolist() == [1.0, 0.0]  # as in logs, another column is ignored
    with pytest.raises(ValueError, match="both reward and cost"):
        urbe.MDP.from_columns(table | {"r": [1, 0]}, discount=0.5, names={"cost": "kosten", "reward": "r"})


def test_the_command_line_minimises(detour, tmp_path, capsys):
    path = tmp_path / "model.drn"
    write_mdp(detour, path)
    assert main(["solve", str(path), "--discount", "1", "--costs"]) == 0
    out = capsys.readouterr().out
    assert "-3" in out
    assert "Rewards are minus the costs in the file, so values are minus costs." in out
    assert main(["convert", str(path), str(tmp_path / "model.npz"), "--discount", "1", "--costs"]) == 0
    assert urbe.solve(read_mdp(tmp_path / "model.npz")).policy[0] == 1
