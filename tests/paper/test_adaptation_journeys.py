"""The rover's episodes as single decisions: exact evaluation of the grid, and plans against proven bounds."""

import numpy as np
import pytest

import urbe
from urbe.belief import Belief, Switching
from urbe.paper.adaptation.domains import even_rover, rover
from urbe.paper.adaptation.journeys import STILL, JourneyPlan, Journeys, _Chain, live, plan, settled, thompson
from urbe.paper.adaptation.tuning import CHOSEN, EPISODES, FAILURES, SCHEDULES, Candidate, prior_of, schedules
from urbe.planners import solve_belief
from urbe.simulators import MarsRoverParams, to_mdp
from urbe.solvers import BackwardInduction, solve


@pytest.mark.parametrize(
    ("make", "failure"),
    [*((rover, p) for p in (0.002, 0.03, 0.05, 0.06, 0.3)), *((even_rover, p) for p in (0.06, 0.19, 0.21))],
)
def test_a_journey_is_what_backward_induction_makes_of_the_grid(make, failure):
    domain = make()
    mdp = to_mdp(domain.simulator, MarsRoverParams(failure), discount=1.0)
    exact = mdp.initial @ solve(mdp, method=BackwardInduction(domain.simulator.time_limit)).value[0]
    assert float(domain.journeys.best(np.array(failure))) == pytest.approx(exact, abs=1e-6)


def test_settled_decisions_look_at_the_distance_alone():
    travels = settled(Journeys(), np.array([0.1, -0.3, 0.0, -0.2, -0.1]))
    assert travels(np.zeros((5, 2)), np.arange(5), np.zeros(5)).tolist() == [True, False, True, False, True]


SHORT = Journeys(distances=(1,), shares=(1.0,), step_reward=-0.1, time_limit=1)


def as_mdp(failure, discount):
    """Start, arrived, failed, waited: two steps an episode, the second of which pays."""
    back = [[1.0, 0.0, 0.0, 0.0]] * 2
    first = [[0.0, 1.0 - failure, failure, 0.0], [0.0, 0.0, 0.0, 1.0]]
    pays = [[0.0, 0.0], [1.0, 1.0], [-1.0, -1.0], [-0.1, -0.1]]
    return urbe.MDP.from_dense([first, back, back, back], pays, discount=discount)


def test_plans_lie_within_the_certified_bounds_of_the_belief_mdp():
    failures, boundary = (0.1, 0.8), 0.81
    found = plan(SHORT, failures, Switching(0.0, per="episode", prior=(0.3, 0.7)), boundary)
    exact = solve_belief(
        [as_mdp(p, 0.9) for p in failures], start=0, switching=Switching(prior=(0.3, 0.7)), tolerance=1e-3
    )
    assert exact.lower - 1e-3 < 0.9 * found.value < exact.upper + 1e-3
    beliefs = np.array([[0.3, 0.7], [0.02, 0.98], [0.9, 0.1]])
    goes = found.travels(beliefs, np.zeros(3, int), np.zeros(3))
    assert goes.tolist() == [exact.act(0, belief) == 0 for belief in beliefs]
    assert set(goes.tolist()) == {True, False}


def test_with_hazard_one_nothing_is_worth_finding_out():
    """Then a journey is worth what it earns under the prior, and no more."""
    journeys, switching = Journeys(), Switching(1.0, per="episode", prior=prior_of(0.6))
    found = plan(journeys, FAILURES, switching, 0.9)
    earns = journeys.travelling(np.array(FAILURES)) @ prior_of(0.6)
    each = np.maximum(earns, journeys.waiting) @ journeys.shares
    assert found.value == pytest.approx(each / 0.1, abs=STILL / 0.1)  # sweeps end when they change less


def test_an_unknown_hazard_is_a_belief_over_pairs():
    """Jumps are those of the filter; expectations of values are the other side of them; equal hazards are one."""
    draws, switching = np.random.default_rng(0), Switching((0.05, 0.4), per="episode", prior=(0.2, 0.5, 0.3))
    chain = _Chain.of((0.01, 0.1, 0.5), switching)
    belief, values = draws.dirichlet(np.ones(6), 4), draws.normal(size=(4, 6))
    moved = np.exp(switching.jump(np.log(belief.reshape(4, 2, 3)))).reshape(4, 6)
    np.testing.assert_allclose(chain.jumped(belief), moved, rtol=1e-12)
    np.testing.assert_allclose((belief * chain.expected(values)).sum(), (moved * values).sum(), rtol=1e-12)
    one, two = (plan(SHORT, (0.1, 0.8), Switching(h, per="episode"), 0.8) for h in (0.1, (0.1, 0.1)))
    assert one.value == pytest.approx(two.value, abs=STILL / 0.2)
    found = []
    live(Journeys(), (0.01, 0.1, 0.5), switching, always, np.full((5, 2), 0.3), 0, found)
    np.testing.assert_allclose(found[0], np.tile(np.array([0.2, 0.5, 0.3]) / 2, (5, 2)))
    np.testing.assert_allclose(found[1].sum(axis=1), 1.0)


def always(belief, start, u):  # noqa: ARG001
    return np.ones(len(start), bool)


def test_thompson_travels_as_often_as_it_believes_in_members_worth_it():
    belief = np.tile([0.2, 0.5, 0.3], (20_000, 1))
    u = (np.arange(20_000) + 0.5) / 20_000
    goes = thompson(Journeys(), (0.005, 0.3, 0.01))(belief, np.arange(20_000) % 5, u)
    assert goes.mean() == pytest.approx(0.5, abs=1e-3)
    near, far = (thompson(Journeys(), (0.054,))(np.ones((1, 1)), np.array([d]), np.zeros(1)) for d in (0, 4))
    assert (bool(near), bool(far)) == (True, False)  # worth travelling from 14 moves away, not from 18


def test_a_life_follows_the_belief_and_the_dynamics():
    switching, beliefs = Switching(0.1, per="episode", prior=(0.4, 0.6)), []
    held = np.full((2000, 3), 0.5)
    returns = live(Journeys(), (0.01, 0.5), switching, always, held, 3, beliefs)
    expected = Journeys().travelling(np.array(0.5)) @ Journeys().shares
    assert returns.mean() == pytest.approx(expected, abs=0.01)  # all but a few of 6000 journeys fail at once
    life = int(np.argmin(np.abs(returns[:, 0] + 1.0)))  # fails at its first move
    follows = Belief(2, switching)
    follows.observe_outcome(np.array([[0.99, 0.01], [0.5, 0.5]]), 1)
    follows.new_episode()
    np.testing.assert_allclose(beliefs[1][life], follows.filtered, rtol=1e-9)
    np.testing.assert_array_equal(live(Journeys(), (0.01, 0.5), switching, always, held, 3), returns)
    waits = JourneyPlan(np.zeros((1, 2)), (np.full((1, 2), -1.0),) * 5, 0.0)
    assert (live(Journeys(), (0.01, 0.5), switching, waits.travels, held, 3) == Journeys().waiting).all()


def test_settings_are_chosen_among_those_tried_on_schedules_of_their_own():
    assert isinstance(CHOSEN, Candidate)
    assert sum(prior_of(CHOSEN.benign)) == pytest.approx(1.0)
    held = schedules()
    assert held.keys() == SCHEDULES.keys()
    for name, each in held.items():
        assert each.shape[1] == EPISODES
        assert len(np.unique(each[0])) == 1 if name == "never" else len(np.unique(each)) > len(each)
        assert ((each > 0.0) & (each < 1.0)).all()
