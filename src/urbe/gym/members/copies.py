"""Members as copies of the environment with other parameters, set to the current state of the environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy as shallow_copy
from copy import deepcopy
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from urbe import checks
from urbe.gym.adapters import Adapter, adapter_of, no_members
from urbe.gym.kinds import AnyEnv, Env, innermost
from urbe.gym.members.base import MemberOutcomes
from urbe.gym.rows import Observations, host_env, step_env
from urbe.gym.wrapping import keeps_state
from urbe.simulators.distributions import Distribution
from urbe.simulators.uncertainty import drawn_points


class Where(NamedTuple):
    """The state of an environment, from its adapter, and the state of its generator."""

    state: Any
    generator: Any


class EnvMembers:
    """Copies of a Gymnasium environment that take its action from its state, under other parameters.

    Before the environment acts, each copy is set to its state, and to its random numbers if they come from Gymnasium's
    generator (`env.unwrapped.np_random`) or a simulator of urbe, and acts: members differ by their parameters, not by
    chance. The environment itself is never changed. A copy with the environment's own parameters must do exactly what
    the environment does; `check_members` tests this, and so does a robust agent when it is made.

    Args:
      env: the environment, with its wrappers; of a SyncVectorEnv, its first one.
      params: parameters that differ from the environment's own, by name, for each member.
      include_nominal: whether the environment's own parameters, as they are now, are a member, the first.
      adapter: sets its state and parameters; None for known kinds: Gymnasium's CartPole, Acrobot, MountainCar, Pendulum
        and MuJoCo environments, and simulators of urbe.
      make: makes a copy, wrappers included; None copies `env` itself.
      shared_noise: whether copies draw the random numbers of the environment. False is for environments whose generator
        cannot be saved: each copy then draws its own, and copies are not tested against the environment.

    Attributes:
      copies: one environment per member, in the wrappers of the environment they are copies of.
      nominal: the index of the environment's own parameters, or None if they are not a member.

    Raises:
      ValueError: no adapter is known, a wrapper has a memory that copies lack, or two members are equal.

    >>> import gymnasium
    >>> members = EnvMembers(gymnasium.make("CartPole-v1"), [{"length": 0.25}, {"length": 1.0, "masspole": 0.2}])
    >>> len(members), members.describe()["parameters"]["length"]
    (3, [0.5, 0.25, 1.0])
    """

    def __init__(
        self,
        env: AnyEnv,
        params: Sequence[Mapping[str, float]],
        *,
        include_nominal: bool = True,
        adapter: Adapter | type[Adapter] | None = None,
        make: Callable[[], Env] | None = None,
        shared_noise: bool = True,
    ) -> None:
        model, self.adapter = model_behind(env, adapter)
        self.nominal: int | None = 0 if include_nominal else None
        self.shared_noise = shared_noise
        points: list[Mapping[str, float]] = [{}, *params] if include_nominal else list(params)
        if not points:
            raise ValueError("There are no parameters and the nominal ones are not included, expected a member.")
        own, copies = self.adapter.get_params(model), []
        for k, point in enumerate(points):
            copies.append(copy_of(model, make))
            try:
                # set all parameters: reset or `make` may have changed them
                self.adapter.set_params(copies[-1], {**own, **point})
            except ValueError as error:
                raise ValueError(f"params[{k - include_nominal}]: {error}") from None
        self.copies: tuple[Env, ...] = tuple(copies)
        self._refuse_duplicates()

    def _refuse_duplicates(self) -> None:
        params = self._params()
        for k, own in enumerate(params):
            if (first := params.index(own)) < k:
                raise ValueError(
                    f"Members {first}{' (nominal)' if first == self.nominal else ''} and {k} have the same "
                    f"parameters ({checks.listing([f'{name} {value}' for name, value in own.items()])}), expected "
                    "every two to differ; leave one out."
                )

    def __repr__(self) -> str:
        params = self._params()
        varying = [name for name in params[0] if len({point[name] for point in params}) > 1]
        shown = [" ".join(f"{name}={point[name]:g}" for name in varying) for point in params]
        return f"EnvMembers({len(self.copies)} copies of {self.copies[0]}: {checks.listing(shown)})"

    @staticmethod
    def grid(
        env: AnyEnv,
        *,
        include_nominal: bool = True,
        adapter: Adapter | type[Adapter] | None = None,
        make: Callable[[], Env] | None = None,
        shared_noise: bool = True,
        **values: Sequence[float],
    ) -> EnvMembers:
        """Makes members of all combinations of values; other parameters are the environment's own.

        Args:
          env: as for `EnvMembers`.
          include_nominal: whether the environment's own parameters are the first member; they are not repeated later.
          adapter, make, shared_noise: as for `EnvMembers`.
          values: for each parameter that varies, by name, its values. The last name varies fastest.
        """
        if not values:
            raise ValueError("No parameter varies, expected at least one by name with its values.")
        lists = [checks.float_array(name, each, ndim=1).tolist() for name, each in values.items()]
        for name, each in zip(values, lists, strict=True):
            if not each:
                raise ValueError(f"{name} is empty, expected one or more values, such as (0.5, 0.75).")
        points = [dict(zip(values, point, strict=True)) for point in product(*lists)]
        model, found = model_behind(env, adapter)
        own = found.get_params(model)
        if include_nominal:
            points = [point for point in points if any(own.get(name) != value for name, value in point.items())]
        return EnvMembers(
            env, points, include_nominal=include_nominal, adapter=adapter, make=make, shared_noise=shared_noise
        )

    @staticmethod
    def samples(
        env: AnyEnv,
        seed: int,
        *,
        count: int = 15,
        include_nominal: bool = True,
        adapter: Adapter | type[Adapter] | None = None,
        make: Callable[[], Env] | None = None,
        shared_noise: bool = True,
        **distributions: Distribution,
    ) -> EnvMembers:
        """Makes members by independent draws, as `UncertaintySet.samples`; other parameters are the environment's.

        Args:
          env: as for `EnvMembers`.
          seed: seed of the draws.
          count: number of draws, in addition to the environment's own parameters.
          include_nominal: whether the environment's own parameters are a member, the first.
          adapter, make, shared_noise: as for `EnvMembers`.
          distributions: for each parameter that varies, by name: `Uniform`, `Normal`, `LogUniform`.
        """
        points = drawn_points(distributions, seed, count)
        return EnvMembers(
            env, points, include_nominal=include_nominal, adapter=adapter, make=make, shared_noise=shared_noise
        )

    def in_force(self, env: Env) -> int | None:
        """Finds the member with the environment's parameters."""
        now, params = self.adapter.get_params(env), self._params()
        return params.index(now) if now in params else None

    @property
    def outcomes(self) -> int:
        """One for each member, from its copy."""
        return 1

    def where(self, env: Env) -> Where:
        """Reads the state of an environment."""
        return Where(self.adapter.get_state(env), innermost(env).np_random.bit_generator.state)

    def bring(self, copy: Env, to: Where) -> None:
        """Sets a copy to this state."""
        self.adapter.set_state(copy, to.state)
        innermost(copy).np_random.bit_generator.state = to.generator

    def step(self, copy: Env, action: int, at: Where) -> tuple[Any, float, bool]:
        """Steps a copy that was set to a state; returns observation, reward and terminated.

        Some environments refuse steps after the end of an episode, which a copy may have reached by itself. It is then
        reset, gets its parameters again, and is set to the state once more.
        """
        try:
            return step_env(copy, action)[:3]
        except Exception:  # an error with another cause comes again
            renew(copy, self.adapter)
            self.bring(copy, at)
            return step_env(copy, action)[:3]

    def successors(self, env: Env | None, obs: Float[np.ndarray, " D"], action: int) -> MemberOutcomes:
        """Steps all copies from the state of `env`."""
        if env is None:
            raise ValueError("The environments run in other processes, expected them in this one: use SyncVectorEnv.")
        count = len(self)
        reached = np.empty((count, 1, len(obs)), np.float32)
        reward, terminated = np.empty((count, 1), np.float32), np.empty((count, 1), bool)
        here, seen_as = self.where(env), Observations(self.copies[0].observation_space)
        for k, copy in enumerate(self.copies):
            self.bring(copy, here)
            seen, reward[k, 0], terminated[k, 0] = self.step(copy, action, here)
            reached[k, 0] = seen_as.row(seen)
        return MemberOutcomes(np.ones((count, 1), np.float32), reached, reward, terminated)

    def only(self, places: Sequence[int]) -> EnvMembers:
        """Selects some members, with their copies."""
        some = shallow_copy(self)
        some.copies = tuple(self.copies[k] for k in places)
        some.nominal = next((k for k, place in enumerate(places) if place == self.nominal), None)
        return some

    def describe(self) -> dict[str, Any]:
        """The parameters of all members."""
        params = self._params()
        return {
            "kind": "copies",
            "environment": str(self.copies[0]),
            "parameters": {name: [own[name] for own in params] for name in params[0]},
            "nominal": self.nominal,
        }

    def _params(self) -> list[dict[str, float]]:
        return [self.adapter.get_params(copy) for copy in self.copies]

    def __len__(self) -> int:
        return len(self.copies)


def model_behind(env: AnyEnv, adapter: Adapter | type[Adapter] | None) -> tuple[Env, Adapter]:
    """The environment to copy, and its adapter."""
    behind = host_env(env).behind()
    if behind is None:
        raise ValueError(
            f"{env} keeps its environments in other processes, expected gymnasium.vector.SyncVectorEnv or a single "
            "one: copies must be set to their state at every step. Or give FunctionMembers."
        )
    model = behind[0]
    if isinstance(adapter, type):
        adapter = adapter()
    if adapter is not None:
        return model, adapter
    if (known := adapter_of(model)) is None:
        raise ValueError(no_members(env))
    if wrapper := keeps_state(model, across_episodes=False):
        raise ValueError(
            f"{model} has the wrapper {wrapper}, which may have a memory that copies lack, expected wrappers without "
            "a memory. Leave it out, or give adapter= one that gets and sets its state, too. If it has none, give "
            "adapter=urbe.gym.adapters.adapter_of(env): the copies are then compared with the environment."
        )
    return model, known


def renew(copy: Env, adapter: Adapter) -> None:
    """Resets a copy whose episode has ended, and keeps its parameters: environments may refuse steps after the end."""
    params = adapter.get_params(copy)
    copy.reset()
    if adapter.get_params(copy) != params:
        adapter.set_params(copy, params)


def copy_of(env: Env, make: Callable[[], Env] | None = None) -> Env:
    """A copy of an environment, within an episode."""
    try:
        copy: Env = deepcopy(env) if make is None else make()
    except Exception as error:
        raise ValueError(
            f"{env} cannot be copied ({error}); give make=, a function that makes another one with the same wrappers."
        ) from error
    copy.reset(seed=0)
    return copy
