"""Figures, captions and tables of the price of robustness."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from urbe.paper.models import MODELS
from urbe.paper.price_of_robustness.results import Curve, curves
from urbe.paper.results import Results
from urbe.report import style
from urbe.report.content import Exhibit, Section, Table
from urbe.report.figures import Figure, styled
from urbe.report.maps import ramp
from urbe.report.numbers import number
from urbe.report.price import PolicyStrips, PriceCurves, best_radius, policy_figure, price_figure
from urbe.types import IntArray

ALL_STATES = 12
"""Maps of larger models show only the states whose action changes."""


def sections(results: Results) -> list[Section]:
    """The summary, then one section for each model."""
    found = curves(results)
    models = [(model, list(group)) for model, group in groupby(found, key=lambda curve: curve.model)]
    with styled():
        return [_summary(found), *(_model(model, group) for model, group in models)]


def _summary(curves: Sequence[Curve]) -> Section:
    rows = []
    for curve in curves:
        at = best_radius(curve.insurance)
        first = _first_change(curve)
        rows.append(
            (
                MODELS[curve.model].title,
                curve.set,
                f"0 to {curve.radius[-1]:g}",
                "never" if first is None else f"{curve.radius[first]:g}",
                f"{curve.radius[at]:g}",
                number(curve.insurance[at], 4),
                number(curve.price[at], 4),
                number(curve.nominal["nominal"][at], 4),
                f"{curve.gap:.0e}",
            )
        )
    head = (
        "model", "set", "radii", "policy changes from", "insurance peaks at", "insurance there", "price there",
        "nominal value", "certified gap",
    )  # fmt: skip
    question = (
        "Classic Markov decision processes, solved for the nominal model and for the worst model within a growing "
        "distance of it: what does it cost to be robust, and what does it buy?"
    )
    text = (
        "The nominal policy is optimal if the model is right; the robust policy is optimal against the worst model "
        "within a radius of it. The price is the value the robust policy gives up if the model is right; the "
        "insurance is the value it gains over the nominal policy in the worst case. Both are reported where the "
        "insurance peaks. Among equally robust policies, the one that keeps most nominal actions is chosen."
    )
    table = Table("Price and insurance of every model and set", head, tuple(rows))
    sets = dict.fromkeys(curve.set for curve in curves)
    facts = (
        ("Solved", f"{len({curve.model for curve in curves})} models, sets {' and '.join(sets)}; nothing is random"),
        ("Largest certified gap", f"{max(curve.gap for curve in curves):.1e} in any state of any problem"),
    )
    return Section("Summary", (question, text), tables=(table,), facts=facts)


def _model(model: str, curves: Sequence[Curve]) -> Section:
    demo, mdp = MODELS[model], MODELS[model].build()
    size = f"{mdp.n_states} states, {mdp.n_rows} state-action pairs, discount {mdp.discount:g}."
    values = Exhibit(
        f"{model}-values",
        _values_figure(curves),
        f"Line charts of {demo.title}: value of the robust and of the nominal policy against the radius. "
        + " ".join(_sentence(curve) for curve in curves),
        f"Values {demo.start}. " + " ".join(_sentence(curve) for curve in curves) + " Every value is a certified lower "
        f"bound; the widest certified interval here is {max(curve.gap for curve in curves):.0e}, far thinner than a "
        "line.",
        tuple(_values_table(curve) for curve in curves),
    )
    policies = Exhibit(
        f"{model}-policies",
        _policy_figure(curves),
        f"Map of {demo.title}: the robust policy's action in each state, for each radius. "
        + " ".join(_change_sentence(curve) for curve in curves),
        "The robust policy: the action of each state (rows) as the radius grows (left to right). The left edge is the "
        "nominal policy. " + " ".join(_change_sentence(curve) for curve in curves) + _omitted(curves),
        tuple(_policy_table(curve) for curve in curves),
    )
    return Section(demo.title, (demo.story, size), (values, policies))


def _values_figure(curves: Sequence[Curve]) -> Figure:
    return price_figure(
        [
            PriceCurves(
                curve.set, curve.radius, (curve.worst["robust"], curve.worst["nominal"]),
                (curve.nominal["robust"], curve.nominal["nominal"]),
            )
            for curve in curves
        ]
    )  # fmt: skip


def _policy_figure(curves: Sequence[Curve]) -> Figure:
    demo, shown = MODELS[curves[0].model], _shown(curves)
    most = 1 + max(int(curve.actions["robust"].max()) for curve in curves)
    colours = ramp(most) if demo.ordered else style.ACTIONS[: len(demo.actions)]
    strips = [PolicyStrips(curve.set, curve.radius, curve.actions["robust"][:, shown].T) for curve in curves]
    return policy_figure(strips, [demo.states[s] for s in shown], demo.actions, colours)


def _shown(curves: Sequence[Curve]) -> IntArray:
    """The states of the map: all that are not terminal; in larger models those where the action changes, if any."""
    live = curves[0].actions["nominal"][0] >= 0
    changes = live & np.any([np.ptp(curve.actions["robust"], axis=0) > 0 for curve in curves], axis=0)
    return np.flatnonzero(changes if live.sum() > ALL_STATES and changes.any() else live)


def _values_table(curve: Curve) -> Table:
    head = (
        f"{curve.set} radius", "robust, worst case", "nominal, worst case", "insurance", "robust, nominal model",
        "nominal, nominal model", "price", "states changed",
    )  # fmt: skip
    columns = (
        curve.worst["robust"], curve.worst["nominal"], curve.insurance, curve.nominal["robust"],
        curve.nominal["nominal"], curve.price,
    )  # fmt: skip
    rows = tuple(
        (f"{radius:g}", *(number(column[i]) for column in columns), str(curve.changed[i]))
        for i, radius in enumerate(curve.radius)
    )
    return Table(f"{curve.set} set: values of both policies", head, rows)


def _policy_table(curve: Curve) -> Table:
    demo, actions = MODELS[curve.model], curve.actions["robust"]
    rows = []
    for s in np.flatnonzero(actions[0] >= 0):
        starts = [0, *(np.flatnonzero(np.diff(actions[:, s])) + 1).tolist()]
        text = ", then ".join(f"{demo.actions[actions[i, s]]} from {curve.radius[i]:g}" for i in starts)
        rows.append((demo.states[s], text))
    return Table(f"{curve.set} set: the robust policy", ("state", "action, from which radius on"), tuple(rows))


def _sentence(curve: Curve) -> str:
    """Describes the values of one set."""
    first, at = _first_change(curve), best_radius(curve.insurance)
    if first is None:
        return f"{curve.set}: the nominal policy is robust at every radius shown."
    if not curve.insurance[at] > curve.gap:
        return f"{curve.set}: the policy changes from radius {curve.radius[first]:g} on, but gains nothing here."
    return (
        f"{curve.set}: the insurance peaks at radius {curve.radius[at]:g}, where being robust gains "
        f"{number(curve.insurance[at], 3)} in the worst case for {number(curve.price[at], 3)} of nominal value."
    )


def _change_sentence(curve: Curve) -> str:
    """Describes the policies of one set."""
    first = _first_change(curve)
    if first is None:
        return f"{curve.set}: it never changes."
    most = int(np.argmax(curve.changed))
    n_states = int((curve.actions["nominal"][0] >= 0).sum())
    return (
        f"{curve.set}: it first changes at radius {curve.radius[first]:g} and differs most at "
        f"{curve.radius[most]:g}, in {curve.changed[most]} of {n_states} states."
    )


def _omitted(curves: Sequence[Curve]) -> str:
    rest = int((curves[0].actions["nominal"][0] >= 0).sum()) - len(_shown(curves))
    return f" The other {rest} states keep their nominal action throughout and are not drawn." if rest else ""


def _first_change(curve: Curve) -> int | None:
    """Index of the first radius at which the policies differ."""
    return int(np.argmax(curve.changed > 0)) if curve.changed.any() else None
