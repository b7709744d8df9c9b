"""Tuning of settings, on made-up agents with known scores."""

from dataclasses import dataclass

import numpy as np

import urbe
from urbe.agents import QLearning, Task
from urbe.envs.finite import FiniteEnv
from urbe.paper.tuning import Contender, TuningWorld, compete
from urbe.posteriors.beliefs import Stationary

MODEL = urbe.library.riverswim(3, discount=0.9)
WORLD = TuningWorld(FiniteEnv.of(MODEL), Task(urbe.Posterior.before(MODEL), 4), Stationary(), episodes=2, seed=0)


@dataclass
class Watch:
    """Makes an agent, and notes with which settings and how many replicates."""

    runs: list

    def __call__(self, values, _belief, _env):
        self.runs.append(values["x"].copy())
        return QLearning(initial=values["x"])


def contest(score_of, settings=8, tuning_seeds=8):
    watch = Watch([])
    contender = Contender(("x",), tuple((float(k),) for k in range(settings)), watch)
    outcome = compete(contender, WORLD, lambda _: score_of(watch.runs[-1]), tuning_seeds, reported_seeds=3)
    return outcome, watch.runs


def test_a_quarter_of_the_seeds_for_all_settings_the_rest_for_the_best_of_them():
    outcome, runs = contest(lambda x: -np.abs(x - 5.0))
    assert np.array_equal(runs[0], np.repeat(np.arange(8.0), 2))
    assert sorted(set(runs[1])) in ([4.0, 5.0], [5.0, 6.0])
    assert len(runs[1]) == 2 * 6
    assert np.array_equal(runs[2], np.full(3, 5.0))
    assert outcome.setting == (5.0,)
    assert outcome.seeds.tolist() == [8, 9, 10]
    assert outcome.tuning == tuple(-abs(k - 5.0) for k in range(8))


def test_the_second_round_can_overturn_the_first():
    """Setting 0 looks best on the first seeds only."""
    rounds = iter([lambda x: np.where(x == 0.0, 10.0, x), lambda x: np.where(x == 0.0, -100.0, x)])
    outcome, _ = contest(lambda x: next(rounds)(x))
    assert outcome.setting == (7.0,)


def test_nothing_to_choose_is_not_tuned():
    outcome, runs = contest(lambda x: x, settings=1)
    assert outcome.tuning == ()
    assert len(runs) == 1
