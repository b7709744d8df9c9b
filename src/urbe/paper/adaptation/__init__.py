"""Adaptation: agents are deployed without gradient steps while the dynamics change.

Each agent is trained once, then lives through worlds that change in ways it was not trained on: fixed schedules,
changes at random times, slow drifts, dynamics that never change, and worlds in which its prior, hazard or set of
members is wrong. Everyone meets the same luck. Yardsticks stand beside the agents: an oracle that knows the parameters
of every episode, the policies of the nominal model and of the worst member, and on Mars Rover an exact plan under the
same belief as the belief agent's, which says what learning costs.

To add an agent, add a line to `AGENTS` and say in `agents.py` how it is made; or name a function of the domain and the
seed that gives a policy with a memory: `urbe reproduce --only adaptation --agents mine:policy`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from urbe.paper.chapter import Chapter, Scale, drawn_by, highlighted_by
from urbe.paper.choice import Selection, check_agents, file_name, is_own, own_modules, with_settings

ROVER, GAIN = "rover", "gain"

ORACLE, NOMINAL, ROBUST, SOFT = "oracle", "nominal", "robust", "soft-robust"
IDEAL = "planned belief"
RANDOMISED, STACKED = "domain randomisation", "domain randomisation with history"
THOMPSON, BELIEF, CAUTIOUS, WARY = "Thompson", "belief", "cautious belief", "pessimistic prior"

LEVEL = 0.8
"""Of the cautious belief: the share of the belief that counts, from the lowest values up, in every step."""

AGENTS: dict[str, tuple[str, ...]] = {
    ROVER: (ORACLE, IDEAL, NOMINAL, ROBUST, SOFT, THOMPSON, BELIEF, CAUTIOUS, WARY),
    GAIN: (ORACLE, NOMINAL, ROBUST, RANDOMISED, STACKED, THOMPSON, BELIEF),
}
"""The agents of each domain, in the order of the figures."""

NAMES = dict.fromkeys(agent for agents in AGENTS.values() for agent in agents)

PLANNED = {ROVER: (ORACLE, IDEAL, NOMINAL, ROBUST, SOFT, THOMPSON), GAIN: (ORACLE,)}
"""Those that are computed exactly: they do not differ between training seeds."""

DECIDED = (IDEAL, THOMPSON)
"""Those on Mars Rover that decide exactly, by their belief, once per episode."""

YARDSTICKS = (ORACLE, IDEAL)
"""What agents are measured by, and not compared with."""

LIVES: dict[Scale, int] = {"quick": 16, "medium": 128, "paper": 128}

SEEDS: dict[Scale, int] = {"quick": 1, "medium": 10, "paper": 10}
"""Training seeds, from 0; the belief agent has at least two. Settings were chosen on seeds from 100 on."""

QUICK = {ROVER: (ORACLE, IDEAL, NOMINAL, ROBUST, THOMPSON, BELIEF), GAIN: (ORACLE, NOMINAL, RANDOMISED, BELIEF)}
"""The agents of the quick scale, which has minutes."""

QUICK_WORLDS = (
    "schedule",
    "slow schedule",
    "stationary 0.005",
    "stationary 0.3",
    "jumps",
    "drift",
    "between members",
    "outside the set",
)
"""The worlds of the quick scale."""


@dataclass(frozen=True)
class AdaptationCell:
    """One agent, trained once and deployed in every world of its domain.

    Attributes:
      domain: key of `AGENTS`.
      agent: one of them.
      lives: deployments in each world.
      seed: of training.
      brief: whether it is deployed in the worlds of the quick scale alone.
    """

    domain: str
    agent: str
    lives: int
    seed: int = 0
    brief: bool = False

    @property
    def name(self) -> str:
        worlds = "-brief" if self.brief else ""
        return file_name(f"{self.domain}-{self.agent}-{self.lives}-{self.seed}{worlds}".replace(" ", "_"))

    @property
    def modules(self) -> tuple[str, ...]:
        return own_modules(self.agent)

    @property
    def cost(self) -> float:
        """An estimate, in seconds."""
        return 12.0 if self.agent in PLANNED[self.domain] else 60.0


class Row(NamedTuple):
    """One number.

    Attributes:
      world: of the domain.
      metric: "return" (mean over lives and episodes), "worst" (mean of the worst 5 % of the lives), "ended" (share of
        the episodes that ended by themselves), "phase" and "first" (mean return of phase `at`, and of its first
        episode), or of one life "episode" (the return of episode `at`), "true" (the parameter that held) and "belief"
        (the belief in `member` at its end).
      at: a phase or an episode; -1 for none.
      member: of the belief; -1 for none.
    """

    domain: str
    agent: str
    world: str
    seed: int
    metric: str
    at: int
    member: int
    value: float


def _cells(scale: Scale, agents: tuple[str, ...] = (), seeds: int | None = None) -> tuple[AdaptationCell, ...]:
    there = QUICK if scale == "quick" and not agents else AGENTS
    return tuple(
        AdaptationCell(domain, agent, LIVES[scale], seed, brief=scale == "quick")
        for domain, known in there.items()
        for agent in (*known, *filter(is_own, agents))
        if not agents or agent in agents
        for seed in range(_seeds(domain, agent, scale) if seeds is None or agent in PLANNED[domain] else seeds)
    )


def _seeds(domain: str, agent: str, scale: Scale) -> int:
    if agent in PLANNED[domain]:
        return 1
    return max(SEEDS[scale], 2) if agent == BELIEF else SEEDS[scale]


def choose(scale: Scale, choice: Selection) -> tuple[AdaptationCell, ...]:
    """Cells of some agents, and of the yardsticks that figures compare with."""
    check_agents(choice.agents, NAMES)
    agents = tuple(dict.fromkeys((*choice.agents, ORACLE, NOMINAL, ROBUST))) if choice.agents else ()
    return with_settings(_cells(scale, agents, choice.seeds), choice.settings)


CHAPTER = Chapter(
    "adaptation",
    "Adaptation to changing dynamics",
    {scale: _cells(scale) for scale in SEEDS},
    Row,
    f"{__name__}.run",
    drawn_by(f"{__name__}.figures"),
    summary="Can an agent that keeps a belief about its world adapt to changes without further training?",
    highlight=highlighted_by(f"{__name__}.front"),
    agents=tuple(NAMES),
    choose=choose,
)
