"""Random layered models, and posterior variances by brute force: draw a centre, solve, repeat."""

import numpy as np

import urbe
from urbe.posteriors import Posterior


def layered(rng, n_layers=4, width=3, n_actions=2, discount=0.9):
    """States in layers, each leading to the next layer only; the last layer ends."""
    n = n_layers * width + 1
    transition = np.zeros((n, n_actions, n))
    for s in range(n - 1):
        layer = s // width
        following = range((layer + 1) * width, min((layer + 2) * width, n)) if layer < n_layers - 1 else [n - 1]
        for a in range(n_actions):
            transition[s, a, list(following)] = rng.dirichlet(np.ones(len(following)))
    transition[-1, :, -1] = 1.0
    reward = rng.random((n, n_actions))
    return urbe.MDP.from_dense(transition, reward, discount=discount, terminal=[n - 1])


def posterior_of(mdp, count):
    """A posterior of mean near `mdp`: `count` pseudo-observations of each row, 0.01 of them evenly spread."""
    alpha = count * (0.99 * mdp.rows.probability + 0.01 / mdp.rows.length[mdp.rows.entry_row])
    return Posterior.before(mdp, alpha)


def line_metric(n_states):
    """|i - j| / n: distances of a line of states."""
    return np.abs(np.subtract.outer(np.arange(n_states), np.arange(n_states))) / n_states


def sets_around(mdp):
    """Every set with a sensitivity, by name, with a radius that matters on layered models."""
    weights = 0.5 + np.arange(mdp.n_states) % 3 / 2.0
    return {
        "nominal": None,
        "L1": urbe.L1Ball(0.3),
        "weighted L1": urbe.WeightedL1Ball(0.3, weights),
        "L2": urbe.L2Ball(0.15),
        "L-infinity": urbe.LInfBall(0.1),
        "KL": urbe.KLBall(0.1),
        "reverse KL": urbe.LikelihoodRegion(0.1),
        "chi-square": urbe.Chi2Ball(0.2),
        "Wasserstein": urbe.WassersteinBall(0.02, line_metric(mdp.n_states)),
        "contamination": urbe.Contamination(0.2),
    }


def robust_q(mdp, nature, policy, horizon):
    """`(R,)` first-step values of the rows when `policy[h]` (actions) follows, by plain backward induction."""
    bound = (urbe.Exact() if nature is None else nature).bind(mdp)
    v = np.zeros(mdp.n_states)
    for h in range(horizon - 1, -1, -1):
        q = bound.values(v)
        v = np.zeros(mdp.n_states)
        for s in np.flatnonzero(~mdp.terminal):
            v[s] = q[mdp.row_of(s, policy[h][s])]
    return q


def monte_carlo_variance(posterior, nature, policy, horizon, draws, rng):
    """`(R,)` variance of the robust first-step values over posterior draws of the centre."""
    q = [robust_q(posterior.model_with(centre), nature, policy, horizon) for centre in posterior.draws(rng, draws)]
    return np.var(q, axis=0, ddof=1)
