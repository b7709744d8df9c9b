"""Ways to drive agents by hand, and tasks to drive them on."""

import numpy as np

import urbe
from urbe.agents import Steps, Streams, Task


def task(mdp, horizon=1):
    return Task(urbe.Posterior.before(mdp), horizon)


def start(kind, mdp, horizon=1, replicates=1, seed=0):
    return kind.start(task(mdp, horizon), Streams(seed, np.arange(replicates)))


def steps(state, action, reward, next_state, terminated=False, truncated=False, replicate=None):
    """One step of one replicate, or of several given as lists."""
    state, action, next_state = (np.atleast_1d(np.asarray(x, dtype=np.int64)) for x in (state, action, next_state))
    who = np.arange(len(state)) if replicate is None else np.atleast_1d(replicate)
    flags = (np.broadcast_to(np.asarray(x, dtype=bool), len(state)).copy() for x in (terminated, truncated))
    return Steps(who, state, action, np.atleast_1d(np.asarray(reward, dtype=float)), next_state, *flags)


def feed(agent, mdp, rng, rounds, replicates=1):
    """Every pair is tried `rounds` times, its successors drawn from the model: learning without exploration."""
    p, r = mdp.to_dense()
    who = np.arange(replicates)
    for _ in range(rounds):
        for row in range(mdp.n_rows):
            s, a = int(mdp.row_state[row]), int(mdp.action[row])
            following = rng.choice(mdp.n_states, size=replicates, p=p[s, a])
            seen = Steps(
                who,
                np.full(replicates, s),
                np.full(replicates, a),
                np.full(replicates, r[s, a]),
                following,
                mdp.terminal[following],
                np.zeros(replicates, dtype=bool),
            )
            agent.observe(seen, 0)
