"""Numbers that are not finite stop a run where they arise, and are named."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fixtures.deep_runs import SMALL, Rig, arrays, same_bits
from fixtures.tiny_worlds import Given, Hazard, HazardParams
from urbe.deep.core.finite import KINDS, FiniteCheck, NotFinite, check_finite, init_finite_check, raise_not_finite
from urbe.deep.core.last_layer import LastLayer
from urbe.deep.core.natures import Worst
from urbe.deep.core.precision import double
from urbe.deep.core.replay import Successors
from urbe.deep.loops.compiled_trainer import CompiledTrainer
from urbe.simulators import UncertaintySet

WHEN = 6
SETTINGS = replace(SMALL, nature=Worst(), warm_up=2, batch=64)  # of so many the last one is surely one


def world(fate):
    return Given(HazardParams(jnp.float32(fate), jnp.float32(0.0)))


@cache
def rig():
    members = HazardParams(jnp.zeros(3, jnp.float32), jnp.asarray([0.0, 0.0, 1.0], jnp.float32))
    return Rig(SETTINGS, Hazard(WHEN), UncertaintySet(members, 0), world(0))


@pytest.mark.parametrize(
    ("fate", "kind", "member"),
    [(1, "observation", None), (2, "reward", None), (3, "member's observation", 2), (4, "member's reward", 2)],
)
def test_a_run_stops_where_the_number_arose(fate, kind, member):
    run = rig().advance(rig().start(0, world(fate)), 100)
    assert KINDS[int(run.finite.kind)] == kind
    assert int(run.finite.step) == WHEN
    assert int(run.learner.step) == WHEN  # nothing afterwards
    assert int(run.learner.replay.inserted) == WHEN
    assert member is None or int(run.finite.member) == member
    again = rig().advance(run, 100)
    assert same_bits(run, again)
    before = rig().advance(rig().start(0, world(fate)), WHEN - 1)
    assert int(before.finite.kind) == 0
    assert all(np.isfinite(leaf).all() for leaf in arrays(before.learner) if leaf.dtype.kind == "f")


def test_a_loss_that_overflows_is_named():
    run = rig().advance(rig().start(0, world(5)), 100)
    assert KINDS[int(run.finite.kind)] == "loss"
    assert int(run.learner.step) == int(run.finite.step) < WHEN + 4


@pytest.mark.slow
def test_a_head_that_overflows_does_not_decide_in_silence():
    """The best of values that are no numbers is the first one: without a word the agent would do nothing else."""
    variance = LastLayer(beta=1.0, hidden=(6,), learning_rate=1e30)
    head = Rig(replace(SETTINGS, nature=SMALL.nature, variance=variance), Hazard(WHEN), schedule=world(0))
    run = head.after(0, 100)
    assert KINDS[int(run.finite.kind)] == "uncertainty"
    assert int(run.learner.step) == int(run.finite.step) < 20


def test_without_trouble_it_goes_on():
    run = rig().advance(rig().start(0, world(0)), 100)
    assert int(run.finite.kind) == 0
    assert int(run.learner.step) == 100


def seen(obs=0.0, reward=0.0, member_obs=0.0, gain=0.0, loss=0.0, w=0.0, step=3, finite=None):
    """What `look` notes when one number is as given, that of member 1 of three, environment 1 of two."""
    zeros = np.zeros((2, 3, 2, 4), np.float32)
    zeros[1, 1, 0, 2] = member_obs
    gains = np.zeros((2, 3), np.float32)
    gains[1, 1] = gain
    successors = Successors(jnp.asarray(gains), jnp.ones((2, 3, 2), jnp.float32), jnp.asarray(zeros))
    first = init_finite_check() if finite is None else finite
    noted = _check(
        first,
        jnp.int32(step),
        jnp.asarray([[0.0, obs]], jnp.float32),
        jnp.asarray([0.0, reward], jnp.float32),
        successors,
        jnp.float32(loss),
        jnp.float32(w),
    )
    return FiniteCheck(*(int(leaf) for leaf in noted))


_check = jax.jit(check_finite)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("place", "kind"), [("obs", 1), ("reward", 2), ("member_obs", 3), ("gain", 4), ("loss", 5), ("w", 6)]
)
def test_each_place_is_looked_at(place, kind, number):
    noted = seen(**{place: number})
    assert noted.kind == kind
    assert noted.step == 3
    assert kind not in (3, 4) or noted.member == 1


def test_the_first_is_kept_and_within_a_step_the_cause_before_its_effects():
    assert seen().kind == 0
    assert seen(obs=np.nan, gain=np.nan, loss=np.nan).kind == 1
    assert seen(gain=np.nan, loss=np.nan).kind == 4
    early = jax.tree.map(jnp.int32, seen(reward=np.nan, step=7))
    assert seen(obs=np.nan, step=9, finite=early) == (2, 7, early.member)


@pytest.mark.parametrize(
    ("kind", "one", "message"),
    [
        (1, False, "The observation at step 12 is not finite, expected numbers. It comes from the environment"),
        (2, True, "The reward at step 12 is not finite"),
        (3, False, r"The member's observation \(member 4\) at step 12 is not finite"),
        (4, False, r"The member's reward \(member 4\) at step 12 is not finite"),
        (3, True, "The observation at step 12 is not finite"),
        (4, True, "The reward at step 12 is not finite"),
        (6, False, "The uncertainty at step 12 is not finite, expected numbers. Lower the learning rate of the unc"),
        (5, True, "The loss at step 12 is not finite, expected numbers. Lower the learning rate"),
    ],
)
def test_what_is_said(kind, one, message):
    with pytest.raises(NotFinite, match=message):
        raise_not_finite(FiniteCheck(kind, 12, 4), one)
    raise_not_finite(FiniteCheck(0, 0, 0), one)


@pytest.mark.slow
def test_a_trainer_raises_and_stays_where_it_was():
    simulator = Hazard(WHEN)
    trainer = CompiledTrainer(replace(SETTINGS, nature=SMALL.nature), simulator, None, world(2), 0, 100)
    trainer.advance(WHEN - 1)
    for _ in range(2):
        with pytest.raises(NotFinite, match=f"The reward at step {WHEN} is not finite"):
            trainer.advance(50)
        assert trainer.step == WHEN
    with double():
        assert int(trainer.learner.replay.inserted) == WHEN
