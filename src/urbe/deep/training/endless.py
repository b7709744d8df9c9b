"""Warn if no episode of a training ends."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from urbe.deep.agent import DQNAgent

STEPS = 10_000
"""Least number of steps without the end of an episode for a warning."""


class NoEpisodeEnded(UserWarning):
    """No episode of a training has ended."""


def endless(agent: DQNAgent, least: int) -> str | None:
    """A warning if no episode has ended in `least` steps or more."""
    steps = agent.history.log["step"]
    if len(agent.history.episodes["step"]) or not len(steps) or steps[-1] < least:
        return None
    awaited = agent.trainer.settings.copy.episodes
    copies = "" if awaited is None else f", and the target network, which waits for {awaited}, was never copied"
    instead = "" if awaited is None else ", or copy after gradient steps: copy=CopyEvery(updates=1000)"
    return (
        f"No episode has ended in {int(steps[-1])} steps, so there are no returns{copies}. If episodes never end, set "
        f"a time limit, as by gymnasium.wrappers.TimeLimit(env, 1000){instead}."
    )


def warn_of_endless(agent: DQNAgent) -> None:
    """Warns if no episode has ended for long."""
    text = endless(agent, STEPS)
    if text is not None:
        warnings.warn(text, NoEpisodeEnded, stacklevel=3)
