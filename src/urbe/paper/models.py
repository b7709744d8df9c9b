"""The classic models of the demonstration, with their descriptions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from urbe.mdp import library
from urbe.mdp.model import MDP


@dataclass(frozen=True)
class Demo:
    """A model and its description.

    Attributes:
      title: its name on the page.
      story: what happens in it, one or two sentences.
      build: makes the model.
      start: where values are reported, in words; `urbe.mdp.evaluate.start_weights` has the numbers.
      actions: name of each action.
      ordered: whether actions are amounts rather than names.
      states: name of each state.
      l1, kl: largest radius of each set; beyond it nothing changes.
    """

    title: str
    story: str
    build: Callable[[], MDP]
    start: str
    actions: tuple[str, ...]
    ordered: bool
    states: tuple[str, ...]
    l1: float
    kl: float


MODELS: dict[str, Demo] = {
    "riverswim": Demo(
        title="RiverSwim",
        story="A swimmer starts at the left bank, where resting pays a little. Swimming right against the current may "
        "fail, and pays a lot at the far end.",
        build=lambda: library.riverswim(6, discount=0.95),
        start="in the first state, where the swimmer starts",
        actions=("left", "right"),
        ordered=False,
        states=tuple(f"state {i}" for i in range(6)),
        l1=1.0,
        kl=0.5,
    ),
    "machine_replacement": Demo(
        title="Machine replacement",
        story="A machine ages and is expensive to run when old. A repair takes some time, occasionally a long time.",
        build=lambda: library.machine_replacement(10, discount=0.95),
        start="at age 0, where the machine starts",
        actions=("wait", "repair"),
        ordered=False,
        states=(*(f"age {i}" for i in range(8)), "in repair", "long repair"),
        l1=1.5,
        kl=1.5,
    ),
    "inventory": Demo(
        title="Inventory",
        story="A shop orders each evening, holding costs money, and demand is Poisson with mean 8. "
        "The numbers are how many pieces to order.",
        build=lambda: library.inventory(20, discount=0.95),
        start="averaged over all stocks with equal weight",
        actions=tuple(str(a) for a in range(21)),
        ordered=True,
        states=tuple(f"stock {i}" for i in range(21)),
        l1=2.0,
        kl=1.0,
    ),
    "garnet": Demo(
        title="Garnet",
        story="A random model: 20 states, 4 actions, 5 random successors for each pair, rewards between 0 and 1 "
        "(seed 1).",
        build=lambda: library.garnet(20, 4, 5, seed=1, discount=0.95),
        start="averaged over all states with equal weight",
        actions=("a", "b", "c", "d"),
        ordered=False,
        states=tuple(f"state {i}" for i in range(20)),
        l1=2.0,
        kl=1.5,
    ),
    "grid_world": Demo(
        title="Grid world",
        story="A walk on a slippery 4 by 6 grid from the top left to the bottom right; a step costs 1 and leaves the "
        "intended direction with probability 0.2.",
        build=lambda: library.grid_world(4, 6, 0.2, discount=0.95),
        start="in the top left cell, where the walk starts",
        actions=("up", "right", "down", "left"),
        ordered=False,
        states=tuple(f"row {i // 6}, column {i % 6}" for i in range(24)),
        l1=2.0,
        kl=1.5,
    ),
}
