"""From a posterior to a safe policy: laws between the methods, edge cases, errors, determinism."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta
from scipy.stats import t as student

import urbe
from fixtures.data_sets import after
from urbe.mdp.evaluate import policy_value
from urbe.planners import BCI, RSVF, HoeffdingSets, Hyperplane, Percentile, QuantileDraw, SafePlan, VaRBellman, plan
from urbe.planners.draws import number_of_draws, quantile_rank
from urbe.posteriors import NormalGamma, Posterior

METHODS = {
    "bci": BCI(),
    "bci_optimised": BCI(optimised=True),
    "rsvf": RSVF(),
    "rsvf_draw": RSVF(QuantileDraw()),
    "var": VaRBellman(),
    "var_alone": VaRBellman(union=False),
    "hoeffding": HoeffdingSets(),
}
BAYESIAN = [name for name in METHODS if name not in ("hoeffding", "var_alone")]
RIVER = urbe.library.riverswim(6, discount=0.95)
MACHINE = urbe.library.machine_replacement(10, discount=0.95)


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def plans():
    """Every method on the same data of two models."""
    return {
        (name, at): plan(after(mdp, 100, rng(at)), method=method, rng=rng(5))
        for at, mdp in enumerate((RIVER, MACHINE))
        for name, method in METHODS.items()
    }


def test_default_is_bci_at_95_percent():
    posterior = after(RIVER, 50, rng())
    one, other = plan(posterior, rng=rng(1)), plan(posterior, rng=rng(1), method=BCI(), confidence=0.95)
    assert np.array_equal(one.guaranteed, other.guaranteed)
    assert len(one.held_out.values) == 200


@pytest.mark.parametrize("at", [0, 1])
def test_radii_are_ordered(plans, at):
    radius = {name: plans[name, at].nature.radius for name in METHODS if not name.startswith("var")}
    for rule in ("rsvf", "rsvf_draw"):
        assert (radius[rule] <= radius["bci"] + 1e-6).all()
    assert (radius["bci"] <= radius["hoeffding"] + 1e-6).all()
    assert radius["bci"].max() < radius["hoeffding"].max()


@pytest.mark.parametrize("at", [0, 1])
def test_worst_cases_are_ordered(plans, at):
    values = {name: plans[name, at].worst_case for name in METHODS}
    # the value at risk is the largest safe fixed point: every other method's worst case is below its quantiles
    for name in ("rsvf", "rsvf_draw", "bci", "hoeffding"):
        assert (values["var"] >= values[name] - 1e-6).all(), name
    assert values["var"][0] > values["bci"][0]
    assert (values["bci"] >= values["hoeffding"] - 1e-6).all()
    assert (values["var_alone"] >= values["var"] - 1e-6).all()


def test_guarantees_hold_on_held_out_models(plans):
    for (name, _), found in plans.items():
        # 200 draws: above 10 % has probability 0.0012 where 5 % is exact
        assert found.held_out.below <= 0.1
        worst = found.start @ found.worst_case
        assert found.held_out.percentile(0.05) >= worst - 1e-9 or name == "var_alone"


def test_the_set_solved_again_gives_the_plan(plans):
    for found in plans.values():
        again = urbe.solve(found.model, found.nature)
        assert np.array_equal(again.policy, found.policy)
        assert again.lower == pytest.approx(found.worst_case, abs=1e-6)  # the tolerance of both solves


def test_the_guaranteed_value_is_at_most_the_value_of_the_mean_model(plans):
    for (name, _), found in plans.items():
        if not name.startswith("hoeffding"):
            mean = policy_value(found.posterior.mean(), found.policy)
            assert (found.guaranteed <= mean + 1e-6).all()


def test_nominal_figures_are_those_of_the_mean_model(plans):
    found = plans["bci", 0]
    best = urbe.solve(found.posterior.mean())
    assert np.array_equal(found.nominal_policy, best.policy)
    assert np.array_equal(found.nominal_value, best.value)
    # methods are judged on the same models, whatever they drew for themselves
    assert np.array_equal(found.nominal_held_out.values, plans["var", 0].nominal_held_out.values)


def test_held_out_models_are_not_those_planned_with():
    posterior = after(RIVER, 5, rng())
    planning, judging = rng(5).spawn(2)
    found = plan(posterior, method=VaRBellman(), rng=rng(5), draws=400, held_out=400)
    assert np.array_equal(found.nature.kernels, posterior.draws(planning, 400).T)
    fresh = posterior.draws(judging, 400)
    expected = [policy_value(posterior.model_with(p), found.policy)[0] for p in fresh]
    assert found.held_out.values == pytest.approx(expected, rel=1e-9)


def test_radius_of_two_successors_is_the_quantile_of_a_beta():
    # ||p - m||_1 = 2 |p_1 - m_1| with p_1 ~ Beta(4, 9); one uncertain row of level 0.9, 20000 draws
    mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=0.9)
    posterior = Posterior.before(mdp, [4.0, 9.0, 1.0])
    found = plan(posterior, confidence=0.9, rng=rng(2), draws=20_000).nature.radius
    low, high = 0.0, 2.0
    for _ in range(60):
        psi = 0.5 * (low + high)
        inside = beta.cdf(4 / 13 + psi / 2, 4, 9) - beta.cdf(4 / 13 - psi / 2, 4, 9)
        low, high = (psi, high) if inside < 0.9 else (low, psi)
    # standard error of the quantile: sqrt(0.9 0.1 / 20000) / density, about 0.003; 5 of them, false alarm 6e-7
    assert found[0] == pytest.approx(low, abs=0.015)
    assert found[1] == 0.0


def test_value_at_risk_of_two_successors_is_the_quantile_of_a_beta():
    mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=0.9, terminal=[1])
    posterior = Posterior.before(mdp, [9.0, 4.0])
    found = plan(posterior, confidence=0.9, method=VaRBellman(), rng=rng(2), draws=20_000)
    stay = beta.ppf(0.1, 9, 4)
    # v = 1 + 0.9 stay v; standard error of `stay` about 0.0015, of v about 5 times as much
    assert found.worst_case[0] == pytest.approx(1.0 / (1.0 - 0.9 * stay), abs=0.03)
    sure = plan(posterior, confidence=0.9, rng=rng(2), certify=40_000)
    assert sure.guaranteed[0] == pytest.approx(1.0 / (1.0 - 0.9 * stay), abs=0.03)


@pytest.mark.parametrize("name", METHODS)
def test_same_seed_same_plan_other_seed_another(name):
    posterior = after(RIVER, 20, rng())
    one, same, other = (plan(posterior, method=METHODS[name], rng=rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one.guaranteed, same.guaranteed)
    assert np.array_equal(one.held_out.values, same.held_out.values)
    assert not np.array_equal(one.nominal_held_out.values, other.nominal_held_out.values)
    if name != "hoeffding":  # it draws nothing
        assert not np.array_equal(one.solution.q, other.solution.q)


@pytest.mark.parametrize("name", METHODS)
def test_threads_change_nothing(name):
    posterior = after(MACHINE, 20, rng())
    one, two = (plan(posterior, method=METHODS[name], rng=rng(1), threads=n) for n in (1, 2))
    assert np.array_equal(one.guaranteed, two.guaranteed)


@pytest.mark.parametrize("name", METHODS)
def test_known_models_are_planned_as_they_are(name):
    # every row has one feasible successor: nothing is uncertain, no draw is needed
    transition = np.zeros((3, 2, 3))
    transition[[0, 1], [0, 0], [1, 2]] = transition[[0, 1], [1, 1], [0, 0]] = 1.0
    mdp = urbe.MDP.from_dense(transition, [[1.0, 0.5], [2.0, 0.0], [0.0, 0.0]], discount=0.9, terminal=[2])
    found = plan(Posterior.before(mdp), method=METHODS[name], rng=rng(), held_out=5)
    assert found.guaranteed == pytest.approx(urbe.solve(mdp).value, abs=1e-6)
    assert found.policy.tolist() == urbe.solve(mdp).policy.tolist()
    assert found.held_out.below == 0.0


@pytest.mark.parametrize("name", METHODS)
def test_one_state_and_no_state_that_goes_on(name):
    one = urbe.MDP.from_dense([[[1.0]]], [[-2.0]], discount=0.5)
    assert plan(Posterior.before(one), method=METHODS[name], rng=rng()).guaranteed == pytest.approx([-4.0], abs=1e-6)
    ended = urbe.MDP.from_dense(np.zeros((2, 1, 2)), 0.0, discount=0.5, terminal=[0, 1])
    found = plan(Posterior.before(ended), method=METHODS[name], rng=rng())
    assert found.guaranteed.tolist() == [0.0, 0.0]
    assert found.guaranteed_at_start == 0.0


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("discount", [0.0, 0.999])
def test_terminal_states_rewards_of_successors_and_discounts(name, discount):
    r = rng(9)
    transition = r.dirichlet(np.ones(4), (4, 2))
    mdp = urbe.MDP.from_dense(transition, -r.uniform(size=(4, 2, 4)), discount=discount, terminal=[3])
    found = plan(after(mdp, 60, r), method=METHODS[name], rng=rng(3))
    assert found.guaranteed[3] == 0.0
    assert found.policy[3] == -1
    assert found.held_out.below <= 0.1 or name == "var_alone"
    if name != "var_alone":
        assert (found.guaranteed <= policy_value(mdp, found.policy)).all()


@pytest.mark.parametrize("name", ["bci", "rsvf", "var"])
def test_total_reward_of_a_model_that_ends(name):
    # a ladder: up or down a rung with either action; ends at both sides
    transition = np.zeros((4, 2, 4))
    for s in (1, 2):
        transition[s, 0, [s - 1, s + 1]] = 0.6, 0.4
        transition[s, 1, [s - 1, s + 1]] = 0.4, 0.6
    reward = np.zeros((4, 2, 4))
    reward[2, :, 3] = 1.0
    mdp = urbe.MDP.from_dense(transition, reward, discount=1.0, terminal=[0, 3])
    found = plan(after(mdp, 300, rng()), method=METHODS[name], rng=rng(1))
    truth = policy_value(mdp, found.policy)
    assert found.policy.tolist() == [-1, 1, 1, -1]
    assert (found.guaranteed <= truth).all()
    assert (found.guaranteed[1:3] >= 0.6 * truth[1:3]).all()


def test_more_data_guarantee_more():
    values = [plan(after(RIVER, n, rng(4)), method=VaRBellman(), rng=rng(1)).guaranteed[0] for n in (10, 100, 10_000)]
    assert values[0] < values[1] < values[2]
    assert values[2] == pytest.approx(urbe.solve(RIVER).value[0], rel=0.1)


def test_more_confidence_guarantees_less():
    posterior = after(RIVER, 100, rng())
    for name in ("bci", "var", "rsvf", "hoeffding"):
        low, high = (
            plan(posterior, confidence=c, method=METHODS[name], rng=rng(1), draws=2000).guaranteed[0]
            for c in (0.5, 0.99)
        )
        assert low > high, name


def test_zero_concentrations_are_impossible():
    alpha = np.ones(RIVER.rows.n_entries)
    alpha[2] = 0.0  # swimming right from the first state always succeeds
    posterior = Posterior.before(RIVER, alpha)
    for name in METHODS:
        found = plan(posterior, method=METHODS[name], rng=rng(1), held_out=3)
        kernel = found.solution.kernel
        assert not any(
            s == 0 and a == 1 and nxt == RIVER.rows.successor[2] and p > 0
            for s, a, nxt, p in zip(
                kernel.row_state[kernel.rows.entry_row], kernel.action[kernel.rows.entry_row],
                kernel.rows.successor, kernel.rows.probability, strict=True,
            )
        ), name  # fmt: skip


# uncertain rewards


def test_uncertain_rewards_are_replaced_by_low_quantiles():
    mdp = urbe.MDP.from_dense([[[1.0]]], [[0.0]], discount=0.5)
    rewards = NormalGamma(mean=1.0, weight=4.0, shape=3.0, rate=2.0)
    found = plan(Posterior.before(mdp, rewards=rewards), confidence=0.9, rng=rng(), held_out=4000)
    low = 1.0 + np.sqrt(2.0 / (3.0 * 4.0)) * student.ppf(0.05, 6.0)
    assert found.worst_case[0] == pytest.approx(2.0 * low, abs=1e-6)
    # the promise of half of delta, checked on draws: standard error 0.0034, 5 of them
    assert found.held_out.below == pytest.approx(0.05, abs=0.017)
    assert found.nominal_value[0] == pytest.approx(2.0)


@pytest.mark.parametrize("name", BAYESIAN)
def test_rewards_and_transitions_uncertain_together(name):
    posterior = replace(after(RIVER, 60, rng()), rewards=NormalGamma(0.5, 50.0, 30.0, 1.0).before(RIVER.n_rows))
    found = plan(posterior, method=METHODS[name], rng=rng(1))
    assert found.held_out.below <= 0.1
    assert found.guaranteed_at_start < found.held_out.percentile(0.05)


# refusals


@pytest.mark.parametrize("name", ["bci", "bci_optimised", "rsvf", "rsvf_draw", "var", "var_alone"])
def test_too_few_draws_are_refused_with_the_number_needed(name):
    posterior = after(RIVER, 10, rng())  # 6 uncertain rows
    needed = {"var_alone": 20, "bci": 240, "bci_optimised": 240}.get(name, 120)
    with pytest.raises(ValueError, match=f"draws is {needed - 1}, expected at least {needed}"):
        plan(posterior, method=METHODS[name], rng=rng(), draws=needed - 1)
    assert isinstance(plan(posterior, method=METHODS[name], rng=rng(), draws=needed), SafePlan)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, 1.5, "high", np.nan])
def test_confidence_outside_zero_and_one_is_refused(confidence):
    with pytest.raises(ValueError, match="confidence"):
        plan(after(RIVER, 10, rng()), confidence=confidence, rng=rng())


@pytest.mark.parametrize("options", [{"held_out": -1}, {"held_out": 1.5}, {"draws": 0}, {"draws": True}])
def test_counts_must_be_whole(options):
    with pytest.raises(ValueError, match="whole number"):
        plan(after(RIVER, 10, rng()), rng=rng(), **options)


def test_no_held_out_draws():
    found = plan(after(RIVER, 10, rng()), rng=rng(), held_out=0)
    assert np.isnan(found.held_out.below)
    assert np.isnan(found.held_out.percentile(0.05))
    assert np.isnan(found.held_out.mean)
    assert "No held-out draws" in str(found)


# words


def test_the_table_names_what_matters(plans):
    text = str(plans["var", 0])
    assert "VaRBellman(union=True) at confidence 0.95, from 1200 transitions" in text
    assert "With posterior probability 0.95 or more" in text
    assert "value on 200 held-out models" in text
    assert f"{plans['var', 0].guaranteed_at_start:.5g}" in text
    assert len(text.splitlines()) < 30
    assert "No guarantee" in str(plans["var_alone", 0])
    assert "For any true model" in str(plans["hoeffding", 0])
    assert repr(plans["bci", 0]).startswith("SafePlan(BCI(optimised=False), confidence 0.95, guaranteed ")


def test_long_tables_are_cut():
    mdp = urbe.library.garnet(30, 2, 3, seed=0, discount=0.5)
    assert "... 18 more states" in str(plan(after(mdp, 5, rng()), rng=rng()))


def test_without_an_initial_distribution_all_states_count_alike():
    mdp = urbe.library.garnet(5, 2, 3, seed=0, discount=0.5)
    found = plan(after(mdp, 50, rng()), rng=rng())
    assert mdp.initial is None
    assert found.start.tolist() == [0.2] * 5


# order statistics


@pytest.mark.parametrize(("n_rows", "delta", "draws"), [(6, 0.05, 120), (6, 0.05, 1000), (1, 0.1, 10), (12, 0.05, 239)])
def test_rank_is_the_largest_that_is_safe(n_rows, delta, draws):
    k = quantile_rank(n_rows, delta, draws)
    assert k / (draws + 1) <= delta / n_rows + 1e-12
    assert (k + 1) / (draws + 1) > delta / n_rows


def test_enough_draws_have_a_rank():
    for n_rows in (1, 7, 40):
        for delta in (0.01, 0.05, 0.3):
            needed = number_of_draws(None, n_rows, delta)
            assert needed >= max(1000, n_rows / delta - 1e-6)
            assert quantile_rank(n_rows, delta, needed) >= 1


def test_rules_are_values():
    assert RSVF() == RSVF(Hyperplane())
    assert RSVF(QuantileDraw()) != RSVF()
    with pytest.raises(ValueError, match="tolerance is 0"):
        RSVF(tolerance=0.0)
    with pytest.raises(ValueError, match="rounds"):
        RSVF(rounds=0)


@pytest.mark.parametrize(
    ("name", "stages"),
    [
        ("bci", {"radii of rows"}),
        ("bci_optimised", {"radii of rows"}),
        ("rsvf", {"posterior draws", "rounds"}),
        ("rsvf_streamed", {"posterior draws", "rounds"}),
        ("var", {"posterior draws"}),
        ("percentile", {"posterior draws", "radii of rows", "rounds", "models to choose with", "candidate policies"}),
        ("hoeffding", set()),
    ],
)
def test_every_stage_reports_its_progress(monkeypatch, capsys, name, stages):
    monkeypatch.setattr("urbe.progress.EVERY", 0.0)
    if name == "rsvf_streamed":
        monkeypatch.setattr("urbe.planners.draws.KEPT", 0)
    method = {**METHODS, "rsvf_streamed": RSVF(), "percentile": Percentile()}[name]
    posterior = after(RIVER, 100, rng())
    shown = plan(posterior, method=method, held_out=7, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert {line.removeprefix("planning: ").split(",")[0] for line in lines} == stages | {
        "solving",
        "models for the guarantee",
        "held-out models",
    }
    assert "planning: held-out models, 0 of 7." in lines
    unseen = plan(posterior, method=method, held_out=7)
    assert capsys.readouterr().err == ""
    assert np.array_equal(unseen.guaranteed, shown.guaranteed)
