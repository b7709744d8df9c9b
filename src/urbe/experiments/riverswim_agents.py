"""The agents of the RiverSwim comparison and the settings each may be tuned over, at most six."""

from __future__ import annotations

from itertools import product

from urbe.agents import (
    OLRM,
    PSRL,
    RLSVI,
    UBE,
    UCRL2,
    URBE,
    BayesianQ,
    CertaintyEquivalent,
    ContaminationQ,
    Criterion,
    Form,
    MismatchQ,
    QLearning,
    Robust,
)
from urbe.experiments.contest import Contender


def _values(*values: float) -> tuple[tuple[float], ...]:
    return tuple((value,) for value in values)


CONTENDERS: dict[str, Contender] = {
    "calibrated URBE": Contender(
        ("radius", "scale"),
        tuple(product((0.02, 0.1), (0.5, 1.0, 2.0))),
        lambda x, belief, _: URBE(x["radius"], x["scale"], Form.CALIBRATED, belief),
    ),
    "URBE": Contender(
        ("radius", "scale"),
        tuple(product((0.02, 0.1), (0.1, 0.3, 1.0))),
        lambda x, belief, _: URBE(x["radius"], x["scale"], Form.COUNT, belief),
    ),
    "calibrated UBE": Contender(
        ("scale",),
        _values(0.25, 0.5, 1.0, 1.5, 2.0, 4.0),
        lambda x, belief, _: UBE(x["scale"], Form.CALIBRATED, belief),
    ),
    "UBE": Contender(
        ("scale",),
        _values(0.03, 0.1, 0.3, 0.6, 1.0, 2.0),
        lambda x, belief, _: UBE(x["scale"], Form.COUNT, belief),
    ),
    "PSRL": Contender((), ((),), lambda _, belief, __: PSRL(belief)),
    "UCRL2": Contender(
        ("scale",),
        _values(0.01, 0.03, 0.1, 0.2, 0.4, 1.0),
        lambda x, belief, _: UCRL2(x["scale"], belief, Criterion.EPISODE),
    ),
    "OLRM": Contender(
        ("bonus_scale",),
        _values(0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
        lambda x, belief, _: OLRM(bonus_scale=x["bonus_scale"], check_scale=0.2, belief=belief),
        told_rewards=True,
    ),
    "RLSVI": Contender(
        ("noise",),
        _values(0.1, 0.3, 1.0, 2.0, 4.0, 8.0),
        lambda x, _, __: RLSVI(x["noise"], precision=0.02, per_step=False),
    ),
    "Bayesian Q-learning": Contender(
        ("rate",),
        _values(0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
        lambda x, _, __: BayesianQ(mean=5.0, rate=x["rate"]),
        discount=0.95,
    ),
    "Q-learning": Contender(
        ("initial",),
        _values(0.0, 1.0, 3.0, 5.0, 10.0, 20.0),
        lambda x, _, __: QLearning(initial=x["initial"]),
        discount=0.95,
    ),
    "contamination Q-learning": Contender(
        ("fraction", "initial"),
        tuple(product((0.01, 0.05), (1.0, 5.0, 10.0))),
        lambda x, _, __: ContaminationQ(x["fraction"], initial=x["initial"]),
        discount=0.95,
    ),
    "mismatch Q-learning": Contender(
        ("radius", "initial"),
        tuple(product((0.01, 0.05), (1.0, 5.0, 10.0))),
        lambda x, _, __: MismatchQ(x["radius"], initial=x["initial"]),
        discount=0.95,
    ),
    "certainty equivalent": Contender((), ((),), lambda _, belief, __: CertaintyEquivalent(belief)),
    "robust": Contender(
        ("radius",),
        _values(0.02, 0.05, 0.1, 0.2, 0.4, 0.8),
        lambda x, belief, _: Robust(x["radius"], belief),
    ),
}
