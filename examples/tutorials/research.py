# %% [markdown]
# # Comparing agents on dynamics they did not train on
#
# You have an idea for a robust agent and want to know whether it is better. This page trains four agents with the same
# learner (DQN, robust DQN, domain randomisation, and an agent with a belief that adapts), deploys them under dynamics
# that they did not train on, and compares them with intervals. Then it changes a hyper-parameter, and adds an
# uncertainty head of its own in one class. It is one script,
# [`examples/tutorials/research.py`](../../examples/tutorials/research.py), which is also a
# [notebook](../../examples/tutorials/research.ipynb). It needs `pip install ".[plots,deep]"` and a few minutes of one
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
# CartPole, with motors of unknown strength, some of which are wired backwards. Agents may train on six motors; they are
# tested on eight, four of which they never met. Choose such a set with care: here no single action is right for both
# directions, so that one policy that sees positions and speeds alone *cannot* serve all members. Where parameters only
# vary smoothly, such as the length of the pole, that conflict is missing, and the ranking below is another one: replace
# two lines and see.

# %%
pole = CartPole(time_limit=200)
members = UncertaintySet.grid(pole, force=(-16.0, -10.0, -5.0, 5.0, 10.0, 16.0))
tested = np.array([-16.0, -12.0, -7.0, -5.0, 5.0, 7.0, 12.0, 16.0])

# %% [markdown]
# ## 2. The agents
#
# All four share one learner and one set of hyper-parameters, chosen on seeds that are not used here. The adaptive agent
# carries a belief over the members, learns values of pairs of observation and belief, and has its own defaults and
# budget; a comparison at equal steps would starve it, one at equal compute is what the printed seconds allow you to
# make.

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
# A *life* is a sequence of episodes with one motor: the memory of an agent survives the episode, its weights do not
# change. Every agent plays twenty lives of three episodes under every motor, with the same random numbers. (The first
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
# ## 4. What they are worth, with intervals
#
# The interquartile mean over seeds and motors, with a bootstrap interval over seeds; the mean under each agent's worst
# motor; and how far each falls short of the adaptive agent, seed by seed, with intervals that hold for the three
# comparisons together.

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
# How to read it. DQN is good where motors push as in training, and lost where they do not. Robust DQN maximises the
# worst of six values, and since whatever it does is bad under some member, the worst value says nothing about what to
# do: it is poor everywhere. A randomised agent learns a compromise, or one of the two directions, depending on the
# seed; hence its wide intervals. The adaptive agent finds out which motor it has within a few steps. None of this says
# that robust DQN is a bad idea: it says that *this set* asks for a memory. [What is used in place of robust
# DQN](../deep_agents.md#what-is-used-in-place-of-robust-dqn) has agents with other memories.
#
# ## 5. Change a hyper-parameter
#
# Settings are frozen values; `replace` changes one field. Does DQN need its learning rate of 1e-3? The difference is
# paired by seed, on the motors that are wired as in training.

# %%
forwards = tested > 0
slower = scores_of(lambda seed: deep.dqn(pole, seed=seed, settings=replace(settings, learning_rate=1e-4)), 40_000)
change = slower[:, forwards].mean(axis=1), scores["DQN"][:, forwards].mean(axis=1)
print("learning rate 1e-4 minus 1e-3: %.1f [%.1f, %.1f]" % tuple(statistics.paired_difference(*change)))

# %% [markdown]
# ## 6. Add a head of your own
#
# Your idea: explore where predictions have been wrong. This head keeps the running squared TD error of each action and
# adds noise in proportion. A head is a frozen dataclass with the methods of `urbe.deep.Variance`; this one takes what
# it does not need from `NoVariance`. `check_variance` holds it to all that the learner relies on. Give it beside the
# settings, as `variance=`: nature and variance are what the name of an agent stands for, so `dqn` takes its own from no
# settings. ([A head with a network of its own](../extend/deep_variance.md) is the next step.)

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
# Five seeds decide large differences alone. For a claim take more, state how hyper-parameters were chosen, and keep the
# seeds you tuned on out of the figure.

# %%
print("less than five minutes of one core:", time.process_time() - started < 300.0)

# %% [markdown]
# ## Where to go next
#
# [Comparing agents over seeds](../statistics.md) has profiles, probabilities of improvement and what their intervals
# cover; [deep agents](../deep_agents.md) every setting; [evaluation](../evaluation.md) grids of parameters and policies
# of other libraries; [a page for each part that can be yours](../extend/index.md) natures, heads, simulators and
# adapters.
