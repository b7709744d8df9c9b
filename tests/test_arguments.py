"""Wrong arguments of public functions: messages name the argument, what was found, expected, and what to do."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import urbe
from urbe import checks
from urbe.agents import OLRM, UBE, URBE, Minimax, Oracle, Single, Task, run
from urbe.envs.finite import FiniteEnv

M = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=0.5, initial=[1.0, 0.0])
U = urbe.L1Ball(0.5)
P = urbe.Posterior.before(M)
RNG = np.random.default_rng(0)
TASK = Task(P, horizon=3)
ENV = FiniteEnv.of(M)


def start(kind):
    return run(kind, ENV, TASK, episodes=1, seed=0)


KINDS = {
    "a number as set": (lambda: urbe.solve(M, 0.5), "nature is 0.5, expected an ambiguity set such as L1Ball(0.5)."),
    "another number": (lambda: urbe.solve(M, 0.1), "nature is 0.1, expected an ambiguity set such as L1Ball(0.1)."),
    "a class as set": (
        lambda: urbe.solve(M, urbe.L1Ball),
        "nature is the class L1Ball, expected an ambiguity set such ",
    ),
    "its remedy": (lambda: urbe.solve(M, urbe.KLBall), "; write KLBall(...)."),
    "a word as method": (lambda: urbe.solve(M, U, "vi"), "method is 'vi', expected a method such as ValueIteration()"),
    "a class as method": (
        lambda: urbe.solve(M, U, urbe.ValueIteration),
        "method is the class ValueIteration, expected",
    ),
    "a method as set": (lambda: urbe.solve(M, urbe.ValueIteration()), "a method; give it as method="),
    "swapped": (lambda: urbe.solve(U, M), "and nature is a model: they are swapped; the model comes first."),
    "no model": (lambda: urbe.solve(None), "mdp is None, expected a model, such as MDP.from_dense(...)"),
    "a posterior": (lambda: urbe.solve(P), "mdp is Posterior("),
    "progress": (lambda: urbe.solve(M, U, progress=True), "progress is True, expected a function"),
    "policy, swapped": (lambda: urbe.evaluate_policy(M, U, [0, 0]), "nature is [0, 0], expected an ambiguity set"),
    "policy, a class": (lambda: urbe.evaluate_policy(M, [0, 0], urbe.L1Ball), "nature is the class L1Ball"),
    "certify": (lambda: urbe.certify(M), "solution is MDP("),
    "certify, set": (lambda: urbe.certify(urbe.solve(M, U), M, 0.5), "nature is 0.5, expected an ambiguity set"),
    "variance": (lambda: urbe.value_variance(M, U), "posterior is MDP("),
    "variance, set": (lambda: urbe.value_variance(P, 0.5), "nature is 0.5, expected an ambiguity set"),
    "variance, local": (lambda: urbe.value_variance(P, U, local=urbe.Calibrated), "local is the class Calibrated"),
    "plan": (lambda: urbe.plan(M, rng=RNG), "posterior is MDP("),
    "plan, method": (
        lambda: urbe.plan(P, method="var", rng=RNG),
        "method is 'var', expected a planning method such as",
    ),
    "plan, class": (
        lambda: urbe.plan(P, method=urbe.BCI, rng=RNG),
        "method is the class BCI, expected a planning method",
    ),
    "plan, rng": (lambda: urbe.plan(P, rng=7), "rng is 7, expected a generator such as np.random.default_rng(7)."),
    "draws": (lambda: P.draws(0, 5), "rng is 0, expected a generator such as np.random.default_rng(0)."),
    "sample": (lambda: P.sample(np.random), "rng is a module, expected a generator"),
    "prior": (lambda: urbe.Posterior.before(ENV), "model is "),
    "rewards": (lambda: urbe.Posterior.before(M, rewards=urbe.NormalGamma), "rewards is the class NormalGamma"),
    "fit": (lambda: urbe.Posterior.fit({"state": [0]}, discount=0.9), "transitions is {'state': [0]}, expected a log,"),
    "fit, model": (
        lambda: urbe.Posterior.fit(urbe.Transitions([0], [0], [1.0], [0]), model=P),
        "model is Posterior(",
    ),
    "update": (lambda: P.update(5), "transitions is 5, expected a log, such as read_log(path)"),
    "optimistic": (lambda: urbe.Optimistic(0.5), "set is 0.5, expected a set that chooses each row"),
    "optimistic class": (lambda: urbe.Optimistic(urbe.L1Ball), "set is the class L1Ball"),
    "shared budget": (lambda: urbe.SRectangular(urbe.L1Ball), "ball is the class L1Ball, expected one of L1Ball"),
    "agent class": (lambda: run(URBE, ENV, TASK, episodes=1, seed=0), "agent is the class URBE, expected an agent's"),
    "agent task": (lambda: run(URBE(), ENV, P, episodes=1, seed=0), "task is Posterior("),
    "agent prior": (lambda: run(URBE(), ENV, Task(M, 3), episodes=1, seed=0), "task.prior is MDP("),
    "agent env": (lambda: run(URBE(), M, TASK, episodes=1, seed=0), "env is MDP("),
    "single": (lambda: Single(URBE, TASK, seed=0), "agent is the class URBE"),
    "a set for sets": (lambda: urbe.PerRow(U, 0), "sets is L1Ball(radius=0.5, support='nominal'), expected a list of"),
    "a number for sets": (lambda: urbe.NestedSets(5, [1.0]), "sets is 5, expected a list of at least one set"),
    "matrices": (lambda: urbe.MDP.from_sparse(None, 0.0, discount=0.9), "transition is None, expected a list or {acti"),
    "rows": (lambda: M.with_rows(M), "rows is MDP(2 states"),
    "path": (lambda: urbe.read_mdp(5), "path is 5, expected the path of a file"),
    "paths, swapped": (lambda: urbe.write_mdp("model.csv", M), "mdp is 'model.csv', expected a model"),
    "path of a log": (lambda: urbe.read_log(None), "path is None, expected the path of a file"),
    "saved": (lambda: urbe.save_agent("agent", M), "agent is MDP(2 states"),
    "loaded, swapped": (lambda: urbe.load_agent(Single(URBE(), TASK, seed=0), "agent"), "agent is 'agent', expected"),
    "levels": (lambda: urbe.Percentile(2), "levels is 2, expected a tuple of levels"),
    "a word as replan": (
        lambda: start(URBE(replan="episode")),
        "replan is 'episode', expected one of Replan.EPISODE, ",
    ),
    "a word as form": (lambda: start(UBE(form="count")), "form is 'count', expected one of Form.COUNT, "),
    "a word as noise": (lambda: start(URBE(noise="step")), "noise is 'step', expected one of Noise.NONE, Noise.STEP"),
    "a word as criterion": (lambda: start(OLRM(criterion="episode")), "criterion is 'episode', expected one of Crit"),
    "belief": (lambda: start(URBE(belief=5)), "belief is 5, expected a belief's configuration"),
    "one radius": (lambda: start(OLRM(radii=2.0)), "radii is 2.0, expected a tuple of radii"),
    "a model as world": (lambda: start(Oracle(M)), "env is MDP(2 states"),
    "a world as model": (lambda: start(Minimax(ENV, U)), "model is a FiniteEnv, expected a model"),
    "no model of a phase": (lambda: FiniteEnv.of(0.5), "phases[0].model is 0.5, expected a model"),
    "rule": (lambda: urbe.RSVF(0), "rule is 0, expected a rule for safe balls"),
}


@pytest.mark.parametrize("case", KINDS)
def test_objects_of_another_kind_are_named(case):
    call, message = KINDS[case]
    with pytest.raises(TypeError) as caught:
        call()
    assert message in str(caught.value)


NUMBERS = {
    "discount": (lambda: M.with_discount("0.9"), "discount is '0.9', expected a number, without quotes."),
    "discount of arrays": (lambda: urbe.MDP.from_dense([[[1.0]]], 0.0, discount="0.9"), "discount is '0.9', expected"),
    "a true discount": (lambda: urbe.library.riverswim(6, discount=True), "discount is True, expected a number."),
    "radius": (lambda: urbe.L1Ball("0.1"), "radius cannot be read as an array of numbers: it is '0.1'. Convert it"),
    "a true radius": (lambda: urbe.KLBall(True), "radius cannot be read as an array of numbers: it is True."),
    "no radius": (lambda: urbe.L2Ball(None), "radius is None, expected a number or an array of numbers."),
    "complex": (
        lambda: urbe.Chi2Ball(1j),
        "radius cannot be read as an array of numbers: it is 1j. Take its real part.",
    ),
    "fraction": (lambda: urbe.Contamination("a"), "fraction cannot be read as an array of numbers: it is 'a'."),
    "radii": (
        lambda: urbe.LInfBall(["0.1", "0.2"]),
        "radius cannot be read as an array of numbers: it is an array of t",
    ),
    "pairs": (lambda: urbe.L1Ball({(0, 0): "0.1"}), "radius[(0, 0)] is '0.1', expected a number, without quotes."),
    "likelihood": (lambda: urbe.LikelihoodRegion(b"1"), "radius cannot be read as an array of numbers: it is b'1'."),
    "weights": (lambda: urbe.WeightedL1Ball(0.1, "w"), "weights cannot be read as an array of numbers: it is 'w'."),
    "metric": (lambda: urbe.WassersteinBall(0.1, "m"), "metric cannot be read as an array of numbers: it is 'm'."),
    "bounds": (lambda: urbe.Interval("0", 1.0), "lower cannot be read as an array of numbers: it is '0'."),
    "level": (lambda: urbe.ValueAtRisk([M], "0.1"), "level cannot be read as an array of numbers: it is '0.1'."),
    "tail": (
        lambda: urbe.ConditionalValueAtRisk([M], True),
        "level cannot be read as an array of numbers: it is True.",
    ),
    "rewards": (
        lambda: urbe.MDP.from_dense([[[1.0]]], [["1"]], discount=0.5),
        "reward cannot be read as an array of num",
    ),
    "objects": (
        lambda: urbe.MDP.from_dense([[[1.0]]], np.array([[None]]), discount=0.5),
        "reward[0, 0] is None, expected a number.",
    ),
    "NaN": (lambda: urbe.solve(M, urbe.L1Ball(np.nan)), "radius is nan, expected a finite number."),
    "NaN of a pair": (lambda: urbe.solve(M, urbe.L1Ball({(0, 0): np.nan, (1, 0): 0.0})), "radius[0, 0] is nan, expec"),
    "concentration": (
        lambda: urbe.Posterior.before(M, True),
        "concentration cannot be read as an array of numbers: it i",
    ),
    "confidence": (
        lambda: urbe.plan(P, confidence="0.9", rng=RNG),
        "confidence is '0.9', expected a number, without q",
    ),
    "tolerance": (lambda: urbe.ValueIteration("1e-6"), "tolerance is '1e-6', expected a number, without quotes."),
    "seed": (
        lambda: run(URBE(), ENV, TASK, episodes=1, seed="0"),
        "seed is '0', expected a whole number of at least 0.",
    ),
    "replicates": (lambda: run(URBE(), ENV, TASK, episodes=1, seed=0, replicates="2"), "replicates is '2', expected a"),
    "a model as numbers": (
        lambda: urbe.MDP.from_dense(M, 0.0, discount=0.9),
        "transition is MDP(2 states, 2 rows, 3 entries, discount 0.5), expected a number or an array of numbers.",
    ),
    "no states": (
        lambda: urbe.MDP.from_dense(np.zeros((0, 0, 0)), 0.0, discount=0.9),
        "transition has shape (0, 0, 0), expected (states, actions, states), with at least one state and one action.",
    ),
    "radii of states": (lambda: urbe.solve(M, urbe.L1Ball({0: 0.1})), "radius names 0, expected pairs (state, action)"),
    "a policy": (lambda: urbe.evaluate_policy(M, "best"), "policy is 'best', expected (2,) action ids or (2, 1) prob"),
    "a solution as policy": (lambda: urbe.evaluate_policy(M, urbe.solve(M)), "Of a solution, give its `policy`."),
    "a ragged policy": (
        lambda: urbe.evaluate_policy(M, [[1.0], [0.5, 0.5]]),
        "policy is [[1.0], [0.5, 0.5]], expected",
    ),
    "throw": (lambda: urbe.solve(M, throw="no"), "throw is 'no', expected True or False."),
    "start and horizon": (
        lambda: urbe.solve(M, U, urbe.BackwardInduction(2), start=[0.0, 0.0]),
        "start is given, but over a finite horizon the values after the last step are 0: leave it out.",
    ),
    "a step": (lambda: urbe.solve(M, U, urbe.BackwardInduction(2)).kernel_at(2), "step is 2, expected a step before"),
    "a negative step": (
        lambda: urbe.solve(M, U, urbe.BackwardInduction(2)).kernel_at(-1),
        "step is -1, expected a who",
    ),
    "union": (lambda: urbe.VaRBellman(-1), "union is -1, expected True or False."),
    "optimised": (lambda: urbe.BCI("a"), "optimised is 'a', expected True or False."),
    "shared budget": (
        lambda: urbe.Optimistic(urbe.SRectangular(U)),
        "use the ball itself with the budget as its radius",
    ),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_what_is_no_number_is_named(case):
    call, message = NUMBERS[case]
    with pytest.raises(ValueError) as caught:
        call()
    assert message in str(caught.value)


SAME = (0.5, np.float32(0.5), np.float64(0.5), np.array(0.5), Fraction(1, 2), Decimal("0.5"))


@pytest.mark.parametrize("half", SAME, ids=lambda x: type(x).__name__)
def test_numbers_of_every_kind_are_the_same_number(half):
    assert checks.number("x", half, 0.0, 1.0) == 0.5
    assert checks.float_array("x", [half, half], ndim=1).tolist() == [0.5, 0.5]
    assert urbe.solve(M, urbe.L1Ball(half)).value.tolist() == urbe.solve(M, U).value.tolist()
    assert M.with_discount(half).discount == 0.5


@pytest.mark.parametrize("three", [3, np.int8(3), np.uint64(3), np.array(3)], ids=lambda x: type(x).__name__)
def test_whole_numbers_of_every_kind_are_the_same_number(three):
    found = checks.whole_number("x", three, 0)
    assert (found, type(found)) == (3, int)


@pytest.mark.parametrize("wrong", [3.0, "3", True, np.bool_(True), np.array([3]), Fraction(3), None, 3j])
def test_whole_numbers_are_not_converted(wrong):
    with pytest.raises(ValueError, match="expected a whole number"):
        checks.whole_number("x", wrong, 0)


def test_the_optimistic_value_of_a_shared_budget_is_that_of_the_ball():
    """What the refusal of Optimistic(SRectangular(ball)) advises: the best choice spends all on the action taken."""
    rng = np.random.default_rng(3)
    p, r = rng.dirichlet(np.ones(3), (3, 2)), rng.random((3, 2))
    mdp = urbe.MDP.from_dense(p, r, discount=0.5)
    value, budget = np.zeros(3), 0.4
    for _ in range(60):
        z = r[:, :, None] + 0.5 * value
        shared = []
        for share in np.linspace(0.0, 1.0, 11):  # of the budget, on the first action
            spent = np.array([share, 1.0 - share]) * budget
            moved = [[_best(p[s, a], z[s, a], spent[a]) for a in range(2)] for s in range(3)]
            shared.append(np.max(moved, axis=1))
        value = np.max(shared, axis=0)
    assert urbe.solve(mdp, urbe.Optimistic(urbe.L1Ball(budget))).value == pytest.approx(value, abs=1e-6)


def _best(p, z, radius):
    """max q . z over the L1 ball, greedily."""
    q, left = p.copy(), radius / 2
    top = int(np.argmax(z))
    for j in np.argsort(z):
        if j != top:
            step = min(q[j], left)
            q[j], q[top], left = q[j] - step, q[top] + step, left - step
    return q @ z
