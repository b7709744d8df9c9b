"""Figures, tables and text of the Mars Rover comparison."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from urbe.paper.mars_rover.cells import (
    CHANGED,
    EPSILON,
    EXACT_ROBUST,
    GRID,
    NOMINAL,
    OPTIMUM,
    QUICK_SEEDS,
    SMALL,
    TEST_EPISODES,
    TUNING_SEEDS,
    WIDE,
    WORLDS,
    set_told,
)
from urbe.paper.mars_rover.claims import RULES, verdicts
from urbe.paper.mars_rover.maps import map_exhibits
from urbe.paper.mars_rover.results import Result, find, optimum, waiting
from urbe.report.content import Exhibit, Facts, Section, Table
from urbe.report.curves import draw_bands, mark_changes
from urbe.report.dots import ROW, draw_dots
from urbe.report.figures import Figure, styled
from urbe.report.numbers import interval_column
from urbe.report.panels import panels
from urbe.rng import stream
from urbe.statistics.bootstrap import RESAMPLES, resample_shares
from urbe.statistics.estimates import Band, Interval, mean_interval

GREEDY = ("dqn", "robust-dqn", "dqn-ube", "dqn-urbe")


NOISY = (
    ("dqn-ube", "noisy"),
    ("dqn-urbe", "noisy"),
    ("calibrated-dqn-urbe", "noisy"),
    ("dqn-epsilon", "epsilon"),
    ("robust-dqn-epsilon", "epsilon"),
)


NOMINALLY = (*GREEDY, "calibrated-dqn-urbe", "dqn-epsilon", "robust-dqn-epsilon")


def sections(found: Sequence[Result]) -> list[Section]:
    """The verdicts, then a section for each world."""
    with styled():
        return [_verdicts(found), *(_world(found, world) for world in dict.fromkeys(each.world for each in found))]


def _verdicts(found: Sequence[Result]) -> Section:
    harsh = WORLDS["harsh"]
    text = (
        "A rover starts in the upper left of a grid of ten by ten cells and shall reach the lower right corner within "
        "200 steps. A move that brings it nearer may wreck it, with a probability that was 0.005 in training. The "
        "paper gives no rewards, and does not say which moves are risky. Rewards here are those of reaching the goal, "
        "of failing, and of any other step; with failing at -1 (a step at -0.0048) or at -0.235 (a step at -0.001), an "
        "agent that travels and one that waits earn the same near 0.2, where the paper's curves cross.",
        "What no policy can do: from distance d every way to the goal makes at least d risky moves and succeeds with "
        "(1 - p)^d at best, which all shortest paths have in common. No agent can reach the goal by a safer route, "
        "except where moves in line with the goal are read as safe (safe lines). Agents differ in whether they travel "
        "at all.",
        "Robust agents expect the worst of 15 failure probabilities, drawn anew for each seed and the same for all "
        "agents of a seed, and the nominal one. The paper draws them from (0, 1): then the best robust policy waits "
        "for 200 steps, whatever is done to explore. The small sets are those for which exact robust planning still "
        f"travels: up to {harsh.small_end:g} with a failure of {harsh.rewards[1]:g}, up to "
        f"{WORLDS['mild'].small_end:g} with one of {WORLDS['mild'].rewards[1]:g}.",
        "Test policies are told apart: greedy; noisy, by the uncertainty head as in training; and, for agents without "
        f"a head, greedy but for random actions with probability {EPSILON:g}. dqn-epsilon and robust-dqn-epsilon are "
        f"controls whose share of random actions ends at {EPSILON:g} in training too, instead of the paper's 0.001. "
        "calibrated-dqn-urbe has an uncertainty head with a scale (one posterior standard deviation of noise) and "
        "memory that fades. All expectations are computed from the agents' weights, without playing.",
        RULES,
    )
    return Section("Verdicts", text, verdicts=tuple(verdicts(found)), facts=_facts(found))


def _facts(found: Sequence[Result]) -> Facts:
    learned = [result for result in found if len(result.episodes)]
    seeds = sorted({seed for result in learned for seed in result.seeds})
    steps = sorted({int(step) for result in learned for step in result.steps})
    episodes = np.concatenate([result.episodes for result in learned])
    numbers = ", ".join(map(str, seeds))
    return (
        ("Replicates", f"{len(seeds)} seeds for each agent and reading: {numbers}"),
        ("Tuning", _tuning(seeds)),
        (
            "Training",
            f"{' or '.join(map(str, steps))} steps, in which agents finished {episodes.min():.0f} to "
            f"{episodes.max():.0f} episodes; the paper has 3000 episodes, at most 600000 steps",
        ),
        ("Bands", f"95 % percentile bootstrap over seeds of the mean ({RESAMPLES} resamples), point by point"),
        ("Test episodes", _played(found)),
    )


def _tuning(seeds: Sequence[int]) -> str:
    """Which seeds were in sight when choices were made, and whether the page shows them."""
    first = ", ".join(str(seed) for seed in TUNING_SEEDS if seed not in QUICK_SEEDS)
    shown = "the latter are shown here" if set(seeds) & set(TUNING_SEEDS) else "none of them is shown"
    return (
        f"Seeds {first} were looked at for the number of steps, {', '.join(map(str, QUICK_SEEDS))} (the quick scale) "
        f"while the rules of the verdicts were settled; {shown}"
    )


def _played(found: Sequence[Result]) -> str:
    """How far the played episodes are from what was computed."""
    noisy = [result for result in found if result.sampled.size]
    if not noisy:
        return "none played; expectations are exact"
    off = np.sqrt(np.mean(np.concatenate([(each.sampled - each.returns).ravel() for each in noisy]) ** 2))
    error = np.sqrt(np.mean(np.concatenate([each.error.ravel() for each in noisy]) ** 2))
    return (
        f"Expectations are computed. Means of {TEST_EPISODES} played ones, noisy test policies, are {off:.3f} away "
        f"from them (root mean square); their standard error is {error:.3f}"
    )


def _world(found: Sequence[Result], world: str) -> Section:
    here = [result for result in found if result.world == world]
    sets = [members for members in (WIDE, SMALL) if any(result.members == members for result in here)]
    told = WORLDS[world].told
    best = optimum(found, world)
    text = (
        f"Waiting returns {waiting(world):.3f}. At {NOMINAL:g} no policy returns more than {best.at(NOMINAL)[0]:.4f} "
        f"or reaches the goal more often than {best.goal_at(NOMINAL)[0]:.4f}; at {CHANGED:g}, more than "
        f"{best.at(CHANGED)[0]:.4f} and {best.goal_at(CHANGED)[0]:.4f}.",
    )
    returns = Exhibit(
        f"returns-{world}",
        _returns(here, world, sets),
        f"Test return over the failure probability, from 0 to 0.5, of every agent; {told}. " + _words(here, sets),
        "The paper's Fig. 3: expected return of a test episode, mean over seeds with its band. Left, acting greedily; "
        "right, by noise. Training was at 0.005. Lines that coincide hide each other; the numbers are below. Optimum: "
        "what no policy can beat at that probability. Exact robust: the policy of exact robust planning over the "
        "agents' sets.",
    )
    nominal = Exhibit(
        f"nominal-{world}",
        _nominal(here, world, sets, best),
        f"Test return at {NOMINAL:g} of every agent, acting greedily and by noise; {told}. The table below has it.",
        f"Expected return on the nominal model, mean over seeds and its interval, as above; right, heads act by their "
        f"noise, all others with {EPSILON:g} of random actions. Rules: waiting, and the optimum.",
    )
    maps = [exhibit for members in sets for exhibit in map_exhibits(here, world, members)]
    return Section(f"{told[0].upper()}{told[1:]}", text, (returns, nominal, *maps), (_table(here, world),))


def _words(here: Sequence[Result], sets: Sequence[str]) -> str:
    """What the lines show at the nominal and at the changed probability."""
    parts = []
    for result in here:
        if result.agent in GREEDY and result.acting == "greedy" and result.members in (*sets, "none"):
            of = "" if result.members == "none" else f" ({set_told(WORLDS[result.world], result.members)})"
            nominal, changed = result.at(NOMINAL).mean(), result.at(CHANGED).mean()
            parts.append(f"{result.agent}{of} {nominal:.2f} at {NOMINAL:g} and {changed:.2f} at {CHANGED:g}")
    return "Greedily: " + "; ".join(parts) + "."


def _returns(here: Sequence[Result], world: str, sets: Sequence[str]) -> Figure:
    figure, axes = panels(len(sets), 2, height=3.1, left=0.8, right=1.75, top=0.75)
    for members, (left, right) in zip(sets, axes, strict=True):
        greedy = [find(here, world, members, agent, "greedy") for agent in (*GREEDY, OPTIMUM, EXACT_ROBUST)]
        noisy = [find(here, world, members, agent, acting) for agent, acting in NOISY]
        noisy.append(find(here, world, members, OPTIMUM, "greedy"))
        name = set_told(WORLDS[world], members)
        for panel, what, results in ((left, "greedy", greedy), (right, "noisy and epsilon", noisy)):
            panel.set_title(f"{name}, {what}", pad=22.0)
            panel.set_xlabel("failure probability")
            panel.set_ylabel("test return")
            draw_bands(panel, np.array(GRID), {each.agent: band(each) for each in results if each is not None})
            mark_changes(panel, (NOMINAL, CHANGED), (f"{NOMINAL:g}", f"{CHANGED:g}"))
    return figure


def _nominal(here: Sequence[Result], world: str, sets: Sequence[str], best: Result) -> Figure:
    """Where curves cannot be told apart, dots can."""
    everyone = [each.agent for each in here if each.agent not in (OPTIMUM, EXACT_ROBUST)]
    agents = [agent for agent in NOMINALLY if agent in everyone]
    figure, axes = panels(len(sets), 2, height=ROW * (len(agents) + 1), left=1.7, right=0.6, top=0.7)
    ends = (waiting(world), float(best.at(NOMINAL)[0]))
    found = {}
    for members, row in zip(sets, axes, strict=True):
        for panel, what in zip(row, ("greedy", "noisy and epsilon"), strict=True):
            ways = ("greedy",) if what == "greedy" else ("noisy", "epsilon")
            found[panel] = {a: r for a in agents for w in ways if (r := find(here, world, members, a, w)) is not None}
            panel.set_title(f"{set_told(WORLDS[world], members)}, {what}", pad=22.0)
            panel.set_xlabel(f"test return at {NOMINAL:g}")
    dots = {panel: {a: at_nominal(r) for a, r in shown.items()} for panel, shown in found.items()}
    everything = [end for shown in dots.values() for dot in shown.values() for end in dot] + list(ends)
    margin = 0.05 * (max(everything) - min(everything))
    for panel, shown in dots.items():
        panel.set_xlim(min(everything) - margin, max(everything) + margin)
        draw_dots(panel, list(shown), {"": list(shown.values())})
        mark_changes(panel, ends, ("waiting", "optimum"))
    return figure


def at_nominal(result: Result) -> Interval:
    """The band at the nominal probability."""
    return Interval(*(float(line[GRID.index(NOMINAL)]) for line in band(result)))


def band(result: Result) -> Band:
    """Mean return over seeds at each point of the grid, and its bootstrap interval, 95 %, point by point."""
    rng = stream(0, "mars rover band", result.world, result.members, result.agent, result.acting)
    shares = resample_shares(len(result.seeds), rng, RESAMPLES, len(GRID))
    low, high = np.quantile(np.concatenate([each @ result.returns for each in shares]), (0.025, 0.975), axis=0)
    return Band(result.returns.mean(axis=0), low, high)


def _table(here: Sequence[Result], world: str) -> Table:
    learned = [result for result in here if result.agent not in (OPTIMUM, EXACT_ROBUST)]
    columns = [
        interval_column([_interval(column) for column in each], most=3)
        for each in (
            [result.at(NOMINAL) for result in learned],
            [result.at(CHANGED) for result in learned],
            [result.goal_at(NOMINAL) for result in learned],
            [result.goal_at(CHANGED) for result in learned],
            [result.flipped for result in learned],
            [result.episodes for result in learned],
        )
    ]
    head = ("agent", "set", "test policy", f"return at {NOMINAL:g}", f"at {CHANGED:g}", f"goal at {NOMINAL:g}",
            f"at {CHANGED:g}", "not greedy", "training episodes")  # fmt: skip
    rows = tuple(
        (r.agent, set_told(WORLDS[world], r.members), r.acting, *(column[i] for column in columns))
        for i, r in enumerate(learned)
    )
    title = "Expected return, chance of the goal, share of actions that are not greedy, with 95 % intervals over seeds"
    return Table(title, head, rows)


def _interval(samples: np.ndarray) -> Interval | None:
    return mean_interval(samples) if len(samples) > 1 else None
