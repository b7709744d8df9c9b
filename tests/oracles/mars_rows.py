"""Made-up rows of the Mars Rover comparison: every agent earns what it is told to, with a little noise over seeds."""

import numpy as np

from urbe.experiments.mars_readings import GRID, NO_SET, SMALL, WIDE, WORLDS
from urbe.experiments.mars_rover import Row

HEADS = ("dqn-ube", "dqn-urbe", "calibrated-dqn-urbe")
SETS = {
    "dqn": NO_SET, "dqn-ube": NO_SET, "robust-dqn": WIDE, "dqn-urbe": WIDE, "calibrated-dqn-urbe": WIDE,
    "dqn-epsilon": NO_SET, "robust-dqn-epsilon": WIDE,
}  # fmt: skip
BEST = {"harsh": 0.7767, "mild": 0.8904, "routes": 0.8558}
CEILING = 0.9229, 0.0301
"""Chances of the goal that no policy can beat, at 0.005 and at 0.2."""


def waits(world="harsh"):
    """An agent that never moves: (return over p, chance of the goal over p)."""
    return np.full(len(GRID), 200 * WORLDS[world].rewards[2]), np.zeros(len(GRID))


def travels(world="harsh", share=1.0):
    """An agent that goes straight in a share of episodes and waits in the others, by the words of the domain."""
    success, fail, step = WORLDS[world].rewards
    goal = np.array([np.mean([(1 - p) ** d for d in _distances()]) for p in GRID])
    paid = np.array([np.mean([_steps(p, d) for d in _distances()]) for p in GRID])
    total = goal * success + (1 - goal) * fail + paid * step
    rest, _ = waits(world)
    return share * total + (1 - share) * rest, share * goal


def _distances():
    return [18 - row - column for row in range(3) for column in range(3)]


def _steps(p, d):
    """Expected steps that pay the step reward: all successful ones but the last."""
    return sum((1 - p) ** k for k in range(1, d))


def rows(agents, seeds=range(100, 110), noise=1e-4, worlds=("harsh",), sets=(WIDE, SMALL)):
    """Rows of agents: name, or (name, acting), -> (returns, goal), or a function of the seed that gives them."""
    out = []
    for world in worlds:
        out += _planned(world, sets, seeds)
        for told, fate in agents.items():
            name, acting = told if isinstance(told, tuple) else (told, None)
            other = "noisy" if name in HEADS else "epsilon"
            for members in sets if SETS[name] == WIDE else (NO_SET,):
                for seed in seeds:
                    rng = np.random.default_rng([seed, *map(ord, name)])
                    returns, goal = fate(seed) if callable(fate) else fate
                    for way in ("greedy", other) if acting is None else (acting,):
                        add = _adder(out, world, members, name, way, seed)
                        for p, value, chance in zip(GRID, returns, goal, strict=True):
                            shift = noise * rng.standard_normal()
                            add("return", value + shift, p)
                            add("goal", chance, p)
                            if way == "noisy":
                                add("sampled", value + shift, p)
                                add("sampled error", 0.01, p)
                        for p in (0.005, 0.2):
                            at = GRID.index(p)
                            add("visits", goal[at], p, 99)
                            add("visits", 1.0 - goal[at], p, 100)
                            add("visits", 9.0, p, 0)
                            add("visits", 0.5, p, 55)
                        add("flipped", 0.0 if way == "greedy" else 0.1)
                    add = _adder(out, world, members, name, "", seed)
                    add("steps", 60_000)
                    add("episodes", 300 + seed)
    return out


def _planned(world, sets, seeds):
    out = []
    returns, goal = travels(world)
    returns = np.maximum(returns, waits(world)[0])
    add = _adder(out, world, NO_SET, "optimum", "greedy", 0)
    for p, value, chance in zip(GRID, returns, goal, strict=True):
        add("return", value, p)
        add("goal", chance, p)
    for members in sets:
        fate = waits(world) if members == WIDE else travels(world)
        for seed in seeds:
            add = _adder(out, world, members, "exact robust", "greedy", seed)
            for p, value, chance in zip(GRID, *fate, strict=True):
                add("return", value, p)
                add("goal", chance, p)
    return out


def _adder(out, world, members, agent, acting, seed):
    def add(metric, value, at=-1.0, state=-1):
        out.append(Row(world, members, agent, acting, seed, metric, float(at), state, float(value)))

    return add
