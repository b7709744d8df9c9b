# %% [markdown]
# # From a messy log to a guaranteed policy
#
# You run sixteen pumps. Every week somebody writes down their condition, and you decide: let it run, service it, or
# replace it. You have the export of a year and a half, and you want a rule for each condition, with a cost that you can
# promise to your manager. This page goes there in one script,
# [`examples/tutorials/operations.py`](../../examples/tutorials/operations.py), which is also a
# [notebook](../../examples/tutorials/operations.ipynb). It needs `pip install ".[plots,frames]"` and less than a
# minute.
#
# The log is [`pumps.csv`](../../examples/tutorials/pumps.csv). It was
# [simulated](../../examples/tutorials/make_pumps.py), so that at the end the promise can be held against the truth.

# %%
from pathlib import Path

import pandas

import urbe

folder = Path(__file__).parent if "__file__" in globals() else Path()
print("\n".join((folder / "pumps.csv").read_text().splitlines()[:4]))

# %% [markdown]
# ## 1. Read it as it is
#
# Semicolons and decimal commas are recognised. There is no column with the next condition: it is that of the same
# pump's next row, in the order of the dates. `missing="drop"` leaves rows with gaps out, counts them, and never joins
# the rows around a gap.

# %%
columns = {"state": "condition", "action": "decision", "reward": "cost_eur", "episode": "pump", "time": "inspected"}
log = urbe.read_log(folder / "pumps.csv", names=columns, missing="drop")
print(*log.notes, sep="\n")
print(log.labels.states)

# %% [markdown]
# Look at the labels before anything else. Here `Worn`, `WORN` and `worn` are one condition typed in three ways, and no
# program can know that for you. And the column is a *cost*, whereas urbe maximises rewards. Two lines of pandas mend
# both; any frame is read like a file.

# %%
frame = pandas.read_csv(folder / "pumps.csv", sep=";", decimal=",")
frame["condition"] = frame["condition"].str.strip().str.lower()
frame["profit"] = -frame["cost_eur"]
log = urbe.Transitions.from_columns(frame, names=columns | {"reward": "profit"}, missing="drop")
print(log.labels.states, log.labels.actions)

# %% [markdown]
# ## 2. What the log says, and how surely
#
# A posterior is what the log leaves open: for every condition and decision a distribution over what happens next, and
# one over the mean cost. A week from now counts 0.97 of today, so that costs within the next half year or so matter.

# %%
posterior = urbe.Posterior.fit(log, discount=0.97, rewards=urbe.NormalGamma.around(log.reward))
print(posterior)

# %% [markdown]
# ## 3. A policy and a promise
#
# `urbe.plan` returns a policy and a number: given the log, the policy's true value from the start is at least this with
# probability 0.95. (The first call compiles for a few seconds.)

# %%
print("Planning; compiling first, which takes up to half a minute once.")
plan = urbe.plan(posterior, confidence=0.95, start="as new", seed=0)
print(plan)

# %% [markdown]
# How to read it:
#
# - *Guaranteed from the start* is what to promise: the discounted costs of a pump that starts as new are, with
#   probability 0.95, no more than this.
# - *Stated value* of the mean-model policy is what a spreadsheet would promise, taking the average model at its word.
#   On models drawn from what the log leaves open it is missed far more often.
# - Pairs that nobody ever tried are listed; the policy does not take them. A failed pump is where the two policies
#   differ: replacing costs more on average, and is more certain.

# %%
figure = plan.plot()
figure.savefig(folder / "plan.png", dpi=110)  # Values of both policies on drawn models, and what is guaranteed

# %% [markdown]
# ## 4. What if the model is worse than the data suggest?
#
# A different question: next year may not be like last year. `urbe.sensitivity` asks how the value falls as nature may
# move every row of probabilities by a given distance, for the policy that ignores it and for the one that expects it.

# %%
found = urbe.sensitivity(posterior.mean(), urbe.L1Ball, [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3])
figure = found.plot()
figure.savefig(folder / "price.png", dpi=110)  # The worst case of both policies over the radius

# %% [markdown]
# The two policies are one: at none of these radii would you decide otherwise, so robustness costs nothing here. But
# look how steeply the value falls. It is the wear itself that hurts, and no maintenance rule insures against it.
#
# ## 5. Hand it over
#
# The policy leaves as a table with your own names in it.

# %%
plan.write(folder / "pump_policy.csv")
print(pandas.read_csv(folder / "pump_policy.csv").round(1).to_string(index=False))

# %% [markdown]
# ## 6. Was the promise kept?
#
# In practice nobody can tell. Here the log was simulated, so the policy can be evaluated on the process itself.

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
# With the names cleaned and the sign changed in the file, one command does all of step 3 and 5:
#
# ```sh
# urbe plan pumps_clean.csv --discount 0.97 --confidence 0.95 --missing drop --start "as new" --output policy.csv \
#      --figure plan.png --columns state=condition,action=decision,reward=profit,episode=pump,time=inspected
# ```
#
# ## Where to go next
#
# [Messy logs](../messy_logs.md) has every option of reading; [safe policies from data](../planning.md) the other
# methods, what each guarantees and what was measured; [what a guarantee means](../theory/bayes.md) the theory.
