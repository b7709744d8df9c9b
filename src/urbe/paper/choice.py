"""The part of a chapter to run: agents, numbers of seeds, settings.

An agent is named as in the chapter's list, or as `module:attribute` for one of your own:

    tabular chapters   a `urbe.paper.tuning.Contender`
    deep chapters      a function like the presets, `mine(env, uncertainty_set, *, seed, settings)`, to an agent

A line with the same text in the chapter's list of agents keeps it in the chart. Finished cells of your own agent are
run again when its module, or a module beside it that it imports, changes.
"""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from urbe import checks
from urbe.overrides import override

C = TypeVar("C", bound=Any)


@dataclass(frozen=True)
class Selection:
    """The part of a chapter to run.

    Attributes:
      agents: names; none means those of the scale.
      seeds: how many; None means those of the scale.
      settings: `field=value`, of the cells, or of the settings of deep agents.
    """

    agents: tuple[str, ...] = ()
    seeds: int | None = None
    settings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.seeds is not None:
            checks.whole_number("seeds", self.seeds, 1)

    @property
    def options(self) -> str:
        """The options of `urbe reproduce` that make this choice; empty for the whole chapter."""
        parts = [f"--agents {shlex.quote(','.join(self.agents))}"] if self.agents else []
        parts += [f"--seeds {self.seeds}"] if self.seeds is not None else []
        parts += [f"--set {' '.join(self.settings)}"] if self.settings else []
        return " ".join(parts)

    def seeds_from(self, usual: tuple[int, ...]) -> tuple[int, ...]:
        """The chosen number of seeds, counted from the first of the scale's; the scale's if none is chosen."""
        return usual if self.seeds is None else tuple(range(usual[0], usual[0] + self.seeds))


def is_own(agent: str) -> bool:
    """Whether an agent is named as `module:attribute`."""
    return ":" in agent


def own_modules(agent: str) -> tuple[str, ...]:
    """The module of a user-defined agent; empty for agents of the chapter."""
    return (agent.partition(":")[0],) if is_own(agent) else ()


def load_own(named: str, what: str = "agent") -> Any:
    """The attribute that `module:attribute` names.

    Raises:
      ValueError: the module cannot be imported, or has no such attribute.
    """
    module, _, attribute = named.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"The {what} {named} cannot be loaded: {error}.") from None


def check_agents(wanted: Sequence[str], known: Collection[str]) -> None:
    """Raises when an agent is neither known nor can be loaded."""
    for agent in wanted:
        if is_own(agent):
            load_own(agent)
        elif agent not in known:
            raise ValueError(
                f"{agent} is not an agent of this chapter, expected one of {checks.listing(list(known), len(known))}; "
                "or module:attribute for one of your own."
            )


def with_settings(cells: Sequence[C], settings: Sequence[str]) -> tuple[C, ...]:
    """Cells with some of their fields changed.

    Raises:
      ValueError: an assignment names no field, or has no value of its type.
    """
    return tuple(override(cell, settings) for cell in cells)


def with_agent_settings(cells: Sequence[C], settings: Sequence[str], published: Callable[[], Any]) -> tuple[C, ...]:
    """Cells of deep agents, with some of their fields and of the settings of their agents changed.

    Args:
      cells: dataclasses with a field `settings`.
      settings: assignments to fields of the cells; all others are for the agents.
      published: returns the settings of the agents, so that an unknown field raises before anything runs.

    Raises:
      ValueError: an assignment names no field of either, or has no value of its type.
    """
    names = {field.name for field in fields(cells[0])}
    mine = [text for text in settings if text.partition("=")[0] in names]
    others = tuple(text for text in settings if text not in mine)
    if others:
        override(published(), others)
    return tuple(replace(override(cell, mine), settings=others) for cell in cells)


def file_name(text: str) -> str:
    """A text as part of the name of a cell: characters that file names cannot contain become dashes.

    >>> file_name("mine.agents:best")
    'mine.agents-best'
    """
    return re.sub(r"[^A-Za-z0-9._-]", "-", text)
