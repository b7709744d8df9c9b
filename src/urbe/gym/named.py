"""What users name in text: an environment with parameters, an adapter, members from ranges and distributions."""

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

ADAPTER_METHODS = ("get_state", "set_state", "get_params", "set_params")


def named_env(name: str, params: Mapping[str, Any], adapter: Adapter | None = None) -> Env:
    """The environment of a name, with some parameters.

    Parameters that an adapter knows are set on the environment; if some are others, all are arguments of its maker.

    Args:
      name: an id of Gymnasium's registry, `module:id`, or `module:name` of a class or function that makes an
        environment that is not registered.
      params: by name.
      adapter: how parameters are set; None for environments that are known or have methods of their own.

    Raises:
      ValueError: there is none of that name, or it does not take these parameters.
    """
    if not params:
        return _made(name, {})
    known = None
    try:
        env = _made(name, {})
        known = adapter_of(env) if adapter is None else adapter
    except ValueError:  # it may need its parameters to be made
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
    """The adapter of a class, `package.module:Class`, made without arguments; or the adapter itself that is named.

    Raises:
      ValueError: there is none of that name, or a method is missing.
    """
    expected = f"expected package.module:Class with the methods {', '.join(ADAPTER_METHODS)}"
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
    missing = [method for method in ADAPTER_METHODS if not callable(getattr(adapter, method, None))]
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
    """A module, also one beside the user: a command does not look there by itself."""
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)
    return import_module(module)
