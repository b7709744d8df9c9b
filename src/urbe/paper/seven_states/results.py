"""The results of the seven-state comparison: quantities, and verdicts."""

from __future__ import annotations

import numpy as np

from urbe.paper.results import Results, common_seeds
from urbe.paper.seven_states import ODDS, SCHEDULES
from urbe.report.claims import judge
from urbe.report.content import Verdict
from urbe.statistics.estimates import Band
from urbe.statistics.verdicts import Mean, Question, Test
from urbe.types import FloatArray

NO_BELIEF = "none"


def select(results: Results, belief: str, agent: str) -> Results:
    """Returns one agent with a belief; agents without one appear under every belief."""
    return results.where(agent=agent, belief=(belief, NO_BELIEF))


def phases(cell: Results) -> FloatArray:
    """`(seeds, phases)` mean reward per episode."""
    return cell.where(metric="phase").pivot("seed", "at")


def total(cell: Results) -> FloatArray:
    """`(seeds,)` four times the mean reward per episode."""
    weights = SCHEDULES[cell.one("schedule")]
    summed: FloatArray = np.average(phases(cell), axis=1, weights=weights) * len(ODDS)
    return summed


def curve(cell: Results) -> tuple[FloatArray, Band]:
    """Episodes, and the cumulative reward there: mean, and 10th to 90th percentile of the seeds."""
    lines = [cell.where(metric=metric).pivot("at") for metric in ("mean", "low", "high")]
    return np.array(sorted(cell.where(metric="mean").unique("at")), dtype=np.float64), Band(*lines)


def setting(cell: Results) -> str:
    """The parameters chosen on the tuning seeds."""
    return str(cell.where(metric="phase").one("setting"))


def best(results: Results) -> Results:
    """The cell with the highest mean total."""
    return max((cell for _, cell in results.groups("agent", "belief")), key=lambda cell: float(total(cell).mean()))


def beliefs_of(results: Results) -> list[str]:
    """The beliefs in the results."""
    return [belief for belief in results.unique("belief") if belief != NO_BELIEF]


def learners(results: Results) -> list[str]:
    """Returns the agents with a belief."""
    return list(results.where(belief=beliefs_of(results)).unique("agent"))


WANTED = 1.90
"""The total that calibrated URBE should reach on the paper's schedule, in the direct model."""

NEAR = 0.02
"""Totals that differ by less are equally good: a hundredth of the oracle's, 1.98."""

OURS, ROBUST, ORACLE = "calibrated URBE", "robust", "oracle"
ADVERSE = [k for k, p in enumerate(ODDS) if p < 0.14]
"""The phases in which gambling earns less than the safe reward."""


def verdicts(results: Results) -> list[Verdict]:
    """Returns the verdicts on the paper's claims, then on ours."""
    direct = results.where(reading="direct", schedule="paper")
    name = f"{OURS[0].upper()}{OURS[1:]}"
    worlds = results.groups("reading", "schedule")
    same_belief = [_more(*world, belief, "UBE") for world in worlds for belief in beliefs_of(world[1])]
    best_belief = [_best_more(*world, "URBE", "UBE") for world in worlds]
    robust = [_more(*world, belief, ROBUST) for world in worlds for belief in beliefs_of(world[1])]
    return [
        *judge("URBE earns more than UBE.", same_belief + best_belief, source="Fig. 2b"),
        *judge("URBE earns more than the robust policy.", robust, source="Fig. 2b"),
        *judge(
            "URBE earns more than UBE in the phases where gambling does not pay: direct model, paper schedule.",
            [_adverse(direct, belief) for belief in beliefs_of(direct)],
        ),
        *judge(
            f"{name} reaches {WANTED:.2f} on fresh seeds: direct model, paper schedule.",
            [_reached(direct, belief) for belief in beliefs_of(direct)],
        ),
        *judge(
            f"No other learner earns {NEAR:g} more than {OURS}, each with its best belief: direct model.",
            [_near(world, here) for world, here in worlds if world[0] == "direct"],
        ),
        *(verdict for ball in ("KL", "chi-square") for verdict in _other_ball(ball, worlds)),
    ]


def _other_ball(ball: str, worlds: list[tuple[tuple[str, ...], Results]]) -> list[Verdict]:
    """Whether URBE is at most `NEAR` worse with another ball than L1."""
    claim = f"URBE earns at most {NEAR:g} less with {ball} balls than with L1 balls, each with its best belief."
    return judge(claim, [_best_more(*world, f"URBE ({ball})", "URBE", -NEAR) for world in worlds])


def _more(world: tuple[str, ...], here: Results, belief: str, other: str) -> Test:
    """Compares URBE with another agent with the same belief."""
    reading = f"{world[0]} model, {world[1]} schedule, {belief} belief"
    return _difference(reading, select(here, belief, "URBE"), select(here, belief, other))


def _best_more(world: tuple[str, ...], here: Results, agent: str, other: str, above: float = 0.0) -> Test:
    """Compares agents, each with its best belief."""
    reading = f"{world[0]} model, {world[1]} schedule, each its best belief"
    ours, theirs = (here.where(agent=name) for name in (agent, other))
    return _difference(reading, best(ours) if ours else ours, best(theirs) if theirs else theirs, above)


def _difference(reading: str, ours: Results, theirs: Results, above: float = 0.0) -> Test:
    if not (ours and theirs):
        return Test([], reading=reading)
    first, second = _totals(ours, theirs)
    name = f"The difference of their totals ({first.mean():.3f} and {second.mean():.3f})"
    return Test([Question(name, Mean(first - second), above)], reading=reading)


def _adverse(direct: Results, belief: str) -> Test:
    ours, theirs = (select(direct, belief, agent) for agent in ("URBE", "UBE"))
    reading = f"{belief} belief"
    if not (ours and theirs):
        return Test([], reading=reading)
    first, second = (phases(cell)[:, ADVERSE].sum(axis=1) for cell in _paired(ours, theirs))
    return Test([Question("The difference over those phases", Mean(first - second))], reading=reading)


def _reached(direct: Results, belief: str) -> Test:
    ours, reading = select(direct, belief, OURS), f"{belief} belief"
    return Test([Question("Its total", Mean(total(ours)), WANTED)] if ours else [], reading=reading)


def _near(world: tuple[str, ...], here: Results) -> Test:
    """Whether calibrated URBE is at most `NEAR` behind the best of the others."""
    names = [agent for agent in here.unique("agent") if agent not in (OURS, ORACLE)]
    ours, others = here.where(agent=OURS), here.where(agent=names)
    reading = f"{world[1]} schedule"
    if not (ours and others):
        return Test([], reading=reading)
    mine, other = best(ours), best(others)
    first, second = _totals(mine, other)
    beliefs = [cell.one("belief") for cell in (mine, other)]
    name = f"{OURS} ({beliefs[0]}) minus {other.one('agent')} ({beliefs[1]}), totals {first.mean():.3f} and " + (
        f"{second.mean():.3f},"
    )
    return Test([Question(name, Mean(first - second), -NEAR)], reading=reading)


def _totals(first: Results, second: Results) -> tuple[np.ndarray, np.ndarray]:
    ours, theirs = _paired(first, second)
    return total(ours), total(theirs)


def _paired(first: Results, second: Results) -> list[Results]:
    return common_seeds(first.where(metric="phase"), second.where(metric="phase"))
