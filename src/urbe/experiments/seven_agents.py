"""The agents of the seven-state comparison, each with the settings it may be tuned over: twelve for every one.

A setting is a value for each parameter that matters; what an agent calls `scale` is the size of its exploration. Agents
without parameters (posterior sampling, the fixed robust policy, the oracle) have one setting. A scale of zero is among
the settings of all that add noise: not to explore must be a choice.
"""

from __future__ import annotations

from itertools import product

from urbe.agents import OLRM, PSRL, UBE, UCRL2, URBE, Criterion, Form, Minimax, Oracle
from urbe.ambiguity.l1 import L1Ball
from urbe.experiments.contest import Contender
from urbe.posteriors.beliefs import BeliefKind, Forgetting, Stationary, Window
from urbe.posteriors.change import ChangePoint

BELIEFS: dict[str, BeliefKind] = {
    "stationary": Stationary(),
    "forgetting": Forgetting(0.98),
    "window": Window(50),
    "change-point": ChangePoint(1.0 / 200.0),
}
"""The same for every agent: memories of about fifty episodes, and a jump every two hundred expected."""

CONTENDERS: dict[str, Contender] = {
    "calibrated URBE": Contender(
        ("radius", "scale"),
        tuple(product((0.05, 0.1, 0.25, 0.4), (0.0, 0.25, 1.0))),
        lambda x, belief, _: URBE(x["radius"], x["scale"], Form.CALIBRATED, belief),
    ),
    "URBE": Contender(
        ("radius", "scale"),
        tuple(product((0.05, 0.1, 0.25, 0.4), (0.0, 0.03, 0.2))),
        lambda x, belief, _: URBE(x["radius"], x["scale"], Form.COUNT, belief),
    ),
    "calibrated UBE": Contender(
        ("scale",),
        tuple((s,) for s in (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)),
        lambda x, belief, _: UBE(x["scale"], Form.CALIBRATED, belief),
    ),
    "UBE": Contender(
        ("scale",),
        tuple((s,) for s in (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)),
        lambda x, belief, _: UBE(x["scale"], Form.COUNT, belief),
    ),
    "PSRL": Contender((), ((),), lambda _, belief, __: PSRL(belief)),
    "UCRL2": Contender(
        ("scale",),
        tuple((s,) for s in (0.003, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 1.0)),
        lambda x, belief, _: UCRL2(x["scale"], belief, Criterion.EPISODE),
    ),
    "OLRM": Contender(
        ("bonus_scale", "check_scale"),
        tuple(product((0.003, 0.01, 0.03, 0.1), (0.01, 0.03, 0.1))),
        lambda x, belief, _: OLRM(bonus_scale=x["bonus_scale"], check_scale=x["check_scale"], belief=belief),
    ),
    "robust": Contender((), ((),), lambda _, __, env: Minimax(env.feasible, L1Ball(2.0)), learns=False),
    "oracle": Contender((), ((),), lambda _, __, env: Oracle(env), learns=False),
}
