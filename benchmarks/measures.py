"""The measurements: each function returns lines `(what, found, target)` for the page, all from one run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import urbe
from benchmarks.peers import peers
from benchmarks.timing import Timing, best_of, task
from urbe.workers import SERIAL, Workers

RADIUS, TOLERANCE, DISCOUNT = 0.5, 1e-6, 0.99
METHOD = urbe.PartialPolicyIteration(tolerance=TOLERANCE)


class Line(NamedTuple):
    """One line of the page: a ratio (or seconds, bytes) with its target, if there is one."""

    what: str
    found: float
    target: str = ""
    detail: str = ""


def garnets() -> dict[str, urbe.MDP]:
    """Makes the two random models that all peers can solve."""
    return {
        "sparse": urbe.library.garnet(2000, 10, 20, seed=0, discount=DISCOUNT),
        "dense": urbe.library.garnet(500, 10, 500, seed=0, discount=DISCOUNT),
    }


def solves(repeats: int) -> list[Line]:
    """Compares complete solves with the peers' nominal solves."""
    lines = []
    for name, mdp in garnets().items():
        others = peers(mdp, TOLERANCE)
        tasks = {peer: each.task for peer, each in others.items()}
        ours = {
            "urbe nominal": None,
            "urbe L1": urbe.L1Ball(RADIUS),
            "urbe L1, all successors": urbe.L1Ball(RADIUS, support="all"),
        }
        for label, nature in ours.items():
            tasks[label] = task(lambda mdp=mdp, nature=nature: urbe.solve(mdp, nature, METHOD))
        timings = best_of(tasks, repeats)
        fastest = min(others, key=lambda peer: timings[peer].cpu)
        value = urbe.solve(mdp).value
        for peer, each in others.items():
            off = float(np.abs(each.value(each.task.run(each.task.prepare())) - value).max())
            lines.append(Line(f"{name}: {peer}, nominal, ms", 1e3 * timings[peer].cpu, "", f"off by {off:.1e}"))
        for label in ours:
            limit = "<= 1" if label == "urbe nominal" else "<= 3"
            ratio = timings[label].cpu / timings[fastest].cpu
            lines.append(Line(f"{name}: {label} / {fastest} nominal", ratio, limit, _both(timings[label])))
    return lines


def sweeps(repeats: int) -> list[Line]:
    """Compares one Bellman sweep of each set with the nominal one and with reading the model once.

    Values are those of a real solve, one after another, so that what a sweep remembers of the last one counts as it
    does in use; the first sweep after binding is given apart.
    """
    lines = []
    for name, mdp in garnets().items():
        values = _trajectory(mdp)
        floor = best_of({"read": task(mdp.rows.probability.sum)}, repeats)["read"].cpu
        nominal = _sweep_time(urbe.Exact(), mdp, values, repeats)
        lines.append(
            Line(f"{name}: nominal sweep / reading the probabilities", nominal / floor, "", f"{1e3 * nominal:.3f} ms")
        )
        sets = {"L1": urbe.L1Ball(RADIUS), "KL": urbe.KLBall(0.1), "chi-square": urbe.Chi2Ball(0.1)}
        limits = {"L1": "<= 2.5", "KL": "<= 10", "chi-square": "<= 10"}
        for label, nature in sets.items():
            seconds = _sweep_time(nature, mdp, values, repeats)
            cold = _cold_sweep_time(nature, mdp, values, repeats)
            detail = f"{1e3 * seconds:.3f} ms; first sweep {1e3 * cold:.2f} ms"
            if name == "dense" and label == "L1":
                lines.append(Line("dense: L1 sweep / reading the probabilities", seconds / floor, "<= 2", detail))
            limit = limits[label] if name == "sparse" else ""
            lines.append(Line(f"{name}: {label} sweep / nominal sweep", seconds / nominal, limit, detail))
    return lines


def slow_mixing(repeats: int) -> list[Line]:
    """Compares with residual-stopped modified policy iteration with the same kernels, on the banded Garnet."""
    lines = []
    band = urbe.library.banded_garnet(2000, 10, 20, seed=0, discount=DISCOUNT)
    for discount, sweep_counts, target in ((0.99, (50, 100), 3), (0.999, (100, 300), 10), (0.9999, (300,), 30)):
        mdp, nature = band.with_discount(discount), urbe.L1Ball(RADIUS)
        ours = best_of({"ours": task(lambda mdp=mdp, nature=nature: urbe.solve(mdp, nature))}, repeats)["ours"]
        textbook = min(
            best_of_once(lambda mdp=mdp, nature=nature, n=n: urbe.solve(
                mdp, nature, urbe.ModifiedPolicyIteration(TOLERANCE, n, rule="residual"), throw=False))
            for n in sweep_counts
        )  # fmt: skip
        what = f"slow mixing, discount {discount}: residual-stopped MPI / urbe"
        lines.append(Line(what, textbook / ours.cpu, f">= {target}", f"{_both(ours)}, MPI {textbook:.2f} s"))
    return lines


def threads(repeats: int) -> list[Line]:
    """Measures the speed-up of two threads on a large model: wall time of L1 sweeps over all rows."""
    mdp = urbe.library.garnet(10**6, 4, 3, seed=0, discount=DISCOUNT)
    nature = urbe.L1Ball(RADIUS).bind(mdp)
    v = np.random.default_rng(0).random(mdp.n_states)
    q = np.empty(mdp.n_rows)
    with Workers(2) as two:
        tasks = {
            "one": task(lambda: nature.values(v, 0.0, SERIAL, q)),
            "two": task(lambda: nature.values(v, 0.0, two, q)),
        }
        timings = best_of(tasks, repeats)
    ratio = timings["one"].wall / timings["two"].wall
    return [
        Line("two threads, L1 sweep of 1e6 states x 4 x 3: speed-up", ratio, ">= 1.7", f"{timings['one'].wall:.3f} s")
    ]


def variance(repeats: int) -> list[Line]:
    """Compares plans from a posterior with and without their variance."""
    models = garnets() | {"small": urbe.library.garnet(20, 4, 5, seed=0, discount=DISCOUNT)}
    lines = []
    for name, mdp in models.items():
        posterior = urbe.Posterior.before(mdp, 50.0 * mdp.rows.probability)
        place = np.linspace(0.0, 1.0, mdp.n_states)
        sets = {
            "nominal": None,
            "L1": urbe.L1Ball(RADIUS),
            "weighted L1": urbe.WeightedL1Ball(RADIUS, 1.0 + place),
            "L2": urbe.L2Ball(0.1),
            "L-infinity": urbe.LInfBall(0.05),
            "KL": urbe.KLBall(0.1),
            "likelihood": urbe.LikelihoodRegion(0.1),
            "chi-square": urbe.Chi2Ball(0.1),
            "contamination": urbe.Contamination(0.1),
        }
        if name == "small":  # every successor against every other: elsewhere minutes, with or without variance
            sets["Wasserstein"] = urbe.WassersteinBall(0.05, np.abs(place[:, None] - place))
        for label, nature in sets.items():
            for what, horizon in (("20 steps", 20), ("infinite horizon", None)):
                ratio, both = _variance_ratio(posterior, nature, horizon, repeats)
                lines.append(Line(f"{name}: {label} plan with variance / without, {what}", ratio, "<= 2", both))
    return lines


def large(n_states: int, limit: float) -> list[Line]:
    """Measures time and peak memory of building and solving a large Garnet, in a separate process."""
    code = (
        "import resource, time, urbe\n"
        f"mdp = urbe.library.garnet({n_states}, 4, 3, seed=0, discount={DISCOUNT})\n"
        "began = time.perf_counter(), time.process_time()\n"
        f"s = urbe.solve(mdp, urbe.L1Ball({RADIUS}), threads=2)\n"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9\n"
        "print(time.perf_counter() - began[0], time.process_time() - began[1], peak, s.gap, s.steps)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    wall, cpu, peak, gap, steps = map(float, done.stdout.split())
    summary = f"solved in {wall:.1f} s wall, {cpu:.1f} s CPU, gap {gap:.1e}, {steps:.0f} sweeps, 2 threads"
    return [Line(f"{n_states:.0e} states x 4 x 3, robust L1: peak memory, GB", peak, f"<= {limit:g}", summary)]


def systems() -> list[Line]:
    """Measures time and memory of a large factor set, and of safe plans from a large log, in separate processes."""
    factors = (
        "import time, numpy as np, urbe\n"
        "rng = np.random.default_rng(0)\n"
        "share, factor = rng.random((10**6, 50)), rng.random((50, 10**5))\n"
        "share /= share.sum(axis=1, keepdims=True)\n"
        "factor /= factor.sum(axis=1, keepdims=True)\n"
        "weather = urbe.FactorSet(share.reshape(10**5, 10, 50), factor, urbe.L1Ball(0.3, support='all'))\n"
        "began = time.process_time()\n"
        "model = weather.model(rng.random((10**5, 10)), discount=0.95, listed=False)\n"
        "solution = urbe.solve(model, weather)\n"
        "assert solution.gap < 1e-6\n"
    )
    log = (
        "import time, numpy as np, urbe\n"
        "rng, n = np.random.default_rng(0), 5_000_000\n"
        "mdp = urbe.library.garnet(1000, 5, 5, seed=0, discount=0.95)\n"
        "row, uniform = rng.integers(0, mdp.n_rows, n), rng.random(n)\n"
        "total = np.cumsum(mdp.rows.probability.reshape(-1, 5), axis=1)\n"
        "at = 5 * row + np.minimum((uniform[:, None] > total[row]).sum(axis=1), 4)\n"
        "reward, to = mdp.rows.reward[row], mdp.rows.successor[at]\n"
        "log = urbe.Transitions(mdp.row_state[row], mdp.action[row], reward, to)\n"
        "del uniform, at, reward, to\n"
        "began = time.process_time()\n"
        "posterior = urbe.Posterior.fit(log, discount=0.95)\n"
    )
    plan = "found = urbe.plan(posterior, confidence=0.95, method=urbe.{}(), seed=0, held_out=0, certify={})\n"
    lines = [_apart("factor set, 1e5 states x 10 x 50 factors: CPU s", factors, "<= 10")]
    lines += [
        _apart(f"{method}, 5,000 pairs, 5e6 transitions: CPU s", log + plan.format(method, 400), "<= 60")
        for method in ("BCI", "RSVF")
    ]
    return lines


def _apart(what: str, code: str, target: str) -> Line:
    """Runs code in a new process that sets `began`; CPU seconds since then, and the peak memory of the process."""
    ends = "import resource\nprint(time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    done = subprocess.run([sys.executable, "-c", code + ends], capture_output=True, text=True, check=True)
    seconds, kilobytes = map(float, done.stdout.split())
    return Line(what, seconds, target, f"peak memory {kilobytes * 1024 / 1e9:.2f} GB")


def cold_start(repeats: int) -> list[Line]:
    """Times imports in a new process, without the start of Python: the package, a first solve's part, dependencies."""
    codes = {
        "python": "pass",
        "import urbe": "import urbe",
        "import urbe, then MDP, L1Ball and solve": "import urbe; urbe.MDP, urbe.L1Ball, urbe.solve",
        "import numpy, numba": "import numpy, numba",
    }
    run = {name: task(lambda code=code: subprocess.run([sys.executable, "-c", code])) for name, code in codes.items()}
    timings = best_of(run, repeats)
    wanted = {"import urbe": "<= 0.5"}
    return [
        Line(f"{name}, s", timings[name].wall - timings["python"].wall, wanted.get(name, ""), "minimum wall time")
        for name in list(codes)[1:]
    ]


def best_of_once(run: Callable[[], object]) -> float:
    """Measures CPU seconds of a single run, for tasks that take too long to repeat."""
    import time

    began = time.process_time()
    run()
    return time.process_time() - began


def _variance_ratio(
    posterior: urbe.Posterior, nature: urbe.AmbiguitySet | None, horizon: int | None, repeats: int
) -> tuple[float, str]:
    method = METHOD if horizon is None else urbe.BackwardInduction(horizon)
    endless = METHOD if horizon is None else None
    tasks = {
        "without": task(lambda: urbe.solve(posterior.mean(), nature, method)),
        "with": task(lambda: urbe.value_variance(posterior, nature, horizon=horizon, method=endless)),
    }
    timings = best_of(tasks, repeats)
    return timings["with"].cpu / timings["without"].cpu, _both(timings["with"])


def _trajectory(mdp: urbe.MDP) -> list[np.ndarray]:
    """Returns the values at which a robust solve sweeps over all rows."""
    nature = urbe.L1Ball(RADIUS)
    values = [urbe.solve(mdp, None, urbe.PartialPolicyIteration(max_steps=2), throw=False).value]
    for _ in range(4):
        step = urbe.PartialPolicyIteration(max_steps=2, tolerance=0.0)
        values.append(urbe.solve(mdp, nature, step, start=values[-1], throw=False).value)
    return values


def _sweep_time(nature: urbe.AmbiguitySet, mdp: urbe.MDP, values: list[np.ndarray], repeats: int) -> float:
    """Measures the seconds of one sweep, averaged over the values of a solve after the first."""
    bound = nature.bind(mdp)
    bound.values(values[0])

    def run() -> None:
        for v in values[1:]:
            bound.values(v)

    return best_of({"sweep": task(run)}, repeats)["sweep"].cpu / (len(values) - 1)


def _cold_sweep_time(nature: urbe.AmbiguitySet, mdp: urbe.MDP, values: list[np.ndarray], repeats: int) -> float:
    from benchmarks.timing import Task

    first = Task(lambda: nature.bind(mdp), lambda bound: bound.values(values[0]))
    return best_of({"first": first}, repeats)["first"].cpu


def _both(timing: Timing) -> str:
    return f"{1e3 * timing.cpu:.2f} ms CPU, {1e3 * timing.wall:.2f} ms wall"
