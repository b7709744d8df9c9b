"""The figures of docs/robust_came_out_worse.md: robust agents with and without a hopeless member, on a thermostat.

    python examples/thermostat/robust_came_out_worse.py FOLDER [--quick]

Trains four agents with three seeds each in FOLDER; the same command resumes after an interruption. Then writes decided,
tried and returns (.svg, .png) there and prints the tables of the page. It takes about ten minutes on an idle core;
--quick takes a minute and only shows that it runs.
"""

import argparse
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np

import urbe
from thermostat import Thermostat
from urbe.atomic import replace_files
from urbe.deep import CopyEvery, CVaR, Epsilon, Network, Settings, deciding, dqn, robust_dqn, train, try_members
from urbe.gym import EnvMembers
from urbe.report import style
from urbe.report.export import figure_writer
from urbe.report.figures import panels, styled

FIRST, NARROW = (-15.0, -5.0, 5.0, 15.0), (5.0, 15.0)
SETTINGS = Settings(
    network=Network(hidden=(32, 32)), batch=32, discount=0.95, learning_rate=1e-3, capacity=5_000, warm_up=200,
    train_every=2, epsilon=Epsilon(steps=2_000), copy=CopyEvery(episodes=None, updates=100),
)  # fmt: skip
OVER = {"outside": np.linspace(-15.0, 20.0, 8)}
SEEDS, STEPS = (10, 11, 12), 5_000


def members(outside):
    return EnvMembers.grid(Thermostat(), outside=outside)


AGENTS = {
    "DQN": lambda seed: dqn(Thermostat(), seed=seed, settings=SETTINGS, log_every=500),
    "robust, first set": lambda seed: robust_dqn(
        Thermostat(), members(FIRST), seed=seed, settings=SETTINGS, log_every=500
    ),
    "robust, CVaR 0.5": lambda seed: robust_dqn(
        Thermostat(), members(FIRST), seed=seed, settings=SETTINGS, log_every=500, nature=CVaR(0.5)
    ),
    "robust, narrower set": lambda seed: robust_dqn(
        Thermostat(), members(NARROW), seed=seed, settings=SETTINGS, log_every=500
    ),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    seeds, steps = (SEEDS[:2], 300) if options.quick else (SEEDS, STEPS)
    warnings.simplefilter("ignore")  # the page explains them
    agents = {
        name: [
            train(make(seed), options.folder / f"{name}-{seed}".replace(" ", "_"), steps, progress=True)
            for seed in seeds
        ]
        for name, make in AGENTS.items()
    }
    first = agents["robust, first set"][0]
    print(f"decided, first set: {deciding(first)}")
    trials = try_members(first)
    names = deciding(first)
    for trial in trials:
        verdict = "hopeless" if trial.hopeless else "harsh" if trial.harsh else "fine"
        print(f"{names.name(trial.member)}: best {trial.best:.0f}, at random {trial.random:.0f}: {verdict}")
    found = urbe.compare(
        {
            name: [urbe.evaluate(a, OVER, env=lambda p: Thermostat(**p), episodes=10, seed=1) for a in own]
            for name, own in agents.items()
        }
    )
    print(found)
    print(
        urbe.compare({name: [part(e) for e in own.evaluations] for name, own in found.agents.items()}),
        "\n(outside 5 to 20)",
    )
    for kind in ("svg", "png"):
        save(draw_decided(first.history.members, names), options.folder / f"decided.{kind}")
        save(draw_trials(trials, names), options.folder / f"tried.{kind}")
        save(found.plot(), options.folder / f"returns.{kind}")


def part(evaluation):
    """Selects the outside temperatures for which the heater is strong enough."""
    from dataclasses import replace

    kept = [k for k, point in enumerate(evaluation.points) if point["outside"] >= 5.0]
    episodes = type(evaluation.greedy)(*(each[kept] for each in evaluation.greedy))
    return replace(evaluation, points=tuple(evaluation.points[k] for k in kept), greedy=episodes)


def draw_decided(table, names):
    """The share of the targets that each member decided, over the training."""
    with styled():
        figure, ((axes,),) = panels(height=2.4, right=2.2)
        for k in range(len(names.params)):
            axes.plot(
                table["step"], table[f"member_{k}"], color=style.SERIES[k % len(style.SERIES)], label=names.name(k)
            )
        axes.set(xlabel="step", ylabel="share of targets decided", ylim=(-0.02, 1.02))
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


def draw_trials(trials, names):
    """Returns of the best policy tried and of random actions, under each member."""
    with styled():
        figure, ((axes,),) = panels(height=2.2, left=1.6, right=1.9)
        for at, trial in enumerate(trials):
            colour = "#b3261e" if trial.hopeless else "#b26a00" if trial.harsh else style.ROBUST
            axes.plot([trial.random, trial.best], [at, at], color=colour, linewidth=2.0)
            axes.plot(trial.random, at, "o", color=colour, markerfacecolor="white")
            axes.plot(trial.best, at, "o", color=colour)
            word = "hopeless" if trial.hopeless else "harsh" if trial.harsh else "fine"
            axes.annotate(word, (1.02, at), xycoords=("axes fraction", "data"), va="center", color=colour)
        axes.axvline(trials[0].nominal_random, color=style.MUTED, linewidth=1.0, linestyle=style.DASHED)
        axes.set_yticks(range(len(trials)), [names.name(trial.member) for trial in trials])
        axes.invert_yaxis()
        axes.set_xlabel("return of an episode: at random (open), best policy tried (full)")
    return figure


def save(figure, path):
    figure.set_facecolor("white")
    replace_files({path: figure_writer(figure, path.suffix[1:])})


if __name__ == "__main__":
    main()
