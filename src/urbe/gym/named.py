"""Find by name: environments with parameters, adapters, and members from ranges and distributions."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from urbe import checks
from urbe.gym.adapters import Adapter, adapter_of
from urbe.gym.kinds import Env
from urbe.gym.own_methods import METHODS


def named_env(name: str, params: Mapping[str, Any], adapter: Adapter | None = None) -> Env:
    """Makes the environment of this name with these parameters.

    Parameters known to an adapter are set on the environment; if any is unknown, all are arguments of its constructor.

    Args:
      name: an id of Gymnasium's registry, `module:id`, or `module:name` of a class or function that makes an
        environment that is not registered.
      params: values by name.
      adapter: sets the parameters; None for known environments and those with methods of their own.

    Raises:
      ValueError: there is no such environment, or it does not accept these parameters.
    """
    if not params:
        return _made(name, {})
    known = None
    try:
        env = _made(name, {})
        known = adapter_of(env) if adapter is None else adapter
    except ValueError:  # it may need parameters for its construction
        pass
    if known is None:
        return _made(name, params)
    own = known.get_params(env)
    if not own.keys() >= params.keys():
        try:
            return _made(name, params)
        except ValueError as error:
            raise ValueError(f"{error}. Parameters that can be set are {checks.listing(list(own))}.") from None
    known.set_params(env, params)
    return env


def named_adapter(text: str) -> Adapter:
    """Makes the adapter of a class, `package.module:Class`, without arguments; or returns the named adapter.

    Raises:
      ValueError: there is no such adapter, or a method is missing.
    """
    expected = f"expected package.module:Class with the methods {', '.join(METHODS)}"
    module, colon, name = text.partition(":")
    if not colon or not module or not name:
        raise ValueError(f"adapter {text} names no class, {expected}.")
    try:
        found: Any = _import(module)
        for part in name.split("."):
            found = getattr(found, part)
        adapter: Adapter = found() if isinstance(found, type) else found
    except (ImportError, AttributeError, TypeError) as error:
        raise ValueError(f"adapter {text} cannot be made ({type(error).__name__}: {error}), {expected}.") from None
    missing = [method for method in METHODS if not callable(getattr(adapter, method, None))]
    if missing:
        raise ValueError(f"adapter {text} has no {', '.join(missing)}, {expected}.")
    return adapter


def _made(name: str, params: Mapping[str, Any]) -> Env:
    spec: str | EnvSpec = name
    module, colon, kind = name.partition(":")
    try:
        if colon:
            found = getattr(_import(module), kind, None)
            if callable(found):
                spec = EnvSpec(id=name, entry_point=name)
            elif kind not in gymnasium.registry:
                raise ImportError(f"{module} has no class or function {kind}, and registers no environment of that id.")
        env: Env = gymnasium.make(spec, **params)
        return env
    except (gymnasium.error.Error, ImportError, TypeError) as error:
        given = ", ".join(f"{key}={value:g}" for key, value in params.items())
        raise ValueError(f"{name} cannot be made{' with ' if given else ''}{given}: {error}") from None


def _import(module: str) -> Any:
    """Imports a module, also from the working directory, which commands do not search by themselves."""
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)
    return import_module(module)
