"""Simulates pumps.csv: a maintenance log as an asset manager exports it, from a process that only this file knows.

    python examples/tutorials/make_pumps.py

Sixteen pumps are inspected weekly for a year and a half. The log has the usual defects: semicolons, decimal commas,
conditions in several spellings, rows in the order of the export, repeated rows, gaps, and costs that were not booked.
"""

from pathlib import Path

import numpy as np

import urbe

CONDITIONS = ("as new", "good", "worn", "failed")
ACTIONS = ("run", "service", "replace")
DISCOUNT = 0.97
NEXT = np.array(
    [  # from each condition, by action, to each condition
        [[0.84, 0.15, 0.01, 0.00], [0.96, 0.04, 0.00, 0.00], [0.98, 0.02, 0.00, 0.00]],
        [[0.00, 0.80, 0.18, 0.02], [0.55, 0.43, 0.02, 0.00], [0.98, 0.02, 0.00, 0.00]],
        [[0.00, 0.00, 0.86, 0.14], [0.10, 0.62, 0.26, 0.02], [0.98, 0.02, 0.00, 0.00]],
        [[0.00, 0.00, 0.00, 1.00], [0.00, 0.25, 0.45, 0.30], [0.98, 0.02, 0.00, 0.00]],
    ]
)
COST = np.array([[20, 140, 900], [24, 150, 900], [60, 190, 910], [420, 380, 980]], float)
HABIT = np.array([[0.94, 0.06, 0.00], [0.88, 0.12, 0.00], [0.72, 0.24, 0.04], [0.25, 0.45, 0.30]])
"""Probabilities of the actions in the log, by condition; the crew never replaced a pump in good condition."""


def truth() -> urbe.MDP:
    """Returns the true process, with minus the mean costs as rewards."""
    return urbe.MDP.from_dense(NEXT, -COST, discount=DISCOUNT).with_labels(states=CONDITIONS, actions=ACTIONS)


def main() -> None:
    """Writes the log beside this file."""
    rng = np.random.default_rng(16)
    rows = []
    for pump in range(16):
        state = int(rng.integers(3))
        for week in np.arange("2024-01-01", "2025-07-01", 7, dtype="datetime64[D]"):
            action = int(rng.choice(3, p=HABIT[state]))
            cost = COST[state, action] * rng.lognormal(-0.08, 0.4)
            rows.append([f"P{pump:02}", str(week), CONDITIONS[state], ACTIONS[action], f"{cost:.2f}".replace(".", ",")])
            state = int(rng.choice(4, p=NEXT[state, action]))
    rows = [rows[i] for i in np.argsort([row[1] for row in rows], kind="stable")]  # by date, as exported
    for i in rng.choice(len(rows), 90, replace=False):
        rows[i][2] = str(rng.choice([rows[i][2].capitalize(), rows[i][2].upper(), rows[i][2] + " "]))
    for i in rng.choice(len(rows), 30, replace=False):
        rows[i][4] = str(rng.choice(["", "n/a"]))  # not booked yet
    for i in rng.choice(len(rows), 18, replace=False):
        rows[i][2] = ""  # not inspected
    for i in sorted(rng.choice(len(rows), 12, replace=False))[::-1]:
        rows.insert(i, rows[i])  # entered twice
    head = "pump;inspected;condition;decision;cost_eur"
    Path(__file__).with_name("pumps.csv").write_text("\n".join([head, *map(";".join, rows)]) + "\n")


if __name__ == "__main__":
    main()
