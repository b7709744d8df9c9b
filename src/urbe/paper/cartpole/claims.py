"""The paper's claims about CartPole and their verdicts.

All quantities are paired by seed, over the seeds with which all agents that a claim compares were run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from urbe.paper.cartpole import LENGTHS, NOMINAL, PAPER, VARIANTS
from urbe.paper.cartpole.results import changed_agents, changes_of, level, readings, scores, seeds_of, ways
from urbe.paper.results import Results
from urbe.report.claims import judge
from urbe.report.content import Verdict
from urbe.statistics.verdicts import Mean, Question, Ratio, Test
from urbe.types import FloatArray

MARGIN = 10.0
"""The least size of a dip, or of a lasting loss: a twentieth of the highest return, 200."""

REACHED = 195.0
"""Returns of at least this count as the highest."""

LONGER = tuple(length for length in LENGTHS if length > NOMINAL)

UBE, URBE, ROBUST = "dqn-ube", "dqn-urbe", "robust-dqn"
CONTROLLED = {URBE: "robust-dqn-epsilon", UBE: "dqn-epsilon"}
"""Agents that explore by their uncertainty, and their controls with random actions instead."""


def verdicts(results: Results) -> list[Verdict]:
    """Verdicts on the claims of the paper, under all assumptions, and on ours about controls and variants."""
    return [*over_lengths(results), *over_states(results), *after_change(results)]


def over_lengths(results: Results) -> list[Verdict]:
    """Verdicts on Fig. 5, and on the controls."""
    conservative = "Robust DQN is over-conservative: with the nominal pole it earns less than DQN."
    sensitive = "DQN-UBE is the most sensitive: between the nominal pole and longer ones it loses most."
    loses = [partial(_Reading.lost, first=UBE, second=agent) for agent in PAPER if agent != UBE]
    found = [
        *judge(conservative, _tests(results, PAPER, [_earns("dqn", ROBUST, "nominal")]), source="Fig. 5"),
        *judge(sensitive, _tests(results, PAPER, loses), source="Fig. 5"),
    ]
    for where, title in (("nominal", "the nominal pole"), ("longer", "longer poles")):
        most = [_earns(URBE, agent, where) for agent in PAPER if agent != URBE]
        found += judge(f"DQN-URBE earns the most with {title}.", _tests(results, PAPER, most), source="Fig. 5")
    for agent, control in CONTROLLED.items():
        more = [_earns(agent, control, where) for where in ("nominal", "longer")]
        claim = f"{agent} earns more than {control}, with the nominal pole and with longer ones."
        found += judge(claim, _ran(_tests(results, (agent, control), more)))
    return found


def over_states(results: Results) -> list[Verdict]:
    """Verdicts on Fig. 6 a and b, as ratios of spans, and on the control."""
    claims = {
        ROBUST: ("DQN-URBE visits a wider span of states in tests than robust DQN.", "Fig. 6a-b"),
        CONTROLLED[URBE]: (f"{URBE} visits a wider span of states in tests than {CONTROLLED[URBE]}.", ""),
    }
    found = []
    for other, (claim, source) in claims.items():
        tests = _tests(results, (URBE, other), [partial(_Reading.span, first=URBE, second=other)])
        found += judge(claim, _ran(tests), source=source)
    return found


Ask = Callable[["_Reading"], Question]


def _earns(first: str, second: str, where: str) -> Ask:
    return partial(_Reading.earned, first=first, second=second, where=where)


def _tests(results: Results, agents: Sequence[str], asked: Sequence[Ask]) -> list[Test]:
    """Tests under each assumption, over the common seeds of all agents; without questions if there are none."""
    tests = []
    for inputs, here in readings(results):
        seeds = seeds_of(here, agents)
        for acting in ways(here):
            questions = [ask(_Reading(here, acting, seeds)) for ask in asked] if seeds else []
            tests.append(Test(questions, reading=f"{inputs} inputs, {acting} tests"))
    return tests


def _ran(tests: Sequence[Test]) -> list[Test]:
    return [test for test in tests if test.questions]


class _Reading(NamedTuple):
    """Results with given inputs, test policy and seeds, and the questions about them."""

    here: Results
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
        spans = [scores(self.here, agent, "span", self.acting, seeds=self.seeds) for agent in (first, second)]
        return Question(f"{first} / {second}", Ratio(spans[0] / spans[1]), 1.0)

    def _level(self, agent: str, where: str) -> FloatArray:
        lengths = (NOMINAL,) if where == "nominal" else LONGER
        return level(self.here, agent, self.acting, lengths, self.seeds)


def after_change(results: Results) -> list[Verdict]:
    """Verdicts on Fig. 6 c, and on the controls; their premise is that an agent dips."""
    changed = [(here, change) for _, here in readings(results) for change in changes_of(here)]

    def tests(agents: Sequence[str], ask: Callable[[Windows], Question]) -> list[Test]:
        return [_recovery(here, change, agents, ask) for here, change in changed]

    faster = "{} recovers faster than {} from a change of the pole."
    stays = "Robust DQN does not recover from a change of the pole."
    highest = "DQN-URBE reaches the highest return again after a change of the pole."
    found = judge(faster.format("DQN-URBE", "robust DQN"), tests((URBE, ROBUST), _gain), source="Fig. 6c")
    found += judge(stays, tests((ROBUST,), _stays), source="Fig. 6c")
    found += judge(highest, tests((URBE, ROBUST), _reaches), source="Fig. 6c")
    for pair in ((URBE, CONTROLLED[URBE]), *((agent, ROBUST) for agent in VARIANTS)):
        found += judge(faster.format(*pair), _ran(tests(pair, _gain)))
    return found


Windows = Mapping[str, Mapping[str, FloatArray]]
"""For each agent its mean returns "before" a change, "early" and "late" after it, and in all the time "after"."""


def _recovery(here: Results, change: float, agents: Sequence[str], ask: Callable[[Windows], Question]) -> Test:
    """A question about the time after a change, with the premise that one of the agents dips."""
    reading = f"{here.one('inputs')} inputs, {NOMINAL:g} to {change:g}"
    if not set(agents) <= set(changed_agents(here, change)):
        return Test([], reading=reading)
    seeds = seeds_of(here, agents)
    windows = {
        agent: {
            metric: scores(here, agent, metric, seeds=seeds, change=change)
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
