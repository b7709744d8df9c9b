"""Environments of `urbe train` and `urbe evaluate` by name, options such as `--over`, and the setup of JAX."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np

from urbe import checks
from urbe.sweep.launcher import JAX_ONE_THREAD

SIMULATORS = ("cartpole", "acrobot", "mountain-car", "mars-rover", "seven-states", "deep-sea")
PAPER = ("cartpole", "mars-rover")

OVER = {"cartpole": "half_length=normal:0.75:0.25:0.1", "mars-rover": "failure=uniform:0:1"}
"""The paper's uncertainty sets, the default for robust agents."""

JUDGED_OVER = {"cartpole": "half_length=0.1:5:11", "mars-rover": "failure=0:1:11"}
"""Parameters to evaluate under, by default."""


def world(name: str, paper: bool) -> Any:
    """Makes the simulator of that name, or the Gymnasium environment.

    Args:
      name: one of SIMULATORS, an id of Gymnasium's registry, or module:Class.
      paper: whether to use the published parameters.
    """
    from urbe import simulators
    from urbe.deep import paper as published

    if paper:
        if name not in PAPER:
            raise ValueError(
                f"--paper supports {' and '.join(PAPER)}, not {name}: the paper used no other environments."
            )
        return {"cartpole": published.cartpole, "mars-rover": published.mars_rover}[name]()
    known: dict[str, Callable[[], Any]] = {
        "cartpole": simulators.CartPole,
        "acrobot": simulators.Acrobot,
        "mountain-car": simulators.MountainCar,
        "mars-rover": simulators.MarsRover,
        "seven-states": simulators.SevenStates,
        "deep-sea": simulators.DeepSea,
    }
    if name in known:
        return known[name]()
    try:
        return maker(name, "ENV")({})
    except ValueError as error:
        expected = (
            f"one of {', '.join(SIMULATORS)}, an id that Gymnasium can make, or module:name of a class or function "
            "that makes one"
        )
        raise ValueError(f"ENV is {name!r}, expected {expected}: {error}") from None


def uncertainty_set(name: str, env: Any, over: Sequence[str], members: int, seed: int, adapter: Any = None) -> Any:
    """Makes the set that `--over` describes, or the paper's; for a Gymnasium environment, copies of it.

    Args:
      name: name of `env`.
      env: the environment, from `world`.
      over: see `HELP`; empty for the default.
      members: number of draws.
      seed: seed of the draws.
      adapter: sets state and parameters of a Gymnasium environment; None if urbe knows how.
    """
    from urbe.gym import EnvMembers
    from urbe.simulators import LogUniform, Normal, UncertaintySet, Uniform

    names = env.nominal()._fields if name in SIMULATORS else _settable(name, env, adapter)
    texts = list(over) or ([OVER[name]] if name in OVER else [])
    if not texts:
        raise ValueError(
            f"--over is missing: a robust agent on {name} needs an uncertainty set, over some of {', '.join(names)}; "
            f"such as --over {names[0]}=LOW:HIGH:COUNT."
        )
    laws = {"normal": (Normal, (2, 3, 4)), "uniform": (Uniform, (2,)), "loguniform": (LogUniform, (2,))}
    parts = _parameters(texts, "--over", laws)
    if unknown := [each for each in parts if each not in names]:
        raise ValueError(f"--over has {unknown[0]!r}, expected some of the parameters of {name}: {', '.join(names)}.")
    grids = [name for name, part in parts.items() if isinstance(part, tuple)]
    given = {} if name in SIMULATORS else {"adapter": adapter}
    kind: Any = UncertaintySet if name in SIMULATORS else EnvMembers
    if len(grids) == len(parts):
        return kind.grid(env, **given, **parts)
    if grids:
        raise ValueError(
            f"--over {' '.join(texts)} mixes values and distributions, expected values for all parameters or "
            "distributions for all."
        )
    return kind.samples(env, seed, count=members, **given, **parts)


def _settable(name: str, env: Any, adapter: Any) -> tuple[str, ...]:
    """Returns the names of the parameters of a Gymnasium environment that can be set."""
    from urbe.gym.adapters import adapter_of

    known = adapter_of(env) if adapter is None else adapter
    if known is None:
        raise ValueError(
            f"A robust agent on {name} needs copies of it with other parameters, and urbe does not know how to set its "
            "state and parameters. Give the environment the methods get_state, set_state, get_params and set_params, "
            "or --adapter package.module:Class that has them; see docs/gymnasium.md."
        )
    if not (names := tuple(known.get_params(env))):
        raise ValueError(f"{name} has no parameters: get_params returns none, expected at least one.")
    return names


HELP = """\
--over defines the uncertainty set; nominal parameters are always included. Give it once per parameter:
  half_length=0.5,1,2                  these values (with several parameters, every combination)
  half_length=0.25:1.25:5              five values from 0.25 to 1.25, endpoints included
  half_length=normal:0.75:0.25:0.1     --members normal draws with mean 0.75 and standard deviation 0.25, truncated
                                       below at 0.1 (a fourth number truncates above)
  half_length=uniform:0.25:1.25        --members uniform draws
  half_length=loguniform:0.1:5         --members draws, uniform in the logarithm
For a Gymnasium environment, members are copies of it. Gymnasium's CartPole, Acrobot, MountainCar, Pendulum and MuJoCo
environments work, as does any with the methods get_state, set_state, get_params and set_params. For others, --adapter
names a class with these methods, each with the environment as its first argument. Modules in the working directory are
found.
"""


def grid_of(over: Sequence[str], option: str = "--over") -> Any:
    """Reads the parameters to evaluate under: values by name from an option, or the nominal parameters.

    >>> grid_of(["half_length=0:1:3", "masspole=0.1,0.5"])
    {'half_length': (0.0, 0.5, 1.0), 'masspole': (0.1, 0.5)}
    """
    return _parameters(over, option, {}) or [{}]


def find_modules_here() -> None:
    """Makes modules in the working directory importable, as `python -m` does."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def import_modules(names: Sequence[str]) -> None:
    """Imports modules of the user, which define parts of saved agents.

    Raises:
      ValueError: one cannot be imported.
    """
    find_modules_here()
    for name in names:
        try:
            import_module(name)
        except ImportError as error:
            raise ValueError(f"--import {name} cannot be imported: {error}.") from None


def adapter_named(text: str | None) -> Any:
    """Returns the adapter that `--adapter` names; None without one."""
    if text is None:
        return None
    from urbe.gym.named import named_adapter

    return named_adapter(text)


def maker(name: str, option: str, adapter: Any = None) -> Any:
    """Returns a function from parameters to the Gymnasium environment of that name with these parameters."""
    from urbe.gym.named import named_env

    def make(params: dict[str, Any]) -> Any:
        try:
            return named_env(name, params, adapter)
        except ValueError as error:
            raise ValueError(f"{option} {error}") from None

    return make


def set_up_jax() -> None:
    """Configures JAX before it is imported: one thread, since networks are small, and a compilation cache on disk.

    Environment variables set by the user are kept. If the cache cannot be written, programs are compiled every time.
    """
    for name, value in JAX_ONE_THREAD.items():
        os.environ.setdefault(name, value)
    from urbe.deep.compilation import cache_compilation

    with suppress(OSError):
        cache_compilation()


def _parameters(texts: Sequence[str], option: str, laws: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the values or the distribution of each parameter that an option names.

    Args:
      texts: NAME=V1,V2,..., NAME=LOW:HIGH:COUNT or NAME=LAW:NUMBERS.
      option: name of the option, for messages.
      laws: distributions by name: a function of the numbers, and how many it takes.
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, right = text.partition("=")
        try:
            if not equals or not name:
                raise ValueError("it has no name and '='")
            if name in found:
                raise ValueError(f"{name} is given twice")
            found[name] = _values(right, laws)
        except ValueError as error:
            forms = "NAME=LOW:HIGH:COUNT or NAME=V1,V2,..."
            forms += f" or NAME=LAW:NUMBERS with {', '.join(laws)}" if laws else ""
            raise ValueError(f"{option} {text} cannot be read ({error}), expected {forms}.") from None
    return found


def _values(text: str, laws: Mapping[str, Any]) -> Any:
    first, *rest = text.split(":")
    if first in laws:
        law, counts = laws[first]
        if len(rest) not in counts:
            raise ValueError(f"{first} takes {' or '.join(map(str, counts))} numbers, found {len(rest)}")
        return law(*map(float, rest))
    if not rest:
        return tuple(map(float, first.split(",")))
    if len(rest) != 2:
        raise ValueError(f"it has {len(rest)} ':', expected two")
    count = checks.whole_number("count", int(rest[1]), 1)
    return tuple(np.linspace(float(first), float(rest[0]), count).tolist())
