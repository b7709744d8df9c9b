# %% [markdown]
# # From a messy log to a guaranteed policy
#
# You are responsible for sixteen pumps. Every week somebody records the condition of each pump, and you decide whether
# to let it run, service it, or replace it. You have an export of the last year and a half, and you want a rule for each
# condition, with a cost that you can promise to your manager. This page develops it in one script,
# [`examples/tutorials/operations.py`](../../examples/tutorials/operations.py), which is also a
# [notebook](../../examples/tutorials/operations.ipynb). It needs `pip install ".[plots,frames]"` and less than a
# minute.
#
# The log is [`pumps.csv`](../../examples/tutorials/pumps.csv). It was
# [simulated](../../examples/tutorials/make_pumps.py), so that the promise can be compared with the truth at the end.

# %%
from pathlib import Path

import pandas

import urbe

folder = Path(__file__).parent if "__file__" in globals() else Path()
print("\n".join((folder / "pumps.csv").read_text().splitlines()[:4]))

# %% [markdown]
# ## 1. Read the log
#
# Semicolons and decimal commas are recognised. There is no column with the next condition: it is the condition in the
# next row of the same pump, ordered by date. `missing="drop"` leaves out rows with missing values and counts them; it
# never joins the rows around a gap.

# %%
columns = {"state": "condition", "action": "decision", "reward": "cost_eur", "episode": "pump", "time": "inspected"}
log = urbe.read_log(folder / "pumps.csv", names=columns, missing="drop")
print(*log.notes, sep="\n")
print(log.labels.states)

# %% [markdown]
# Look at the labels first. Here `Worn`, `WORN` and `worn` are the same condition in three spellings, which no program
# can know. Moreover, the column is a *cost*, whereas urbe maximises rewards. Two lines of pandas fix both; frames are
# read like files.

# %%
frame = pandas.read_csv(folder / "pumps.csv", sep=";", decimal=",")
frame["condition"] = frame["condition"].str.strip().str.lower()
frame["profit"] = -frame["cost_eur"]
log = urbe.Transitions.from_columns(frame, names=columns | {"reward": "profit"}, missing="drop")
print(log.labels.states, log.labels.actions)

# %% [markdown]
# ## 2. The posterior
#
# The posterior describes what is known after the log: for every condition and decision, a distribution over the
# probabilities of the next condition, and one over the mean cost. The discount is 0.97 per week, so that costs within
# about the next half year matter.

# %%
posterior = urbe.Posterior.fit(log, discount=0.97, rewards=urbe.NormalGamma.around(log.reward))
print(posterior)

# %% [markdown]
# ## 3. A policy with a guarantee
#
# `urbe.plan` returns a policy and a number: given the log, the true value of the policy from the start is at least this
# number with probability 0.95. (The first call compiles for a few seconds.)

# %%
print("Planning; compiling first, which takes up to half a minute once.")
plan = urbe.plan(posterior, confidence=0.95, start="as new", seed=0)
print(plan)

# %% [markdown]
# How to read it:
#
# - *Guaranteed from the start* is the number to promise: with probability 0.95, the expected discounted cost of a pump
#   that starts as new is not higher.
# - *Stated value* of the mean-model policy is what a spreadsheet would promise: the value if the average model were
#   exactly true. On models drawn from the posterior it is missed far more often.
# - Pairs that were never tried are listed; the policy does not take them. The two policies differ for a failed pump:
#   replacing costs more on average, but is more certain.

# %%
figure = plan.plot()
figure.savefig(folder / "plan.png", dpi=110)  # Values of both policies on drawn models, and the guaranteed value

# %% [markdown]
# ## 4. What if the model is worse than the data suggest?
#
# Next year may differ from last year, and the posterior does not account for that. `urbe.sensitivity` computes how the
# value falls if every row of probabilities may be wrong by a given distance, for the nominal policy and for a robust
# one.

# %%
found = urbe.sensitivity(posterior.mean(), urbe.L1Ball, [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3])
figure = found.plot()
figure.savefig(folder / "price.png", dpi=110)  # The worst case of both policies over the radius

# %% [markdown]
# Both policies are the same at all these radii, so robustness costs nothing here. But the value falls steeply: faster
# wear is expensive under every maintenance rule.
#
# ## 5. Export the policy
#
# The policy is written as a table with your own labels.

# %%
plan.write(folder / "pump_policy.csv")
print(pandas.read_csv(folder / "pump_policy.csv").round(1).to_string(index=False))

# %% [markdown]
# ## 6. Was the promise kept?
#
# In practice you cannot know. Here the log was simulated, so the policy can be evaluated on the true process.

# %%
from make_pumps import truth

model = truth()
names = plan.posterior.model.labels
decision = dict(zip(names.states, names.action_texts(plan.policy), strict=True))
policy = [model.labels.actions.index(decision[state]) for state in model.labels.states]
true = urbe.evaluate_policy(model, policy)
best = urbe.solve(model)
print(f"promised: at least {plan.guaranteed_at_start:.0f}")
print(f"true value of the policy: {true.value[0]:.0f}; of the best one: {best.value[0]:.0f}")

# %% [markdown]
# ## The same from the shell
#
# If labels and sign are corrected in the file, one command does steps 3 and 5:
#
# ```sh
# urbe plan pumps_clean.csv --discount 0.97 --confidence 0.95 --missing drop --start "as new" --output policy.csv \
#      --figure plan.png --columns state=condition,action=decision,reward=profit,episode=pump,time=inspected
# ```
#
# ## Where to go next
#
# [Messy logs](../messy_logs.md) describes all options for reading logs, [safe policies from data](../planning.md) the
# other methods, their guarantees and measurements, and [what a guarantee means](../theory/bayes.md) the theory.
