"""Every file with a compiled kernel has mutations."""

from collections import Counter

import pytest

from fixtures import adversarial
from mutations.__main__ import AMBIGUITY, KERNELS, SOURCE
from mutations.chosen import CHOSEN
from mutations.mutate import count

FOLDER = SOURCE / AMBIGUITY
ELSEWHERE = {"moments.py", "operator.py", "coupled/matrix_games.py"}
"""Loops for variances and for policies, and the games of labels per state, which have tests of their own."""

OUTSIDE_THE_CORPUS = "closed_form/"
"""Formulas, some of which leave the simplex: tests/ambiguity/test_twice_regularised.py holds them to other solvers."""


def test_no_kernel_is_left_out():
    compiled = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.py") if count(path.read_text())}
    drawn = {name for name in compiled if not name.startswith(OUTSIDE_THE_CORPUS)}
    assert set(KERNELS) == drawn - ELSEWHERE


def test_every_kernel_is_broken_in_five_chosen_places():
    places = Counter(each.path for each in CHOSEN)
    assert not {name for name in KERNELS if places[AMBIGUITY + name] < 5}


@pytest.mark.parametrize("path", sorted({each.path for each in CHOSEN}))
def test_chosen_breaks_change_one_place(path):
    text, known = (SOURCE / path).read_text(), {*adversarial.FAMILIES, *adversarial.COUPLED}
    for each in CHOSEN:
        if each.path == path:
            assert text.count(each.before) == 1, each.before
            assert {name.split(" ")[-1] for name in each.families} <= known
