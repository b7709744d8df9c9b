"""`urbe train`: train a deep agent in a folder; training can be interrupted and resumed at any time."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from urbe.cli import adaptive, worlds
from urbe.cli.agents import AGENTS, make_agent
from urbe.cli.wording import in_options

LAST_EPISODES = 100
FEW_EPISODES = 40
"""With fewer episodes, nothing is reported on whether returns rise."""
BEST = "best.safetensors"
WRITTEN = ("log.csv", "episodes.csv", "members.csv", "evaluation.csv", "checkpoints", BEST, "tensorboard")

HELP = f"""\
agents
  dqn              deep Q-learning
  robust-dqn       targets are the worst case over an uncertainty set
  soft-robust-dqn  targets are the mean over the set
  dqn-ube          dqn that explores by the variance of its Q-values
  dqn-urbe         robust targets, and exploration by the variance of robust Q-values
  deep-rok         robust-dqn whose last layer is a Kalman filter
baselines
  domain-randomised-dqn  dqn whose parameters are drawn from the set for every episode (hazard)
  stacked-dqn            likewise, and observes the last steps (length, survives, hazard)
  recurrent-dqn          likewise, with a recurrent network (memory.units, memory.length, memory.burn_in, hazard)
  ewok-dqn               dqn in the worst of several draws, of the simulator or of --over (kappa, draws)
  iwocs-dqn              dqn under one member after another, each the worst so far (round_steps, episodes)
--set also changes the options in parentheses: --set kappa=0.2 draws=8.

{adaptive.HELP}
{worlds.HELP}
--set changes any setting; an unknown name prints all settings with their values:
  --set discount=0.99 network.hidden=64,64 epsilon.steps=5000 variance.beta=1.0
  --set copy.episodes=none copy.updates=500 huber=1
  --set variance=mine:MyVariance        a variance, nature, network or optimiser of your own, from mine.py

--evaluate-every N plays greedy test episodes after every N steps, under the parameters of --evaluate-over (written like
--over, as values or ranges; nominal ones without it), and writes mean and worst case over them to evaluation.csv:
  --evaluate-every 5000 --evaluate-over half_length=0.25,0.5,1
  --evaluate-every 5000 --evaluate-over half_length=0.25:1:4 --keep-best worst --stop-at 475 --patience 5
DIR/best holds the agent with the best mean or worst case (--keep-best); urbe evaluate DIR/best tests it on fresh
episodes. --stop-at and --patience end the run by the same measure; a run that has ended continues only if they are
raised. Training is the same, bit for bit, with and without evaluation. On a Gymnasium environment, parameters are set
where urbe knows how, else they are arguments of gymnasium.make.

written into DIR: log.csv (a row per --log-every steps), episodes.csv, members.csv (the share of the targets that each
member decided), evaluation.csv, checkpoints, best.safetensors, finished.json.
Without a terminal, a line of progress is written about every 30 seconds. The same command resumes from the newest
checkpoint, with the same result, bit for bit, as an uninterrupted run, if the state of the environment can be saved;
more --steps extend it. Ctrl-C loses the steps since the last checkpoint. One process at a time works in DIR. XLA runs
on one thread unless NPROC and XLA_FLAGS say otherwise; compiled programs are kept in ~/.cache/urbe/jax.

examples:
  urbe train cartpole --agent dqn-urbe --seed 0 --out runs/urbe0
  urbe train cartpole --agent dqn-urbe --seed 0 --out runs/paper0 --paper --steps 400000
  urbe train cartpole --agent robust-dqn --seed 0 --out runs/robust0 --over half_length=0.25:1.25:5 masspole=0.05,0.3
  urbe train cartpole --agent dqn --seed 0 --out runs/dqn0 --evaluate-every 5000 --evaluate-over half_length=0.25,1 \\
    --keep-best worst --stop-at 475 --patience 5
  urbe train cartpole --agent stacked-dqn --seed 0 --out runs/stack0 --over force=-10,5 --set length=6 hazard=0.2
  urbe train cartpole --agent bayes-adaptive-dqn --seed 0 --out runs/adapt0 --steps 1000000 \\
    --over force=-16,-10,-5,5,10,16 --set hazard=1e-3 boundary=0.5 reward_scale=100
  urbe train mountain-car --agent dqn --seed 3 --out runs/car3 --set discount=0.99 epsilon.steps=50000
  urbe train LunarLander-v3 --agent dqn --seed 0 --out runs/lander0 --tensorboard
  urbe train CartPole-v1 --agent robust-dqn --seed 0 --out runs/gym0 --over length=0.25:1:4
  urbe train thermostat:Thermostat --agent robust-dqn --seed 0 --out runs/heat0 --over outside=-5,10
  urbe train mine:Mine-v0 --agent robust-dqn --seed 0 --out runs/mine0 --adapter mine:Adapter --over friction=0.1:0.5:5
"""


def add_parser(commands: Any) -> None:
    """Adds the command and its options."""
    parser = commands.add_parser(
        "train",
        help="train a deep agent in a folder",
        description="Trains an agent of the DQN family, robust or adaptive or not, and keeps everything in a folder.",
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "env",
        metavar="ENV",
        help=f"{', '.join(worlds.SIMULATORS)}, a Gymnasium id, or module:name of a class or function that makes one",
    )
    parser.add_argument("--agent", choices=AGENTS, required=True, metavar="AGENT", help="see below")
    parser.add_argument("--seed", type=int, required=True, metavar="N", help="seed of all random numbers")
    parser.add_argument(
        "--out", required=True, metavar="DIR", help="folder of the run: a new one, or that of the run to resume"
    )
    parser.add_argument("--steps", type=int, default=100_000, metavar="N", help="environment steps in all (100000)")
    group = parser.add_argument_group("agent")
    group.add_argument("--paper", action="store_true", help=f"published settings ({', '.join(worlds.PAPER)})")
    group.add_argument("--set", nargs="+", default=[], action="extend", metavar="F=V", help="settings, see below")
    group.add_argument(
        "--over", nargs="+", default=[], action="extend", metavar="P=W", help="uncertainty set; see below"
    )
    group.add_argument("--adapter", metavar="M:CLASS", help="sets state and parameters of a Gymnasium environment")
    group.add_argument(
        "--members", type=int, default=15, metavar="K", help="number of draws for distributions in --over (15)"
    )
    group.add_argument(
        "--over-seed", type=int, default=0, metavar="N", help="seed of these draws (0), the same for every --seed"
    )
    group = parser.add_argument_group("evaluation during training")
    group.add_argument("--evaluate-every", type=int, metavar="N", help="steps between evaluations; see below")
    group.add_argument(
        "--evaluate-over", nargs="+", default=[], action="extend", metavar="P=V", help="parameters to evaluate under"
    )
    group.add_argument("--evaluate-episodes", type=int, metavar="E", help="episodes for each set of parameters (20)")
    group.add_argument("--keep-best", choices=("mean", "worst"), help="measure of the best agent (mean)")
    group.add_argument("--stop-at", type=float, metavar="R", help="stop when an evaluation reaches this return")
    group.add_argument("--patience", type=int, metavar="K", help="stop after K evaluations without a better one")
    group = parser.add_argument_group("output")
    group.add_argument(
        "--checkpoint-every", type=int, default=10_000, metavar="N", help="steps between checkpoints (10000)"
    )
    group.add_argument("--log-every", type=int, default=1_000, metavar="N", help="steps per row of log.csv (1000)")
    group.add_argument("--tensorboard", action="store_true", help="also write DIR/tensorboard")
    group.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Trains; returns the exit code."""
    worlds.set_up_jax()
    worlds.find_modules_here()
    from urbe.deep import NotFinite
    from urbe.deep.training.endless import NoEpisodeEnded, endless
    from urbe.deep.training.train import train
    from urbe.deep.training.who_decides import OneMemberDecides, advice
    from urbe.runs.directory import read_config, saved_steps

    callbacks = evaluation(options)
    say: Callable[[str], None] = (lambda _: None) if options.quiet else (lambda text: print(text, flush=True))
    agent = make_agent(options)
    saved = saved_steps(options.out)
    start = saved[-1] if saved else 0
    if saved and _was_stopped(options.out):
        say(f"{options.out}: an evaluation stopped this run at step {start}.")
    elif start >= options.steps and saved:
        say(f"{options.out} is at step {start} already; more --steps extend it.")
    elif saved:
        again = read_config(options.out).get("world", {}).get("resumes") == "with a new episode"
        new = " with a new episode, since the state of the environment cannot be saved" if again else ""
        say(f"{options.out}: resuming from step {start}{new}.")
    else:
        say(f"{options.out}: {options.agent} on {options.env}, seed {options.seed}, a new run.")
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OneMemberDecides)  # what follows says so, with the evaluation
            warnings.simplefilter("ignore", NoEpisodeEnded)
            if options.agent in adaptive.AGENTS:
                adaptive.train(agent, options)
            else:
                train(
                    agent,
                    options.out,
                    options.steps,
                    callbacks=callbacks,
                    checkpoint_every=options.checkpoint_every,
                    progress=not options.quiet,
                    tensorboard=options.tensorboard,
                )
    except NotFinite as error:
        print(f"urbe: {error} See {options.out}/log.csv for the steps before.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        newest = max(saved_steps(options.out), default=0)
        print(f"urbe: interrupted; the same command resumes from step {newest}.", file=sys.stderr)
        return 130
    seconds = time.perf_counter() - began
    if options.agent in adaptive.AGENTS:
        say(adaptive.summary(agent, options, seconds, _further(options)))
        return 0
    say(_summary(options, agent, seconds))
    for warning in () if options.quiet else (endless(agent, 1), advice(agent)):
        if warning is not None:
            print(f"urbe: {in_options(warning)}", file=sys.stderr)
    return 0


def evaluation(options: argparse.Namespace) -> list[Any]:
    """Returns the callbacks that the options describe: one evaluation, or none."""
    from urbe.deep.training.evaluate import Evaluate

    asked = {
        "--evaluate-over": options.evaluate_over or None,
        "--evaluate-episodes": options.evaluate_episodes,
        "--keep-best": options.keep_best,
        "--stop-at": options.stop_at,
        "--patience": options.patience,
    }
    if options.evaluate_every is None:
        given = [name for name, value in asked.items() if value is not None]
        if given:
            raise ValueError(f"{given[0]} has no effect without evaluations; add --evaluate-every N.")
        return []
    known = {"episodes": options.evaluate_episodes, "by": options.keep_best}
    adapter = worlds.adapter_named(options.adapter)
    return [
        Evaluate(
            every=options.evaluate_every,
            over=worlds.grid_of(options.evaluate_over, "--evaluate-over"),
            env=None if options.env in worlds.SIMULATORS else worlds.maker(options.env, "ENV", adapter),
            stop_at=options.stop_at,
            patience=options.patience,
            **{name: value for name, value in known.items() if value is not None},
        )
    ]


def _flat(returns: np.ndarray) -> str:
    """Says what to check if the last episodes returned no more than the first ones; empty if they did."""
    if len(returns) < FEW_EPISODES:
        return ""
    first, last = returns[: len(returns) // 4], returns[-(len(returns) // 4) :]
    error = np.hypot(first.std(ddof=1) / np.sqrt(len(first)), last.std(ddof=1) / np.sqrt(len(last)))
    if last.mean() - first.mean() > 2.0 * error:
        return ""
    return (
        f".\nThe last quarter of the episodes returned {last.mean():.4g}, no more than the first, {first.mean():.4g}. "
        "The agent\nhas not improved: try more --steps, --set epsilon.steps=... (exploration must end before "
        "--steps do), learning_rate,\ndiscount and copy; log.csv has epsilon and td_error"
    )


def _was_stopped(folder: str) -> bool:
    from urbe.runs.directory import read_finished

    return "stopped" in (read_finished(folder) or {})


def _summary(options: argparse.Namespace, agent: Any, seconds: float) -> str:
    from urbe.deep.training.history import pending
    from urbe.deep.training.who_decides import deciding

    returns = np.concatenate([agent.history.episodes["return"], pending(agent.trainer).episodes["return"]])
    summary = f"{agent.step} steps, {len(returns)} episodes"
    if len(returns):
        last = returns[-LAST_EPISODES:]
        summary += f", mean return of the last {len(last)}: {np.mean(last):.4g}"
    names = [name for name in WRITTEN if Path(options.out, name).exists()]
    stopped = "" if agent.stopped is None else f"\nStopped: {agent.stopped} To continue, raise --stop-at or --patience."
    judged = f"{options.out}/{BEST}" if BEST in names else options.out
    summary += _flat(returns)
    members = deciding(agent)
    worst = "" if members is None else f"\nTargets decided in the second half of training: {members}."
    return (
        f"{summary}. {seconds:.3g} s.{stopped}{worst}\n"
        f"In {options.out}: {', '.join(names)}.\nNext: urbe evaluate {judged}{_further(options)}"
    )


def _further(options: argparse.Namespace) -> str:
    """The options of `urbe evaluate` for this run: parameters, and the user's adapter and modules."""
    judged = worlds.JUDGED_OVER.get(options.env, "")
    names = {each.partition("=")[0] for each in options.over}
    tried = (
        judged
        if names <= {judged.partition("=")[0]}
        else " ".join(each for each in options.over if not each.partition("=")[2][:1].isalpha())
    )
    modules = dict.fromkeys(s.partition("=")[2].partition(":")[0] for s in options.set if ":" in s)
    given = {"--over": tried, "--adapter": options.adapter, "--import": " ".join(modules)}
    return "".join(f" {option} {value}" for option, value in given.items() if value)
