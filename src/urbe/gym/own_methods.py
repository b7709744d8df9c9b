"""Environments with the methods that copies need: `get_state`, `set_state`, `get_params` and `set_params`.

    env.get_state()                 everything the next step depends on except parameters and `np_random`
    env.set_state(state)            restores a state, within an episode
    env.get_params()                parameters by name, a dict of numbers
    env.set_params(**named)         changes some of them; `set_params({name: value})` works, too

An environment with these four methods needs no adapter.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from urbe import checks
from urbe.gym.kinds import Env, innermost

METHODS = ("get_state", "set_state", "get_params", "set_params")


def has_own_methods(env: Env) -> bool:
    """Whether an environment, without its wrappers, has all four methods."""
    return all(callable(getattr(innermost(env), name, None)) for name in METHODS)


class OwnMethodsAdapter:
    """An environment's own four methods."""

    def get_state(self, env: Env) -> Any:
        """Copies the result, since the environment may change its containers later."""
        return deepcopy(innermost(env).get_state())

    def set_state(self, env: Env, state: Any) -> None:
        """Passes a copy, which the environment may change."""
        innermost(env).set_state(deepcopy(state))

    def get_params(self, env: Env) -> dict[str, float]:
        """The parameters as numbers."""
        params = innermost(env).get_params()
        if not isinstance(params, Mapping):
            raise ValueError(
                f"{env}.get_params() gave a {type(params).__name__}, expected a dict of numbers by the names of the "
                "parameters."
            )
        return {str(name): checks.finite_number(f"get_params()[{name!r}]", value) for name, value in params.items()}

    def set_params(self, env: Env, params: Mapping[str, float]) -> None:
        """Passes parameters of known names in the form that the environment takes: by name or as one dict."""
        inner = innermost(env)
        checks.known_names(params, tuple(self.get_params(env)), type(inner).__name__)
        numbers = {name: checks.finite_number(name, value) for name, value in params.items()}
        if _takes_names(inner.set_params, tuple(numbers)):
            inner.set_params(**numbers)
        else:
            inner.set_params(numbers)


def _takes_names(function: Any, names: tuple[str, ...]) -> bool:
    """Whether a function has arguments of these names, or accepts any; otherwise it takes one dict."""
    arguments = inspect.signature(function).parameters.values()
    by_name = {each.name for each in arguments if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)}
    return any(each.kind == each.VAR_KEYWORD for each in arguments) or by_name.issuperset(names)
