"""Written files read back: bit for bit as npz, with the same numbers in every format that can store them."""

import dataclasses
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.random_models import assert_valid, entries, models
from urbe import MDP
from urbe.mdp.formats import read_mdp, write_mdp


def back(mdp, name, **kwargs):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        write_mdp(mdp, path)
        again = read_mdp(path, **kwargs)
    assert_valid(again)
    return again


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@settings(max_examples=50, deadline=None)
@given(mdp=models())
def test_npz_keeps_every_bit(mdp):
    again = back(mdp, "model.npz")
    assert again.discount == mdp.discount
    assert same_bits(again.row_start, mdp.row_start)
    assert same_bits(again.action, mdp.action)
    for name in ("entry_start", "successor", "probability", "reward"):
        assert same_bits(getattr(again.rows, name), getattr(mdp.rows, name))
    assert (again.initial is None) == (mdp.initial is None)
    assert mdp.initial is None or same_bits(again.initial, mdp.initial)
    assert (again.bounds is None) == (mdp.bounds is None)
    assert mdp.bounds is None or all(same_bits(x, y) for x, y in zip(again.bounds, mdp.bounds, strict=True))


@settings(max_examples=50, deadline=None)
@given(mdp=models())
def test_npz_of_equal_models_are_equal_files(mdp):
    with tempfile.TemporaryDirectory() as folder:
        for name in ("a.npz", "b.npz"):
            write_mdp(mdp, Path(folder, name))
        assert Path(folder, "a.npz").read_bytes() == Path(folder, "b.npz").read_bytes()


def test_npz_is_what_numpy_reads(tmp_path):
    mdp = MDP.from_dense(np.full((2, 1, 2), 0.5), [[1.0], [0.0]], discount=0.9)
    write_mdp(mdp, tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz", allow_pickle=False) as arrays:
        assert float(arrays["discount"]) == 0.9
        assert arrays["probability"].tolist() == [0.5] * 4


def test_npz_discount_can_be_replaced(tmp_path):
    mdp = MDP.from_dense(np.full((2, 1, 2), 0.5), [[1.0], [0.0]], discount=0.9)
    write_mdp(mdp, tmp_path / "model.npz")
    assert read_mdp(tmp_path / "model.npz").discount == 0.9
    assert read_mdp(tmp_path / "model.npz", discount=0.5).discount == 0.5


def test_npz_holds_a_model_without_rows(tmp_path):
    some = MDP.from_transitions([0], [0], [0], [1.0], 0.0, discount=0.9)
    none = dataclasses.replace(
        some,
        row_start=np.zeros(2, np.int32),
        action=np.zeros(0, np.int32),
        rows=dataclasses.replace(
            some.rows,
            entry_start=np.zeros(1, np.int32),
            successor=np.zeros(0, np.int32),
            probability=np.zeros(0),
            reward=np.zeros(0),
        ),
    )
    write_mdp(none, tmp_path / "model.npz")
    assert read_mdp(tmp_path / "model.npz").terminal.tolist() == [True]
    for name in ("model.csv", "model.tra", "model.bmdp"):
        with pytest.raises(ValueError, match=r"The model has no transitions, so .* cannot hold it; write it as .npz"):
            write_mdp(none, tmp_path / name)


@settings(max_examples=50, deadline=None)
@given(mdp=models())
def test_csv_keeps_states_and_numbers(mdp):
    again = back(mdp, "model.csv", discount=mdp.discount)
    assert again.n_states == mdp.n_states
    assert again.terminal.tolist() == mdp.terminal.tolist()
    assert again.discount == mdp.discount
    before, after = entries(mdp), entries(again)
    assert {key: after[key] for key in before} == before
    # terminal states that nobody leads to are mentioned with probability zero
    reached = set(mdp.rows.successor.tolist())
    ghosts = [key for key in after if key not in before]
    assert sorted(t for _, _, t in ghosts) == [t for t in np.flatnonzero(mdp.terminal).tolist() if t not in reached]
    assert all(after[key][0] == 0.0 and after[key][2:] in ((None, None), (0.0, 0.0)) for key in ghosts)
    # a mention does not turn r(s, a) into r(s, a, s')
    assert again.rows.rewards_successors <= mdp.rows.rewards_successors


@settings(max_examples=50, deadline=None)
@given(mdp=models(intervals=False), seed=st.integers(0, 2**32 - 1))
def test_csv_does_not_depend_on_the_order_of_lines(mdp, seed):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.csv")
        write_mdp(mdp, path)
        head, *lines = path.read_text().splitlines()
        np.random.default_rng(seed).shuffle(lines)
        path.write_text("\n".join([head, *lines]))
        shuffled = read_mdp(path, discount=mdp.discount)
        assert entries(shuffled) == entries(back(mdp, "model.csv", discount=mdp.discount))


@settings(max_examples=50, deadline=None)
@given(mdp=models())
def test_prism_keeps_states_actions_and_numbers(mdp):
    again = back(mdp, "model.tra", discount=mdp.discount)
    assert again.n_states == mdp.n_states
    assert again.terminal.tolist() == mdp.terminal.tolist()
    assert (again.initial is None) == (mdp.initial is None)
    assert mdp.initial is None or np.abs(again.initial - mdp.initial).max() < 1e-15
    before, after = entries(mdp), entries(again)
    if mdp.bounds is None:
        assert after == before
    else:  # only the intervals are stored, and their centre is the nominal model
        assert {key: x[1:] for key, x in after.items()} == {key: x[1:] for key, x in before.items()}


@settings(max_examples=50, deadline=None)
@given(mdp=models(goals=True))
def test_bmdp_keeps_goals_and_intervals(mdp):
    again = back(mdp, "model.bmdp", discount=mdp.discount)
    assert again.terminal.tolist() == mdp.terminal.tolist()
    before, after = entries(mdp), entries(again)
    assert {key: x[1] for key, x in after.items()} == {key: x[1] for key, x in before.items()}
    for key, (p, _, low, high) in before.items():
        assert after[key][2:] == ((p, p) if low is None else (low, high))


def test_an_earlier_models_rewards_are_not_read_with_the_next(tmp_path):
    by_state = MDP.from_transitions([0, 1], [0, 0], [1, 0], [1.0, 1.0], [3.0, 4.0], discount=0.9)
    by_pair = MDP.from_transitions([0, 0, 1], [0, 1, 0], [1, 0, 0], [1.0] * 3, [1.0, 2.0, 0.0], discount=0.9)
    for mdp in (by_state, by_pair, by_state):
        write_mdp(mdp, tmp_path / "model.tra")
        assert entries(read_mdp(tmp_path / "model.tra", discount=0.9)) == entries(mdp)


def test_prism_writes_only_the_rewards_it_needs(tmp_path):
    mdp = MDP.from_transitions([0, 1], [0, 0], [1, 0], [1.0, 1.0], [3.0, 4.0], discount=0.9)
    write_mdp(mdp, tmp_path / "model.tra")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.lab", "model.srew", "model.tra"]
    assert (tmp_path / "model.tra").read_text() == "2 2 2\n0 0 1 1.0\n1 0 0 1.0\n"
    assert (tmp_path / "model.srew").read_text() == "2 2\n0 3.0\n1 4.0\n"
    assert (tmp_path / "model.lab").read_text() == '0="init" 1="deadlock"\n'


def test_prism_names_actions_that_are_not_consecutive(tmp_path):
    mdp = MDP.from_transitions([0, 0], [2, 5], [0, 0], [1.0, 1.0], 0.0, discount=0.9)
    write_mdp(mdp, tmp_path / "model.tra")
    assert (tmp_path / "model.tra").read_text() == "1 2 2\n0 0 0 1.0 a2\n0 1 0 1.0 a5\n"
    assert read_mdp(tmp_path / "model.tra", discount=0.9).action.tolist() == [2, 5]


def test_what_a_format_cannot_hold_is_refused(tmp_path):
    mdp = MDP.from_transitions([0, 1], [0, 0], [1, 0], [1.0, 1.0], 2.0, discount=0.9, initial=[0.25, 0.75])
    with pytest.raises(ValueError, match=r"states 0, 1 the probabilities 0.25, 0.75, but a PRISM file can only store"):
        write_mdp(mdp, tmp_path / "model.tra")
    with pytest.raises(ValueError, match=r"reward from state 0, action 0 to state 1 is 2, expected 0: bmdp-tool"):
        write_mdp(mdp, tmp_path / "model.bmdp")
    with pytest.raises(ValueError, match=r"model.srew is the name of a companion of a PRISM model"):
        write_mdp(dataclasses.replace(mdp, initial=None), tmp_path / "model.srew", format="prism")
    assert list(tmp_path.iterdir()) == []


def test_formats_follow_from_suffix_or_name(tmp_path):
    mdp = MDP.from_transitions([0], [0], [0], [1.0], 1.0, discount=0.9)
    write_mdp(mdp, tmp_path / "model.CSV")
    write_mdp(mdp, tmp_path / "model.data", format="csv")
    assert (tmp_path / "model.CSV").read_bytes() == (tmp_path / "model.data").read_bytes()
    assert entries(read_mdp(tmp_path / "model.data", discount=0.9, format="csv")) == entries(mdp)
    with pytest.raises(ValueError, match=r"ends in '.data', expected one of .csv, .parquet, .pq, .npz, .tra, .bmdp"):
        read_mdp(tmp_path / "model.data", discount=0.9)
    with pytest.raises(ValueError, match=r"format is 'xls', expected one of 'csv', 'parquet', 'npz', 'prism'"):
        write_mdp(mdp, tmp_path / "model.csv", format="xls")
    with pytest.raises(ValueError, match=r"discount is missing: .*model.CSV cannot store one"):
        read_mdp(tmp_path / "model.CSV")
    with pytest.raises(ValueError, match=r"discount is 1.5, expected a number in \[0, 1\]"):
        read_mdp(tmp_path / "model.CSV", discount=1.5)
    with pytest.raises(FileNotFoundError):
        read_mdp(tmp_path / "nothing.csv", discount=0.9)
    with pytest.raises(FileNotFoundError):
        read_mdp(tmp_path / "nothing.npz")
