"""Environments that bring what copies need themselves: `get_state`, `set_state`, `get_params` and `set_params`.

    env.get_state()                 all that the next step depends on, but for parameters and `np_random`
    env.set_state(state)            goes there, within an episode
    env.get_params()                parameters by name, a dict of numbers
    env.set_params(**named)         changes some of them; `set_params({name: value})` will do as well

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
        """What it gives, copied: it may go on changing the same containers."""
        return deepcopy(innermost(env).get_state())

    def set_state(self, env: Env, state: Any) -> None:
        """Gives it a copy, to do with as it likes."""
        innermost(env).set_state(deepcopy(state))

    def get_params(self, env: Env) -> dict[str, float]:
        """Those it gives, as numbers."""
        params = innermost(env).get_params()
        if not isinstance(params, Mapping):
            raise ValueError(
                f"{env}.get_params() gave a {type(params).__name__}, expected a dict of numbers by the names of the "
                "parameters."
            )
        return {str(name): checks.finite_number(f"get_params()[{name!r}]", value) for name, value in params.items()}

    def set_params(self, env: Env, params: Mapping[str, float]) -> None:
        """Those of known names, as the environment takes them: by name or as one dict."""
        inner = innermost(env)
        checks.known_names(params, tuple(self.get_params(env)), type(inner).__name__)
        numbers = {name: checks.finite_number(name, value) for name, value in params.items()}
        if _takes_names(inner.set_params, tuple(numbers)):
            inner.set_params(**numbers)
        else:
            inner.set_params(numbers)


def _takes_names(function: Any, names: tuple[str, ...]) -> bool:
    """Whether a function has arguments of these names, or any; one named otherwise takes them all as a dict."""
    arguments = inspect.signature(function).parameters.values()
    by_name = {each.name for each in arguments if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)}
    return any(each.kind == each.VAR_KEYWORD for each in arguments) or by_name.issuperset(names)
