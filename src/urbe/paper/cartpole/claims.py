"""The paper's claims on CartPole, and what the numbers say of them.

All quantities are means over common seeds. Under each reading they form families: tests over lengths, those of the
controls, spans of states, and each change of the pole. Intervals (95 %) hold for all quantities of a family together. A
claim about several of them holds when all intervals lie above the number stated, does not when any lies below, and is
undecided else; it is not testable when agents or seeds are missing, or, after a change, when no agent dips (nor seems
to, when it is undecided).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from urbe.paper.cartpole.cells import LENGTHS, NOMINAL, PAPER, VARIANTS
from urbe.paper.cartpole.results import Found
from urbe.report.content import Outcome, Verdict
from urbe.report.numbers import decimals, interval_text
from urbe.rng import stream
from urbe.statistics.comparisons import paired_comparisons
from urbe.statistics.estimates import Interval
from urbe.types import FloatArray

MARGIN = 10.0
"""A dip, or a loss that stays, is at least that much: a twentieth of the highest return, 200."""


REACHED = 195.0
"""From here on a return counts as the highest."""


LONGER = tuple(length for length in LENGTHS if length > NOMINAL)


UBE, URBE, ROBUST = "dqn-ube", "dqn-urbe", "robust-dqn"


CONTROLLED = {URBE: "robust-dqn-epsilon", UBE: "dqn-epsilon"}
"""Agents that explore by their uncertainty, and the same with random actions instead."""


SEED = 509002
"""Of the bootstrap behind simultaneous intervals."""


Family = Mapping[str, Interval]


def ways(found: Found, inputs: str) -> tuple[str, ...]:
    """Of acting in tests."""
    return ("greedy", "noisy") if found.is_noisy(inputs) else ("greedy",)


def over_lengths(found: Found, inputs: str, acting: str) -> list[Verdict]:
    """Fig. 5 under a reading, and the controls."""
    reading = f"{inputs} inputs, {acting} tests"
    seeds = found.seeds(inputs, PAPER)
    at = {agent: level(found, inputs, agent, acting, (NOMINAL,), seeds) for agent in PAPER}
    longer = {agent: level(found, inputs, agent, acting, LONGER, seeds) for agent in PAPER}
    others, rest = ([a for a in PAPER if a != agent] for agent in (URBE, UBE))
    quantities = {f"dqn - {ROBUST}, nominal": at["dqn"] - at[ROBUST]}
    quantities |= {f"{UBE} - {a}, loss": (at[UBE] - longer[UBE]) - (at[a] - longer[a]) for a in rest}
    quantities |= {f"{URBE} - {a}, nominal": at[URBE] - at[a] for a in others}
    quantities |= {f"{URBE} - {a}, longer": longer[URBE] - longer[a] for a in others}
    together = family(quantities)
    claims = (
        (
            "Robust DQN is over-conservative: with the nominal pole it earns less than DQN.",
            [f"dqn - {ROBUST}, nominal"],
        ),
        (
            "DQN-UBE is the most sensitive: between the nominal pole and longer ones it loses most.",
            [f"{UBE} - {a}, loss" for a in rest],
        ),
        ("DQN-URBE earns the most with the nominal pole.", [f"{URBE} - {a}, nominal" for a in others]),
        ("DQN-URBE earns the most with longer poles.", [f"{URBE} - {a}, longer" for a in others]),
    )
    told = [judge(claim, together, names, source="Fig. 5", reading=reading) for claim, names in claims]
    return told + _controls_over_lengths(found, inputs, acting, reading)


def _controls_over_lengths(found: Found, inputs: str, acting: str, reading: str) -> list[Verdict]:
    quantities: dict[str, FloatArray] = {}
    present = [pair for pair in CONTROLLED.items() if pair[1] in found.agents(inputs)]
    seeds = found.seeds(inputs, [agent for pair in present for agent in pair])
    for agent, control in present:
        for where, lengths in (("nominal", (NOMINAL,)), ("longer", LONGER)):
            mine, theirs = (level(found, inputs, a, acting, lengths, seeds) for a in (agent, control))
            quantities[f"{agent} - {control}, {where}"] = mine - theirs
    together = family(quantities)
    return [
        judge(
            f"{agent} earns more than {control}, with the nominal pole and with longer ones.",
            together,
            [f"{agent} - {control}, {where}" for where in ("nominal", "longer")],
            reading=reading,
        )
        for agent, control in present
    ]


def over_states(found: Found, inputs: str, acting: str) -> list[Verdict]:
    """Fig. 6 a and b, as ratios of spans, and the control."""
    reading = f"{inputs} inputs, {acting} tests"
    rivals = [agent for agent in (ROBUST, CONTROLLED[URBE]) if agent in found.agents(inputs)]
    seeds = found.seeds(inputs, [URBE, *rivals])
    spans = {a: np.log(found.scores(inputs, a, "span", acting, seeds=seeds)) for a in (URBE, *rivals)}
    logs = family({f"{URBE} / {a}": spans[URBE] - spans[a] for a in rivals})
    ratios = {name: Interval(*np.exp(interval).tolist()) for name, interval in logs.items()}
    claims = {
        ROBUST: ("DQN-URBE visits a wider span of states in tests than robust DQN.", "Fig. 6a-b"),
        CONTROLLED[URBE]: (f"{URBE} visits a wider span of states in tests than {CONTROLLED[URBE]}.", ""),
    }
    return [
        judge(claims[a][0], ratios, [f"{URBE} / {a}"], above=1.0, source=claims[a][1], reading=reading, least=2)
        for a in rivals
    ]


def after_change(found: Found, inputs: str, change: float) -> list[Verdict]:
    """Fig. 6 c, and the controls."""
    reading = f"{inputs} inputs, {NOMINAL:g} to {change:g}"
    dips = dip_intervals(found, inputs, change)
    present = list(dips)
    seeds = found.seeds(inputs, present)

    def of(agent: str, metric: str) -> FloatArray:
        return found.scores(inputs, agent, metric, seeds=seeds, change=change)

    gain = {a: of(a, "after") - of(a, "before") for a in present}
    pairs = [(URBE, ROBUST), (URBE, CONTROLLED[URBE]), *((agent, ROBUST) for agent in VARIANTS)]
    pairs = [pair for pair in pairs if set(pair) <= set(present)]
    quantities = {f"{a} - {b}, gain": gain[a] - gain[b] for a, b in pairs}
    if {URBE, ROBUST} <= set(present):
        quantities[f"{ROBUST}, before - late"] = of(ROBUST, "before") - of(ROBUST, "late")
        quantities[f"{URBE}, late"] = of(URBE, "late")
    together = family(quantities)

    def told(claim: str, name: str, agents: Sequence[str], above: float = 0.0, source: str = "") -> Verdict:
        if together and not any(_is_dip(dips[a]) for a in agents if a in dips):
            falls = f"early is lower than before by: {', '.join(f'{a} {_text(dips[a])}' for a in agents if a in dips)}."
            if any(dips[a].estimate >= MARGIN for a in agents if a in dips):
                why = f"Whether there was a dip to recover from is not sure: {falls}"
                return Verdict(claim, "undecided", why, source, reading)
            why = f"No agent dips by {MARGIN:g} or more: {falls}"
            return Verdict(claim, "not testable", why, source, reading)
        return judge(claim, together, [name], above=above, source=source, reading=reading)

    paper, both = "Fig. 6c", (URBE, ROBUST)
    claims = [
        told("DQN-URBE recovers faster than robust DQN from a change of the pole.", f"{URBE} - {ROBUST}, gain", both,
             source=paper),
        told("Robust DQN does not recover from a change of the pole.", f"{ROBUST}, before - late", (ROBUST,), MARGIN,
             paper),
        told("DQN-URBE reaches the highest return again after a change of the pole.", f"{URBE}, late", both, REACHED,
             paper),
    ]  # fmt: skip
    own = [
        told(f"{a} recovers faster than {b} from a change of the pole.", f"{a} - {b}, gain", (a, b))
        for a, b in pairs
        if (a, b) != both
    ]
    return claims + own if set(both) & set(present) else own


def dip_intervals(found: Found, inputs: str, change: float) -> dict[str, Interval]:
    """How much less each agent earned early after a change than before it; none with fewer than two seeds."""
    agents = [a for a in found.agents(inputs) if found.by_seed(inputs, a, "early", change=change)]
    seeds = found.seeds(inputs, agents)
    windows = {a: [found.scores(inputs, a, m, seeds=seeds, change=change) for m in ("before", "early")] for a in agents}
    return dict(family({a: before - early for a, (before, early) in windows.items()}))


def level(
    found: Found, inputs: str, agent: str, acting: str, lengths: Sequence[float], seeds: Sequence[int]
) -> FloatArray:
    """`(n,)` mean test return of each seed over some lengths."""
    returns = [found.scores(inputs, agent, "return", acting, seeds=seeds, at=length) for length in lengths]
    mean: FloatArray = np.mean(returns, axis=0)
    return mean


def family(quantities: Mapping[str, FloatArray]) -> Family:
    """Simultaneous intervals of the means of quantities over the same seeds; none of what is missing for a seed."""
    whole = {name: values for name, values in quantities.items() if len(values) >= 2 and np.isfinite(values).all()}
    if not whole:
        return {}
    zero = np.zeros(len(next(iter(whole.values()))))
    found = paired_comparisons(whole | {"": zero}, stream(SEED, *whole), against="")
    return {comparison.first: comparison.simultaneous for comparison in found}


def judge(
    claim: str,
    intervals: Family,
    names: Sequence[str],
    *,
    above: float = 0.0,
    source: str = "",
    reading: str = "",
    least: int = 0,
) -> Verdict:
    """The verdict on a claim that all these quantities are above a number; told with at least so many decimals."""
    if not names or not set(names) <= set(intervals):
        why = "Fewer than two seeds have been run with all agents that it is about."
        return Verdict(claim, "not testable", why, source, reading)
    asked = [intervals[name] for name in names]
    outcome: Outcome = "undecided"
    if all(interval.low > above for interval in asked):
        outcome = "holds"
    elif any(interval.high < above for interval in asked):
        outcome = "does not hold"
    told = "; ".join(f"{name}: {_text(interval, least)}" for name, interval in zip(names, asked, strict=True))
    than = "" if above == 0.0 else f"; to be above {above:g}"
    return Verdict(claim, outcome, f"{told}{than}.", source, reading)


def _is_dip(interval: Interval) -> bool:
    return interval.low > 0.0 and interval.estimate >= MARGIN


def _text(interval: Interval, least: int = 0) -> str:
    return interval_text(interval, min(max(decimals([interval]), least), 2))
