"""Fitting logs, against counts in plain loops, and errors."""

import re
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import urbe
from urbe import MDP, NormalGamma, Posterior, Transitions
from urbe.posteriors import fit_per_step, weissman


def log_of(*rows, **columns):
    return Transitions(**Transitions.from_tuples(rows).columns(), **columns)


@st.composite
def logs(draw):
    """A log over a few states in which every state that is entered is left, rewards depending on (s, a, s')."""
    n = draw(st.integers(1, 4))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    size = draw(st.integers(1, 40))
    state = np.concatenate([np.arange(n), rng.integers(n, size=size)])
    action = rng.choice([0, 2, 7], size=n + size)
    following = rng.integers(n, size=n + size)
    reward = (state * 100 + action * 10 + following) / 8
    episode = np.sort(rng.integers(5, size=n + size)) * 3
    order = rng.permutation(n + size)
    return Transitions(
        state[order], action[order], reward[order], following[order],
        episode=episode[order], step=rng.integers(3, size=n + size),
    )  # fmt: skip


def counted(log, weights=None):
    """{(s, a, s'): count} by a loop."""
    out = Counter()
    weights = np.ones(len(log)) if weights is None else weights
    columns = (log.state.tolist(), log.action.tolist(), log.next_state.tolist(), weights)
    for s, a, t, weight in zip(*columns, strict=True):
        out[s, a, t] += weight
    return out


def entries(posterior, values):
    """{(s, a, s'): value} of the entries of a posterior."""
    model, rows = posterior.model, posterior.model.rows
    return {
        (int(model.row_state[row]), int(model.action[row]), int(rows.successor[at])): float(values[at])
        for row in range(model.n_rows)
        for at in range(rows.entry_start[row], rows.entry_start[row + 1])
    }


@given(log=logs(), prior=st.sampled_from([0.0, 0.5, 1.0]))
def test_counts_are_those_of_a_loop(log, prior):
    posterior = Posterior.fit(log, discount=0.9, prior=prior)
    wanted = {key: prior + count for key, count in counted(log).items()}
    assert entries(posterior, posterior.concentration) == wanted
    assert set(posterior.prior) == {prior}
    assert posterior.seen.sum() == len(log)
    model = posterior.model
    rewards = model.rows.reward if model.rows.rewards_successors else model.rows.reward[model.rows.entry_row]
    assert entries(posterior, rewards) == {(s, a, t): (100 * s + 10 * a + t) / 8 for s, a, t in wanted}
    assert model.discount == 0.9


@given(log=logs())
def test_every_state_feasible(log):
    log = Transitions(log.state, log.action, log.state * 1.0, log.next_state)
    n = int(max(log.state.max(), log.next_state.max())) + 1
    posterior = Posterior.fit(log, discount=0.9, feasible="all")
    counts = counted(log)
    pairs = {(s, a) for s, a, _ in counts}
    assert entries(posterior, posterior.concentration) == {
        (s, a, t): 1.0 + counts[s, a, t] for s, a in pairs for t in range(n)
    }
    assert np.array_equal(posterior.model.rows.reward, posterior.model.row_state)
    every = Posterior.fit(log, discount=0.9, feasible="all", n_states=n + 1, n_actions=8, rewards=NormalGamma())
    assert entries(every, every.concentration) == {
        (s, a, t): 1.0 + counts[s, a, t] for s in range(n + 1) for a in range(8) for t in range(n + 1)
    }


@given(log=logs())
def test_a_given_model_gives_pairs_successors_rewards_and_discount(log):
    n = int(log.state.max()) + 1
    model = MDP.from_dense(np.full((n, 8, n), 1.0 / n), np.arange(8.0 * n).reshape(n, 8), discount=0.7)
    posterior = Posterior.fit(log, model=model, prior=2.0)
    assert posterior.model is model
    counts = counted(log)
    assert entries(posterior, posterior.concentration - 2.0) == {
        (s, a, t): counts[s, a, t] for s in range(n) for a in range(8) for t in range(n)
    }
    assert Posterior.fit(log, model=model, discount=0.1).model.discount == 0.1


@given(log=logs(), cut=st.integers(1, 40))
def test_updating_is_fitting_more(log, cut):
    cut = min(cut, len(log) - 1)
    if not cut:
        return
    whole = Posterior.fit(log, discount=0.9, rewards=NormalGamma())
    start = Posterior.fit(log.select(slice(cut)), model=whole.model, rewards=NormalGamma())
    both = start.update(log.select(slice(cut, None)))
    assert both.concentration.tolist() == whole.concentration.tolist()
    assert both.seen.tolist() == whole.seen.tolist()
    for name in ("mean", "weight", "shape", "rate"):
        np.testing.assert_allclose(getattr(both.rewards, name), getattr(whole.rewards, name), rtol=1e-9)
    assert start.seen.sum() == cut
    known = Posterior.fit(log, discount=0.9)
    assert known.update(log).concentration.tolist() == (1.0 + 2.0 * (known.concentration - 1.0)).tolist()


@given(log=logs(), forget=st.sampled_from([1.0, 0.9, 0.5]), window=st.sampled_from([None, 1, 2, 10]))
def test_forgetting_weighs_by_the_episodes_since(log, forget, window):
    ids = sorted(set(log.episode.tolist()))
    age = np.array([len(ids) - 1 - ids.index(e) for e in log.episode.tolist()])
    weights = np.where(age < (window or 99), forget**age, 0.0)
    posterior = Posterior.fit(log, discount=0.9, forget=forget, window=window)
    np.testing.assert_allclose(posterior.seen.sum(), weights.sum(), rtol=1e-12)
    got, wanted = entries(posterior, posterior.concentration), counted(log, weights)
    assert got == {key: pytest.approx(1.0 + count, rel=1e-12) for key, count in wanted.items()}

    noisy = Transitions(log.state, log.action, log.reward + age, log.next_state, episode=log.episode)
    rewards = Posterior.fit(noisy, discount=0.9, forget=forget, window=window, rewards=NormalGamma()).rewards
    by_pair = defaultdict(list)
    for s, a, r, w in zip(log.state, log.action, noisy.reward, weights, strict=True):
        by_pair[int(s), int(a)].append((r, w))
    for row, pair in enumerate(zip(posterior.model.row_state, posterior.model.action, strict=True)):
        r, w = np.array(by_pair[tuple(map(int, pair))]).T
        # the sum of weighted observations, each of which is a normal-gamma update of weight w
        assert rewards.weight[row] == pytest.approx(1.0 + w.sum())
        assert rewards.mean[row] == pytest.approx((w * r).sum() / (1.0 + w.sum()))
        assert rewards.shape[row] == pytest.approx(2.0 + 0.5 * w.sum())
        rate = 1.0 + 0.5 * ((w * r**2).sum() - (w * r).sum() ** 2 / (1.0 + w.sum()))
        assert rewards.rate[row] == pytest.approx(rate, rel=1e-6)


@given(log=logs())
def test_steps_apart_add_up_to_the_pooled_counts(log):
    pooled = Posterior.fit(log, discount=0.9, rewards=NormalGamma())
    steps = fit_per_step(log, 4, discount=0.9, rewards=NormalGamma())
    assert len(steps) == 4
    counts = sum(posterior.concentration - 1.0 for posterior in steps)
    assert counts.tolist() == (pooled.concentration - 1.0).tolist()
    for h, posterior in enumerate(steps):
        of_step = counted(log.select(log.step == h)) if (log.step == h).any() else Counter()
        assert entries(posterior, posterior.concentration - 1.0) == {
            key: of_step[key] for key in entries(pooled, pooled.concentration)
        }
        assert posterior.rewards.weight.sum() - posterior.model.n_rows == (log.step == h).sum()
    known = fit_per_step(log, 3, discount=0.9)
    assert all(posterior.model is known[0].model and posterior.rewards is None for posterior in known)


def test_states_entered_with_terminated_are_terminal():
    rows = [(0, 0, 1.0, 1), (1, 0, 5.0, 2), (0, 0, 0.0, 0)]
    posterior = Posterior.fit(log_of(*rows, terminated=[0, 1, 0]), discount=1.0)
    assert posterior.model.terminal.tolist() == [False, False, True]
    declared = Posterior.fit(log_of(*rows), discount=1.0, terminal=[2])
    assert entries(declared, declared.concentration) == entries(posterior, posterior.concentration)
    masked = Posterior.fit(log_of(*rows), discount=1.0, terminal=[False, False, True])
    assert masked.model.terminal.tolist() == [False, False, True]


def test_terminal_states_have_no_actions_even_where_all_others_have_every_one():
    log = log_of((0, 0, 1.0, 2), (0, 1, 0.0, 1), terminated=[1, 0])
    model = Posterior.fit(log, discount=0.9, feasible="all", n_actions=2, rewards=NormalGamma()).model
    assert model.terminal.tolist() == [False, False, True]
    assert np.c_[model.row_state, model.action].tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert model.rows.successor.tolist() == [0, 1, 2] * 4


def test_states_never_mentioned_have_no_actions_and_nothing_leads_there():
    posterior = Posterior.fit(log_of((0, 0, 1.0, 3), (3, 0, 1.0, 0)), discount=0.9, n_states=6)
    assert posterior.model.terminal.tolist() == [False, True, True, False, True, True]
    assert set(posterior.model.rows.successor.tolist()) == {0, 3}


def test_loops_of_reward_zero_after_the_end_do_not_count():
    rows = [(0, 0, 1.0, 1), (1, 0, 0.0, 1), (1, 3, 0.0, 1)]
    posterior = Posterior.fit(log_of(*rows, terminated=[1, 1, 0]), discount=0.9)
    assert posterior.seen.tolist() == [1.0]
    assert Posterior.fit(log_of(*rows), model=posterior.model).seen.tolist() == [1.0]
    nothing = Posterior.fit(log_of(rows[1]), discount=0.9, terminal=[0, 1])
    assert nothing.model.n_rows == 0


def test_rewards_that_do_not_depend_on_the_successor_are_those_of_the_pair():
    posterior = Posterior.fit(log_of((0, 0, 3.0, 0), (0, 0, 3.0, 1), (1, 0, 1.0, 0)), discount=0.9)
    assert posterior.model.rows.reward.tolist() == [3.0, 1.0]
    mixed = Posterior.fit(log_of((0, 0, 3.0, 0), (0, 0, 3.0, 1), (1, 0, 1.0, 0), (1, 0, 2.0, 1)), discount=0.9)
    assert mixed.model.rows.reward.tolist() == [3.0, 3.0, 1.0, 2.0]
    spread = Posterior.fit(log_of((0, 0, 3.0, 0), (1, 0, 1.0, 0), (1, 0, 2.0, 1)), discount=0.9, feasible="all")
    assert spread.model.rows.reward.tolist() == [3.0, 3.0, 1.0, 2.0]


def test_a_fitted_posterior_can_be_solved():
    log = log_of((0, 0, 1.0, 1), (0, 1, 0.0, 0), (1, 0, 0.0, 0), (1, 0, 0.0, 1), (0, 0, 1.0, 0))
    solution = urbe.solve(Posterior.fit(log, discount=0.9).mean(), urbe.L1Ball(0.2))
    assert solution.policy.tolist() == [0, 0]


def test_the_mean_converges_to_the_model_that_made_the_log():
    """Each row's frequencies are within 1e-6-quantiles of Weissman's bound of the truth."""
    truth = urbe.library.riverswim(6)
    rng = np.random.default_rng(0)
    row = rng.integers(truth.n_rows, size=400_000)
    cumulative = np.cumsum(truth.rows.probability) - np.arange(truth.n_rows)[truth.rows.entry_row]
    entry = np.searchsorted(cumulative + truth.rows.entry_row, row + rng.random(len(row)))
    log = Transitions(truth.row_state[row], truth.action[row], truth.rows.reward[row], truth.rows.successor[entry])
    posterior = Posterior.fit(log, discount=0.95, prior=0.0)
    assert np.array_equal(posterior.model.rows.successor, truth.rows.successor)
    assert np.array_equal(posterior.model.rows.reward, truth.rows.reward)
    gap = truth.rows.row_sums(np.abs(posterior.probability - truth.rows.probability))
    assert (gap <= weissman(posterior, 1 - 1e-6)).all()
    assert gap.max() < 0.03


REFUSALS = [
    ([(0, 0, 1.0, 0), (0, 0, 1.0, 1)], {}, "Transition 1 enters state 1, which no transition leaves. If the process"),
    ([(0, 0, 1.0, 1), (0, 0, 1.0, 2)], {}, "Transition 0 enters state 1, which no transition leaves (2 states are"),
    ([(0, 0, 1.0, 1)], {"feasible": "all"}, "give model=, or n_actions= so that the state has actions about which"),
    ([(0, 0, 1.0, 0)], {"n_states": 3, "feasible": "all"},
     "2 states are never mentioned: 1, 2; with feasible='all' every pair may lead there. Give n_actions="),
    ([(0, 0, 1.0, 0), (0, 0, 2.0, 0)], {}, "Transition 0 from state 0 by action 0 to state 0 paid 1, transition 1 "
     "for the same 2; expected one reward to take as known. If rewards are random, give their prior"),
    ([(0, 0, 1.0, 0), (0, 0, 2.0, 1), (1, 0, 0.0, 0)], {"feasible": "all", "n_states": 3, "terminal": [2]},
     "What state 0, action 0 pays on reaching state 2 is not known: the pair paid from 1 to 2 elsewhere."),
    ([(0, 0, 1.0, 0)], {"feasible": "all", "n_actions": 2},
     "What state 0, action 1 pays on reaching state 0 is not known: the pair was never tried."),
    ([(0, 0, 1.0, 1), (1, 0, 1.0, 0)], {"terminal": [1]},
     "Transition 1 leaves state 1 by action 0, although it is declared terminal."),
    ([(0, 0, 1.0, 0)], {"terminal": [4]}, "terminal[0] is 4, expected a 0-based state below 1."),
    ([(0, 0, 1.0, 0), (5, 0, 0.0, 0)], {"n_states": 2}, "Transition 1 names state 5, expected ids below n_states = 2."),
    ([(0, 3, 1.0, 0)], {"n_actions": 2}, "Transition 0 names action 3, expected ids below n_actions = 2."),
    ([(0, 0, 1.0, 0)], {"n_states": 0}, "n_states is 0, expected a whole number of at least 1."),
    ([(0, 0, 1.0, 0)], {"prior": -1.0}, "concentration is -1, expected at least 0."),
    ([(0, 0, 1.0, 0)], {"prior": [1.0, 2.0]}, "concentration has shape (2,), expected a number or one per successor"),
    ([(0, 0, 1.0, 0)], {"feasible": "some"}, "feasible is 'some', expected one of 'observed', 'all'."),
    ([(0, 0, 1.0, 0)], {"discount": None}, "discount is missing: a log does not hold one."),
    ([(0, 0, 1.0, 0)], {"discount": 1.5}, "discount is 1.5, expected a number in [0, 1]."),
    ([(0, 0, 1.0, 0)], {"forget": 0.9}, "The log has no column episode, expected one: forget and window count"),
    ([(0, 0, 1.0, 0)], {"window": 3}, "The log has no column episode"),
    ([(0, 0, 1.0, 0)], {"window": 0}, "window is 0, expected a whole number of at least 1."),
    ([(0, 0, 1.0, 0)], {"forget": 0.0}, "forget is 0, expected a factor in (0, 1]"),
    ([(0, 0, 1.0, 0)], {"forget": 1.5}, "forget is 1.5, expected a number in [0, 1]."),
    ([(0, 0, 1.0, 0)], {"feasible": "all", "n_actions": 2, "prior": 0.0, "rewards": NormalGamma()},
     "concentration adds up to 0 over the successors of state 0, action 1"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "options", "message"), REFUSALS, ids=lambda x: None if isinstance(x, list) else str(x)
)
def test_refusals_say_where_and_what_to_do(rows, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Posterior.fit(log_of(*rows), **({"discount": 0.9} | options))


def test_refuses_a_log_that_goes_on_after_its_end():
    log = log_of((0, 0, 1.0, 1), (1, 0, 1.0, 0), (1, 0, 1.0, 0), terminated=[1, 0, 0])
    with pytest.raises(ValueError, match="Transition 1 leaves state 1 by action 0, although transition 0 ended there"):
        Posterior.fit(log, discount=0.9)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((0, 0, 1.0, 3), "Transition 1 leads from state 0 by action 0 to state 3, but only the successors 0, 2 "
         "are feasible there."),
        ((0, 0, 1.0, 1), "Transition 1 leads from state 0 by action 0 to state 1, but only the successors 0, 2 are "),
        ((0, 3, 1.0, 0), "Transition 1 leads from state 0 by action 3 to state 0, but state 0 has the actions 0, 2."),
        ((0, 1, 1.0, 2), "Transition 1 leads from state 0 by action 1 to state 2, but state 0 has the actions 0, 2."),
        ((0, 0, 1.0, 9), "Transition 1 leads from state 0 by action 0 to state 9, expected states below 4"),
        ((9, 0, 1.0, 0), "Transition 1 leads from state 9 by action 0 to state 0, expected states below 4"),
        ((3, 0, 1.0, 3), "to state 3 with reward 1, but state 3 is terminal; expected nothing but a self-loop"),
        ((3, 0, 0.0, 1), "to state 1 with reward 0, but state 3 is terminal"),
    ],
)  # fmt: skip
def test_refuses_what_the_model_does_not_list(row, message):
    model = MDP.from_transitions(
        [0, 0, 0, 1, 2], [0, 0, 2, 0, 0], [0, 2, 2, 3, 3], [0.0, 1.0, 1.0, 1.0, 1.0], 0.0, discount=0.9, terminal=[3]
    )
    good = (0, 0, 0.0, 0)  # listed with probability 0: feasible
    posterior = Posterior.fit(log_of(good, (3, 0, 0.0, 3)), model=model)
    assert posterior.seen.tolist() == [1.0, 0.0, 0.0, 0.0]
    for call in (lambda log: Posterior.fit(log, model=model), posterior.update):
        with pytest.raises(ValueError, match=re.escape(message)):
            call(log_of(good, row))


@pytest.mark.parametrize("options", [{"n_states": 1}, {"n_actions": 1}, {"feasible": "all"}, {"terminal": [0]}])
def test_refuses_a_second_observation(options):
    model = Posterior.fit(log_of((0, 0, 1.0, 0)), discount=0.9).model
    with pytest.raises(TypeError, match=re.escape("rewards is 'known', expected a prior such as NormalGamma.around(")):
        Posterior.fit(log_of((0, 0, 1.0, 0)), discount=0.9, rewards="known")
    with pytest.raises(ValueError, match="model= is given and determines all of them; leave them out"):
        Posterior.fit(log_of((0, 0, 1.0, 0)), model=model, **options)


def test_refuses_steps_beyond_the_horizon_and_logs_without_steps():
    with pytest.raises(ValueError, match=re.escape("step[1] is 2, expected steps below the horizon 2.")):
        fit_per_step(log_of((0, 0, 1.0, 0), (0, 0, 1.0, 0), step=[0, 2]), 2, discount=0.9)
    with pytest.raises(ValueError, match="The log has no column step"):
        fit_per_step(log_of((0, 0, 1.0, 0)), 2, discount=0.9)


def test_huge_ids_of_actions_are_no_trouble():
    log = log_of((0, 2**31 - 2, 1.0, 1), (1, 5, 0.0, 0), (0, 2**31 - 2, 1.0, 1))
    posterior = Posterior.fit(log, discount=0.9)
    assert posterior.model.action.tolist() == [2**31 - 2, 5]
    assert posterior.seen.tolist() == [2.0, 1.0]
    many = np.arange(100_000)
    wide = Posterior.fit(Transitions(many, many * 20_000, many * 0.0, many[::-1]), discount=0.9)
    assert np.array_equal(wide.model.rows.successor, many[::-1])
    assert np.array_equal(wide.model.action, many * 20_000)


@pytest.mark.slow
def test_ten_million_transitions_are_counted():
    rng, n = np.random.default_rng(0), 10_000_000
    state, action = rng.integers(1000, size=n), rng.integers(10, size=n)
    log = Transitions(state, action, state * 0.5, (state * 7 + action + rng.integers(20, size=n) ** 2) % 1000)
    posterior = Posterior.fit(log, discount=0.9)
    pairs = np.bincount(state * 10 + action, minlength=10_000)
    assert np.array_equal(posterior.seen, pairs[pairs > 0])
