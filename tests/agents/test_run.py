"""The loop: what is recorded and reported; runs depend only on seed and replicate, resumed or not."""

from dataclasses import replace

import numpy as np
import pytest

import urbe
from urbe.agents import (
    OLRM,
    PSRL,
    UBE,
    UCRL2,
    URBE,
    Centre,
    CertaintyEquivalent,
    Form,
    Noise,
    QLearning,
    Replan,
    Robust,
    Run,
    Task,
    run,
)
from urbe.envs import FiniteEnv, Phase
from urbe.posteriors.beliefs import Forgetting, Stationary, Window
from urbe.posteriors.change import ChangePoint

SEVEN = FiniteEnv(tuple(Phase(urbe.library.seven_states(p), 15) for p in (0.1, 0.8)))
RIVER = FiniteEnv.of(urbe.library.riverswim(4))
UNSURE = urbe.NormalGamma(mean=0.5)

AGENTS = {
    "URBE": URBE(radius=0.3),
    "noise per episode, plans per step": URBE(0.3, 0.5, Form.DIRICHLET, Window(4), Noise.EPISODE, Replan.STEP),
    "counts per step": URBE(0.3, 0.5, Form.COUNT, Forgetting(0.9), per_step=True),
    "drawn centre": URBE(0.3, 0.1, centre=Centre.SAMPLE),
    "change points": UBE(belief=ChangePoint(0.05)),
    "certainty-equivalent": CertaintyEquivalent(Forgetting(0.9)),
    "robust": Robust(0.3),
    "PSRL": PSRL(Window(5)),
    "UCRL2": UCRL2(scale=0.1, belief=Forgetting(0.9)),
    "OLRM": OLRM(bonus_scale=0.02, check_scale=0.01, radii=(0.5, 2.0)),
}


FOR_UNCERTAIN_REWARDS = {None: AGENTS.keys(), UNSURE: AGENTS.keys() - {"OLRM"}}
cases = pytest.mark.parametrize(
    ("agent", "rewards"),
    [
        pytest.param(agent, rewards, id=f"{agent}, {'known' if rewards is None else 'uncertain'} rewards")
        for rewards, names in FOR_UNCERTAIN_REWARDS.items()
        for agent in sorted(names)
    ],
)


def task_of(env, rewards=None):
    return Task(urbe.Posterior.before(env.feasible, 1.0, rewards), 3 if env is SEVEN else 8)


def bits(record):
    return record.reward.tobytes() + record.steps.tobytes()


@pytest.mark.parametrize("env", [SEVEN, RIVER], ids=["seven states", "river"])
@cases
def test_runs_depend_on_seed_and_replicate_alone(agent, env, rewards):
    kind, task = AGENTS[agent], task_of(env, rewards)
    options = {"episodes": 30, "seed": 3}
    one = run(kind, env, task, replicates=np.array([0, 5, 2]), **options)
    assert bits(one) == bits(run(kind, env, task, replicates=np.array([0, 5, 2]), **options))
    alone = run(kind, env, task, replicates=np.array([5]), **options)
    assert bits(alone) == one.reward[1:2].tobytes() + one.steps[1:2].tobytes()
    assert bits(one) != bits(run(kind, env, task, replicates=np.array([0, 5, 2]), episodes=30, seed=4))


@cases
def test_a_saved_run_goes_on_bit_for_bit(agent, rewards):
    task = task_of(SEVEN, rewards)

    def fresh():
        return Run(AGENTS[agent], SEVEN, task, episodes=30, seed=1, replicates=np.arange(3))

    whole, first, second = fresh(), fresh(), fresh()
    while not whole.done:
        whole.episode()
    for _ in range(13):
        first.episode()
    second.load(first.state())
    while not second.done:
        second.episode()
    assert bits(second.record) == bits(whole.record)
    assert first.at == 13


class Probe:
    """Notes all it observes; acts 0."""

    def __init__(self):
        self.observed, self.ends = [], 0

    def start(self, task, streams):  # noqa: ARG002
        return self

    def act(self, replicate, state, step):  # noqa: ARG002
        return np.zeros(len(state), dtype=int)

    def observe(self, steps, step):
        self.observed.append((step, steps))

    def end_episode(self):
        self.ends += 1


def test_what_happened_is_reported_and_recorded():
    """A corridor of five steps, of which four are taken; then one of two, which ends."""

    def corridor(length):
        transition = np.zeros((6, 1, 6))
        transition[np.arange(5), 0, np.where(np.arange(5) + 1 < length, np.arange(1, 6), 5)] = 1.0
        return urbe.MDP.from_dense(
            transition, np.arange(6.0)[:, None], discount=0.5, terminal=[5], initial=np.eye(6)[0]
        )

    env, probe = FiniteEnv((Phase(corridor(5), 1), Phase(corridor(2), 1))), Probe()
    record = run(probe, env, Task(urbe.Posterior.before(env.feasible), 4), episodes=2, seed=0, replicates=2)
    assert record.reward.tolist() == [[6.0, 1.0]] * 2
    assert record.steps.tolist() == [[4, 2]] * 2
    assert probe.ends == 2
    assert [step for step, _ in probe.observed] == [0, 1, 2, 3, 0, 1]
    flags = [(steps.terminated.tolist(), steps.truncated.tolist()) for _, steps in probe.observed]
    no, yes = [False] * 2, [True] * 2
    assert flags == [(no, no)] * 3 + [(no, yes), (no, no), (yes, no)]
    assert [steps.next_state.tolist() for _, steps in probe.observed[:4]] == [[1, 1], [2, 2], [3, 3], [4, 4]]


def test_an_end_at_the_last_step_is_an_end():
    env, probe = FiniteEnv.of(urbe.library.seven_states(0.5)), Probe()
    run(probe, env, Task(urbe.Posterior.before(env.feasible), 2), episodes=1, seed=0)
    assert probe.observed[-1][1].terminated.all()
    assert not probe.observed[-1][1].truncated.any()


def test_replicates_that_ended_are_not_asked_again():
    env, probe = FiniteEnv.of(urbe.library.riverswim(3)), Probe()
    gone = FiniteEnv.of(
        urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 0.0]]], 1.0, discount=1.0, terminal=[1], initial=[1.0, 0.0])
    )
    record = run(probe, gone, Task(urbe.Posterior.before(gone.feasible), 20), episodes=1, seed=0, replicates=30)
    alive = np.arange(30)
    for _, steps in probe.observed:
        assert np.array_equal(steps.replicate, alive)
        alive = alive[~steps.terminated]
    assert np.array_equal(record.reward, record.steps)
    assert len(np.unique(record.steps)) > 3
    assert env.feasible.n_states == 3


def test_progress_is_reported():
    seen = []
    run(
        UBE(belief=Stationary()), SEVEN, task_of(SEVEN), episodes=3, seed=0,
        progress=lambda done, episodes: seen.append((done, episodes)),
    )  # fmt: skip
    assert seen == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(("options", "message"), [({"episodes": 0}, "episodes is 0"), ({"seed": -1}, "seed is -1")])
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        run(UBE(), SEVEN, task_of(SEVEN), **{"episodes": 1, "seed": 0, **options})


@pytest.mark.parametrize("agent", [UBE(), QLearning()])
def test_environments_with_more_states_than_the_task_are_errors(agent):
    """Compiled agents would read beyond their tables."""
    small, large = urbe.library.riverswim(3), urbe.library.riverswim(6)
    far = FiniteEnv.of(replace(large, initial=np.eye(6)[4]))
    with pytest.raises(
        ValueError, match=r"env is in state 4, expected one of 0, \.\.\., 2: the prior of the task has 3"
    ):
        run(agent, far, task_of(FiniteEnv.of(small)), episodes=1, seed=0)


def test_a_horizon_must_be_positive():
    with pytest.raises(ValueError, match="horizon is 0"):
        run(UBE(), SEVEN, task_of(SEVEN)._replace(horizon=0), episodes=1, seed=0)
