"""Load saved agents, which resume bit for bit.

A file names kinds that `urbe.deep.saving.describe` lists, or parts of settings from modules that this process has
imported, with their fields; nothing else is built, nothing is imported and no code in a file is executed. Objects that
cannot be described (a simulator or a schedule of your own, a Gymnasium environment) must be given again.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from urbe import checks
from urbe.deep.agent import VERSION, DQNAgent
from urbe.deep.core.keys import key_data, root_key
from urbe.deep.core.learner import init_learner
from urbe.deep.core.precision import double
from urbe.deep.core.settings import Settings
from urbe.deep.loops.compiled import init_run
from urbe.deep.loops.compiled_trainer import CompiledTrainer
from urbe.deep.loops.make import Environment, Uncertain, make_trainer
from urbe.deep.loops.trainer import FrozenTrainer, Trainer, Training
from urbe.deep.saving.describe import build
from urbe.deep.saving.upgrade import renamed, upgraded
from urbe.deep.training.history import History
from urbe.gym.kinds import KINDS
from urbe.gym.rows import Observations
from urbe.gym.spaces import Spaces
from urbe.runs import upgrade
from urbe.runs.directory import CHECKPOINTS, CONFIG, Checkpoint, read_checkpoint, read_checkpoint_file, read_logs
from urbe.runs.errors import CheckpointError, LogDamaged, refused
from urbe.runs.tensors import load_tensors
from urbe.runs.tree import unflatten
from urbe.simulators import Constant, Schedule, Simulator, UncertaintySet

LEARNER = "trainer/learner/"
"""The common prefix of the names of the learner's tensors."""

Path_ = str | os.PathLike[str]
_WORLDS = ("simulator", "gymnasium", "none")
_PARTS = {"agent": str, "seed": int, "log_every": int, "settings": dict, "world": dict}


def load(
    path: Path_,
    *,
    env: Environment | None = None,
    uncertainty_set: Uncertain | None = None,
    schedule: Schedule | None = None,
    settings: Settings | None = None,
) -> DQNAgent:
    """Loads an agent written by `DQNAgent.save` or `train`, with replay, optimiser and random numbers.

    Give objects here that the file cannot describe. Without its environment, an agent can predict but not learn.

    Args:
      path: a saved agent, a run's folder (its newest checkpoint), or one checkpoint of a run.
      env: the environment, instead of the one in the file; sizes must agree.
      uncertainty_set: the members of that environment, if the file cannot describe them.
      schedule: the changes of a given simulator's parameters; None takes them from the file.
      settings: the settings, if they have parts of your own.

    Raises:
      CheckpointError: the file is missing, damaged, of another kind, or newer.
      ValueError: `env` or `uncertainty_set` does not fit the saved agent, or a required argument is missing.

    >>> import tempfile
    >>> from urbe.deep.presets import dqn
    >>> from urbe.simulators import CartPole
    >>> agent = dqn(CartPole(), seed=0, capacity=500, warm_up=100, batch=16)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     agent.save(f"{folder}/pole")
    ...     again = load(f"{folder}/pole")
    >>> again.predict([0.0, 0.0, 0.1, 0.0]) == agent.predict([0.0, 0.0, 0.1, 0.0])
    True
    """
    saved = _read(path)
    chosen = _settings(saved) if settings is None else settings
    tensors = saved.tensors
    if env is not None:
        trainer = _given(saved, chosen, env, uncertainty_set, schedule)
    elif uncertainty_set is not None or schedule is not None:
        raise ValueError("uncertainty_set or schedule is given without env, expected both: they belong to one.")
    elif _is_described(saved.world):
        trainer = _described(saved, chosen)
    else:
        trainer = _frozen(saved, chosen)
        tensors = {name: array for name, array in tensors.items() if name.startswith(("history/", LEARNER))}
    agent = DQNAgent(saved.name, trainer, saved.seed, saved.log_every)
    agent.load_tensors(tensors, path, saved.history)
    return agent


def past(folder: Path, checkpoint: Checkpoint) -> History | None:
    """The history of an agent at a checkpoint of a run, from its logs; None if urbe 0.1.0 saved it with the agent.

    Raises:
      CheckpointError: a log is missing or damaged.
    """
    if any(name.startswith("history/") for name in checkpoint.tensors):
        return None
    return History.of_files(read_logs(folder, checkpoint), folder)


def _past_or_nothing(folder: Path, checkpoint: Checkpoint) -> History | None:
    """The same; empty, with a warning, if a log is lost, since the agent does not need it."""
    try:
        return past(folder, checkpoint)
    except CheckpointError as error:
        warnings.warn(f"{error} The agent is complete, but its history is left out.", LogDamaged, stacklevel=4)
        return History()


class Saved(NamedTuple):
    """The content of a file."""

    path: Path_
    tensors: dict[str, np.ndarray]
    history: History | None
    spaces: dict[str, Any] | None
    name: str
    seed: int
    log_every: int
    settings: dict[str, Any]
    world: dict[str, Any]


class Sizes(NamedTuple):
    """Sizes that an environment and a set of members share with an agent's tensors."""

    obs_size: int
    n_actions: int
    members: int
    outcomes: int


def _read(path: Path_) -> Saved:
    tensors, about, run = read_any(Path(checks.file_path("path", path)))
    version = about.get("version")
    if type(version) is not int or version < 1 or not about.keys() >= _PARTS.keys():
        if about.get("family") == "adaptive":
            raise CheckpointError(path, "is an adaptive agent; load it with urbe.deep.load_adaptive.")
        raise CheckpointError(path, f"is not an agent: it contains {checks.listing(sorted(about)) or 'nothing'}.")
    if version > VERSION:
        raise CheckpointError(
            path, f"holds an agent of version {version}, expected at most {VERSION}; read it with a newer urbe."
        )
    for part, kind in _PARTS.items():
        if type(about[part]) is not kind:
            raise CheckpointError(path, f"has the {part} {about[part]!r:.100}, expected one of type {kind.__name__}.")
    if about["world"].get("kind") not in _WORLDS:
        raise CheckpointError(
            path, f"has a world of the kind {about['world'].get('kind')!r:.100}, expected one of {', '.join(_WORLDS)}."
        )
    with refused(path, "an agent"):
        checks.whole_number("seed", about["seed"], 0)
        checks.whole_number("log_every", about["log_every"], 1)
    spaces = about.get("spaces")  # missing in files of urbe 0.1
    if spaces is not None and type(spaces) is not dict:
        raise CheckpointError(path, f"has the spaces {spaces!r:.100}, expected one of type dict.")
    tensors, about = renamed(about, tensors), upgraded(about)
    history = None if run is None else _past_or_nothing(*run)
    return Saved(path, tensors, history, spaces, *(about[part] for part in _PARTS))


def read_any(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any], tuple[Path, Checkpoint] | None]:
    """Reads a run's folder, a checkpoint of a run, or a saved agent; also returns the run, if there is one."""
    if os.path.lexists(path / CONFIG):
        newest = read_checkpoint(path)
        return newest.tensors, newest.about, (path, newest)
    if os.path.lexists(path.parent.parent / CONFIG) and path.parent.name == CHECKPOINTS:
        one = read_checkpoint_file(path)
        return one.tensors, one.about, (path.parent.parent, one)
    tensors, about = upgrade.read_folder_checkpoint(path) if path.is_dir() else load_tensors(path)
    return tensors, about, None


def _settings(saved: Saved) -> Settings:
    if "why" in saved.settings:
        raise ValueError(f"settings is missing, expected those of {os.fspath(saved.path)}: {saved.settings['why']}")
    with refused(saved.path, "settings"):
        settings = build("settings", saved.settings)
        if not isinstance(settings, Settings):
            raise ValueError(f"found {settings!r:.100}, expected Settings.")
    return settings


def _is_described(world: Mapping[str, Any]) -> bool:
    parts = (world.get("simulator"), world.get("schedule"))
    return world["kind"] == "simulator" and not any(type(part) is dict and "why" in part for part in parts)


def _described(saved: Saved, settings: Settings) -> Trainer:
    """Makes a trainer with the simulator that the file describes."""
    with refused(saved.path, "a simulator"):
        simulator = build("simulator", saved.world["simulator"])
        schedule = build("schedule", saved.world["schedule"])
        uncertain = _described_set(simulator, saved.world["uncertain"])
        training = _training(saved)
        # shapes first: nothing is allocated before the sizes agree with the arrays in the file
        keep_states = _keeps_states(saved)
        shapes = _shapes(simulator, uncertain, settings, schedule, saved, keep_states, training)
        unflatten(_named(saved, "trainer/"), {"trainer": shapes}, saved.path)
        return CompiledTrainer(
            settings, simulator, uncertain, schedule, saved.seed, saved.log_every, keep_states, training
        )


def _training(saved: Saved) -> Training | None:
    """The training of its loop, if it differs from DQN."""
    training = build("training", saved.world.get("training"))
    if training is not None and not isinstance(training, Training):
        raise ValueError(f"training is {training!r:.100}, expected one such as WorstKernel.")
    return training


def _frozen(saved: Saved, settings: Settings) -> Trainer:
    """Makes a trainer without an environment."""
    if "training" in saved.world:
        raise ValueError(
            f"env is missing, expected the simulator that the agent {saved.name} in {os.fspath(saved.path)} was "
            f"trained on: {saved.world['simulator'].get('why', 'the file does not describe it.')}"
        )
    with refused(saved.path, "an agent"):
        sizes = _sizes(saved)
        with double():
            shapes = jax.eval_shape(lambda key: key_data(init_learner(settings, key, *sizes)), root_key(saved.seed))
        unflatten(_named(saved, LEARNER), {"trainer": {"learner": shapes}}, saved.path)
        spaces = Spaces.flat(sizes.obs_size, sizes.n_actions) if saved.spaces is None else Spaces.of(saved.spaces)
        if (Observations(spaces.observation).size, spaces.n_actions) != sizes[:2]:
            raise ValueError(f"spaces is {spaces}, expected {sizes.obs_size} numbers and {sizes.n_actions} actions.")
        trainer = FrozenTrainer(settings, saved.seed, spaces, *sizes)
        environment = saved.world.get("environment")
        trainer.environment = environment if isinstance(environment, str) else None
        return trainer


def _given(
    saved: Saved, settings: Settings, env: Any, uncertain: Uncertain | None, schedule: Schedule | None
) -> Trainer:
    """Makes a trainer with the given environment, if it fits."""
    found = "gymnasium" if isinstance(env, KINDS) else "simulator"
    if found != saved.world["kind"]:
        words = {"gymnasium": "a Gymnasium environment", "simulator": "a simulator", "none": "none"}
        raise ValueError(
            f"env is {words[found]}, expected {words[saved.world['kind']]}, as the agent in {os.fspath(saved.path)} "
            "was saved with."
        )
    if found == "gymnasium" and uncertain is None and _sizes(saved).members > 1:
        raise ValueError(
            "uncertainty_set is missing, expected the members that the agent was trained with: "
            f"{_sizes(saved).members} of them."
        )
    if found == "simulator":  # checked before anything is compiled
        if uncertain is None:
            uncertain = _described_set(env, saved.world.get("uncertain"))
        if schedule is None:
            schedule = _described_schedule(saved)
        with refused(saved.path, "a training"):
            training = _training(saved)
        keep_states = _keeps_states(saved)
        shapes = _shapes(env, uncertain, settings, schedule, saved, keep_states, training)
        if training is None:  # the others name what does not fit by its array
            _require_fit(_sizes(saved), _sizes_of(settings, shapes.learner), saved.path)
        else:
            unflatten(_named(saved, "trainer/"), {"trainer": shapes}, saved.path)
        return make_trainer(env, uncertain, settings, schedule, saved.seed, saved.log_every, keep_states, training)
    trainer = make_trainer(env, uncertain, settings, schedule, saved.seed, saved.log_every)
    _require_fit(_sizes(saved), _sizes_of(settings, trainer.learner), saved.path)
    return trainer


def _described_schedule(saved: Saved) -> Schedule | None:
    description = saved.world.get("schedule")
    if type(description) is dict and "why" in description:
        raise ValueError(
            f"schedule is missing, expected that of the agent {saved.name} in {os.fspath(saved.path)}: "
            f"{description['why']} To keep the nominal parameters instead, give Constant(env.nominal())."
        )
    with refused(saved.path, "a schedule"):
        schedule: Schedule | None = build("schedule", description)
    return schedule


def _keeps_states(saved: Saved) -> bool:
    return any(name.startswith("trainer/states") for name in saved.tensors)


def _shapes(
    simulator: Simulator,
    uncertain: Any,
    settings: Settings,
    schedule: Schedule | None,
    saved: Saved,
    keep_states: bool,
    training: Training | None,
) -> Any:
    """The shapes of all arrays of a run on a simulator, without computing them."""
    params = None if uncertain is None else uncertain.params
    changing = Constant(simulator.nominal()) if schedule is None else schedule

    def begin(key: jax.Array) -> Any:
        if training is not None:
            return key_data(training.programs(settings, simulator, schedule, saved.log_every)[0](key, params))
        return key_data(init_run(settings, simulator, params, changing, key, saved.log_every, keep_states))

    with double():
        return jax.eval_shape(begin, root_key(saved.seed))


def _require_fit(then: Sizes, now: Sizes, path: Path_) -> None:
    meanings = {
        "obs_size": ("env", "{} numbers in an observation"),
        "n_actions": ("env", "{} actions"),
        "members": ("uncertainty_set", "{} members"),
        "outcomes": ("env", "{} outcomes of an action"),
    }
    for part, (argument, meaning) in meanings.items():
        found, expected = getattr(now, part), getattr(then, part)
        if found != expected:
            raise ValueError(
                f"{argument} has {meaning.format(found)}, expected {expected}, as the agent in {os.fspath(path)} was "
                "trained with."
            )


def _described_set(simulator: Simulator, description: Mapping[str, Any] | None) -> UncertaintySet | None:
    return None if description is None else UncertaintySet.from_description(simulator, description)


def _named(saved: Saved, start: str) -> dict[str, np.ndarray]:
    return {name: array for name, array in saved.tensors.items() if name.startswith(start)}


def _sizes(saved: Saved) -> Sizes:
    """The sizes in the tensors."""
    with refused(saved.path, "an agent"):
        _, obs_size = saved.tensors[f"{LEARNER}replay/obs"].shape
        _, members, outcomes = saved.tensors[f"{LEARNER}replay/successors/weight"].shape
        if saved.spaces is None:  # files of urbe 0.1, whose networks were all of layers
            depth = sum(name.startswith(f"{LEARNER}q/") and name.endswith("/bias") for name in saved.tensors)
            (n_actions,) = saved.tensors[f"{LEARNER}q/{depth - 1}/bias"].shape
        else:
            n_actions = checks.whole_number("n_actions", saved.spaces["n_actions"], 1)
    return Sizes(obs_size, n_actions, members, outcomes)


def _sizes_of(settings: Settings, learner: Any) -> Sizes:
    _, members, outcomes = learner.replay.successors.weight.shape
    return Sizes(*settings.network.sizes(learner.q), members, outcomes)
