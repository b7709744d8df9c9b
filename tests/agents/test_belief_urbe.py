"""URBE over finitely many models: brute-force Bayes, dynamic programming, contract, changing environments."""

from itertools import product

import numpy as np
import pytest

import urbe
from urbe.agents import BeliefURBE, Centre, Minimax, Noise, Steps, Streams, Task, run
from urbe.belief import Switching
from urbe.envs.finite import FiniteEnv, Phase
from urbe.testing import check_agent, probes

MODELS = [urbe.library.seven_states(win) for win in (0.1, 0.4, 0.8)]
TASK = Task(urbe.Posterior.before(MODELS[0]), horizon=3)


def random_models(seed, n_models=3, n_states=4, n_actions=2):
    rng = np.random.default_rng(seed)
    reward = rng.normal(size=(n_states, n_actions))
    return [
        urbe.MDP.from_dense(rng.dirichlet(np.ones(n_states), size=(n_states, n_actions)), reward, discount=0.9)
        for _ in range(n_models)
    ]


def started(config, models, horizon=4, replicates=1):
    task = Task(urbe.Posterior.before(models[0]), horizon)
    return config.start(task, Streams(0, np.arange(replicates)))


def planned(config, models, belief, horizon=4):
    """Q and u of an agent that holds a given belief."""
    agent = started(config, models, horizon)
    agent.belief = agent.belief._replace(log_b=np.log(np.asarray(belief, float))[None, None])
    agent.act(np.array([0]), np.array([0]), 0)
    return agent.q[0], agent.u[0]


def one_step(state, action, successor):
    number, no = (lambda x: np.array([x])), np.array([False])
    return Steps(number(0), number(state), number(action), np.zeros(1), number(successor), no, no)


@pytest.mark.parametrize("per", ["step", "episode"])
@pytest.mark.parametrize("seed", range(5))
def test_the_belief_is_that_of_enumerating_every_hidden_path(per, seed):
    rng, models = np.random.default_rng(seed), random_models(seed)
    prior, hazard = np.array([0.5, 0.3, 0.2]), 0.3
    agent = started(BeliefURBE(models, Switching(hazard, per=per, prior=tuple(prior))), models)
    kernels = np.array([model.to_dense()[0] for model in models])
    jump = (1 - hazard) * np.eye(3) + hazard * prior
    path, moves = [], []  # transitions, and whether the model may have jumped before each
    for _ in range(2):
        for step in range(3):
            path.append(tuple(int(rng.integers(n)) for n in (4, 2, 4)))
            moves.append(per == "step" or (step == 0 and len(path) > 1))
            agent.observe(one_step(*path[-1]), step)
        agent.end_episode()
    weight = np.zeros(3)
    for hidden in product(range(3), repeat=7):  # the model before the first step, and at each of six
        chance = prior[hidden[0]]
        for t, (s, a, successor) in enumerate(path):
            chance *= jump[hidden[t], hidden[t + 1]] if moves[t] else float(hidden[t] == hidden[t + 1])
            chance *= kernels[hidden[t + 1], s, a, successor]
        weight[hidden[-1]] += chance
    expected = weight / weight.sum()
    if per == "episode":
        expected = expected @ jump  # the jump before the next episode
    assert np.allclose(agent.probability[0], expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_plans_are_those_of_dynamic_programming(seed):
    models = random_models(seed)
    method = urbe.BackwardInduction(4)
    worst, _ = planned(BeliefURBE(models, alpha=0.0, level=0.0), models, [0.2, 0.3, 0.5])
    robust = urbe.solve(models[0], urbe.Scenarios(models), method)
    assert np.allclose(worst, robust.q.reshape(4, -1), rtol=1e-12)
    for k in range(3):
        known, noise = planned(BeliefURBE(models, alpha=0.1), models, np.eye(3)[k] * (1 - 1e-13) + 1e-14)
        assert np.allclose(known, urbe.solve(models[k], None, method).q.reshape(4, -1), rtol=1e-10)
        assert np.allclose(noise, 0.0, atol=1e-10)
    mean = urbe.MDP.from_dense(
        np.tensordot([0.2, 0.3, 0.5], [model.to_dense()[0] for model in models], 1),
        models[0].to_dense()[1], discount=0.9,
    )  # fmt: skip
    soft, _ = planned(BeliefURBE(models, alpha=0.0, level=1.0), models, [0.2, 0.3, 0.5])
    assert np.allclose(soft, urbe.solve(mean, None, method).q.reshape(4, -1), rtol=1e-12)


def test_variances_follow_their_equation():
    """Pair by pair in plain Python, at a caution level in between."""
    models, belief, level, scale = random_models(7), np.array([0.2, 0.3, 0.5]), 0.4, 1.5
    q, u = planned(BeliefURBE(models, alpha=0.0, level=level, scale=scale), models, belief)
    kernels, reward = np.array([model.to_dense()[0] for model in models]), models[0].to_dense()[1]
    v, w = np.zeros(4), np.zeros(4)
    for h in reversed(range(4)):
        next_v, next_w = np.zeros(4), np.zeros(4)
        for s in range(4):
            found = []
            for a in range(2):
                y = 0.9 * kernels[:, s, a] @ v
                left, omega = level, np.zeros(3)
                for k in np.argsort(y):  # the lowest values first, until the level is used up
                    omega[k] = min(belief[k], left) / level
                    left -= min(belief[k], left)
                value = reward[s, a] + omega @ y
                variance = scale**2 * (belief @ y**2 - (belief @ y) ** 2) + 0.81 * omega @ (kernels[:, s, a] @ w)
                found.append((value, variance))
                assert q[h, 2 * s + a] == pytest.approx(value, rel=1e-12)
                assert u[h, 2 * s + a] == pytest.approx(variance, rel=1e-9, abs=1e-14)
            next_v[s], next_w[s] = max(found)
        v, w = next_v, next_w


@pytest.mark.parametrize("centre", list(Centre))
def test_it_keeps_the_contract(centre):
    for name, probe in probes().items():
        models = [probe.model, _blurred(probe.model)]
        check_agent(BeliefURBE(models, centre=centre), tasks={name: probe}, random=False)


def _blurred(model):
    """The same pairs, leading anywhere they may with equal probability."""
    rows = model.rows
    even = np.repeat(1.0 / rows.length, rows.length)
    return urbe.MDP.from_transitions(
        model.row_state[rows.entry_row], model.action[rows.entry_row], rows.successor, even,
        model.rows.expected_reward()[rows.entry_row], discount=model.discount, n_states=model.n_states,
        terminal=np.flatnonzero(model.terminal),
    )  # fmt: skip


def test_it_recovers_after_a_change_where_a_robust_plan_never_gambles():
    phases = (Phase(MODELS[2], 200), Phase(MODELS[0], 200), Phase(MODELS[2], 200))
    env = FiniteEnv(phases)
    earned = {
        name: run(config, env, TASK, episodes=600, replicates=20, seed=1).reward.mean(axis=0).reshape(3, 200)
        for name, config in {
            "belief": BeliefURBE(MODELS),
            "thompson": BeliefURBE(MODELS, centre=Centre.SAMPLE),
            "robust": Minimax(MODELS[0], urbe.Scenarios(MODELS)),
        }.items()
    }
    best = [urbe.solve(phase.model, None, urbe.BackwardInduction(3)).value[0][0] for phase in phases]
    for name in ("belief", "thompson"):
        for phase in range(3):
            late = earned[name][phase, 50:].mean()
            assert late > best[phase] - 0.15, (name, phase, late, best)
    assert earned["robust"][0].mean() < best[0] - 0.3


def test_what_no_model_explains_widens_the_belief():
    models = [MODELS[0]]
    agent = started(BeliefURBE(models), models)
    dense = models[0].to_dense()[0]
    state, action = 0, 0
    impossible = int(np.flatnonzero(dense[state, action] == 0.0)[0])
    agent.observe(one_step(state, action, impossible), 0)
    assert agent.belief.surprise[0] == 100.0
    assert np.allclose(agent.probability, 1.0)


def test_refusals():
    with pytest.raises(ValueError, match=r"models is .*, expected a list of one or more models"):
        BeliefURBE([])
    with pytest.raises(ValueError, match="alpha is 1, expected a number below 1"):
        BeliefURBE(MODELS, alpha=1.0)
    with pytest.raises(TypeError, match=r"models\[1\]"):
        BeliefURBE([MODELS[0], 3])
    with pytest.raises(ValueError, match="prior has 2 entries, expected 3"):
        started(BeliefURBE(MODELS, Switching(prior=(0.5, 0.5))), MODELS)
    assert BeliefURBE(MODELS, noise=Noise.EPISODE).noise is Noise.EPISODE
