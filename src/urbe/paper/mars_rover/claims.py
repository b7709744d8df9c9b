"""The paper's claims about Mars Rover and their verdicts, under every assumption with results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from urbe.paper.mars_rover import CHANGED, EXACT_ROBUST, MISSPECIFIED, NO_SET, NOMINAL, SMALL, WIDE
from urbe.paper.mars_rover.results import (
    Reading,
    find,
    get,
    goals,
    optimum,
    over_grid,
    readings_of,
    returns,
    waiting,
)
from urbe.paper.results import Results, common_seeds
from urbe.report.claims import judge
from urbe.report.content import Verdict
from urbe.report.numbers import percent
from urbe.statistics.verdicts import PROBABILITY, Mean, Question, Test
from urbe.types import FloatArray

NAMES = {"dqn": "DQN", "dqn-ube": "DQN-UBE", "dqn-urbe": "DQN-URBE", "calibrated-dqn-urbe": "Calibrated DQN-URBE"}

NEVER, GOOD, HIGH = 0.05, 0.95, 0.5
BELOW, ABOVE = 0.1, 0.3
"""Probabilities at which curves that cross near 0.2 must differ."""

SETS, BOTH = (WIDE, SMALL), ("greedy", "noisy")

RULES = (
    f"Robust DQN never reaches the goal if it does so in less than {percent(NEVER)} of episodes; its return is stable "
    f"if it falls by less than {percent(NEVER)} of the distance between waiting for 200 steps and the exact optimum. "
    f"DQN and DQN-UBE perform well if they return more than {percent(GOOD)} of the optimum. The return of DQN-URBE is "
    "high if it is above the midpoint between waiting and the optimum. Sensitivity is the return at 0.005 minus the "
    f"mean return over the probabilities from {MISSPECIFIED[0]:g} to {MISSPECIFIED[-1]:g}; the premise of claims about "
    "it is that the return of DQN-URBE is high at 0.005, since a policy that waits is trivially insensitive. Curves "
    f"cross near 0.2 if the first is above the second at {BELOW:g} and below it at {ABOVE:g}."
)


def verdicts(results: Results) -> list[Verdict]:
    """Verdicts on all claims, in the order of the paper; then on ours."""
    return [
        *_never(results),
        *_stable(results),
        *_good(results, "dqn", ("greedy",)),
        *_good(results, "dqn-ube", BOTH),
        *_high(results, "dqn-urbe", "Fig. 3"),
        *_less_conservative(results),
        *_less_sensitive(results, "dqn"),
        *_less_sensitive(results, "dqn-ube"),
        *_crossing(results),
        *_most_episodes(results),
        *_more_often(results),
        *_high(results, "calibrated-dqn-urbe", ""),
        *_control(results),
    ]


def _best(results: Results, world: str) -> float:
    """The return on the nominal model that no policy can beat."""
    return float(returns(optimum(results, world), NOMINAL)[0])


def _ceiling(results: Results, world: str, p: float = NOMINAL) -> float:
    """The probability of the goal that no policy can beat."""
    return float(goals(optimum(results, world), p)[0])


def _advantage(results: Results, agent: Results, world: str) -> FloatArray:
    """`(n,)` return at the nominal probability, from 0 for waiting to 1 for the optimum."""
    rest = waiting(world)
    scaled: FloatArray = (returns(agent, NOMINAL) - rest) / (_best(results, world) - rest)
    return scaled


def _never(results: Results) -> list[Verdict]:
    tests = []
    for reading in readings_of(results, ["robust-dqn"], SETS, ("greedy",)):
        (robust,) = get(results, reading, "robust-dqn")
        exact = find(results, reading.world, reading.members, EXACT_ROBUST, "greedy")
        note = f"Exact robust planning has {goals(exact, NOMINAL).mean():.3f}." if exact else ""
        asked = Question("Its probability of the goal", Mean(goals(robust, NOMINAL), PROBABILITY), NEVER, "below")
        tests.append(Test([asked], reading=reading.title, note=note))
    return judge("Robust DQN never reaches the goal, even on the nominal model.", tests, source="Fig. 3")


def _stable(results: Results) -> list[Verdict]:
    tests = []
    for reading in readings_of(results, ["robust-dqn"], SETS, ("greedy",)):
        (robust,) = get(results, reading, "robust-dqn")
        scale = _best(results, reading.world) - waiting(reading.world)
        fall = (returns(robust, NOMINAL) - over_grid(robust, "return").min(axis=1)) / scale
        asked = Question("The share by which it falls", Mean(fall, (0.0, float("inf"))), NEVER, "below")
        tests.append(Test([asked], reading=reading.title))
    return judge("The return of robust DQN is stable over failure probabilities.", tests, source="Fig. 3")


def _good(results: Results, agent: str, ways: Sequence[str]) -> list[Verdict]:
    tests = []
    for reading in readings_of(results, [agent], (NO_SET,), ways):
        (mine,) = get(results, reading, agent)
        best = _best(results, reading.world)
        asked = Question("Its share of the optimum", Mean(returns(mine, NOMINAL) / best), GOOD)
        tests.append(Test([asked], reading=reading.title, note=f"Exact optimum: {best:.4f}."))
    return judge(f"{NAMES[agent]} performs well on the nominal model.", tests, source="Fig. 3")


def _high(results: Results, agent: str, source: str) -> list[Verdict]:
    tests = []
    for reading in readings_of(results, [agent], SETS, BOTH):
        (mine,) = get(results, reading, agent)
        note = f"It returns {_mean(returns(mine, NOMINAL)):.3f}; no policy returns more than "
        note += f"{_best(results, reading.world):.4f}."
        tests.append(Test([_is_high(results, mine, reading)], reading=reading.title, note=note))
    return judge(f"{NAMES[agent]} reaches a high return on the nominal model.", tests, source=source)


def _is_high(results: Results, agent: Results, reading: Reading) -> Question:
    name = "Its return, from 0 for waiting to 1 for the optimum,"
    return Question(name, Mean(_advantage(results, agent, reading.world)), HIGH)


def _less_conservative(results: Results) -> list[Verdict]:
    tests = []
    for reading in readings_of(results, ["dqn-urbe", "robust-dqn"], SETS, BOTH):
        both = get(results, reading, "dqn-urbe", "robust-dqn")
        tests.append(Test([_difference(both)], reading=reading.title))
    claim = "DQN-URBE is less conservative than robust DQN: it returns more on the nominal model."
    return judge(claim, tests, source="Fig. 3")


def _less_sensitive(results: Results, other: str) -> list[Verdict]:
    tests = []
    for reading in readings_of(results, ["dqn-urbe", other], SETS, BOTH):
        ours, theirs = get(results, reading, "dqn-urbe", other)
        lost = [
            returns(each, NOMINAL) - sum(returns(each, p) for p in MISSPECIFIED) / len(MISSPECIFIED)
            for each in (ours, theirs)
        ]
        note = f"It loses {_mean(lost[0]):.3f}, {NAMES[other]} {_mean(lost[1]):.3f}."
        asked = Question("The difference of their losses", Mean(lost[1] - lost[0]))
        tests.append(Test([asked], [_is_high(results, ours, reading)], reading.title, note))
    claim = f"DQN-URBE is less sensitive to increasing failure probabilities than {NAMES[other]}."
    return judge(claim, tests, source="Fig. 3")


def _crossing(results: Results) -> list[Verdict]:
    tests = []
    for reading in readings_of(results, ["dqn-ube", "robust-dqn"], SETS, BOTH):
        ours, robust = get(results, reading, "dqn-ube", "robust-dqn")
        questions = [
            Question(f"DQN-UBE minus robust DQN at {BELOW:g}", Mean(returns(ours, BELOW) - returns(robust, BELOW))),
            Question(f"Robust DQN minus DQN-UBE at {ABOVE:g}", Mean(returns(robust, ABOVE) - returns(ours, ABOVE))),
        ]
        tests.append(Test(questions, reading=reading.title))
    claim = "DQN-UBE returns more than robust DQN at low failure probabilities and less above about 0.2."
    return judge(claim, tests, source="Fig. 3")


def _most_episodes(results: Results) -> list[Verdict]:
    tests = []
    for reading in readings_of(results, ["dqn-urbe"], SETS, BOTH):
        (mine,) = get(results, reading, "dqn-urbe")
        note = f"No policy has more than {_ceiling(results, reading.world):.3f}."
        asked = Question("Its probability of the goal", Mean(goals(mine, NOMINAL), PROBABILITY), 0.5)
        tests.append(Test([asked], reading=reading.title, note=note))
    return judge("On the nominal model DQN-URBE reaches the goal in most episodes.", tests, source="Fig. 4")


def _more_often(results: Results) -> list[Verdict]:
    tests = []
    for reading in readings_of(results, ["dqn-urbe", "dqn-ube"], SETS, BOTH):
        ours, theirs = (goals(each, CHANGED) for each in get(results, reading, "dqn-urbe", "dqn-ube"))
        ceiling = _ceiling(results, reading.world, CHANGED)
        name = f"The difference of their probabilities ({ours.mean():.4f} and {theirs.mean():.4f})"
        asked = Question(name, Mean(ours - theirs, (-1.0, 1.0)))
        note = f"No policy has more than {ceiling:.4f}."
        tests.append(Test([asked], reading=reading.title, note=note))
    claim = f"At a failure probability of {CHANGED:g} DQN-URBE reaches the goal more often than DQN-UBE."
    return judge(claim, tests, source="Fig. 4")


def _control(results: Results) -> list[Verdict]:
    """Whether any other noise would have done as well as the head's."""
    tests = []
    for reading in readings_of(results, ["dqn-urbe"], SETS, ("noisy",)):
        (ours,) = get(results, reading, "dqn-urbe")
        other = find(results, reading.world, reading.members, "robust-dqn-epsilon", "epsilon")
        if other:
            tests.append(Test([_difference(common_seeds(ours, other))], reading=reading.title))
    return judge("DQN-URBE returns more on the nominal model than robust DQN with a tenth of random actions.", tests)


def _difference(both: Iterable[Results]) -> Question:
    first, second = (returns(each, NOMINAL) for each in both)
    return Question(
        f"The difference of their returns ({_mean(first):.3f} and {_mean(second):.3f})", Mean(first - second)
    )


def _mean(samples: FloatArray) -> float:
    return round(float(samples.mean()), 9) + 0.0  # never minus zero
