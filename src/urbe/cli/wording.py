"""Translate messages of the library into options of the command line: `labels=True` becomes `--labels`."""

from __future__ import annotations

import re

PHRASES = (
    (r"names=\{'state': 'condition', 'action': 'decision'\}", "--columns state=condition,action=decision"),
    (r"names=\{'(\w+)': \.\.\.\}", r"--columns \1=NAME"),
    (r"names\['(\w+)'\] is '([^']*)'", r"--columns \1=\2"),
    (r"names has '(\w+)'", r"--columns has \1"),
    (r"missing_values=\[\.\.\.\]", "--missing-values"),
    (r"names=\{\.\.\.\}", "--columns"),
    (r"names has both", "--columns has both"),
    (r'missing="drop"', "--missing drop"),
    (r"constants='([^']*)'", r"--constants \1"),
    (r"^constants=", "--constants "),
    (r"BackwardInduction\(horizon=\.\.\.\)", "--horizon"),
    (r"but reward is '", "but --reward is '"),
    (r"choose one, reward='(\w+)'", r"choose one, --reward \1"),
    (r"with_terminal\(\[\.\.\.\]\)", "--terminal"),
    (r"^adapter (\S+) (names|cannot|has)", r"--adapter \1 \2"),
    (r"Import (\S+) before loading, or give settings=\.", r"Give --import \1."),
    (r"copy=CopyEvery\(updates=(\d+)\)", r"--set copy.episodes=none copy.updates=\1"),
    (r"labels=True", "--labels"),
    (r"give their prior: rewards=NormalGamma\(\)", "use --rewards random"),
    (r"Give the rewards' prior, rewards=NormalGamma\(\)", "Use --rewards random"),
    (r"feasible='(\w+)' with n_actions=", r"--feasible \1 --untried"),
    (r"read it as one, with read_mdp\(path, discount=\.\.\.\)", "it is for urbe solve"),
    (r"n_actions=", "--untried"),
    (r"read_mdp\(path, discount=([\d.]+)\)", r"--discount \1"),
    (r"terminal=\[([^\],]*)(?:, \.\.\.)?\]", r"--terminal \1"),
    (r"model\.with_labels\((\w+)=\[\.\.\.\]\)", r"a model file whose \1 have the same names"),
    (r"certify=(\d+)", r"--certify \1"),
    (
        r"(?<!--columns )(?<!--set )(?<!, )"
        r"\b(discount|terminal|confidence|draws|certify|feasible|model|start|reward)='?(\w[\w.]*)'?",
        r"--\1 \2",
    ),
    (r"\b(terminal|model|start)=", r"--\1"),
    (
        r"^(discount|terminal|radius|confidence|draws|certify|start|prior|seed|threads|share|episodes|adapter|horizon"
        r"|tolerance) is ",
        r"--\1 is ",
    ),
    (r"^(terminal|start)\[0\] is ", r"--\1 is "),
    (r"^held_out is ", "--held-out is "),
    (r"give format= one of ([^.]*)\.", r"give --format, one of \1."),
)
"""Patterns of Python arguments and the options that replace them; applied in this order."""


def in_options(message: str) -> str:
    """Returns the message with options instead of arguments.

    >>> in_options('leave them out with missing="drop", or fill them in first.')
    'leave them out with --missing drop, or fill them in first.'
    """
    for python, option in PHRASES:
        message = re.sub(python, option, message)
    return message
