"""The contract of agents: the laws that runs and saved files rely on, and learning; one function for each law.

While an agent runs, its inputs must stay unchanged and its outputs must be actions. Runs are then compared action by
action.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from urbe.agents.base import Agent, AgentConfig, Steps, Streams, Task
from urbe.agents.run import Run
from urbe.envs.finite import FiniteEnv
from urbe.posteriors.dirichlet import Posterior
from urbe.testing.agent_probes import Probe, probes
from urbe.types import FloatArray, IntArray

Done = tuple[int, int, int, int]
"""Episode, step, state, action."""


def check_agent(
    kind: AgentConfig,
    *,
    tasks: Mapping[str, Probe] | None = None,
    learns: Collection[str] | None = None,
    random: bool = True,
    seed: int = 0,
    episodes: int = 150,
    replicates: int = 8,
    share: float = 0.5,
) -> None:
    """Tests the contract of `urbe.agents.base` and learning on small tasks that each test one skill.

    Args:
      kind: the agent's parameters.
      tasks: the tasks by name; by default `urbe.testing.probes()`: one state, a bandit, delayed reward, a discount
        that matters, stochastic successors, termination and truncation, states with different actions.
      learns: names of the tasks on which the agent must beat random actions; None for all.
      random: whether another seed must lead to other actions on some task.
      seed: seed of the environments and of the agent.
      episodes, replicates: length and number of learning runs.
      share: required return, as a share of the way from random to optimal actions; the mean over replicates and over
        the last third of the episodes must reach it.

    Raises:
      AssertionError: names the broken law and the task, what was found and what was expected.

    >>> from urbe.agents import QLearning
    >>> check_agent(QLearning())
    """
    chosen = probes() if tasks is None else tasks
    differed = False
    for name, probe in chosen.items():
        case = AgentCase(kind, name, probe, seed)
        one = check_same_seed(case)
        differed = differed or other_seed_differs(case, one)
        check_neighbours(case, one)
        check_resume(case, one)
        if learns is None or name in learns:
            check_skill(case, episodes, replicates, share)
    if random and not differed:
        raise AssertionError(
            "another seed gives another run: on every task the agent acted the same with two seeds. Draw from the "
            "streams given to start, or pass random=False for deterministic agents."
        )


@dataclass(frozen=True)
class AgentCase:
    """An agent on a probe."""

    kind: AgentConfig
    name: str
    probe: Probe
    seed: int

    def fail(self, law: str, problem: str) -> NoReturn:
        """Raises, naming the law and the probe."""
        raise AssertionError(f"{law}: on {self.name}: {problem}")

    def run(
        self, replicates: IntArray, episodes: int, *, agent_seed: int | None = None, swap: tuple[int, int] | None = None
    ) -> WatchedAgent:
        """A watched run; the world has the seed of the case, the agent the same or `agent_seed`."""
        task = Task(Posterior.before(self.probe.model), self.probe.horizon)
        before = deepcopy(task)
        watched = WatchedAgent(self, self.seed if agent_seed is None else agent_seed, episodes, swap)
        env = FiniteEnv.of(self.probe.model)
        run = Run(watched, env, task, episodes=episodes, seed=self.seed, replicates=replicates)
        while not run.done:
            run.episode()
        where = unlike(_arrays(before), _arrays(task))
        if where:
            self.fail("inputs stay untouched", f"the task's {where} was changed in place.")
        watched.check_copies()
        return watched


@dataclass
class WatchedAgent:
    """An `AgentConfig` and the `Agent` it starts: passes everything on, and notes it.

    With `swap` = (episode, step), a fresh agent that loads the state replaces the agent before that step.
    """

    case: AgentCase
    seed: int
    episodes: int
    swap: tuple[int, int] | None
    done: dict[int, list[Done]] = field(default_factory=dict)
    copies: list[tuple[str, Any, Any]] = field(default_factory=list)
    episode: int = 0

    def start(self, task: Task, streams: Streams) -> WatchedAgent:
        self._task, self._streams = task, Streams(self.seed, streams.replicates)
        self._agent: Agent = self.case.kind.start(task, self._streams)
        self.returns: FloatArray = np.zeros((len(streams.replicates), self.episodes))
        self.done = {int(number): [] for number in streams.replicates}
        return self

    def act(self, replicate: IntArray, state: IntArray, step: int) -> IntArray:
        if self.swap is not None and (self.episode, step) == self.swap:
            self._swap()
        given = {"replicate": replicate, "state": state}
        before = deepcopy(given)
        action = self._agent.act(replicate, state, step)
        self._untouched("act", before, given)
        self._check_actions(state, action)
        for k, b in enumerate(replicate):
            number = int(self._streams.replicates[b])
            self.done[number].append((self.episode, step, int(state[k]), int(action[k])))
        return action

    def observe(self, steps: Steps, step: int) -> None:
        before = deepcopy(steps._asdict())
        self._agent.observe(steps, step)
        self._untouched("observe", before, steps._asdict())
        self.returns[steps.replicate, self.episode] += self.case.probe.model.discount**step * steps.reward

    def end_episode(self) -> None:
        self._agent.end_episode()
        self.episode += 1

    def state(self) -> dict[str, Any]:
        return self._agent.state()

    def load(self, state: Mapping[str, Any]) -> None:
        self._agent.load(state)

    def check_copies(self) -> None:
        """Fails if the run later changed what `state` returned or `load` received."""
        for law, state, before in self.copies:
            where = unlike(before, state)
            if where:
                self.case.fail(law, f"{where} changed later in the run; copy its arrays.")

    def _swap(self) -> None:
        state = self._agent.state()
        where = strange(state)
        if where:
            self.case.fail("state is made of dicts, arrays and plain values", where)
        self._agent = self.case.kind.start(self._task, self._streams)
        self._agent.load(state)
        self.copies.append(("load copies what it is given", state, deepcopy(state)))
        given = self._agent.state()
        self.copies.append(("state gives copies", given, deepcopy(given)))

    def _untouched(self, call: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        where = unlike(before, after)
        if where:
            self.case.fail("inputs stay untouched", f"{call} changed {where} in place.")

    def _check_actions(self, state: IntArray, action: IntArray) -> None:
        law, model = "act gives an available action for each replicate", self.case.probe.model
        if not isinstance(action, np.ndarray) or action.shape != state.shape or action.dtype.kind not in "iu":
            problem = f"{action.dtype} of {action.shape}" if isinstance(action, np.ndarray) else type(action).__name__
            self.case.fail(law, f"found {problem}, expected whole numbers of shape {state.shape}.")
        for s, a in zip(state, action, strict=True):
            listed = model.action[model.row_start[s] : model.row_start[s + 1]].tolist()
            if int(a) not in listed:
                self.case.fail(law, f"found action {a} in state {s}, expected one of {listed}.")


NUMBERS = np.array([0, 4, 7])
EPISODES = 12


def check_same_seed(case: AgentCase) -> WatchedAgent:
    """The same seed gives the same run."""
    one, two = (case.run(NUMBERS, EPISODES) for _ in range(2))
    _same_done(case, "the same seed gives the same run", one, two, NUMBERS)
    return one


def other_seed_differs(case: AgentCase, one: WatchedAgent) -> bool:
    """Whether the agent acts differently with another seed in the same world."""
    return case.run(NUMBERS, EPISODES, agent_seed=case.seed + 1).done != one.done


def check_neighbours(case: AgentCase, one: WatchedAgent) -> None:
    """A replicate acts the same alone, beside others, and in another place."""
    law = "a replicate does not depend on its neighbours"
    for numbers in ([4], [7, 4]):
        _same_done(case, law, one, case.run(np.array(numbers), EPISODES), np.array(numbers))


def check_resume(case: AgentCase, one: WatchedAgent) -> None:
    """A fresh agent that loads a state continues as the old one would have, between episodes and within one."""
    for at in ((0, 0), (3, 0), (5, min(1, case.probe.horizon - 1))):
        law = f"load continues from state (episode {at[0]}, step {at[1]})"
        _same_done(case, law, one, case.run(NUMBERS, EPISODES, swap=at), NUMBERS)


def check_skill(case: AgentCase, episodes: int, replicates: int, share: float) -> None:
    """Checks that the mean return of the last third of the episodes is well above that of random actions."""
    returns = case.run(np.arange(replicates), episodes).returns[:, -(episodes // 3) :]
    random, best = case.probe.random, case.probe.best
    least = random + share * (best - random)
    if not returns.mean() >= least:
        problem = f"found a mean return of {returns.mean():.3f} in the last {episodes // 3} of {episodes} episodes"
        case.fail(
            "the agent learns", f"{problem}, expected at least {least:.3f}; random: {random:.3f}, best: {best:.3f}."
        )


def _same_done(case: AgentCase, law: str, expected: WatchedAgent, found: WatchedAgent, numbers: IntArray) -> None:
    for number in numbers.tolist():
        for a, b in zip(expected.done[number], found.done[number], strict=False):
            if a != b:
                (episode, step, state, action), other = a, b[3]
                problem = f"action {other} in state {b[2]}, expected action {action} in state {state}"
                case.fail(law, f"replicate {number}, episode {episode}, step {step}: found {problem}.")


def _arrays(task: Task) -> dict[str, Any]:
    prior, model = task.prior, task.prior.model
    rows = {name: getattr(model.rows, name) for name in ("entry_start", "successor", "probability", "reward")}
    known = {"concentration": prior.concentration, "initial": model.initial}
    return {**rows, **known, "row_start": model.row_start, "action": model.action}


def unlike(a: Any, b: Any, path: str = "") -> str:
    """Returns the path of the first difference between two states; empty if they are equal bit for bit."""
    if isinstance(a, Mapping):
        if a.keys() != b.keys():
            return path or "the keys"
        problem = (unlike(a[key], b[key], f"{path}.{key}" if path else str(key)) for key in a)
        return next((where for where in problem if where), "")
    if isinstance(a, np.ndarray):
        same = a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    else:
        same = bool(a is b or a == b or (a != a and b != b))
    return "" if same else path


def strange(state: Any, path: str = "state") -> str:
    """Describes the first part of a state that is not a dict with text keys, an array or a plain value; else empty."""
    if isinstance(state, Mapping):
        wrong = [key for key in state if not isinstance(key, str)]
        if wrong:
            return f"{path} has the key {wrong[0]!r}, expected a text."
        return next((problem for problem in (strange(v, f"{path}.{k}") for k, v in state.items()) if problem), "")
    if isinstance(state, np.ndarray):
        return f"{path} is an array of {state.dtype}, expected numbers or texts." if state.dtype.hasobject else ""
    plain = state is None or isinstance(state, (bool, int, float, str, np.generic))
    return "" if plain else f"{path} is {type(state).__name__}, expected a dict, an array or a plain value."
