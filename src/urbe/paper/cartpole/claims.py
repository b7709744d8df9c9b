"""The paper's claims about CartPole and their verdicts.

All quantities are paired by seed, over the seeds with which all agents that a claim compares were run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from urbe.paper.cartpole.cells import LENGTHS, NOMINAL, PAPER, VARIANTS
from urbe.paper.cartpole.results import (
    agents_of,
    by_seed,
    changes_of,
    inputs_of,
    level,
    scores,
    seeds_of,
    ways,
)
from urbe.paper.results import Results
from urbe.report.claims import judge
from urbe.report.content import Verdict
from urbe.statistics.verdicts import Mean, Question, Ratio, Test
from urbe.types import FloatArray

MARGIN = 10.0
"""A dip, or a loss that stays, is at least that much: a twentieth of the highest return, 200."""

REACHED = 195.0
"""From here on a return counts as the highest."""

LONGER = tuple(length for length in LENGTHS if length > NOMINAL)

UBE, URBE, ROBUST = "dqn-ube", "dqn-urbe", "robust-dqn"
CONTROLLED = {URBE: "robust-dqn-epsilon", UBE: "dqn-epsilon"}
"""Agents that explore by their uncertainty, and the same with random actions instead."""


def verdicts(results: Results) -> list[Verdict]:
    """On the claims of the paper, each under all readings, and on ours about controls and variants."""
    return [*over_lengths(results), *over_states(results), *after_change(results)]


def over_lengths(results: Results) -> list[Verdict]:
    """Fig. 5, and the controls."""
    found = [
        *judge(
            "Robust DQN is over-conservative: with the nominal pole it earns less than DQN.",
            _tests(results, PAPER, lambda here: [here.earned("dqn", ROBUST, "nominal")]),
            source="Fig. 5",
        ),
        *judge(
            "DQN-UBE is the most sensitive: between the nominal pole and longer ones it loses most.",
            _tests(results, PAPER, lambda here: [here.lost(UBE, agent) for agent in PAPER if agent != UBE]),
            source="Fig. 5",
        ),
    ]
    for where, title in (("nominal", "the nominal pole"), ("longer", "longer poles")):
        most = _tests(results, PAPER, partial(_earns_most, where=where))
        found += judge(f"DQN-URBE earns the most with {title}.", most, source="Fig. 5")
    for agent, control in CONTROLLED.items():
        tests = _tests(results, (agent, control), partial(_earns_more, first=agent, second=control))
        claim = f"{agent} earns more than {control}, with the nominal pole and with longer ones."
        found += judge(claim, _ran(tests))
    return found


def _earns_most(here: _Reading, where: str) -> list[Question]:
    return [here.earned(URBE, agent, where) for agent in PAPER if agent != URBE]


def _earns_more(here: _Reading, first: str, second: str) -> list[Question]:
    return [here.earned(first, second, where) for where in ("nominal", "longer")]


def over_states(results: Results) -> list[Verdict]:
    """Fig. 6 a and b, as ratios of spans, and the control."""
    claims = {
        ROBUST: ("DQN-URBE visits a wider span of states in tests than robust DQN.", "Fig. 6a-b"),
        CONTROLLED[URBE]: (f"{URBE} visits a wider span of states in tests than {CONTROLLED[URBE]}.", ""),
    }
    found = []
    for other, (claim, source) in claims.items():
        tests = _tests(results, (URBE, other), partial(_wider, second=other))
        found += judge(claim, _ran(tests), source=source)
    return found


def _wider(here: _Reading, second: str) -> list[Question]:
    return [here.span(URBE, second)]


def _tests(results: Results, agents: Sequence[str], ask: Callable[[_Reading], list[Question]]) -> list[Test]:
    """What is asked, under each reading, of the seeds with which all agents were run; nothing where one was not."""
    tests = []
    for inputs in inputs_of(results):
        seeds = seeds_of(results, inputs, agents)
        for acting in ways(results, inputs):
            asked = ask(_Reading(results, inputs, acting, seeds)) if seeds else []
            tests.append(Test(asked, reading=f"{inputs} inputs, {acting} tests"))
    return tests


def _ran(tests: Sequence[Test]) -> list[Test]:
    return [test for test in tests if test.questions]


class _Reading(NamedTuple):
    """Inputs and a way of acting in tests, for some seeds; and what can be asked there."""

    results: Results
    inputs: str
    acting: str
    seeds: Sequence[int]

    def earned(self, first: str, second: str, where: str) -> Question:
        """The difference between two returns, with the nominal pole or with longer ones."""
        return Question(f"{first} - {second}, {where},", Mean(self._level(first, where) - self._level(second, where)))

    def lost(self, first: str, second: str) -> Question:
        """The difference between what two agents lose with longer poles."""
        losses = [self._level(agent, "nominal") - self._level(agent, "longer") for agent in (first, second)]
        return Question(f"{first} - {second}, loss,", Mean(losses[0] - losses[1]))

    def span(self, first: str, second: str) -> Question:
        """The ratio of the spans of the states that two agents visit."""
        spans = [
            scores(self.results, self.inputs, agent, "span", self.acting, seeds=self.seeds) for agent in (first, second)
        ]
        return Question(f"{first} / {second}", Ratio(spans[0] / spans[1]), 1.0)

    def _level(self, agent: str, where: str) -> FloatArray:
        lengths = (NOMINAL,) if where == "nominal" else LONGER
        return level(self.results, self.inputs, agent, self.acting, lengths, self.seeds)


def after_change(results: Results) -> list[Verdict]:
    """Fig. 6 c, and the controls; each takes for granted that an agent dips."""
    changed = [(inputs, change) for inputs in inputs_of(results) for change in changes_of(results, inputs)]
    both = (URBE, ROBUST)
    recovers = "recovers faster than"
    found = judge(
        f"DQN-URBE {recovers} robust DQN from a change of the pole.",
        [_recovery(results, *each, both, _gain) for each in changed],
        source="Fig. 6c",
    )
    found += judge(
        "Robust DQN does not recover from a change of the pole.",
        [_recovery(results, *each, (ROBUST,), _stays) for each in changed],
        source="Fig. 6c",
    )
    found += judge(
        "DQN-URBE reaches the highest return again after a change of the pole.",
        [_recovery(results, *each, both, _reaches) for each in changed],
        source="Fig. 6c",
    )
    for first, second in ((URBE, CONTROLLED[URBE]), *((agent, ROBUST) for agent in VARIANTS)):
        tests = [_recovery(results, *each, (first, second), _gain) for each in changed]
        found += judge(f"{first} {recovers} {second} from a change of the pole.", _ran(tests))
    return found


Windows = Mapping[str, Mapping[str, FloatArray]]
"""For each agent its mean returns "before" a change, "early" and "late" after it, and in all the time "after"."""


def _recovery(
    results: Results, inputs: str, change: float, agents: Sequence[str], ask: Callable[[Windows], Question]
) -> Test:
    """A question about the time after a change, for agents of which one dips."""
    reading = f"{inputs} inputs, {NOMINAL:g} to {change:g}"
    met = {a for a in agents_of(results, inputs) if by_seed(results, inputs, a, "early", change=change)}
    if not met.issuperset(agents):
        return Test([], reading=reading)
    seeds = seeds_of(results, inputs, agents)
    windows = {
        agent: {
            metric: scores(results, inputs, agent, metric, seeds=seeds, change=change)
            for metric in ("before", "early", "late", "after")
        }
        for agent in agents
    }
    dips = [
        Question(f"The dip of {agent}, before - early,", Mean(of["before"] - of["early"]), MARGIN)
        for agent, of in windows.items()
    ]
    return Test([ask(windows)], dips, reading)


def _gain(windows: Windows) -> Question:
    (first, ours), (second, theirs) = windows.items()
    return Question(
        f"{first} - {second}, gain,", Mean((ours["after"] - ours["before"]) - (theirs["after"] - theirs["before"]))
    )


def _stays(windows: Windows) -> Question:
    of = windows[ROBUST]
    return Question(f"{ROBUST}, before - late,", Mean(of["before"] - of["late"]), MARGIN)


def _reaches(windows: Windows) -> Question:
    return Question(f"{URBE}, late,", Mean(windows[URBE]["late"]), REACHED)
