"""Regret on RiverSwim: how soon each agent finds the far bank, and how much it loses until then.

    regret(t) = sum over the first t episodes of sum_h [V*_h(s_h) - Q*_h(s_h, a_h)]

which has the same expectation as the difference to the best policy's return, without the noise of the rewards. The
dynamics do not change. Agents know neither the feasible successors nor the rewards: with known successors they would
need no exploration, since swimming right looks good under a uniform prior. Settings are chosen on tuning seeds by their
regret and reported on fresh ones.

To add an agent to the chart, add a line to `CONTENDERS`. URBE with KL or chi-square balls differs from URBE only
in its balls; radii correspond as in the seven states.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from urbe.agents import (
    OLRM,
    PSRL,
    RLSVI,
    UBE,
    UCRL2,
    BayesianQ,
    CertaintyEquivalent,
    ContaminationQ,
    Criterion,
    Form,
    MismatchQ,
    QLearning,
    Robust,
)
from urbe.ambiguity.chi2 import Chi2Ball
from urbe.ambiguity.kl import KLBall
from urbe.paper.chapter import Chapter, Scale, drawn_by, everywhere
from urbe.paper.choice import Selection, check_agents, file_name, own_modules, with_settings
from urbe.paper.tuning import Contender, tuned, tuned_urbe, untuned

CONTENDERS: dict[str, Contender] = {
    "calibrated URBE": tuned_urbe((0.02, 0.1), (0.5, 1.0, 2.0), Form.CALIBRATED),
    "URBE": tuned_urbe((0.02, 0.1), (0.1, 0.3, 1.0)),
    "URBE (KL)": tuned_urbe((0.0002, 0.005), (0.1, 0.3, 1.0), ball=KLBall),
    "URBE (chi-square)": tuned_urbe((0.0004, 0.01), (0.1, 0.3, 1.0), ball=Chi2Ball),
    "calibrated UBE": tuned(
        "scale", (0.25, 0.5, 1.0, 1.5, 2.0, 4.0), lambda scale, belief: UBE(scale, Form.CALIBRATED, belief)
    ),
    "UBE": tuned("scale", (0.03, 0.1, 0.3, 0.6, 1.0, 2.0), lambda scale, belief: UBE(scale, Form.COUNT, belief)),
    "PSRL": untuned(PSRL),
    "UCRL2": tuned(
        "scale", (0.01, 0.03, 0.1, 0.2, 0.4, 1.0), lambda scale, belief: UCRL2(scale, belief, Criterion.EPISODE)
    ),
    "OLRM": replace(
        tuned(
            "bonus_scale",
            (0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
            lambda scale, belief: OLRM(bonus_scale=scale, check_scale=0.2, belief=belief),
        ),
        knows_rewards=True,
    ),
    "RLSVI": tuned(
        "noise", (0.1, 0.3, 1.0, 2.0, 4.0, 8.0), lambda noise, _: RLSVI(noise, precision=0.02, per_step=False)
    ),
    "Bayesian Q-learning": replace(
        tuned("rate", (0.1, 0.3, 1.0, 3.0, 10.0, 30.0), lambda rate, _: BayesianQ(mean=5.0, rate=rate)),
        discount=0.95,
    ),
    "Q-learning": replace(
        tuned("initial", (0.0, 1.0, 3.0, 5.0, 10.0, 20.0), lambda initial, _: QLearning(initial=initial)),
        discount=0.95,
    ),
    "contamination Q-learning": Contender(
        ("fraction", "initial"),
        tuple(product((0.01, 0.05), (1.0, 5.0, 10.0))),
        lambda x, _, __: ContaminationQ(x["fraction"], initial=x["initial"]),
        discount=0.95,
    ),
    "mismatch Q-learning": Contender(
        ("radius", "initial"),
        tuple(product((0.01, 0.05), (1.0, 5.0, 10.0))),
        lambda x, _, __: MismatchQ(x["radius"], initial=x["initial"]),
        discount=0.95,
    ),
    "certainty equivalent": untuned(CertaintyEquivalent),
    "robust": tuned("radius", (0.02, 0.05, 0.1, 0.2, 0.4, 0.8), Robust),
}

HORIZON, EPISODES = 20, 600


@dataclass(frozen=True)
class RegretCell:
    """One agent.

    Attributes:
      agent: key of `CONTENDERS`, or `module:attribute`.
      episodes: number of episodes.
      tuning_seeds, reported_seeds: replicates for choosing a setting, and for reporting it.
      seed: seed of all random numbers.
    """

    agent: str
    episodes: int = EPISODES
    tuning_seeds: int = 16
    reported_seeds: int = 60
    seed: int = 2013

    @property
    def name(self) -> str:
        return file_name(self.agent.replace(" ", "_"))

    @property
    def modules(self) -> tuple[str, ...]:
        return own_modules(self.agent)

    @property
    def cost(self) -> float:
        """An estimate, in seconds."""
        return 3.0


class Row(NamedTuple):
    """The regret of one fresh seed after `episode` episodes, with the setting that was chosen."""

    agent: str
    setting: str
    seed: int
    episode: int
    regret: float


CELLS = everywhere(RegretCell(agent) for agent in CONTENDERS)


def choose(_: Scale, choice: Selection) -> tuple[RegretCell, ...]:
    """Cells of some agents."""
    check_agents(choice.agents, CONTENDERS)
    cells = [RegretCell(agent) for agent in choice.agents or CONTENDERS]
    if choice.seeds is not None:
        cells = [replace(cell, reported_seeds=choice.seeds) for cell in cells]
    return with_settings(cells, choice.settings)


CHAPTER = Chapter(
    "riverswim_regret",
    "RiverSwim: regret of every agent",
    CELLS,
    Row,
    f"{__name__}.run",
    drawn_by(f"{__name__}.figures"),
    summary="How much reward does each learning agent lose before it finds the way upstream?",
    agents=tuple(CONTENDERS),
    choose=choose,
)
