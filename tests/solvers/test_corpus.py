"""Thousands of adversarial models, every claim of their solutions against the high-precision oracle.

A violation is reproduced by `oracles.corpus.violations(family, seed)`.
"""

import numpy as np
import pytest

import urbe
from fixtures import adversarial
from oracles import corpus
from urbe import MDP
from urbe.ambiguity import chi2

QUICK, THOROUGH = 300, 5000
"""Models of a family in the fast and in the slow tests."""

QUICK_DENSE, THOROUGH_DENSE = 30, 1000
"""The same of models whose rows list every state, for which kernels have other code."""

UNDECIDED = 0.02
"""The largest share of models, or one, whose truth the oracle may enclose less closely than the solver's bounds do."""

PART = 100
"""Models of one test: parts run side by side."""

OPTIMISTIC = [f"optimistic {name}" for name in adversarial.BY_ROW if name != "exact"]
"""Families whose sets choose each row on its own and may be turned around."""

FAMILIES = [*sorted({*adversarial.FAMILIES, *adversarial.COUPLED}), *OPTIMISTIC]
DENSE = [f"dense {name}" for name in sorted(adversarial.FAMILIES)]

SHORT = {"exact", "wasserstein", *adversarial.NEEDS_ROW_REWARDS}
"""Families whose kernels treat rows of all lengths alike."""
SHOWN = 6


def _run(family, seeds, record_property):
    wrong, undecided = {}, []
    for seed in seeds:
        try:
            found, decided = corpus.verdict(family, seed)
            if not decided:
                undecided.append(seed)
        except Exception as error:  # an exception of the solver is a violation like any other
            found = [f"{type(error).__name__}: {error}"]
        if found:
            wrong[seed] = found
    record_property("corpus", (family, len(seeds), len(wrong), len(undecided)))
    shown = [f"  seed {seed}: {sentence}" for seed, found in list(wrong.items())[:SHOWN] for sentence in found[:2]]
    assert not wrong, "\n".join([f"{family}: {len(wrong)} of {len(seeds)} models violate a claim", *shown])
    assert len(undecided) <= max(1.0, UNDECIDED * len(seeds)), f"{family}: the oracle does not decide {undecided}"


def _parts(first, last):
    return [range(at, min(at + PART, last)) for at in range(first, last, PART)]


def _name(part):
    return f"{part.start}-{part.stop - 1}" if isinstance(part, range) else part


@pytest.mark.parametrize("part", _parts(0, QUICK), ids=_name)
@pytest.mark.parametrize("family", FAMILIES)
def test_claims_hold_on_adversarial_models(family, part, record_property):
    _run(family, part, record_property)


@pytest.mark.parametrize("family", DENSE)
def test_claims_hold_where_rows_list_every_state(family, record_property):
    _run(family, range(QUICK_DENSE), record_property)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("part", _parts(QUICK, THOROUGH), ids=_name)
def test_claims_hold_on_thousands_of_adversarial_models(family, part, record_property):
    _run(family, part, record_property)


@pytest.mark.slow
@pytest.mark.parametrize("family", DENSE)
@pytest.mark.parametrize("part", _parts(QUICK_DENSE, THOROUGH_DENSE), ids=_name)
def test_claims_hold_on_hundreds_where_rows_list_every_state(family, part, record_property):
    _run(family, part, record_property)


@pytest.mark.parametrize("family", [f"long {name}" for name in sorted({*adversarial.FAMILIES} - SHORT)])
def test_claims_hold_on_long_rows(family, record_property):
    _run(family, range(20), record_property)


@pytest.mark.parametrize("factor", [1.0 + 1e-9, 1.0 - 1e-9, 1.0 - 1e-12])
def test_a_dual_that_is_slightly_wrong_or_loose_is_noticed(monkeypatch, factor):
    exact = chi2.KERNEL.dual

    def broken(p, z, low, radius, data):
        return low + (exact(p, z, low, radius, data) - low) * factor

    monkeypatch.setattr(chi2, "KERNEL", chi2.KERNEL._replace(dual=broken))
    assert any(corpus.violations("chi2", seed) for seed in range(40))


LONG = [
    ("poisson20", urbe.KLBall(0.1)),
    ("poisson20", urbe.LikelihoodRegion(0.1)),
    ("poisson20", urbe.Chi2Ball(0.1)),
    ("poisson20", urbe.SRectangular(urbe.KLBall(0.1))),
    ("poisson20", urbe.Optimistic(urbe.KLBall(3.0))),
    ("poisson1000", urbe.L1Ball(0.1)),
    ("poisson1000", urbe.L2Ball(0.01)),
    ("poisson1000", urbe.Chi2Ball(1.0)),
    pytest.param("poisson1000", urbe.KLBall(0.5), marks=pytest.mark.slow),
    ("geometric", urbe.KLBall(100.0)),
    ("geometric", urbe.LInfBall(0.01)),
    ("geometric", urbe.LikelihoodRegion(1e-3)),
    ("binomial", urbe.Optimistic(urbe.LikelihoodRegion(1.0))),
    ("binomial", urbe.Contamination(0.1)),
    ("geometric", "wasserstein"),
    ("geometric", "scenarios"),
    ("geometric", "tail"),
    ("geometric", "nested"),
    ("geometric", "labels"),
    ("poisson20", "factors"),
    pytest.param("poisson1000", "wasserstein", marks=pytest.mark.slow),
    pytest.param("poisson1000", "nested", marks=pytest.mark.slow),
    pytest.param("poisson1000", "labels", marks=pytest.mark.slow),
    pytest.param("geometric", "factors", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("law", "set_"), LONG, ids=lambda x: x if isinstance(x, str) else type(x).__name__)
def test_long_rows_with_unclipped_tails(law, set_, record_property):
    mdp = adversarial.long_row(np.random.default_rng(7), law)
    if isinstance(set_, str):
        mdp, set_ = adversarial.long_set(set_, mdp)
    found = corpus.check_long(mdp, set_)
    record_property("corpus", ("long rows", 1, int(bool(found))))
    assert not found, found


FADING = MDP.from_dense([[[1.0, 1e-300]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=0.9)
FAINT = MDP.from_dense([[[1.0, 1e-175]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=0.9)
FAINTEST = MDP.from_dense([[[1.0, 1e-299]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=0.9)
RISING = MDP.from_dense([[[1.0, 1e-300]], [[0.0, 1.0]]], [[0.0], [1.0]], discount=0.9)


@pytest.mark.parametrize("mdp", [FADING, FAINT, FAINTEST, RISING], ids=["fading", "faint", "faintest", "rising"])
@pytest.mark.parametrize(
    "set_",
    [
        urbe.KLBall(0.1),
        urbe.Optimistic(urbe.KLBall(0.1)),
        urbe.SRectangular(urbe.KLBall(0.1)),
        urbe.LikelihoodRegion(0.1),
        urbe.Optimistic(urbe.LikelihoodRegion(0.1)),
        urbe.Chi2Ball(0.1),
        urbe.L2Ball(0.1),
    ],
    ids=lambda set_: f"{type(set_).__name__}-{type(getattr(set_, 'set', getattr(set_, 'ball', set_))).__name__}",
)
def test_successors_of_vanishing_probability(mdp, set_, record_property):
    found = [x for seed in range(8) for x in corpus.check(corpus.Case(mdp, set_, np.random.default_rng(seed)))]
    record_property("corpus", ("vanishing probabilities", 8, int(bool(found))))
    assert not found, found


def test_the_value_of_a_fading_state():
    solution = urbe.solve(FADING, urbe.KLBall(0.1))
    # q log(q / 1e-300) + (1 - q) log(1 - q) = 0.1 at q = 1.46e-4; V = 1 / (1 - 0.9 (1 - q))
    assert solution.lower[0] <= 9.98681 <= solution.upper[0] + 1e-5
    assert solution.value[0] == pytest.approx(9.98681, abs=1e-5)
