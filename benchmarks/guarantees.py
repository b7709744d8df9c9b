"""Measures how often the guarantees of `urbe.plan` fail, and which method gives the highest.

`python -m benchmarks.guarantees coverage --data-sets 1000`  violations at the start: truths from the prior, fixed ones,
                                                             and a prior that is wrong
`python -m benchmarks.guarantees methods --data-sets 20`     the guarantee of `Percentile` beside those of all others

Data set i of a case depends on its name and i alone; rows that the file (`--rows`) has already are not computed again.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import urbe
from urbe.mdp.evaluate import policy_value, start_weights
from urbe.planners.held_out import drawn_models
from urbe.planners.many_models import values_under_models
from urbe.rng import stream

CONFIDENCE = 0.9
FRESH = 10_000
"""Draws by which the methods' policies are compared."""

METHODS = {
    "Percentile": urbe.Percentile(),
    "VaRBellman": urbe.VaRBellman(),
    "VaRBellman(union=False)": urbe.VaRBellman(union=False),
    "RSVF": urbe.RSVF(),
    "BCI": urbe.BCI(),
    "HoeffdingSets": urbe.HoeffdingSets(),
}


class Problem(NamedTuple):
    """A true model, and what is known of it after n transitions of each pair."""

    truth: urbe.MDP
    posterior: urbe.Posterior


def _random_blank(rng: np.random.Generator, n_states: int, n_actions: int = 2) -> urbe.MDP:
    even = np.full((n_states, n_actions, n_states), 1.0 / n_states)
    return urbe.MDP.from_dense(even, rng.random((n_states, n_actions)), discount=0.9)


def _seen(truth: urbe.MDP, prior: urbe.Posterior, n: int, rng: np.random.Generator) -> Problem:
    rows = truth.rows
    counts = [
        rng.multinomial(n, rows.probability[a:b])
        for a, b in zip(rows.entry_start[:-1], rows.entry_start[1:], strict=True)
    ]
    return Problem(truth, prior.with_counts(np.concatenate(counts).astype(float)))


def random_model(
    n: int, rng: np.random.Generator, *, n_states: int = 5, drawn: float = 1.0, taken: float = 1.0
) -> Problem:
    """A model whose rows are Dirichlet(drawn), with Dirichlet(taken) as the prior."""
    blank = _random_blank(rng, n_states)
    truth = urbe.Posterior.before(blank, drawn).sample(rng)
    return _seen(truth, urbe.Posterior.before(blank, taken), n, rng)


def known_model(n: int, rng: np.random.Generator, *, truth: urbe.MDP, drawn: bool = False) -> Problem:
    """A model of the library, as it is or with its rows drawn from the prior."""
    prior = urbe.Posterior.before(truth)
    return _seen(prior.sample(rng) if drawn else truth, prior, n, rng)


LIBRARY = {
    "RiverSwim": urbe.library.riverswim(6, discount=0.95),
    "machine replacement": urbe.library.machine_replacement(discount=0.9),
    "inventory": urbe.library.inventory(10, discount=0.9),
}
FIXED = {"random model, fixed": urbe.Posterior.before(_random_blank(stream(0, "fixed"), 5)).sample(stream(1, "fixed"))}

Make = Callable[[int, np.random.Generator], Problem]
SMALL = {name: LIBRARY[name] for name in ("RiverSwim", "machine replacement")}
COVERAGE: dict[str, Make] = {
    "random models from the prior": random_model,
    **{f"{name} as it is": partial(known_model, truth=model) for name, model in (SMALL | FIXED).items()},
    "wrong prior: rows are Dirichlet(0.1), taken for Dirichlet(1)": partial(random_model, drawn=0.1),
    "wrong prior: rows are Dirichlet(1), taken for Dirichlet(0.1)": partial(random_model, taken=0.1),
    "wrong prior: rows are Dirichlet(1), taken for Dirichlet(10)": partial(random_model, taken=10.0),
}
COMPARED: dict[str, Make] = {
    **{f"{name} from the prior": partial(known_model, truth=model, drawn=True) for name, model in LIBRARY.items()},
    "random models, 5 states": random_model,
    "random models, 15 states": partial(random_model, n_states=15),
}
VISITS = (5, 20, 50)


def coverage(case: str, n: int, i: int) -> list[dict[str, object]]:
    """Whether the guarantee from the start fails in a data set; it means the same for all methods, and this is fast."""
    rng = stream(i, "coverage", case, n)
    problem = COVERAGE[case](n, rng)
    plan = urbe.plan(problem.posterior, method=urbe.VaRBellman(union=False), confidence=CONFIDENCE, rng=rng, held_out=0)
    worth = float(plan.start @ policy_value(problem.truth, plan.policy))
    return [{"guaranteed": plan.guaranteed_at_start, "worth": worth}]


def methods(case: str, n: int, i: int) -> list[dict[str, object]]:
    """What each method guarantees from the start, and the quantile of its policy's value over many fresh draws."""
    problem = COMPARED[case](n, stream(i, "methods", case, n))
    start = start_weights(problem.posterior.model)
    plans = {
        name: urbe.plan(problem.posterior, method=method, confidence=CONFIDENCE, seed=i, held_out=0)
        for name, method in METHODS.items()
    }
    values = {plan.policy.tobytes(): [] for plan in plans.values()}
    policies = {plan.policy.tobytes(): plan.policy for plan in plans.values()}
    for models in drawn_models(problem.posterior, stream(i, "fresh", case, n), FRESH):
        for key, policy in policies.items():
            values[key].append(values_under_models(problem.posterior.model, policy, *models) @ start)
    return [
        {
            "method": name,
            "guaranteed": plan.guaranteed_at_start,
            "quantile": float(np.quantile(np.concatenate(values[plan.policy.tobytes()]), 1.0 - CONFIDENCE)),
        }
        for name, plan in plans.items()
    ]


def _rows(
    path: Path, study: str, data_sets: range, cases: dict[str, Make], visits: tuple[int, ...]
) -> list[dict[str, str]]:
    """The rows of a study, computing what the file does not have yet."""
    have = list(csv.DictReader(path.open())) if path.exists() else []
    done = {(row["case"], int(row["visits"]), int(row["data_set"])) for row in have}
    measure = {"coverage": coverage, "methods": methods}[study]
    with path.open("a", newline="") as file:
        writer: csv.DictWriter[str] | None = None
        for i in data_sets:
            for case in cases:
                for n in visits:
                    if (case, n, i) in done:
                        continue
                    for found in measure(case, n, i):
                        row = {"case": case, "visits": n, "data_set": i, **found}
                        if writer is None:
                            writer = csv.DictWriter(file, list(row))
                            if not have and file.tell() == 0:
                                writer.writeheader()
                        writer.writerow(row)
                    file.flush()
    return list(csv.DictReader(path.open()))


def _coverage_table(rows: list[dict[str, str]]) -> str:
    lines = ["| truths | " + " | ".join(f"{n} a pair" for n in VISITS) + " |", "|---|" + "---:|" * len(VISITS)]
    for case in COVERAGE:
        cells = []
        for n in VISITS:
            found = [row for row in rows if row["case"] == case and int(row["visits"]) == n]
            missed = sum(float(row["worth"]) < float(row["guaranteed"]) for row in found)
            cells.append(f"{100 * missed / len(found):.1f} % of {len(found)}" if found else "")
        lines.append(f"| {case} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _methods_table(rows: list[dict[str, str]]) -> str:
    names = list(METHODS)
    lines = ["| case | " + " | ".join(names) + " | below the best by at most |", "|---|" + "---:|" * (len(names) + 1)]
    for case in COMPARED:
        for n in VISITS:
            mine = [row for row in rows if row["case"] == case and int(row["visits"]) == n]
            if not mine:
                continue
            by = {name: np.array([float(row["guaranteed"]) for row in mine if row["method"] == name]) for name in names}
            true = {name: np.array([float(row["quantile"]) for row in mine if row["method"] == name]) for name in names}
            best = np.max([true[name] for name in names[1:]], axis=0)
            loss = (best - true["Percentile"]) / np.abs(best)
            means = " | ".join(f"{by[name].mean():.3f}" for name in names)
            lines.append(f"| {case}, {n} a pair | {means} | {100 * max(loss.max(), 0.0):.2f} % |")
    return "\n".join(lines)


def main() -> None:
    """Computes what is missing and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=["coverage", "methods"])
    parser.add_argument("--data-sets", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first data set; for parts that run side by side")
    parser.add_argument("--rows", type=Path, help="file of rows to go on with; by default STUDY.csv")
    options = parser.parse_args()
    path = options.rows or Path(f"{options.study}.csv")
    cases = COVERAGE if options.study == "coverage" else COMPARED
    rows = _rows(path, options.study, range(options.first, options.first + options.data_sets), cases, VISITS)
    print(_coverage_table(rows) if options.study == "coverage" else _methods_table(rows))


if __name__ == "__main__":
    main()
