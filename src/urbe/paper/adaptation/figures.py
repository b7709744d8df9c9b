"""Figures and tables of the adaptation study."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from urbe.paper.adaptation import (
    ACROBOT,
    BELIEF,
    CAR,
    DQN_STEPS,
    EVEN,
    GAIN,
    LEARNERS,
    LENGTH,
    LEVEL,
    ORACLE,
    PENDULUM,
    ROVER,
    SCHEDULE,
    STATES,
    STEPS,
)
from urbe.paper.adaptation.claims import verdicts
from urbe.paper.adaptation.members import MEMBERS
from urbe.paper.adaptation.results import (
    AGAIN,
    agents_of,
    of_phases,
    recovered_at,
    regrets,
    regrets_of_seeds,
    returns,
    worlds_of,
)
from urbe.paper.adaptation.tuning import BENIGN, CHOSEN, HAZARDS, UNKNOWN
from urbe.paper.results import Results
from urbe.report import style
from urbe.report.content import Exhibit, Section, Table
from urbe.report.dots import ROW, draw_dots, rows_of
from urbe.report.figures import Figure, name_ends, panels, styled
from urbe.report.maps import draw_shares
from urbe.report.numbers import interval_text, number, percent
from urbe.statistics.estimates import ConfidenceInterval, mean_interval
from urbe.statistics.verdicts import Mean
from urbe.types import FloatArray

TITLES = {
    ROVER: "Mars Rover: the failure probability changes",
    EVEN: "Mars Rover: failing costs hardly more than waiting",
    STATES: "Seven states: the odds of the gambles change",
    GAIN: "CartPole: the gain of the actuator changes",
    LENGTH: "CartPole: the length of the pole changes",
    ACROBOT: "Acrobot: the motor is reversed",
    CAR: "MountainCar: the engine is reversed",
    PENDULUM: "InvertedPendulum of MuJoCo: gravity and the mass of the pole change",
}
PARAMETERS = {
    ROVER: "failure probability",
    EVEN: "failure probability",
    GAIN: "actuator gain",
    LENGTH: "half of the pole's length, m",
    ACROBOT: "gain of the motor",
    CAR: "gain of the engine",
    PENDULUM: "gravity, m/s²",
}


def sections(results: Results) -> list[Section]:
    """The verdicts, a section for each domain, and how settings were chosen."""
    with styled():
        parts = [(domain, results.where(domain=domain)) for domain in TITLES]
        return [_opening(results), *(_domain(domain, part) for domain, part in parts if part), _choices(results)]


def _opening(results: Results) -> Section:
    seeds = len(results.where(agent=BELIEF).unique("seed"))
    text = (
        "The paper promises an uncertainty set that adapts to new observations, but its deep agent keeps the set "
        "fixed. The belief agent adapts: it maintains an exact belief over the members of the set, its Q-values are "
        "functions of state and belief, and the belief survives the end of an episode. Here every agent is trained "
        "once and then deployed in environments with changing dynamics, without gradient steps unless its name says "
        "so.",
        "The oracle knows the parameters of every episode; if a motor may be reversed, it is the nominal agent with "
        "reversed actions. On Mars Rover the nominal, robust and soft-robust policies, domain randomisation without a "
        "memory, and Thompson sampling are planned exactly, as the limits of deep agents of these kinds. In the seven "
        "states the belief agent is planned exactly, too, and URBE over models is the tabular agent with the same "
        "belief. Thompson acts for an episode as if a member drawn from the belief were true; the cautious belief uses "
        f"the lowest {percent(LEVEL)} of the values in every step, or chosen once per episode; the pessimistic prior "
        "gives less weight to members for which travelling pays; the agent with an adaptive set acts on the worst "
        "credible member, and its policy does not depend on the belief. All agents with a belief assume the same prior "
        "and hazard in every environment, right or wrong.",
        "The planned belief follows the exact plan under the belief of the belief agent: its distance to the oracle is "
        "the price of not knowing the parameters, and the distance of the learned agent to it is the price of "
        "learning.",
        "Relative regret is the shortfall of an agent from the oracle, relative to the range between the best and the "
        "worst agent in that environment; it is also defined if waiting is best. The largest value is taken over the "
        "environments for each training seed and then averaged, so it is never smaller than that of the mean returns.",
    )
    lives = "the same lives for every agent, and the same random numbers for all that are deployed in the simulator"
    facts = (("Replicates", f"{seeds} training seed{'s' * (seeds > 1)} of the belief agent, {lives}"),)
    return Section("Verdicts", text, verdicts=tuple(verdicts(results)), facts=facts)


def _choices(results: Results) -> Section:
    """How settings were chosen, for the domains and agents in the results."""
    domains, agents = results.unique("domain"), results.unique("agent")
    text = [
        f"Agents that learn over beliefs train for {STEPS[ROVER]:,} steps on Mars Rover and {STEPS[GAIN]:,} on "
        "CartPole, many lives at once; DQN, robust and soft-robust DQN, domain randomisation, EWoK and IWOCS for "
        f"{DQN_STEPS:,} steps that are replayed, all with the same network and settings. Their settings, and the "
        "temperature of EWoK, were not tuned.",
        "Settings were chosen on training seeds from 100 on. Environments with a drawn prior change at random times; "
        "ranges and hazards of their priors were drawn from a stream of random numbers that no choice had used.",
    ]
    if ROVER in domains:
        text.append(
            "On Mars Rover, prior and hazard of the belief were chosen by exact plans, without training, on random "
            "schedules that are not evaluated here. An unknown hazard of "
            f"{' or '.join(f'{hazard:g}' for hazard in CHOSEN.switching.hazards)} per episode, and a prior of "
            f"{CHOSEN.benign:g} for members for which travelling pays, lost least of the "
            f"{len((*HAZARDS, *UNKNOWN)) * len(BENIGN)} candidates (python -m urbe.paper.adaptation.tuning prints "
            "all). The averaging of weights and the gap between actions (zero) were chosen in a few trials with one "
            "tuning seed, with the returns under the fixed schedules known; the chosen trial is also the one whose "
            "value under the prior is closest to the planned one. Agents train for four million steps: after results "
            "with one million were known, the number was chosen on tuning seeds and tuning schedules. The planned "
            "belief and Thompson decide once per episode, and play each life several times with independent random "
            "numbers."
        )
    if GAIN in domains:
        text.append(
            "On CartPole, the share of training with gains between members and the limit of the surprise were chosen "
            "with results for gains between and outside the members known, including those of this chapter."
        )
    if {LENGTH, ACROBOT, CAR} & set(domains):
        text.append(
            "Poles of changing length, Acrobot and MountainCar have the settings of the actuator, except for the "
            "length of traces, of random actions and of the horizon between episodes."
        )
    if PENDULUM in domains:
        text.append(
            "InvertedPendulum runs in MuJoCo, which is slow, so its agents train for fewer steps; the range of its "
            "parameters, and lives and averaging of its belief agent, were chosen in a few trials with one tuning seed "
            "and the returns under the fixed schedule known."
        )
    if set(LEARNERS) & set(agents):
        text.append(
            "Two agents keep on learning while they are deployed, from their own observations, with separate weights "
            "in each life: nominal DQN, with a small replay that begins empty and a twentieth of random actions, and "
            "the belief agent, with a gradient step after every 32 steps on the targets of its training. Replay and "
            "rates were chosen in a few trials with one tuning seed and the returns under the fixed schedules known. "
            "They are deployed in few environments, and regrets leave them out."
        )
    return Section("How settings were chosen", tuple(text), appendix=True)


def _domain(domain: str, results: Results) -> Section:
    exhibits = []
    life = results.where(agent=BELIEF, metric=("belief", "true", "episode"))
    if life:
        exhibits.append(
            Exhibit(
                f"life-{_file(domain)}",
                _life(domain, life),
                f"Belief of one life over the members, episode by episode, and the return of each episode; {domain}.",
                "One life of the belief agent, first training seed. Above, its belief over the members after every "
                "episode (stronger colours mean higher probabilities) and the true parameter; dashed lines mark "
                "changes. Below, its returns.",
            )
        )
    exhibits.append(
        Exhibit(
            f"worlds-{_file(domain)}",
            _worlds(results),
            f"Mean return of every agent in every environment, with intervals over training seeds; {domain}.",
            "Mean return of an episode in each environment, with 95 % intervals if there are several training seeds.",
        )
    )
    return Section(TITLES[domain], (), tuple(exhibits), (_returns(results), *_recovery(results), *_regrets(results)))


def _file(domain: str) -> str:
    return domain.replace(" ", "_")


def _life(domain: str, life: Results) -> Figure:
    belief = life.where(metric="belief").pivot("member", "at")
    true, earned = (life.where(metric=metric).pivot("at") for metric in ("true", "episode"))
    figure, ((above,), (below,)) = panels(2, height=2.3, right=0.9)
    draw_shares(above, belief)
    members = MEMBERS[domain]
    above.set_yticks(range(len(members)), [number(each, 3) for each in members], fontsize=6.5)
    heights = np.interp(true, members, np.arange(len(members)))
    above.step(np.arange(len(true)), heights, where="mid", color=style.NOMINAL, linewidth=1.8)
    above.set(ylabel=PARAMETERS[domain], title="belief over the members at the end of each episode")
    name_ends(above, [("truth", style.NOMINAL, float(heights[-1]))])
    below.plot(np.arange(len(earned)), earned, ".", markersize=4.0, color=style.ROBUST)
    below.set(xlabel="episode", ylabel="return", title="return of the episode", xlim=above.get_xlim())
    if earned.min() > 0.0:
        below.set_ylim(0.0, 1.1 * earned.max())
    for panel in (above, below):
        for switch in np.flatnonzero(np.diff(true)):
            panel.axvline(switch + 0.5, color=style.MUTED, linewidth=0.8, linestyle=style.DASHED, zorder=3.0)
    return figure


def _worlds(results: Results) -> Figure:
    worlds, agents = worlds_of(results), results.unique("agent")
    columns = 2
    rows = -(-len(worlds) // columns)
    figure, axes = panels(rows, columns, height=ROW * (rows_of(len(agents)) + 0.5), left=2.35, right=0.2, top=0.4)
    for panel, world in zip((each for line in axes for each in line), [*worlds, *[None] * columns], strict=False):
        if world is None:
            panel.set_visible(False)
            continue
        draw_dots(panel, agents, {world: [_interval(results, agent, world) for agent in agents]})
        panel.set_title(world)
    return figure


def _interval(results: Results, agent: str, world: str) -> ConfidenceInterval | None:
    """The interval over training seeds; for a single one the number itself, and None if the agent was not run."""
    found = returns(results, agent, world)
    if len(found) > 1:
        return mean_interval(found)
    return ConfidenceInterval(*[float(found[0])] * 3) if len(found) else None


def _returns(results: Results) -> Table:
    agents = results.unique("agent")
    rows = tuple((world, *(_text(results, agent, world) for agent in agents)) for world in worlds_of(results))
    return Table("Mean return of an episode", ("environment", *agents), rows)


def _text(results: Results, agent: str, world: str) -> str:
    """The mean, with its interval if there are several training seeds."""
    found = _interval(results, agent, world)
    if found is None:
        return ""
    places = 1 if abs(found.estimate) >= 10.0 else 3
    return f"{found.estimate:.{places}f}" if found.low == found.high else interval_text(found, places)


def _recovery(results: Results) -> tuple[Table, ...]:
    """Episodes until each agent has recovered from each change of the schedule; empty without an oracle."""
    if not results.where(agent=ORACLE, metric="curve"):
        return ()
    found = recovered_at(results)
    changes = len(next(iter(found.values())))
    longest = len(of_phases(results, ORACLE, SCHEDULE, "curve")) / (changes + 1)

    def text(episodes: FloatArray) -> str:
        over_seeds = Mean(episodes, (0.0, longest)).interval(0.95)
        return f"{episodes[0]:.0f}" if over_seeds is None else interval_text(over_seeds, 1)

    rows = tuple((agent, *map(text, episodes)) for agent, episodes in found.items())
    title = (
        f"Episodes under the schedule until the mean return is within {percent(AGAIN)} of the oracle's, relative to "
        "the range between agents; the length of the phase if never"
    )
    return (Table(title, ("agent", *(f"change {k + 1}" for k in range(changes))), rows),)


def _regrets(results: Results) -> tuple[Table, ...]:
    if not results.where(agent=ORACLE) or len(agents_of(results)) < 2:
        return ()
    found = regrets(results)
    head = ("agent", "largest", "mean", *worlds_of(results))
    seeds = regrets_of_seeds(results)
    rows = tuple(
        (
            agent,
            *(
                _of_seeds(seeds[agent], over, value)
                for over, value in ((np.max, shares.max()), (np.mean, shares.mean()))
            ),
            *(f"{share:.2f}" for share in shares),
        )
        for agent, shares in sorted(found.items(), key=lambda item: float(item[1].max()))
    )
    return (Table("Relative regret in every environment, sorted by the largest", head, rows),)


def _of_seeds(shares: FloatArray, over: Callable[..., FloatArray], value: float) -> str:
    """The largest or the mean regret, with its interval if there are several training seeds."""
    each = over(shares, axis=1)
    return interval_text(mean_interval(each), 2) if len(each) > 1 else f"{value:.2f}"
