"""Load the runs of `urbe evaluate` and `urbe compare`, and group those that differ only in their seed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from urbe.cli import worlds

_ID = re.compile(r"<([^<>]+)>+$")  # <TimeLimit<PassiveEnvChecker<CartPoleEnv<CartPole-v1>>>>


class SavedRun(NamedTuple):
    """An agent to evaluate.

    Attributes:
      path: its path as given.
      name: name of the agent.
      policy: the agent, or anything with `predict`.
      seed: seed of its training; None for a policy that was not trained by urbe.
      env: a function from parameters to a Gymnasium environment; None for the agent's own simulator.
      kind: everything but the seed that describes the run, as plain data; its path if nothing is known.
    """

    path: str
    name: str
    policy: Any
    seed: int | None
    env: Any
    kind: Any


def load_runs(paths: Sequence[str], env: str | None, adapter: str | None) -> list[SavedRun]:
    """Loads the runs in these folders and files; `module:attribute` names a policy of the user.

    Raises:
      ValueError: there is no such run, or it has no environment to be evaluated on.
    """
    from urbe.deep.adaptive.load import is_adaptive
    from urbe.deep.saving.load import load

    given = worlds.adapter_named(adapter)
    found = []
    for path in dict.fromkeys(each if _is_policy(each) else os.path.normpath(each) for each in paths):
        if _is_policy(path):
            found.append(SavedRun(path, path.partition(":")[2], own_policy(path), None, None, path))
            continue
        if not os.path.exists(path):
            raise ValueError(
                f"{path} does not exist, expected the folder of a run (urbe train ... --out {path}), a saved agent, or "
                "module:policy of your own."
            )
        agent = _adaptive(path, env, given) if is_adaptive(path) else load(path)
        where = env or environment_id(agent)
        if agent.simulator is None and where is None:
            raise ValueError(
                f"{path} does not store the environment of its agent; give --env ID, a Gymnasium environment to "
                "evaluate it on."
            )
        known = agent.simulator is None or env is not None
        make = worlds.maker(str(where), "--env", given) if known else None
        about = agent.about() if hasattr(agent, "about") else {}
        kind = {name: value for name, value in about.items() if name != "seed"} or path
        found.append(SavedRun(path, agent.name, agent, agent.seed, make, kind))
    return _with_env(found, env, given)


def environment_id(agent: Any) -> str | None:
    """Returns the id of the Gymnasium environment that an agent was trained on, if it was saved with one."""
    return _id_in(getattr(getattr(agent, "trainer", agent), "environment", None))


def _id_in(text: str | None) -> str | None:
    found = _ID.search(text or "")
    return None if found is None or found[1].endswith(" instance") else found[1]


def _adaptive(path: str, env: str | None, adapter: Any) -> Any:
    """Loads an adaptive agent; one that learned in copies of a Gymnasium environment gets a new one."""
    from urbe.deep import load_adaptive
    from urbe.deep.adaptive.load import environment_of
    from urbe.gym.env_simulator import EnvSimulator

    trained_in = environment_of(path)
    if trained_in is None:
        return load_adaptive(path)
    where = env or _id_in(trained_in)
    if where is None:
        raise ValueError(
            f"{path} does not store the environment of its agent; give --env ID, a Gymnasium environment to evaluate "
            "it on."
        )
    return load_adaptive(path, EnvSimulator(worlds.maker(where, "--env", adapter)({}), adapter))


def own_policy(text: str) -> Any:
    """Imports `module:attribute`: a policy with `predict(obs)`, or a class or function that makes one.

    Raises:
      ValueError: it cannot be imported, or is not a policy.
    """
    module, _, name = text.partition(":")
    expected = "expected module:attribute of a policy with predict(observation)"
    worlds.find_modules_here()
    try:
        found = getattr(import_module(module), name)
        policy = found if hasattr(found, "predict") and not isinstance(found, type) else found()
    except (ImportError, AttributeError, TypeError) as error:
        raise ValueError(f"{text} cannot be made ({type(error).__name__}: {error}), {expected}.") from None
    if not callable(getattr(policy, "predict", None)):
        raise ValueError(f"{text} is {policy!r:.100}, {expected}.")
    return policy


def grouped(runs: Sequence[SavedRun]) -> dict[str, list[SavedRun]]:
    """Groups runs that differ only in their seed; each group has a name."""
    groups: dict[str, list[SavedRun]] = {}
    for run in runs:
        mates = groups.setdefault(json.dumps(run.kind, sort_keys=True, default=str), [])
        if run.seed is not None and any(each.seed == run.seed for each in mates):
            groups[f"{run.path} again"] = [run]  # the same run given twice does not count as two seeds
        else:
            mates.append(run)
    return dict(zip(_names(list(groups.values())), groups.values(), strict=True))


def _names(groups: list[list[SavedRun]]) -> list[str]:
    """Names each group by its agent; if names repeat, by the settings that differ, or the folders, or the paths."""
    plain = [members[0].name for members in groups]
    leaves = [dict(_leaves("", members[0].kind)) for members in groups]
    detailed = []
    for name, own in zip(plain, leaves, strict=True):
        alike = [other for label, other in zip(plain, leaves, strict=True) if label == name]
        differing = sorted(key for key in own if len({other.get(key) for other in alike}) > 1)
        detailed.append(", ".join([name, *(f"{key.removeprefix('settings.')} {own[key]}" for key in differing[:3])]))
    folders = [Path(members[0].path).name for members in groups]
    paths = [members[0].path for members in groups]
    choices = (plain, detailed, folders) if max(map(len, detailed)) < 40 else (plain, folders)
    return next((each for each in choices if len(set(each)) == len(each)), paths)


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(f"{name}.{key}" if name else str(key), item)
    else:
        yield name, json.dumps(value, default=str)


def _is_policy(text: str) -> bool:
    return ":" in text and not os.path.lexists(text) and text.partition(":")[0].replace(".", "").isidentifier()


def _with_env(runs: list[SavedRun], env: str | None, adapter: Any) -> list[SavedRun]:
    """Gives policies of the user the environment of the other runs."""
    if all(run.seed is not None for run in runs):
        return runs
    if env is not None:
        where = worlds.maker(env, "--env", adapter)
    else:
        trained = next((run for run in runs if run.seed is not None), None)
        if trained is None:
            raise ValueError(
                f"{runs[0].path} has no environment to be evaluated on; give --env ID, or a run beside it."
            )
        where = trained.env or trained.policy.simulator
    return [run if run.seed is not None else run._replace(env=where) for run in runs]
