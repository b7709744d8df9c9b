"""CartPole: tests over pole lengths, visited states, and a pole that changes in training [Derman2019] Figs. 5 and 6.

Agents are trained with a pole of half length 0.75. `run` documents the recorded metrics.

One cell is one agent under one assumption with one seed, and serves all figures: it is trained at the nominal pole,
tested over lengths with its visited states recorded, and trained further with each of the changed poles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from urbe.paper.chapter import Chapter, Scale, drawn_by
from urbe.paper.choice import Selection, check_agents, file_name, own_modules, with_agent_settings

Inputs = Literal["raw", "scaled"]
"""Inputs of the network: raw observations, or observations divided by `SCALE`."""

Unit = Literal["steps", "episodes"]

NOMINAL = 0.75

LENGTHS = (0.25, 0.5, NOMINAL, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0)
"""Half lengths of the poles in tests."""

PUBLISHED_CHANGE, HARD_CHANGE = 1.25, 3.0

CHANGES = (PUBLISHED_CHANGE, HARD_CHANGE)
"""Half lengths to which the pole changes during training."""

SCALE = (2.4, 3.0, 0.21, 3.0)
"""About the largest position, speed, angle and angular speed of an episode."""

PAPER = ("dqn", "robust-dqn", "dqn-ube", "dqn-urbe")

CONTROLS = ("dqn-epsilon", "robust-dqn-epsilon")

VARIANTS = ("dqn-urbe-forgetting", "calibrated-dqn-urbe")

PICTURED = ("robust-dqn", "dqn-urbe")
"""Agents whose visited states are drawn."""

EPSILON = 0.1
"""Probability of random actions of the controls; the paper's agents have 1e-5."""

EPISODES, AFTER = 4_000, 1_000
"""Episodes of the paper: in training, and after a change."""

TUNING_SEEDS = (0, 1, 2)
"""Seeds on which numbers of steps and windows were chosen; they are not reported."""

FRESH_SEEDS = tuple(range(101, 111))


@dataclass(frozen=True)
class CartPoleCell:
    """One agent under one assumption with one seed.

    Attributes:
      inputs: the assumption on the inputs of the network.
      agent: one of `PAPER`, `CONTROLS` or `VARIANTS`.
      seed: seed of the network, of all random numbers, of the uncertainty set and of the test episodes.
      training: length of the training at the nominal pole, in `unit`.
      after: length of the training after each change, in `unit`; divisible by 4.
      unit: "steps", or "episodes": then training ends at a multiple of 10000 steps, with at least this many.
      changes: half lengths after the change, each from the same trained agent.
      test_episodes: number of episodes of each test.
      hidden, batch: sizes of the Q-network and its batches; by default the paper's.
      tuning_seeds: seeds on which sizes were chosen.
      settings: `field=value`, for settings that differ from the paper's.
    """

    inputs: Inputs
    agent: str
    seed: int
    training: int
    after: int
    unit: Unit = "steps"
    changes: tuple[float, ...] = CHANGES
    test_episodes: int = 200
    hidden: tuple[int, ...] = (128, 128, 128)
    batch: int = 256
    tuning_seeds: tuple[int, ...] = TUNING_SEEDS
    settings: tuple[str, ...] = ()

    @property
    def modules(self) -> tuple[str, ...]:
        return own_modules(self.agent)

    @property
    def name(self) -> str:
        return f"{self.inputs}-{file_name(self.agent)}-{self.training}-{self.unit}-seed-{self.seed}"

    @property
    def cost(self) -> float:
        """An estimate in seconds: 1.1 milliseconds a step, episodes of 180 steps, and ten seconds for the rest."""
        length = 1 if self.unit == "steps" else 180
        return 10.0 + 1.1e-3 * length * (self.training + len(self.changes) * self.after)


class Row(NamedTuple):
    """One number.

    Attributes:
      inputs, agent, seed: those of the cell.
      change: half length to which the pole has changed; 0 before any change.
      acting: "greedy" or "noisy" in tests, "training" in training.
      metric: see `urbe.paper.cartpole.run`.
      at, also: what `value` refers to: a half length, a step, an episode; (x, theta) for visited states; 0 otherwise.
      value: the number.
    """

    inputs: str
    agent: str
    seed: int
    change: float
    acting: str
    metric: str
    at: float
    also: float
    value: float


ALL = (*PAPER, *CONTROLS, *VARIANTS)

_CHANGED: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("robust-dqn", "dqn-urbe", "robust-dqn-epsilon"), CHANGES),
    **dict.fromkeys(VARIANTS, (HARD_CHANGE,)),
}
"""The changes of each agent below the paper's scale, as needed for the claims."""


def _cells(
    inputs: Inputs,
    agents: tuple[str, ...],
    seeds: tuple[int, ...],
    training: int,
    after: int,
    changes: Mapping[str, tuple[float, ...]],
    unit: Unit = "steps",
) -> tuple[CartPoleCell, ...]:
    return tuple(
        CartPoleCell(inputs, agent, seed, training, after, unit, changes.get(agent, ()))
        for agent in agents
        for seed in seeds
    )


CELLS: dict[Scale, tuple[CartPoleCell, ...]] = {
    "quick": _cells("raw", (*PAPER, "robust-dqn-epsilon"), FRESH_SEEDS[:3], 30_000, 8_000, _CHANGED),
    "medium": (
        *_cells("raw", ALL, FRESH_SEEDS, 36_000, 10_000, _CHANGED),
        *_cells("scaled", PAPER, FRESH_SEEDS, 45_000, 10_000, {}),
    ),
    "paper": (
        *_cells("raw", ALL, FRESH_SEEDS, EPISODES, AFTER, dict.fromkeys(ALL, CHANGES), "episodes"),
        *_cells("scaled", ALL, FRESH_SEEDS, EPISODES, AFTER, dict.fromkeys(ALL, CHANGES), "episodes"),
    ),
}
"""Quick is long enough to learn to balance. Medium is the longest training of ten seeds within two hours of one core.

On tuning seed 0, the last 100 episodes of training returned on average, with raw inputs, 193 (robust DQN), 187
(DQN-URBE) and 158 (DQN) at 30,000 steps, and 199, 199 and 181 at 40,000; with scaled inputs, which learn more slowly at
this learning rate, 160 (DQN) and 121 (robust DQN) at 40,000 steps, 191 and 136 at 50,000, 197 and 150 at 60,000."""


def choose(scale: Scale, choice: Selection) -> tuple[CartPoleCell, ...]:
    """Cells of some agents, with all changes of the pole that any agent meets at the scale."""
    check_agents(choice.agents, ALL)
    found = []
    for inputs in dict.fromkeys(cell.inputs for cell in CELLS[scale]):
        like = [cell for cell in CELLS[scale] if cell.inputs == inputs]
        seeds = choice.seeds_from(tuple(dict.fromkeys(cell.seed for cell in like)))
        changes = tuple(sorted({change for cell in like for change in cell.changes}))
        met = {cell.agent: cell.changes for cell in like}
        for agent in choice.agents or met:
            found += [replace(like[0], agent=agent, seed=s, changes=met.get(agent, changes)) for s in seeds]
    return with_agent_settings(found, choice.settings, _published)


def _published() -> Any:
    from urbe.deep.paper import CARTPOLE

    return CARTPOLE


CHAPTER = Chapter(
    "cartpole",
    "CartPole with poles of other lengths",
    CELLS,
    Row,
    f"{__name__}.run",
    drawn_by(f"{__name__}.figures"),
    summary="Do robust deep agents balance longer poles, and do they recover when the pole changes in training?",
    agents=ALL,
    choose=choose,
)
