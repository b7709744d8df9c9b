"""The cells of the RiverSwim comparison: to add an agent to the chart, add a line to `CONTENDERS`.

URBE with KL or chi-square balls differs from URBE in its balls alone; radii correspond as in the seven states.
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
    URBE,
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
from urbe.paper.chapter import Scale, everywhere
from urbe.paper.choice import Selection, check_agents, file_name, load_own, own_modules, with_settings
from urbe.paper.tuning import Contender


def _values(*values: float) -> tuple[tuple[float], ...]:
    return tuple((value,) for value in values)


CONTENDERS: dict[str, Contender] = {
    "calibrated URBE": Contender(
        ("radius", "scale"),
        tuple(product((0.02, 0.1), (0.5, 1.0, 2.0))),
        lambda x, belief, _: URBE(x["radius"], x["scale"], Form.CALIBRATED, belief),
    ),
    "URBE": Contender(
        ("radius", "scale"),
        tuple(product((0.02, 0.1), (0.1, 0.3, 1.0))),
        lambda x, belief, _: URBE(x["radius"], x["scale"], Form.COUNT, belief),
    ),
    "URBE (KL)": Contender(
        ("radius", "scale"),
        tuple(product((0.0002, 0.005), (0.1, 0.3, 1.0))),
        lambda x, belief, _: URBE(x["radius"], x["scale"], Form.COUNT, belief, set=KLBall),
    ),
    "URBE (chi-square)": Contender(
        ("radius", "scale"),
        tuple(product((0.0004, 0.01), (0.1, 0.3, 1.0))),
        lambda x, belief, _: URBE(x["radius"], x["scale"], Form.COUNT, belief, set=Chi2Ball),
    ),
    "calibrated UBE": Contender(
        ("scale",),
        _values(0.25, 0.5, 1.0, 1.5, 2.0, 4.0),
        lambda x, belief, _: UBE(x["scale"], Form.CALIBRATED, belief),
    ),
    "UBE": Contender(
        ("scale",),
        _values(0.03, 0.1, 0.3, 0.6, 1.0, 2.0),
        lambda x, belief, _: UBE(x["scale"], Form.COUNT, belief),
    ),
    "PSRL": Contender((), ((),), lambda _, belief, __: PSRL(belief)),
    "UCRL2": Contender(
        ("scale",),
        _values(0.01, 0.03, 0.1, 0.2, 0.4, 1.0),
        lambda x, belief, _: UCRL2(x["scale"], belief, Criterion.EPISODE),
    ),
    "OLRM": Contender(
        ("bonus_scale",),
        _values(0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
        lambda x, belief, _: OLRM(bonus_scale=x["bonus_scale"], check_scale=0.2, belief=belief),
        knows_rewards=True,
    ),
    "RLSVI": Contender(
        ("noise",),
        _values(0.1, 0.3, 1.0, 2.0, 4.0, 8.0),
        lambda x, _, __: RLSVI(x["noise"], precision=0.02, per_step=False),
    ),
    "Bayesian Q-learning": Contender(
        ("rate",),
        _values(0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
        lambda x, _, __: BayesianQ(mean=5.0, rate=x["rate"]),
        discount=0.95,
    ),
    "Q-learning": Contender(
        ("initial",),
        _values(0.0, 1.0, 3.0, 5.0, 10.0, 20.0),
        lambda x, _, __: QLearning(initial=x["initial"]),
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
    "certainty equivalent": Contender((), ((),), lambda _, belief, __: CertaintyEquivalent(belief)),
    "robust": Contender(
        ("radius",),
        _values(0.02, 0.05, 0.1, 0.2, 0.4, 0.8),
        lambda x, belief, _: Robust(x["radius"], belief),
    ),
}

HORIZON, EPISODES = 20, 600


@dataclass(frozen=True)
class RegretCell:
    """One agent.

    Attributes:
      agent: key of `CONTENDERS`, or `module:attribute`.
      episodes: how many.
      tuning_seeds, reported_seeds: replicates for choosing a setting, and for reporting it.
      seed: of everything random.
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


def contender_of(agent: str) -> Contender:
    """The agent of a cell, of this chapter or of one's own."""
    found = CONTENDERS[agent] if agent in CONTENDERS else load_own(agent)
    if not isinstance(found, Contender):
        raise ValueError(f"{agent} is {type(found).__name__}, expected a urbe.paper.tuning.Contender.")
    return found


def choose(_: Scale, choice: Selection) -> tuple[RegretCell, ...]:
    """Cells of some agents."""
    check_agents(choice.agents, CONTENDERS)
    cells = [RegretCell(agent) for agent in choice.agents or CONTENDERS]
    if choice.seeds is not None:
        cells = [replace(cell, reported_seeds=choice.seeds) for cell in cells]
    return with_settings(cells, choice.settings)
