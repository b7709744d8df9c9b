"""Colours of series: far enough apart for every reader, on light and on dark pages; looks that never collide."""

from itertools import combinations

import numpy as np
import pytest

from urbe.paper.table_one import SYSTEMS
from urbe.report import style
from urbe.report.style import METHODS, SERIES, THEMED, looks

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB
SEEN = {
    "all cones": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(colour):
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIE L*a*b* of linear sRGB, white D65."""
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ rgb
    t = xyz / [0.9505, 1.0, 1.089]
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("mode", [1, 2])
@pytest.mark.parametrize("eyes", SEEN)
def test_series_are_distinguished(mode, eyes):
    seen = {c: lab(np.clip(np.array(SEEN[eyes]) @ linear(THEMED[c][mode]), 0.0, 1.0)) for c in SERIES}
    for a, b in combinations(SERIES, 2):
        # a difference of 2.3 is just noticeable side by side
        assert np.linalg.norm(seen[a] - seen[b]) > 15.0, (THEMED[a][0], THEMED[b][0])


@pytest.mark.parametrize("mode", [1, 2])
def test_names_in_the_colours_of_series_are_readable(mode):
    weights = np.array([0.2126, 0.7152, 0.0722])
    card = weights @ linear(THEMED[style.CARD][mode])
    for colour in SERIES:
        low, high = sorted((card, weights @ linear(THEMED[colour][mode])))
        assert (high + 0.05) / (low + 0.05) >= 4.5  # WCAG AA for text


def test_no_two_methods_look_the_same():
    assert len({look[:2] for look in METHODS.values()}) == len(METHODS)
    assert len({(look.colour, look.marker) for look in METHODS.values()}) >= len(METHODS) - 2
    assert {look.colour for look in METHODS.values()} <= set(SERIES)


def test_known_names_keep_their_look_and_others_take_what_is_left():
    names = ["mine", "robust", "yours", "URBE", "theirs"]
    found = looks(names)
    assert list(found) == names
    assert found["robust"] == METHODS["robust"]
    assert len({look[:2] for look in found.values()}) == 5
    assert looks(names) == found
    assert looks(["robust", "mine", "URBE", "yours", "theirs"]) == found


def test_dots_of_unknown_names_differ_from_those_of_known_ones():
    found = looks(["nominal", "a", "b", "c"])
    assert found["b"].colour == found["nominal"].colour
    assert len({(look.colour, look.marker) for look in found.values()}) == 4


def test_agents_of_a_chart_on_adaptation_differ():
    found = looks(["oracle", "nominal", "robust", *style.ADAPTIVE])
    assert len({look[:2] for look in found.values()}) == len(found)
    assert len({(look.colour, look.marker) for look in found.values()}) == len(found)


def test_each_name_has_one_look():
    tables = (style.METHODS, style.SYSTEMS, style.DEEP, style.ADAPTIVE)
    assert len(set().union(*tables)) == sum(map(len, tables))


def test_systems_of_table_one_differ():
    found = looks(list(SYSTEMS))
    assert len({look[:2] for look in found.values()}) == len(SYSTEMS)
    assert len({(look.colour, look.marker) for look in found.values()}) == len(SYSTEMS)


def test_too_many_names_are_refused():
    n = 3 * len(SERIES)
    assert len({look[:2] for look in looks([f"agent {i}" for i in range(n)]).values()}) == n
    with pytest.raises(ValueError, match=f"{n + 1} names in one figure"):
        looks([f"agent {i}" for i in range(n + 1)])
