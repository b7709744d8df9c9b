"""The compiled loop: the content of the replay, splits into calls, and diagnostics."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fixtures.deep_runs import HEAD, KINDS, POLE, POLES, Rig, pole_rig, same_bits
from oracles.learner_random import Randomness
from oracles.paper_agent import as_lists, forward
from urbe.deep.core.learner import Progress
from urbe.deep.core.precision import double
from urbe.deep.core.targets import at, member_targets
from urbe.deep.loops.meters import PER_STEP, PER_UPDATE, add, init_meters, means
from urbe.simulators import StepChange, UncertaintySet

GAMMA = np.float32(0.9)
STEPS = 90  # fewer than the replay holds
outcomes = jax.jit(POLE.outcomes)


def under(state, action, params):
    """Where CartPole goes: observation, reward and whether it ended, by a call of its own."""
    found = outcomes(jnp.asarray(state), jnp.int32(action), params)
    return np.asarray(found.state[0]), float(found.reward[0]), bool(found.terminated[0])


def lived(run):
    """The replay of a run as NumPy arrays, what was written of it."""
    replay = jax.tree.map(np.asarray, run.learner.replay)
    n = int(replay.inserted)
    return jax.tree.map(lambda leaf: leaf[:n] if leaf.ndim else leaf, replay)


@pytest.mark.parametrize("kind", ["observed", "robust"])
def test_transitions_are_what_happened_and_what_would_have_happened(kind):
    replay = lived(pole_rig(kind).after(0, STEPS))
    assert len(replay.action) == STEPS
    members = [POLE.nominal()] if kind == "observed" else POLES.members()
    elapsed, ended_count, cut_count = 0, 0, 0
    for i in range(STEPS):
        elapsed += 1
        after, _, ended = under(replay.obs[i], replay.action[i], POLE.nominal())
        cut = elapsed == POLE.time_limit and not ended
        assert replay.last[i] == (ended or cut)
        for k, params in enumerate(members):
            place, reward, over = under(replay.obs[i], replay.action[i], params)
            # another compilation rounds otherwise
            np.testing.assert_allclose(replay.successors.obs[i, k, 0], place, rtol=1e-5, atol=1e-6)
            assert replay.successors.gain[i, k] == reward
            assert replay.successors.weight[i, k, 0] == (0.0 if over else GAMMA)  # a cut goes on, an end does not
        if i + 1 < STEPS:
            assert np.array_equal(replay.obs[i + 1], replay.next_obs[i])
            assert replay.action[i + 1] == replay.next_action[i]
        if replay.last[i]:
            assert np.abs(replay.next_obs[i]).max() <= 0.05  # a new episode
            elapsed = 0
        else:
            np.testing.assert_allclose(replay.next_obs[i], after, rtol=1e-5, atol=1e-6)
            # what was observed is what the member in force predicts, to the last bit
            assert np.array_equal(replay.next_obs[i], replay.successors.obs[i, 0, 0])
        ended_count, cut_count = ended_count + ended, cut_count + cut
    assert ended_count > 0
    assert cut_count > 0


def test_cached_targets_are_the_naive_ones_at_every_step():
    rig = pole_rig("robust")
    run = rig.start(0)
    compute = jax.jit(lambda target, successors: member_targets(rig.settings, target, target, successors))
    with double():
        random = Randomness(run.learner.key)
        for _ in range(STEPS):
            before, run = run, rig.advance(run, 1)
            if int(run.learner.updates) == int(before.learner.updates):
                continue
            replay = run.learner.replay
            places = random.places(int(before.learner.updates), rig.settings.batch, int(replay.inserted))
            places = jnp.asarray(places, jnp.int32)
            naive = compute(before.learner.target, at(replay.successors, places))
            np.testing.assert_allclose(replay.target[places], naive, rtol=1e-5, atol=1e-5)
            assert (replay.stamp[places] == before.learner.version).all()
    assert int(run.learner.version) >= 8


def test_how_a_run_is_cut_into_calls_changes_no_bit():
    rig = pole_rig("urbe")
    whole, parts = rig.after(3, 150), rig.start(3)
    for steps in (1, 0, 37, 12, 100):
        parts = rig.advance(parts, steps)
    assert same_bits(whole, parts)
    assert int(whole.learner.step) == 150


def test_the_seed_decides_everything():
    rig = pole_rig("urbe")
    assert same_bits(rig.after(3, 60), rig.after(3, 60))
    one, other = rig.after(3, 60), rig.after(4, 60)
    for name in ("q", "head", "replay"):
        assert not same_bits(getattr(one.learner, name), getattr(other.learner, name))
    assert not same_bits(one.world.state, other.world.state)


def test_agents_of_one_seed_start_alike():
    """Whatever their kind: comparisons of agents are paired."""
    plain, head = pole_rig("observed").start(5), pole_rig("urbe").start(5)
    assert same_bits(plain.learner.q, head.learner.q)
    assert same_bits(plain.world.state, head.world.state)
    assert same_bits(plain.learner.q, plain.learner.target)


def test_episodes_are_noted_with_their_ends_returns_and_lengths():
    run = pole_rig("observed").after(0, STEPS)
    ends = np.flatnonzero(lived(run).last) + 1
    n = int(run.episodes.ended)
    assert n == len(ends) == int(run.learner.episodes)
    assert np.asarray(run.episodes.step[:n]).tolist() == ends.tolist()
    assert np.asarray(run.episodes.length[:n]).tolist() == np.diff(ends, prepend=0).tolist()
    assert np.asarray(run.episodes.episode_return[:n]).tolist() == np.diff(ends, prepend=0).tolist()  # one per step


def test_agents_that_share_a_loop_have_their_own_members():
    others = UncertaintySet.grid(POLE, half_length=(0.3, 2.5))
    for members in (others, POLES):
        replay = lived(Rig(KINDS["robust"][0], POLE, members).after(0, 30))
        for i in (0, 29):
            for k, params in enumerate(members.members()):
                place, _, _ = under(replay.obs[i], replay.action[i], params)
                np.testing.assert_allclose(replay.successors.obs[i, k, 0], place, rtol=1e-5, atol=1e-6)


def test_the_users_own_arrays_stay_as_wide_as_they_were():
    pole_rig("robust").after(0, 1)
    assert jnp.zeros(1).dtype == jnp.float32
    assert not jax.config.jax_enable_x64


CHANGE = StepChange(((2, POLE.nominal()), (1, POLE.nominal()._replace(half_length=1.5))), repeat=True)


@cache
def changing_rig():
    return Rig(*KINDS["robust"][:1], POLE, POLES, CHANGE)


@pytest.mark.slow
def test_parameters_change_with_the_schedule_and_members_do_not():
    rig = changing_rig()
    run, lengths = rig.start(0), []
    for _ in range(STEPS):
        lengths.append(float(rig.schedule.params(run.world.schedule).half_length))
        run = rig.advance(run, 1)
    replay = lived(run)
    episode = np.concatenate([[0], np.cumsum(replay.last)[:-1]])
    assert lengths == [1.5 if number % 3 == 2 else 0.5 for number in episode]
    assert len(set(episode)) > 5
    for i in range(STEPS):
        for k, params in enumerate(POLES.members()):
            place, _, _ = under(replay.obs[i], replay.action[i], params)
            np.testing.assert_allclose(replay.successors.obs[i, k, 0], place, rtol=1e-5, atol=1e-6)
        if not replay.last[i]:
            in_force = 0 if lengths[i] == 0.5 else 2
            assert np.array_equal(replay.next_obs[i], replay.successors.obs[i, in_force, 0])


def test_diagnostics_are_what_they_say():
    """Each mean of the log, from the states before and after the step, in float64."""
    rig = pole_rig("urbe")
    settings, run = rig.settings, rig.start(1)
    random, sums, n_updates = Randomness(run.learner.key), dict.fromkeys((*PER_STEP, *PER_UPDATE), 0.0), 0
    for step in range(40):
        before, run = run.learner, rig.advance(run, 1)
        replay = lived(run)
        q, head = (as_lists(net) for net in (before.q, before.head.layers))
        phi, values = forward(q, replay.obs[step])[-2], forward(q, replay.next_obs[step])
        w = forward(head, values[-2])[-1]
        with double():
            noise = random.acting(step, 1, 2)[0][0]
        sigma = np.asarray(before.head.gram.sigma)[replay.action[step]]
        noisy = values[-1] + HEAD.beta * noise * np.sqrt(np.maximum(w, 0.0))
        expected = {
            "epsilon": 1.0 - 0.9 * min(step / 80, 1.0),
            "flipped": float(noisy.argmax() != values[-1].argmax()),
            "nu": phi @ sigma @ phi,
            "w": w.mean(),
            "negative_w": (w < 0).mean(),
            "feature_norm": np.linalg.norm(phi),
        }
        if int(run.learner.updates) > int(before.updates):
            n_updates += 1
            with double():
                places = random.places(int(before.updates), settings.batch, step + 1)
            wanted = np.asarray(run.learner.replay.target)[places].min(axis=-1)
            td = wanted - forward(q, replay.obs[places])[-1][np.arange(settings.batch), replay.action[places]]
            expected |= {"td_error": np.abs(td).mean(), "loss": (td**2).mean()}
        for name, value in expected.items():
            sums[name] += value
    found = means(run.meters)
    assert n_updates == int(run.meters.updates) == 31
    for name in PER_STEP:
        assert found[name] == pytest.approx(sums[name] / 40, rel=1e-4, abs=1e-6), name
    for name in PER_UPDATE:
        assert found[name] == pytest.approx(sums[name] / n_updates, rel=1e-4), name
    assert 0.0 < found["negative_w"] < 1.0
    assert found["flipped"] > 0.0


def test_means_are_over_updates_where_calls_have_several_or_none():
    """Reported are the mean loss of a call and its updates: two of 1, none, one of 4."""
    numbers = {name: jnp.float32(2.0) for name in Progress._fields}
    with double():
        meters = init_meters()
        for updates, loss in ((2, 1.0), (0, 0.0), (1, 4.0)):
            meters = add(meters, Progress(**numbers | {"updates": jnp.int32(updates), "loss": jnp.float32(loss)}))
    found = means(meters)
    assert found["loss"] == pytest.approx(2.0)
    assert found["nu"] == pytest.approx(2.0)


def test_without_updates_there_is_no_mean_loss():
    with double():
        expected = means(init_meters())
    assert np.isnan(list(expected.values())).all()
