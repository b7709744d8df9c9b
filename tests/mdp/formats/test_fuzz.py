"""Damaged text files: reading gives a valid model or a ValueError, with bounded memory."""

import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.random_models import assert_valid
from urbe.mdp.formats import read_budget, read_log, read_mdp, read_scenarios

CSV = "idstatefrom,idaction,idstateto,probability,reward\n0,0,0,0.25,1\n0,0,1,0.75,2\n0,3,2,1,0\n1,0,0,1,-3\n"
NOTES = 'note,idstateto,idaction,idstatefrom,reward,probability\n"a, b",1,0,0,1,.5\nc,0,0,0,1,5e-1\n,1,1,1,0,1\n'
BOUNDS = "idstatefrom,idaction,idstateto,lower,upper,reward\n0,0,0,0.2,0.6,0\n0,0,1,0.4,0.8,1\n1,0,1,1,1,0\n"
SCENARIOS = (
    "idstatefrom,idaction,idoutcome,idstateto,probability,reward\n"
    "0,0,0,0,0.5,1\n0,0,0,1,0.5,4\n0,0,1,1,0.25,8\n0,0,1,2,0.75,6\n1,3,0,2,1,5\n"
)
BUDGET = "idstate,idaction,budget\n0,0,0.5\n0,3,1\n1,0,0\n"
TRA = "4 4 6\n0 0 1 0.25 east\n0 0 2 0.75 east\n0 1 0 1 west\n1 0 3 1\n2 0 1 0.5\n2 0 3 0.5\n"
NAMED = "2 2 3\n0 0 1 0.25 a4\n0 0 0 0.75 a4\n0 1 1 1 a2\n"
IMDP = "3 2 3\n0 0 1 [0.2,0.6] a\n0 0 2 [0.4,0.8] a\n1 0 0 1\n"
CHAIN = "3 3\n0 1 0.5\n0 2 0.5\n1 0 1\n"
LAB = '0="init" 1="deadlock" 2="goal"\n0: 0\n2: 0 2\n3: 1\n'
SREW = "# State rewards\n4 2\n0 2\n2 -1\n"
TREW = "4 4 2\n0 0 1 10\n0 1 0 0.5\n"
BMDP = "4\n2\n2\n2\n3\n0 0 1 0.2 0.6\n0 0 2 0.4 0.8\n0 1 0 1 1\n1 1 3 0.1 0.3\n1 1 0 0.7 0.9\n2 0 2 1 1\n"

LOG = "state,action,reward,next_state,terminated,episode,step\n0,1,0.5,1,0,0,0\n1,0,-2,2,1,0,1\n0,0,1e3,0,0,7,0\n"
WORDS = 'note,done,s,a,r,s_next\n"a, b",False,0,1,.5,1\n,true,1,0,-2,2\ntrue,FALSE,0,0,1e3,0\n'

# what is damaged, under which name, beside which sound files
FILES = {
    "csv": ("m.csv", CSV, {}),
    "csv-notes": ("m.csv", NOTES, {}),
    "csv-bounds": ("m.csv", BOUNDS, {}),
    "scenarios": ("s.csv", SCENARIOS, {}),
    "budget": ("b.csv", BUDGET, {"m.csv": CSV}),
    "prism": ("m.tra", TRA, {"m.lab": LAB, "m.srew": SREW, "m.trew": TREW}),
    "prism-named": ("m.tra", NAMED, {}),
    "prism-intervals": ("m.tra", IMDP, {}),
    "prism-chain": ("m.tra", CHAIN, {}),
    "prism-labels": ("m.lab", LAB, {"m.tra": TRA}),
    "prism-state-rewards": ("m.srew", SREW, {"m.tra": TRA}),
    "prism-move-rewards": ("m.trew", TREW, {"m.tra": TRA}),
    "bmdp": ("m.bmdp", BMDP, {}),
    "log": ("l.csv", LOG, {}),
    "log-words": ("l.csv", WORDS, {}),
}
TOKENS = [
    "nan", "inf", "-1", "1e999", "-0", "1e308", "5e-324", "1e12", "1000000", "2000000000", "2147483647", "2147483648",
    "999999999999999999", "1" * 30, "1" * 5000, "0.5", "1", "0", "2", "", " ", ",", "[0,1]", "[1,0]", "a3", "x", '"',
    "#", "\0", "½", "٣", "1_0", "0x1", '0="init"', ":", "--1", "1e", ".", "+.5", "true", "False",
]  # fmt: skip
MOST_MEMORY = 100 << 20  # bytes; a million announced states, the most a header may ask for, cost about 60 MB


@st.composite
def damaged(draw, text):
    """The bytes of a text after a few accidents."""
    data = text.encode()
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["token", "token", "token", "byte", "cut", "line"]))
        if kind == "token":
            separators = [i for i, c in enumerate(data) if c in b" ,\n[]:="]
            bounds = sorted({-1, *separators, len(data)})
            at = draw(st.integers(0, len(bounds) - 2))
            data = data[: bounds[at] + 1] + draw(st.sampled_from(TOKENS)).encode() + data[bounds[at + 1] :]
        elif kind == "byte" and data:
            at = draw(st.integers(0, len(data) - 1))
            data = data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
        elif kind == "cut":
            data = data[: draw(st.integers(0, len(data)))]
        elif kind == "line":
            lines = data.splitlines(keepends=True) or [b""]
            at, to = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
            line = lines.pop(at) if draw(st.booleans()) else lines[at]
            data = b"".join(lines[:to] + ([line] if draw(st.booleans()) else []) + lines[to:])
    return data


def read(folder, name):
    """Reads the damaged file the way it is used."""
    if name == "l.csv":
        log = read_log(folder / name)
        assert len(log) > 0
        assert np.isfinite(log.reward).all()
        assert min(log.state.min(), log.action.min(), log.next_state.min()) >= 0
        return
    if name == "s.csv":
        mdp, scenarios = read_scenarios(folder / name, discount=0.9)
        assert scenarios.shape[0] == mdp.rows.n_entries
        for column in scenarios.T:
            assert (column >= 0).all()
            assert abs(mdp.rows.row_sums(column) - 1.0).max() <= 1e-9
    elif name == "b.csv":
        mdp = read_mdp(folder / "m.csv", discount=0.9)
        budget = read_budget(folder / name, mdp)
        assert budget.shape == (mdp.n_rows,)
        assert (budget >= 0).all()
        assert (budget < float("inf")).all()
    else:
        mdp = read_mdp(
            folder / Path(name).with_suffix(".tra") if (folder / "m.tra").exists() else folder / name, discount=0.9
        )
    assert_valid(mdp)


def refused(folder, name):
    """The message of the refusal, None when the file was read."""
    try:
        read(folder, name)
    except UnicodeDecodeError:  # a ValueError, but not one that says anything
        raise AssertionError("an undecodable file was not refused in words") from None
    except ValueError as error:
        return str(error)
    return None


@pytest.mark.parametrize("case", FILES)
def test_the_sound_files_are_read(tmp_path, case):
    name, text, others = FILES[case]
    for other, content in {name: text, **others}.items():
        (tmp_path / other).write_text(content)
    read(tmp_path, name)


@pytest.mark.parametrize("case", FILES)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_damaged_files_give_a_model_or_a_refusal(case, data):
    name, text, others = FILES[case]
    content = data.draw(damaged(text))
    with tempfile.TemporaryDirectory() as folder:
        for other, sound in others.items():
            Path(folder, other).write_text(sound)
        Path(folder, name).write_bytes(content)
        tracemalloc.start()
        refusal = refused(Path(folder), name)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert refusal is None or str(folder) in refusal
        assert peak < MOST_MEMORY


@pytest.mark.parametrize("filler", ["1", " ", "\t", ",", '"', "1.", "[", "a", "1 ", "-", "#", "1e", '",', '0="init" '])
@pytest.mark.parametrize("case", FILES)
def test_endless_lines_are_read_once(tmp_path, case, filler):
    """A grammar that backtracks would need hours for these."""
    name, text, others = FILES[case]
    for other, content in others.items():
        (tmp_path / other).write_text(content)
    first, second, *rest = text.splitlines(keepends=True)
    long = filler * 100_000
    for lines in (
        [long + "\n", second, *rest],
        [first, long + "\n", *rest],
        [first, second.rstrip() + long + "x\n", *rest],
    ):
        (tmp_path / name).write_text("".join(lines))
        assert len(refused(tmp_path, name) or "") < 1000
