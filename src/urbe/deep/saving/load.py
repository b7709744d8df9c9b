"""Load saved agents, which resume bit for bit.

A file names kinds that `urbe.deep.saving.describe` lists, or parts of settings from modules that this process has
imported, with their fields; nothing else is built, nothing is imported and no code in a file is executed. Objects that
cannot be described (a simulator or a schedule of your own, a Gymnasium environment) must be given again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import jax

from urbe.deep.agent import DQNAgent
from urbe.deep.core.keys import key_data, root_key
from urbe.deep.core.learner import init_learner
from urbe.deep.core.precision import double
from urbe.deep.core.settings import Settings
from urbe.deep.loops.compiled import init_run
from urbe.deep.loops.compiled_trainer import CompiledTrainer
from urbe.deep.loops.make import Environment, Uncertain, make_trainer
from urbe.deep.loops.trainer import FrozenTrainer, Trainer, Training
from urbe.deep.saving.describe import build
from urbe.deep.saving.saved import LEARNER, Path_, Saved, Sizes, named, read_saved, sizes_of_tensors
from urbe.gym.kinds import KINDS
from urbe.gym.rows import Observations
from urbe.gym.spaces import Spaces
from urbe.runs.errors import refused
from urbe.runs.tree import unflatten
from urbe.simulators import Constant, Schedule, Simulator, UncertaintySet


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
    saved = read_saved(path)
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
        unflatten(named(saved, "trainer/"), {"trainer": shapes}, saved.path)
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
        sizes = sizes_of_tensors(saved)
        with double():
            shapes = jax.eval_shape(lambda key: key_data(init_learner(settings, key, *sizes)), root_key(saved.seed))
        unflatten(named(saved, LEARNER), {"trainer": {"learner": shapes}}, saved.path)
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
    if found == "gymnasium" and uncertain is None and sizes_of_tensors(saved).members > 1:
        raise ValueError(
            "uncertainty_set is missing, expected the members that the agent was trained with: "
            f"{sizes_of_tensors(saved).members} of them."
        )
    keep_states = _keeps_states(saved)
    if found == "simulator":  # checked before anything is compiled
        if uncertain is None:
            uncertain = _described_set(env, saved.world.get("uncertain"))
        if schedule is None:
            schedule = _described_schedule(saved)
        with refused(saved.path, "a training"):
            training = _training(saved)
        shapes = _shapes(env, uncertain, settings, schedule, saved, keep_states, training)
        if training is None:  # the others name what does not fit by its array
            _require_fit(sizes_of_tensors(saved), _sizes_of(settings, shapes.learner), saved.path)
        else:
            unflatten(named(saved, "trainer/"), {"trainer": shapes}, saved.path)
        return make_trainer(env, uncertain, settings, schedule, saved.seed, saved.log_every, keep_states, training)
    trainer = make_trainer(env, uncertain, settings, schedule, saved.seed, saved.log_every, keep_states)
    _require_fit(sizes_of_tensors(saved), _sizes_of(settings, trainer.learner), saved.path)
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


def _sizes_of(settings: Settings, learner: Any) -> Sizes:
    _, members, outcomes = learner.replay.successors.weight.shape
    return Sizes(*settings.network.sizes(learner.q), members, outcomes)
