"""Mars Rover: test returns over the failure probability, and visited cells [Derman2019] Fig. 3, Fig. 4.

Agents learn at a failure probability of 0.005, with the paper's networks and hyper-parameters, and are tested at
others. Their test returns, probabilities and visits are computed, not played: the model has 101 states, and every test
policy is a table of probabilities (`policies`). Greedy, noisy and epsilon-greedy test policies are distinguished, and
compared with 200 played episodes of the noisy ones, as in the paper, and with the bounds of exact planning.

Details that the paper leaves open, rewards, risky moves and sets, are tested under several assumptions. Only the
numbers of steps were chosen by results of learners. The small sets follow from exact planning: the end of each is the
largest failure probability, rounded down to a multiple of 0.005, at which the best policy still travels from every
start (a test computes it), so that robust agents have a reason to move. Epsilon of the controls is a round number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from urbe.paper.chapter import Chapter, Scale, drawn_by, highlighted_by
from urbe.paper.choice import Selection, check_agents, file_name, own_modules, with_agent_settings

NOMINAL = 0.005

CHANGED = 0.2
"""The failure probability of the paper's second pair of heat maps."""

GRID = (
    0.0, 0.005, 0.01, 0.02, 0.05, 0.075, 0.1, 0.125, 0.15, 0.175, 0.2, 0.225, 0.25, 0.3, 0.35, 0.4, 0.5,
)  # fmt: skip
"""Failure probabilities of the test episodes."""

MISSPECIFIED = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
"""Failure probabilities over which sensitivity is averaged."""

EPSILON = 0.1
"""Share of random actions of the controls: the last one in training, and in test episodes."""

TEST_EPISODES = 200

WIDE, SMALL, NO_SET = "wide", "small", "none"


@dataclass(frozen=True)
class RoverWorld:
    """One assumption on the domain.

    Attributes:
      rewards: the rewards of reaching the goal, of failing, and of any other step.
      risk: the moves that may fail: "any" that reduces the distance to the goal, or only "diagonal" ones, from cells in
        neither the row nor the column of the goal.
      small_end: members of the small set are drawn from (0, small_end).
    """

    rewards: tuple[float, float, float]
    risk: str
    small_end: float

    @property
    def short(self) -> str:
        """The assumption in a few words."""
        return f"failure penalty {-self.rewards[1]:g}" + ("" if self.risk == "any" else ", safe lines")

    @property
    def title(self) -> str:
        """The assumption in words."""
        rewards = "rewards ({:g}, {:g}, {:g})".format(*self.rewards)
        return rewards if self.risk == "any" else f"{rewards}, moves in line with the goal are safe"


WORLDS = {
    "harsh": RoverWorld((1.0, -1.0, -0.0048), "any", 0.015),
    "mild": RoverWorld((1.0, -0.235, -0.001), "any", 0.045),
    "routes": RoverWorld((1.0, -1.0, -0.0048), "diagonal", 0.025),
}
"""In the first two every shortest path is equally risky, and curves cross near 0.2; in the last, routes differ."""

MAIN = {"dqn": NO_SET, "robust-dqn": WIDE, "dqn-ube": NO_SET, "dqn-urbe": WIDE}
"""The paper's agents, and whether they need a set."""

CONTROLS = {"dqn-epsilon": NO_SET, "robust-dqn-epsilon": WIDE, "calibrated-dqn-urbe": WIDE}

OPTIMUM, EXACT_ROBUST = "optimum", "exact robust"
"""Planned, not learned: the best policy for each failure probability, and for the worst member of the set."""

STEPS: dict[Scale, int] = {"quick": 60_000, "medium": 80_000, "paper": 600_000}
"""Steps of training. An episode has at most 200 steps, so the paper's 3,000 episodes take at most 600,000."""

QUICK_SEEDS = (100, 101, 102)
"""Seeds of the quick scale, whose results were known when the rules of the verdicts were fixed."""

TUNING_SEEDS = (0, 1, 2, 3, *QUICK_SEEDS)
"""Seeds used to choose numbers of steps (the first four) and rules; the larger scales show none of them."""

REPORTED_SEEDS = tuple(range(110, 120))
"""Seeds of the larger scales."""


def set_title(world: RoverWorld, members: str) -> str:
    """The law of a set's members."""
    return {WIDE: "set (0, 1)", SMALL: f"set (0, {world.small_end:g})", NO_SET: "no set"}[members]


def contestants(scale: Scale, agents: Sequence[str] = ()) -> list[tuple[str, str, str]]:
    """(world, set, agent) of everything that learns at a scale; or of some agents in all its worlds and sets."""
    everyone = MAIN | CONTROLS
    chosen = {
        "quick": {("harsh", WIDE): MAIN, ("harsh", SMALL): everyone, ("mild", WIDE): MAIN, ("mild", SMALL): MAIN},
        "medium": {("harsh", WIDE): everyone, ("harsh", SMALL): everyone, ("mild", WIDE): MAIN}
        | {("mild", SMALL): everyone, ("routes", SMALL): MAIN},
        "paper": {(world, s): everyone for world in WORLDS for s in (WIDE, SMALL)},
    }[scale]
    if agents:
        chosen = {key: {agent: everyone.get(agent, WIDE) for agent in agents} for key in chosen}
    found = [
        (world, members if needs != NO_SET else NO_SET, agent)
        for (world, members), agents in chosen.items()
        for agent, needs in agents.items()
    ]
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class MarsCell:
    """One agent with one seed in one world.

    Attributes:
      world: key of `WORLDS`.
      members: the set, "wide", "small" or "none".
      agent: name of the agent, or of an exact plan ("optimum", "exact robust").
      seed: seed of all random numbers, including the set.
      steps: number of training steps.
      episodes: number of episodes that noisy test policies play under each failure probability.
      settings: `field=value`, for settings that differ from the paper's.
      tuning_seeds: seeds on which steps and rules were chosen, for the record.
    """

    world: str
    members: str
    agent: str
    seed: int
    steps: int
    episodes: int = TEST_EPISODES
    tuning_seeds: tuple[int, ...] = TUNING_SEEDS
    settings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.world}-{self.members}-{file_name(self.agent)}-{self.steps}-seed{self.seed}"

    @property
    def modules(self) -> tuple[str, ...]:
        return own_modules(self.agent)

    @property
    def cost(self) -> float:
        """An estimate, in seconds."""
        if self.agent in (OPTIMUM, EXACT_ROBUST):
            return 1.0
        per_step = {"none": 5.5e-5, "wide": 7.5e-5, "small": 1.3e-4}[self.members]
        return 2.0 + per_step * self.steps


class Row(NamedTuple):
    """One number.

    Attributes:
      members, agent, seed: see `MarsCell`.
      acting: the test policy: "greedy", "noisy" (by the uncertainty head), "epsilon" (greedy but for a tenth of random
        actions); empty for metrics that do not depend on it.
      metric: "return" (exact expectation of a test episode) and "goal" (exact probability of reaching it) at the
        failure probability `at`; "visits" (exact expectation) of the state `state` at the nominal and at the changed
        probability, without zeros, for the agents that are drawn; "sampled" and "sampled error" (mean return of the
        played episodes, and its standard error); "flipped" (share of steps at the nominal probability at which the test
        policy does not take the best action by its own values); "steps" and "episodes" of training; "largest" member
        of the set.
      at: failure probability; -1 if there is none.
      state: number of the state; -1 if there is none.
    """

    world: str
    members: str
    agent: str
    acting: str
    seed: int
    metric: str
    at: float
    state: int
    value: float


WHOLE = Selection()


def _cells(scale: Scale, choice: Selection = WHOLE) -> tuple[MarsCell, ...]:
    seeds = choice.seeds_from(QUICK_SEEDS if scale == "quick" else REPORTED_SEEDS)
    chosen = contestants(scale, choice.agents)
    planned = [MarsCell(world, NO_SET, OPTIMUM, 0, 0) for world in dict.fromkeys(each[0] for each in chosen)]
    sets = dict.fromkeys(each[:2] for each in chosen if each[1] != NO_SET)
    planned += [MarsCell(*both, EXACT_ROBUST, seed, 0) for both in sets for seed in seeds]
    return (*planned, *(MarsCell(*each, seed, STEPS[scale]) for each in chosen for seed in seeds))


CELLS: dict[Scale, tuple[MarsCell, ...]] = {scale: _cells(scale) for scale in STEPS}


def _published() -> Any:
    from urbe.deep.paper import MARS_ROVER

    return MARS_ROVER


def choose(scale: Scale, choice: Selection) -> tuple[MarsCell, ...]:
    """Cells of some agents, and of the exact plans that the figures compare with."""
    check_agents(choice.agents, MAIN | CONTROLS)
    cells = _cells(scale, choice)
    learned = with_agent_settings([cell for cell in cells if cell.steps], choice.settings, _published)
    return (*(cell for cell in cells if not cell.steps), *learned)


CHAPTER = Chapter(
    "mars_rover",
    "Mars Rover",
    CELLS,
    Row,
    f"{__name__}.run",
    drawn_by(f"{__name__}.figures"),
    summary="Do robust deep agents reach the goal, and do they lose less when moves fail more often than in training?",
    highlight=highlighted_by(f"{__name__}.front"),
    agents=(*MAIN, *CONTROLS),
    choose=choose,
)
