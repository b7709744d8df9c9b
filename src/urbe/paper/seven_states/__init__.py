"""Seven states under changing dynamics: rewards of learners when the odds of a gamble jump [Derman2019] Fig. 2b.

Each learner's parameters are chosen on tuning seeds, by total reward, and reported on fresh ones. All learners
of a cell share the same belief about the dynamics, the same prior (one on every feasible successor) and, seed by seed,
the same world. A total is four times the mean reward per episode: with four phases of equal length, the sum of what an
episode earns in each. The best action of each phase earns 1.98 then, in the direct reading.

To add an agent to the chart, add a line to `CONTENDERS`. A setting is a value for each parameter that matters; `scale`
is the size of an agent's exploration. Every tuned agent has twelve settings; agents without parameters (posterior
sampling, the fixed robust policy, the oracle) have one. All agents that add noise may choose a scale of zero, which is
not to explore. URBE with KL or chi-square balls differs from URBE only in its balls: to an L1 radius psi correspond
psi^2 / 2 and psi^2, whose balls lie inside the L1 ball (Pinsker's and Cauchy's inequalities).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from urbe.agents import OLRM, PSRL, UBE, UCRL2, Criterion, Form, Minimax, Oracle
from urbe.ambiguity.chi2 import Chi2Ball
from urbe.ambiguity.kl import KLBall
from urbe.ambiguity.l1 import L1Ball
from urbe.mdp.library.goals import Reading
from urbe.paper.chapter import Chapter, Scale, drawn_by, everywhere
from urbe.paper.choice import Selection, check_agents, file_name, own_modules, with_settings
from urbe.paper.tuning import Contender, contender_of, tuned, tuned_urbe, untuned
from urbe.posteriors.beliefs import Forgetting, PosteriorConfig, Stationary, Window
from urbe.posteriors.change import ChangePoint

BELIEFS: dict[str, PosteriorConfig] = {
    "stationary": Stationary(),
    "forgetting": Forgetting(0.98),
    "window": Window(50),
    "change-point": ChangePoint(1.0 / 200.0),
}
"""The same for every agent: memories of about fifty episodes, and an expected jump every two hundred."""

CONTENDERS: dict[str, Contender] = {
    "calibrated URBE": tuned_urbe((0.05, 0.1, 0.25, 0.4), (0.0, 0.25, 1.0), Form.CALIBRATED),
    "URBE": tuned_urbe((0.05, 0.1, 0.25, 0.4), (0.0, 0.03, 0.2)),
    "URBE (KL)": tuned_urbe((0.00125, 0.005, 0.03125, 0.08), (0.0, 0.03, 0.2), ball=KLBall),
    "URBE (chi-square)": tuned_urbe((0.0025, 0.01, 0.0625, 0.16), (0.0, 0.03, 0.2), ball=Chi2Ball),
    "calibrated UBE": tuned(
        "scale",
        (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0),
        lambda scale, belief: UBE(scale, Form.CALIBRATED, belief),
    ),
    "UBE": tuned(
        "scale",
        (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0),
        lambda scale, belief: UBE(scale, Form.COUNT, belief),
    ),
    "PSRL": untuned(PSRL),
    "UCRL2": tuned(
        "scale",
        (0.003, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 1.0),
        lambda scale, belief: UCRL2(scale, belief, Criterion.EPISODE),
    ),
    "OLRM": Contender(
        ("bonus_scale", "check_scale"),
        tuple(product((0.003, 0.01, 0.03, 0.1), (0.01, 0.03, 0.1))),
        lambda x, belief, _: OLRM(bonus_scale=x["bonus_scale"], check_scale=x["check_scale"], belief=belief),
    ),
    "robust": Contender((), ((),), lambda _, __, env: Minimax(env.feasible, L1Ball(2.0)), learns=False),
    "oracle": Contender((), ((),), lambda _, __, env: Oracle(env), learns=False),
}

ODDS = (0.001, 0.8, 0.1, 0.9)

SCHEDULES = {"paper": (300, 300, 300, 300), "long adverse": (450, 150, 450, 150)}

HORIZON: dict[Reading, int] = {"direct": 2, "chain": 4}

TUNING_SEEDS, REPORTED_SEEDS = 20, 60

SEED = 770001


@dataclass(frozen=True)
class SevenCell:
    """One agent with one belief in one world.

    Attributes:
      reading: the meaning of the dashed edges, see `seven_states`.
      schedule: key of `SCHEDULES`.
      belief: key of `BELIEFS`, or "none".
      agent: key of `CONTENDERS`, or `module:attribute`.
      tuning_seeds, reported_seeds: replicates for choosing a setting, and for reporting it.
      seed: seed of all random numbers.
    """

    reading: Reading
    schedule: str
    belief: str
    agent: str
    tuning_seeds: int = TUNING_SEEDS
    reported_seeds: int = REPORTED_SEEDS
    seed: int = SEED

    @property
    def name(self) -> str:
        return file_name("-".join((self.reading, self.schedule, self.belief, self.agent)).replace(" ", "_"))

    @property
    def modules(self) -> tuple[str, ...]:
        return own_modules(self.agent)

    @property
    def cost(self) -> float:
        """An estimate, in seconds."""
        return 0.9


class Row(NamedTuple):
    """One number.

    Attributes:
      metric: "tuning" (mean reward per episode of a setting over its tuning seeds), "phase" (the same of one fresh
        seed in the phase `at`), or "mean", "low", "high" of the cumulative reward after `at` episodes over the fresh
        seeds (mean, 10th and 90th percentile).
      setting: the parameters.
    """

    reading: str
    schedule: str
    belief: str
    agent: str
    setting: str
    metric: str
    seed: int
    at: int
    value: float


WORLDS: tuple[tuple[Reading, str], ...] = (("direct", "paper"), ("direct", "long adverse"), ("chain", "paper"))


def _cells(agents: Iterable[str], reported_seeds: int = REPORTED_SEEDS) -> tuple[SevenCell, ...]:
    return tuple(
        SevenCell(reading, schedule, belief, agent, reported_seeds=reported_seeds)
        for reading, schedule in WORLDS
        for agent in agents
        for belief in (BELIEFS if contender_of(agent, CONTENDERS).learns else ("none",))
    )


CELLS = everywhere(_cells(CONTENDERS))


def choose(_: Scale, choice: Selection) -> tuple[SevenCell, ...]:
    """Cells of some agents, and of the oracle that the figures compare with."""
    check_agents(choice.agents, CONTENDERS)
    agents = dict.fromkeys((*choice.agents, "oracle")) if choice.agents else CONTENDERS
    return with_settings(_cells(agents, choice.seeds or REPORTED_SEEDS), choice.settings)


CHAPTER = Chapter(
    "seven_states",
    "Seven states under changing dynamics",
    CELLS,
    Row,
    f"{__name__}.run",
    drawn_by(f"{__name__}.figures"),
    summary="Does URBE explore better than UBE while the odds of a gamble keep changing?",
    agents=tuple(CONTENDERS),
    choose=choose,
)
