"""The simulator of the seven states equals the library's model, bit for bit."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import urbe
from urbe.paper.seven_states import ODDS as EXPERIMENT_ODDS
from urbe.simulators import SevenStates, SevenStatesParams, StepChange, performance, to_mdp
from urbe.simulators.seven_states import ODDS


def same_model(a, b):
    parts = [(a.row_start, b.row_start), (a.action, b.action), (a.initial, b.initial), (a.discount, b.discount)]
    for name in ("entry_start", "successor", "probability", "reward"):
        parts.append((getattr(a.rows, name), getattr(b.rows, name)))
    return all(np.array_equal(x, y) and np.asarray(x).dtype == np.asarray(y).dtype for x, y in parts)


@pytest.mark.parametrize("reading", ["direct", "chain"])
def test_the_model_is_the_librarys(reading):
    for p in (*ODDS, 0.0, 1.0, 1 / 3):
        model = to_mdp(SevenStates(reading), SevenStatesParams.alike(p), discount=0.97)
        assert same_model(model, urbe.library.seven_states(p, reading, discount=0.97))
    assert not same_model(model, urbe.library.seven_states(0.5, reading, discount=0.97))


def test_the_phases_are_the_papers():
    assert ODDS == EXPERIMENT_ODDS
    schedule = StepChange(tuple((250, SevenStatesParams.alike(p)) for p in ODDS))
    found = [float(schedule.at(jnp.int32(episode)).success_4) for episode in (0, 249, 250, 500, 999, 5000)]
    assert found == pytest.approx([0.001, 0.001, 0.8, 0.1, 0.9, 0.9], abs=1e-7)


@pytest.mark.parametrize(
    ("reading", "won"), [("direct", lambda p: (p, p, p)), ("chain", lambda p: (1 - (1 - p) ** 3, 1 - (1 - p) ** 2, p))]
)
def test_gambles_win_as_often_as_by_pen_and_paper(reading, won):
    for action, chance in enumerate(won(0.1), start=1):
        found = performance(SevenStates(reading), SevenStatesParams.alike(0.1), [action] * 7, discount=1.0)
        assert found.total == pytest.approx(chance, abs=1e-15)
        assert found.visits[3] == pytest.approx(chance, abs=1e-15)
        assert found.visits[6] == pytest.approx(1 - chance, abs=1e-15)
    safe = performance(SevenStates(reading), SevenStatesParams.alike(0.1), [0] * 7, discount=1.0)
    assert safe.total == 0.14


def test_every_gamble_has_odds_of_its_own():
    params = SevenStatesParams(0.25, 0.5, 0.75)
    found = [performance(SevenStates(), params, [a] * 7, discount=1.0).total for a in range(4)]
    assert found == [0.14, 0.25, 0.5, 0.75]
    chain = [performance(SevenStates("chain"), params, [a] * 7, discount=1.0).total for a in range(4)]
    assert chain == [0.14, 0.25 + 0.75 * (0.5 + 0.5 * 0.75), 0.5 + 0.5 * 0.75, 0.75]


def test_ends_are_never_left_whatever_is_done():
    kind = SevenStates("chain")
    over = jax.jit(jax.vmap(jax.vmap(kind.outcomes, (None, 0, None)), (0, None, None)))
    found = over(jnp.asarray([1, 3, 6], jnp.int32), jnp.arange(4, dtype=jnp.int32), kind.nominal())
    assert np.array_equal(found.state, np.broadcast_to([[[1]], [[3]], [[6]]], (3, 4, 2)))
    assert not np.asarray(found.reward).any()
    assert np.asarray(found.terminated).all()
    assert np.array_equal(jax.vmap(kind.observe)(jnp.arange(7, dtype=jnp.int32)), np.eye(7))
    assert int(kind.start(jax.random.key(0), kind.nominal())) == 0


def test_refusals():
    with pytest.raises(ValueError, match=re.escape("reading is 'both', expected one of 'direct', 'chain'")):
        SevenStates("both")
    with pytest.raises(ValueError, match=re.escape("success_4 is -1, expected a number in [0, 1]")):
        SevenStates().check_params({"success_2": 0.5, "success_4": -1, "success_5": 0.5})
