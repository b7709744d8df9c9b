# %% [markdown]
# # From your own simulator to an agent for the real room
#
# You have a simulator, and you know that it is not quite right. This page takes a heated room, [a Gymnasium environment
# that does not import urbe](../../examples/tutorials/room.py), states how wrong its parameters may be, trains three
# agents, and tests them in a "real" room that was not used in training. It is one script,
# [`examples/tutorials/practice.py`](../../examples/tutorials/practice.py), which is also a
# [notebook](../../examples/tutorials/practice.ipynb). It needs `pip install ".[plots,deep]"` and a few minutes on one
# core.
#
# Every hour the heater is off, at half power or at full power. People are present from 7 to 19 o'clock; each degree
# below 20 costs 1 per hour, and so do two hours of full power. A good plan heats *before* seven, and how long before
# depends on how well the room keeps its heat, which is just what the simulator does not know exactly.

# %%
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from matplotlib.figure import Figure
from room import Room

import urbe
from urbe import deep, statistics
from urbe.gym import EnvMembers, check_members

folder = Path(__file__).parent if "__file__" in globals() else Path()
started = time.process_time()
print(Room().get_params())

# %% [markdown]
# ## 1. Say how wrong the simulator may be
#
# `Room` has `get_state`, `set_state`, `get_params` and `set_params`, which urbe recognises; they suffice to compute
# the result of the same action in rooms with other parameters. The engineer says that the leak is between 0.08 and
# 0.16, and that the heater gives 4.8 to 7 degrees per hour. The corners of this box and the nominal simulator are the
# *members*.


# %%
def rooms():
    """The uncertainty set: five rooms."""
    return EnvMembers.grid(Room(), leak=(0.08, 0.16), power=(4.8, 7.0))


# %% [markdown]
# ## 2. Check it before you train
#
# First: do the copies behave exactly like the environment? This finds a variable that was forgotten.

# %%
apart = check_members(Room(), rooms(), np.random.default_rng(0))
print("the members differ from each other:", bool((apart[np.triu_indices(5, 1)] > 0.0).all()))

# %% [markdown]
# Second: is there a member under which every policy fails? A robust agent plans for the worst member, and a hopeless
# one would decide everything: every action is bad there, so the agent learns nothing useful for the others. Evaluate a
# sensible policy under every member. Here it is the best one against the cold, full power all day.

# %%
full = SimpleNamespace(predict=lambda obs: np.full(np.shape(obs)[:-1], 2))
corners = [
    {"leak": leak, "power": power} for leak, power in [(0.12, 6.0), (0.08, 4.8), (0.08, 7.0), (0.16, 4.8), (0.16, 7.0)]
]
always = urbe.evaluate(full, corners, env=lambda params: Room(**params), episodes=50)
for params, mean in zip(corners, always.greedy.returns.mean(axis=1), strict=True):
    print(params, f"return of full power {mean:.1f}, of which energy -24.0")

# %% [markdown]
# Energy costs 24, so under every member full power loses only a few degrees, on the coldest days: no member is
# hopeless. A member with a return of -200 would not belong in the set; or the heater would be too small, which no agent
# can fix.
#
# ## 3. Train
#
# Three agents are trained with the same settings: DQN on the nominal simulator, robust DQN for the worst member, and
# domain randomisation, which draws a room for every episode and is the first method to try. (The first run of each
# agent compiles for ten to thirty seconds.)

# %%
settings = deep.Settings(
    discount=0.98,
    network=deep.Network(hidden=(64, 64)),
    batch=64,
    train_every=2,
    learning_rate=1e-3,
    decay=deep.Decay(last=0.05, steps=25_000),
    copy=deep.CopyEvery(updates=200),
    capacity=20_000,
    warm_up=1_000,
    epsilon=deep.Epsilon(1.0, 0.05, 10_000),
)
agents = {
    "DQN": lambda seed: deep.dqn(Room(), seed=seed, settings=settings),
    "robust DQN": lambda seed: deep.robust_dqn(Room(), rooms(), seed=seed, settings=settings),
    "randomised": lambda seed: deep.domain_randomised_dqn(Room(), rooms(), seed=seed, settings=settings),
}
seeds, trained = range(3), {}
for name, make in agents.items():
    print(f"{name}: compiling, then {len(seeds)} seeds of 25,000 hours")
    trained[name] = [make(seed).learn(25_000) for seed in seeds]

# %% [markdown]
# ## 4. Test them in the real room
#
# The real room leaks more and heats less than the simulator, within the engineer's bounds: leak 0.155, power 4.9. It is
# not a member, and no agent trained in it. The agents are also tested in three rooms in between.

# %%
real, share = {"leak": 0.155, "power": 4.9}, np.linspace(0.0, 1.0, 5)
nominal = Room().get_params()
between = [{name: float((1 - x) * nominal[name] + x * real[name]) for name in real} for x in share]


def returns(agent):
    """Mean return over fifty two-day episodes in each room, the same weather for all agents: `(5,)`."""
    return urbe.evaluate(agent, between, env=lambda params: Room(**params), episodes=50, seed=1).greedy.returns.mean(
        axis=1
    )


scores = {name: np.array([returns(agent) for agent in found]) for name, found in trained.items()}
for name, found in scores.items():
    simulated = statistics.mean_interval(found[:, 0])
    there = statistics.mean_interval(found[:, -1])
    print(
        f"{name:11} simulator %5.1f [%5.1f, %5.1f]" % tuple(simulated),
        "  real room %5.1f [%5.1f, %5.1f]" % tuple(there),
    )
for name in ("robust DQN", "randomised"):
    gain = statistics.paired_difference(scores[name][:, -1], scores["DQN"][:, -1])
    print(f"{name} minus DQN in the real room: %.1f [%.1f, %.1f]" % tuple(gain))

# %% [markdown]
# In the simulator DQN is the best of the three, because it was trained for exactly these parameters. In the real room
# it starts to heat too late. The other two lose a little in the simulator, where they heat earlier than necessary, and
# keep most of the comfort in the real room.
#
# ## 5. Look at their behaviour
#
# A cold Monday in the real room: when does each agent begin to heat?

# %%
figure = Figure(figsize=(8.2, 3.8), layout="constrained")
left, right = figure.subplots(1, 2)
for name, found in scores.items():
    means = np.array([statistics.mean_interval(column) for column in found.T])
    (line,) = left.plot(share, means[:, 0], marker="o", label=name)
    left.fill_between(share, means[:, 1], means[:, 2], color=line.get_color(), alpha=0.15, linewidth=0)
left.set(xlabel="from the simulator (0) to the real room (1)", ylabel="return of two days")
left.legend(frameon=False)
for name, found in trained.items():
    env, air = Room(**real), []
    seen, _ = env.reset(seed=3)
    env.set_state([0, 15.0, 15.0, -2.0])
    for _ in range(24):
        seen, *_ = env.step(found[0].predict(seen))
        air.append(env.air)
    right.plot(np.arange(1, 25), air, label=name)
right.axhspan(20.0, 24.0, xmin=7 / 24, xmax=19 / 24, alpha=0.12, color="grey", linewidth=0)
right.set(xlabel="hour of the day", ylabel="degrees in the real room", xlim=(0, 24), xticks=range(0, 25, 6))
figure.savefig(folder / "rooms.png", dpi=110)  # Returns from the simulator to the real room; one day in the real room

# %%
print("less than five minutes of one core:", time.process_time() - started < 300.0)

# %% [markdown]
# ## If robust came out worse
#
# Check three things, in this order. *Members*: is one hopeless (step 2), or so easy that it never matters? *Conflict*:
# does the best action differ between members that give the same observations? Then no policy without a memory can be
# good for all of them; see the [tutorial on comparing agents](research.md), where an agent with a belief solves such a
# set. *Learning*: is DQN itself good in the simulator? Robust targets are not easier to learn than ordinary ones.
#
# ## Where to go next
#
# [Gymnasium](../gymnasium.md) describes spaces, wrappers and vector environments; [adapters](../extend/adapter.md) how
# to write and check one; [training](../training.md) runs in a folder, with logs, checkpoints and early stopping; and
# [deep agents](../deep_agents.md#alternatives-to-robust-dqn) other agents to try.
