"""Sensitivity to the radius: enumeration of all policies, laws, text and figure."""

import re
from itertools import product

import numpy as np
import pytest

import urbe
from urbe.mdp.evaluate import policy_value

RADII = (0.0, 0.3, 0.6, 0.9, 1.5)
SETS = pytest.mark.parametrize("make", [urbe.L1Ball, urbe.KLBall, urbe.Contamination], ids=lambda make: make.__name__)


def radii_for(make):
    return [0.6 * r for r in RADII] if make is urbe.Contamination else RADII


@SETS
def test_enumeration_of_all_policies_finds_the_same(make):
    mdp = urbe.library.riverswim(4, discount=0.9)
    found = urbe.sensitivity(mdp, make, radii_for(make), start={0: 0.5, 2: 0.5})
    assert found.changed[-1] > 0  # or the policies would be one, and any mix-up of them unseen
    assert found.insurance[-1] > 0.01
    assert found.price[-1] > 0.01
    start = np.array([0.5, 0, 0.5, 0])
    policies = [np.array(actions) for actions in product(range(2), repeat=4)]
    right = [start @ policy_value(mdp, policy) for policy in policies]
    nominal = int(np.argmax(right))
    assert found.nominal_actions.tolist() == policies[nominal].tolist()
    assert found.nominal_nominal == pytest.approx(np.full(5, right[nominal]), abs=1e-7)
    for k, radius in enumerate(found.radius):
        worst = [start @ urbe.evaluate_policy(mdp, policy, make(radius)).value for policy in policies]
        assert found.robust_worst[k] == pytest.approx(max(worst), abs=2e-6)
        assert found.nominal_worst[k] == pytest.approx(worst[nominal], abs=2e-6)
        assert found.robust_nominal[k] == pytest.approx(start @ policy_value(mdp, found.actions[k]), abs=1e-7)


@SETS
def test_laws(make):
    mdp = urbe.library.machine_replacement(10, discount=0.9)
    found = urbe.sensitivity(mdp, make, radii_for(make))
    slack = 2.0 * found.gap
    assert (found.price >= -slack).all()
    assert (found.insurance >= -slack).all()
    assert (np.diff(found.robust_worst) <= slack).all()
    assert found.changed[0] == 0
    assert found.price[0] == found.insurance[0] == 0.0
    assert found.gap < 1e-5


def test_changes_are_where_policies_differ():
    mdp = urbe.library.riverswim(6, discount=0.95)
    found = urbe.sensitivity(mdp, urbe.L1Ball, RADII)
    actions = found.nominal_actions.copy()
    at = 0
    for radius, state, action in found.changes():
        while found.radius[at] < radius:
            assert actions.tolist() == found.actions[at].tolist()
            at += 1
        actions[state] = action
    assert actions.tolist() == found.actions[-1].tolist()


def test_text_table_and_file_have_labels(tmp_path):
    mdp = urbe.library.riverswim(3, discount=0.95).with_labels(states=["bank", "mid", "far"], actions=["rest", "swim"])
    found = urbe.sensitivity(mdp, urbe.L1Ball, [0.0, 1.2], start="bank")
    assert "L1Ball around the model; values from state bank" in str(found)
    assert "From radius 1.2 on, state bank: rest." in str(found)
    assert repr(found) == "Sensitivity(L1Ball, 2 radii from 0 to 1.2, 3 states)"
    found.write(tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text().splitlines()[0].startswith("radius,robust_worst,nominal_worst,insurance")
    steady = urbe.sensitivity(mdp, urbe.L1Ball, [0.0])
    assert "The nominal policy is robust at every radius." in str(steady)


@pytest.mark.parametrize(
    ("make", "radii", "error", "message"),
    [
        (0.5, [0.1], TypeError, "make_set is 0.5, expected a function of the radius such as urbe.L1Ball."),
        (urbe.L1Ball, [], ValueError, "expected at least one, and increasing numbers."),
        (urbe.L1Ball, [0.2, 0.1], ValueError, "radii is 0.2, 0.1, expected at least one, and increasing numbers."),
        (urbe.L1Ball, [3.0], ValueError, "radius is 3"),
    ],
)
def test_refusals(make, radii, error, message):
    with pytest.raises(error, match=re.escape(message)):
        urbe.sensitivity(urbe.library.riverswim(3), make, radii)


def test_randomised_policies_are_refused():
    transition = np.array([[[0, 1, 0], [0, 0, 1]], [[0, 1, 0], [0, 1, 0]], [[0, 0, 1], [0, 0, 1]]], float)
    mdp = urbe.MDP.from_dense(transition, [[0, 0], [1, 1], [1, 1]], discount=0.9, keep_zeros=True)
    with pytest.raises(ValueError, match="expected a set rectangular in state and action"):
        urbe.sensitivity(mdp, lambda r: urbe.SRectangular(urbe.L1Ball(r, support="all")), [0.5])


@pytest.mark.parametrize("radii", [[0.0, 0.5, 1.0], [0.0, 0.1, 1.0]], ids=["even", "uneven"])
def test_the_picture(radii):
    mdp = urbe.library.riverswim(3, discount=0.95).with_labels(states=["bank", "mid", "far"], actions=["rest", "swim"])
    figure = urbe.sensitivity(mdp, urbe.L1Ball, radii).plot()
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[:2] == ["Worst case within the radius", "If the model is right"]
    assert titles[2].startswith("The robust policy: it ")
    assert [label.get_text() for label in figure.axes[2].get_yticklabels()] == ["bank", "mid", "far"]
    figure.canvas.draw()
    with pytest.raises(ValueError, match=re.escape("There is one radius, 0.4, expected at least two to draw over.")):
        urbe.sensitivity(mdp, urbe.L1Ball, [0.4]).plot()


def test_over_a_horizon_enumeration_of_all_policies_of_each_step_finds_the_same():
    mdp = urbe.library.riverswim(3, discount=1.0)
    found = urbe.sensitivity(mdp, urbe.L1Ball, [0.0, 0.4, 0.8], horizon=3, start=1)
    assert (found.horizon, found.actions.shape, found.nominal_actions.shape) == (3, (3, 3, 3), (3, 3))
    assert found.changed.tolist()[0] == 0
    assert found.changed[-1] > 0
    assert found.gap < 1e-9
    policies = [np.array(actions).reshape(3, 3) for actions in product(range(2), repeat=9)]
    method = urbe.BackwardInduction(3)

    def values(nature):
        return [urbe.evaluate_policy(mdp, policy, nature, method).value[0, 1] for policy in policies]

    right = values(None)
    assert found.nominal_nominal == pytest.approx(np.full(3, max(right)), abs=1e-9)
    worst = values(urbe.L1Ball(0.8))
    assert found.robust_worst[2] == pytest.approx(max(worst), abs=1e-9)
    at = next(k for k, policy in enumerate(policies) if (policy == found.nominal_actions).all())
    assert found.nominal_worst[2] == pytest.approx(worst[at], abs=1e-9)
    at = next(k for k, policy in enumerate(policies) if (policy == found.actions[2]).all())
    assert found.robust_nominal[2] == pytest.approx(right[at], abs=1e-9)
    assert "of 3 steps" in str(found) or "At the first step the policy never changes." in str(found)
    assert found.table()["states_changed"].tolist() == found.changed.tolist()
