# %% [markdown]
# # Comparing agents on dynamics they did not train on
#
# You have an idea for a robust agent and want to know whether it is better. This page trains four agents (DQN, robust
# DQN, domain randomisation, and an adaptive agent with a belief), deploys them under dynamics that they did not train
# on, and compares them with intervals. Then it changes a hyper-parameter, and adds a new uncertainty head in one class.
# It is one script, [`examples/tutorials/research.py`](../../examples/tutorials/research.py), which is also a
# [notebook](../../examples/tutorials/research.ipynb). It needs `pip install ".[plots,deep]"` and a few minutes on one
# core.

# %%
import time
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from urbe import deep, statistics
from urbe.belief import Switching
from urbe.evaluation.adaptation import deploy_lives
from urbe.simulators import CartPole, UncertaintySet

folder = Path(__file__).parent if "__file__" in globals() else Path()
started = time.process_time()

# %% [markdown]
# ## 1. The question
#
# The environment is CartPole with motors of unknown strength, some of which are wired backwards. Agents may train on
# six motors; they are tested on eight, four of which were not used in training. Choose such a set with care: here no
# single action is right for both directions, so that a policy that only observes positions and speeds *cannot* be good
# for all members. If a parameter only has a smooth effect, such as the length of the pole, there is no such conflict,
# and the ranking differs from the one below: replace two lines and see.

# %%
pole = CartPole(time_limit=200)
members = UncertaintySet.grid(pole, force=(-16.0, -10.0, -5.0, 5.0, 10.0, 16.0))
tested = np.array([-16.0, -12.0, -7.0, -5.0, 5.0, 7.0, 12.0, 16.0])

# %% [markdown]
# ## 2. The agents
#
# The first three agents share one learner and one set of hyper-parameters, chosen on seeds that are not used here. The
# adaptive agent learns values of pairs of observation and belief, where the belief is over the members. It has its own
# defaults and needs more steps, so the number of steps differs.

# %%
settings = deep.Settings(
    discount=0.99,
    network=deep.Network(hidden=(64, 64)),
    batch=64,
    train_every=4,
    learning_rate=1e-3,
    copy=deep.CopyEvery(updates=200),
    capacity=20_000,
    warm_up=1_000,
    epsilon=deep.Epsilon(1.0, 0.05, 10_000),
)


def adaptive(seed):
    """Learns values of observation and belief; a motor changes once in a thousand steps."""
    jumps = Switching(hazard=1e-3)
    return deep.bayes_adaptive_dqn(pole, members, switching=jumps, seed=seed, boundary=0.5, reward_scale=100.0)


agents = {
    "DQN": (40_000, lambda seed: deep.dqn(pole, seed=seed, settings=settings)),
    "robust DQN": (40_000, lambda seed: deep.robust_dqn(pole, members, seed=seed, settings=settings)),
    "randomised": (40_000, lambda seed: deep.domain_randomised_dqn(pole, members, seed=seed, settings=settings)),
    "adaptive": (500_000, adaptive),
}

# %% [markdown]
# ## 3. Train, and deploy without learning
#
# A *life* is a sequence of episodes with one motor: an agent keeps its memory between episodes, and its weights do not
# change. Every agent plays twenty lives of three episodes with every motor, with the same random numbers. (The first
# run of each agent compiles for ten to thirty seconds.)

# %%
seeds = range(100, 105)


def returns(agent):
    """The mean return under each tested motor, `(8,)`."""
    params = [pole.nominal()._replace(force=force) for force in tested]
    every = [jax.tree.map(lambda number: jnp.full((20, 3), number, jnp.float32), one) for one in params]
    lives = [deploy_lives(agent.memory_policy, pole, one, seed=7) for one in every]
    return np.array([np.asarray(each.episode_return).mean() for each in lives])


def scores_of(make, steps, chosen=seeds):
    """Returns of one agent over seeds, `(seeds, 8)`."""
    return np.array([returns(make(seed).learn(steps)) for seed in chosen])


scores = {}
for name, (steps, make) in agents.items():
    print(f"{name}: compiling, then {len(seeds)} seeds of {steps:,} steps")
    scores[name] = scores_of(make, steps)

# %% [markdown]
# ## 4. Compare them, with intervals
#
# The output has three parts: the interquartile mean over seeds and motors, with a bootstrap interval over seeds; the
# mean with each agent's worst motor; and the difference from the adaptive agent, paired by seed, with intervals that
# hold for all three comparisons together.

# %%
rng = np.random.default_rng(0)
for name, found in scores.items():
    overall = statistics.stratified_bootstrap(statistics.iqm, found, rng)
    at = int(found.mean(axis=0).argmin())
    worst = np.clip(statistics.mean_interval(found[:, at]), 0.0, 200.0)  # no return is outside
    shown = f"{name:11} IQM %5.1f [%5.1f, %5.1f]" % tuple(overall)
    print(shown, f"  worst motor {tested[at]:5.0f} N: %5.1f [%5.1f, %5.1f]" % tuple(worst))
for each in statistics.paired_comparisons(scores, rng, against="adaptive"):
    print(f"{each.first} minus {each.second}: %.1f [%.1f, %.1f]" % tuple(each.simultaneous))

# %%
figure = Figure(figsize=(7.0, 3.8), layout="constrained")
axes = figure.subplots()
for name, marker in zip(scores, "os^D", strict=True):
    means = np.array([statistics.mean_interval(column) for column in scores[name].T]).clip(0.0, 200.0)
    (line,) = axes.plot(tested, means[:, 0], marker=marker, label=name)
    axes.fill_between(tested, means[:, 1], means[:, 2], color=line.get_color(), alpha=0.15, linewidth=0)
axes.set(xlabel="force of the motor (N); negative ones are wired backwards", ylabel="return", ylim=(0, 205))
axes.legend(loc="center", frameon=False)
figure.savefig(folder / "motors.png", dpi=110)  # Mean return over five seeds under each motor, with 95 % intervals

# %% [markdown]
# How to read it: DQN is good with motors that push as in training, and fails with the others. Robust DQN maximises the
# worst of six values; every action is bad under some member, so the worst value does not discriminate between actions,
# and the agent is poor with all motors. The randomised agent learns a compromise or one of the two directions,
# depending on the seed; hence the wide intervals. The adaptive agent identifies its motor within a few steps. This does
# not mean that robust DQN is a bad idea: it means that *this set* requires a memory. [Alternatives to robust
# DQN](../deep_agents.md#alternatives-to-robust-dqn) has agents with other memories.
#
# ## 5. Change a hyper-parameter
#
# Settings are frozen dataclasses; `replace` changes one field. Does DQN need its learning rate of 1e-3? The difference
# is paired by seed, for the motors that are wired as in training.

# %%
forwards = tested > 0
slower = scores_of(lambda seed: deep.dqn(pole, seed=seed, settings=replace(settings, learning_rate=1e-4)), 40_000)
change = slower[:, forwards].mean(axis=1), scores["DQN"][:, forwards].mean(axis=1)
print("learning rate 1e-4 minus 1e-3: %.1f [%.1f, %.1f]" % tuple(statistics.paired_difference(*change)))

# %% [markdown]
# ## 6. Add a head of your own
#
# Suppose that your idea is to explore where predictions were wrong. This head keeps the running squared TD error of
# each action and adds noise in proportion to its root. A head is a frozen dataclass with the methods of
# `urbe.deep.Variance`; this one inherits the rest from `NoVariance`. `check_variance` tests everything that the learner
# relies on. Pass it as `variance=` next to the settings, because presets such as `dqn` override nature and variance in
# `settings`. ([A head with a network of its own](../extend/deep_variance.md) is the next step.)

# %%
from urbe.testing import check_variance


@dataclass(frozen=True)
class ErrorNoise(deep.NoVariance):
    """act: argmax_b Q(s, b) + beta zeta_b sqrt(w_b), with w_b the running squared TD error of action b."""

    beta: float = 1.0
    decay: float = 0.99

    def init(self, settings, key, obs_size, n_actions):
        return jnp.zeros(n_actions, jnp.float32)

    def acting(self, head):
        return head

    def variances(self, settings, weights, obs, phi):
        return jnp.broadcast_to(weights, (len(obs), len(weights)))

    def perturbed(self, settings, weights, noise, obs, phi, q):
        w = self.variances(settings, weights, obs, phi)
        return q + self.beta * noise * jnp.sqrt(w), w

    def learn(self, settings, head, visits, remembered, step):
        return head, head[visits.action].mean().astype(jnp.float64)

    def track(self, head, action, td):
        taken = jax.nn.one_hot(action, len(head), dtype=head.dtype)
        mean = (taken * (td**2)[:, None]).sum(axis=0) / jnp.maximum(taken.sum(axis=0), 1.0)
        rate = (1.0 - self.decay) * (taken.sum(axis=0) > 0.0)
        return (head + rate * (mean - head)).astype(head.dtype)

    def refresh(self, settings, head, q, replay, before, step):
        return head


check_variance(ErrorNoise())
mine = scores_of(lambda seed: deep.dqn(pole, seed=seed, settings=settings, variance=ErrorNoise()), 40_000)
change = mine[:, forwards].mean(axis=1), scores["DQN"][:, forwards].mean(axis=1)
print("own head minus DQN: %.1f [%.1f, %.1f]" % tuple(statistics.paired_difference(*change)))

# %% [markdown]
# Five seeds only decide large differences. For a claim use more, state how hyper-parameters were chosen, and do not
# report the seeds on which you tuned.

# %%
print("less than five minutes of one core:", time.process_time() - started < 300.0)

# %% [markdown]
# ## Where to go next
#
# [Comparing agents over seeds](../statistics.md) describes performance profiles, probabilities of improvement and the
# coverage of intervals; [deep agents](../deep_agents.md) all settings; [evaluation](../evaluation.md) grids of
# parameters and policies of other libraries; and the [extension pages](../extend/index.md) natures, heads, simulators
# and adapters.
