"""Adaptation: agents are deployed without gradient steps while the dynamics change.

Each agent is trained once, then lives through worlds that change in ways it was not trained on: fixed schedules,
changes at random times, slow drifts, dynamics that never change, schedules drawn from priors that no choice looked at,
and worlds in which its prior, hazard or set of members is wrong. All agents share the same random numbers. Benchmarks
for comparison are an oracle that knows the parameters of every episode, and on Mars Rover an exact plan under the
belief agent's belief, which shows the cost of learning.

To add an agent, add a line to `AGENTS` and its construction to `agents.py`; or name a function of the domain and the
seed that returns a policy with a memory: `urbe reproduce --only adaptation --agents mine:policy`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from urbe.paper.chapter import Chapter, Scale, drawn_by, highlighted_by
from urbe.paper.choice import Selection, check_agents, file_name, is_own, own_modules, with_settings

ROVER, EVEN, STATES = "rover", "even rover", "seven states"
GAIN, LENGTH, ACROBOT, CAR, PENDULUM = "gain", "length", "acrobot", "car", "inverted pendulum"

ORACLE, NOMINAL, ROBUST, SOFT = "oracle", "nominal", "robust", "soft-robust"
IDEAL = "planned belief"
RANDOMISED, STACKED = "domain randomisation", "domain randomisation with history"
RECURRENT, EWOK, IWOCS = "recurrent memory", "EWoK", "IWOCS"
THOMPSON, BELIEF, CAUTIOUS, WARY = "Thompson", "belief", "cautious belief", "pessimistic prior"
EPISODE, ADAPTIVE = "cautious per episode", "adaptive set"
URBE = "URBE over models"
LEARNING, LEARNING_BELIEF = "nominal, learning on", "belief, learning on"

LEVEL = 0.8
"""The level of the cautious beliefs: the share of the belief with the lowest values that counts."""

_LEARNED = (ORACLE, NOMINAL, ROBUST, RANDOMISED, STACKED, THOMPSON, BELIEF)

AGENTS: dict[str, tuple[str, ...]] = {
    ROVER: (
        *(ORACLE, IDEAL, NOMINAL, ROBUST, SOFT, RANDOMISED, STACKED, THOMPSON, ADAPTIVE, BELIEF, CAUTIOUS, EPISODE),
        *(WARY, LEARNING, LEARNING_BELIEF),
    ),
    EVEN: (ORACLE, IDEAL, NOMINAL, ROBUST, SOFT, RANDOMISED, STACKED, THOMPSON, BELIEF),
    STATES: (ORACLE, NOMINAL, ROBUST, SOFT, RANDOMISED, THOMPSON, URBE, BELIEF),
    GAIN: (
        *(ORACLE, NOMINAL, ROBUST, SOFT, EWOK, IWOCS, RANDOMISED, STACKED, RECURRENT, THOMPSON, ADAPTIVE, BELIEF),
        *(LEARNING, LEARNING_BELIEF),
    ),
    LENGTH: (ORACLE, NOMINAL, ROBUST, SOFT, EWOK, IWOCS, RANDOMISED, STACKED, THOMPSON, BELIEF),
    ACROBOT: _LEARNED,
    CAR: _LEARNED,
    PENDULUM: _LEARNED,
}
"""The agents of each domain, in the order of the figures."""

NAMES = dict.fromkeys(agent for agents in AGENTS.values() for agent in agents)

_EXACT = (ORACLE, IDEAL, NOMINAL, ROBUST, SOFT, RANDOMISED, THOMPSON)

PLANNED: dict[str, tuple[str, ...]] = {
    ROVER: _EXACT,
    EVEN: _EXACT,
    STATES: AGENTS[STATES],
    GAIN: (ORACLE,),
    LENGTH: (ORACLE,),
    ACROBOT: (),
    CAR: (),
    PENDULUM: (ORACLE,),
}
"""Agents that are computed exactly, or play with many replicates, so that training seeds do not matter."""

YARDSTICKS = (ORACLE, IDEAL)
"""Benchmarks that agents are measured by, but not compared with."""

LEARNERS = (LEARNING, LEARNING_BELIEF)
"""Agents that keep on learning while they are deployed. They are slow, so they are deployed in few worlds."""

LEARNERS_WORLDS = ("schedule", "slow schedule", "stationary 0.005", "nominal")
"""The worlds in which they are deployed."""

SCHEDULE = "schedule"
"""The world that is drawn and followed in detail: fixed parameters in phases of equal length."""

DRAWN = ("drawn prior 1", "drawn prior 2", "drawn prior 3", "drawn prior 4")
"""Worlds whose schedules are drawn from random priors that were held out from every choice."""

LIVES: dict[Scale, int] = {"quick": 16, "medium": 32, "paper": 128}

FEW = 4
"""Number of lives of agents that keep on learning, which play one life after the other."""

SEEDS: dict[Scale, int] = {"quick": 5, "medium": 10, "paper": 10}
"""Training seeds, from 0. Settings were chosen on seeds from 100 on."""

STEPS = {
    ROVER: 4_000_000,
    EVEN: 4_000_000,
    GAIN: 1_500_000,
    LENGTH: 1_500_000,
    ACROBOT: 1_500_000,
    CAR: 1_500_000,
    PENDULUM: 220_000,
}
"""Environment steps of agents that learn over beliefs.

On Mars Rover, seeds 100 and 101 lost 0.108 and 0.082 per episode on the schedules of `tuning` after a million steps,
and 0.084 and 0.078 after four (24 lives); the exact plan loses 0.079.
"""

DQN_STEPS = 150_000
"""Environment steps of agents of the DQN family; MuJoCo is slower than the other simulators."""

FEWER = {PENDULUM: 60_000}
"""The same in domains with fewer steps."""

QUICK = {
    ROVER: (ORACLE, IDEAL, NOMINAL, ROBUST, RANDOMISED, THOMPSON, BELIEF),
    EVEN: PLANNED[EVEN],
    STATES: AGENTS[STATES],
    GAIN: (ORACLE, NOMINAL, RANDOMISED, BELIEF),
}
"""The agents of the quick scale, which takes minutes and omits domains that take long to learn."""

QUICK_WORLDS = (
    "schedule",
    "slow schedule",
    "adverse schedule",
    "stationary 0.005",
    "stationary 0.3",
    "nominal",
    "jumps",
    "drift",
    "between members",
    "outside the set",
    *DRAWN[:2],
)
"""The worlds of the quick scale."""


@dataclass(frozen=True)
class AdaptationCell:
    """One agent, trained once and deployed in every world of its domain.

    Attributes:
      domain: key of `AGENTS`.
      agent: an agent of the domain.
      lives: deployments in each world.
      seed: seed of training.
      brief: whether it is deployed only in the worlds of the quick scale.
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
        if self.agent in PLANNED[self.domain]:
            return 12.0
        return 150.0 if self.domain in (LENGTH, ACROBOT, CAR) else 60.0


class Row(NamedTuple):
    """One number.

    Attributes:
      world: of the domain.
      metric: "return" (mean over lives and episodes), "worst" (mean of the worst 5 % of the lives), "ended" (share of
        the episodes that ended by themselves), "phase", "first", "early" and "late" (mean return of phase `at`, and of
        its first episode, its first and its last fifth), "curve" (mean return over lives of episode `at`, under the
        schedule), or of one life "episode" (the return of episode `at`), "true" (the parameter that held) and "belief"
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
        AdaptationCell(domain, agent, FEW if agent in LEARNERS else LIVES[scale], seed, brief=scale == "quick")
        for domain, known in there.items()
        for agent in (*known, *filter(is_own, agents))
        if not agents or agent in agents
        for seed in range(_seeds(domain, agent, scale) if seeds is None or agent in PLANNED[domain] else seeds)
    )


def _seeds(domain: str, agent: str, scale: Scale) -> int:
    return 1 if agent in PLANNED[domain] else SEEDS[scale]


def choose(scale: Scale, choice: Selection) -> tuple[AdaptationCell, ...]:
    """Cells of some agents, and of the benchmarks in figures."""
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
    summary="Can an agent with a belief about its environment adapt to changes without further training?",
    highlight=highlighted_by(f"{__name__}.front"),
    agents=tuple(NAMES),
    choose=choose,
)
