"""Measures the gain of each trick of `urbe.deep.core.tricks`: `python -m benchmarks.deep_tricks`.

DQN-URBE with fifteen members and the paper's CartPole network learns in stretches, as in `benchmarks.deep`: once with
all tricks, and once with each trick replaced by the obvious code. All take turns in one process; every figure is the
minimum of CPU time over repeats, and a gain is the time without the trick divided by the time with it, minus one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.deep import SETTINGS, STRETCH, _urbe  # sets up JAX before it computes anything
from urbe.deep.core import gram, last_layer, learner, networks, optimisers, targets, tricks
from urbe.deep.loops import compiled

KEPT = 0.03
"""The smallest gain for which a trick is kept."""


def _through_rows(network: Any, weights: Any, obs: Any) -> Any:
    return network.values(weights, network.features(weights, obs))


def _columns_by_jax(rectified: bool, x: Any, weight: Any, bias: Any) -> Any:
    y = weight.T @ x + bias[:, None]
    return jax.nn.relu(y) if rectified else y


def _condition(wanted: Any, body: Callable[[Any, Any], Any], carry: Any) -> Any:
    return jax.lax.cond(wanted.astype(jnp.int32) > 0, lambda now: body(jnp.int32(0), now), lambda now: now, carry)


def _plain(**functions: Any) -> SimpleNamespace:
    return SimpleNamespace(**{**vars(tricks), **functions})


Patch = tuple[Any, str, Any]
WITHOUT: dict[str, list[Patch]] = {
    "dense_columns: minibatches in columns": [(networks.Network, "training_values", _through_rows)],
    "dense_columns: a gradient of its own": [(networks, "tricks", _plain(dense_columns=_columns_by_jax))],
    "run_if: loops instead of conditions": [(tricks, "run_if", _condition)],
    "written: features of inverse counts": [(gram, "tricks", _plain(written=lambda x: x))],
    "in_turn: stale targets": [(targets, "tricks", _plain(in_turn=lambda mask, *_: mask))],
    "after: the action before the weights": [(learner, "tricks", _plain(after=lambda value, _: value))],
    "after: the gradient before the weights": [(optimisers, "tricks", _plain(after=lambda value, _: value))],
    "map_rows: one visit by itself": [(last_layer, "tricks", _plain(map_rows=lambda f, *rows: jax.vmap(f)(*rows)))],
}
"""The replacement of each trick, as `(module, name, value)`."""


@contextmanager
def _patched(patches: list[Patch]) -> Iterator[None]:
    before = [(where, name, getattr(where, name)) for where, name, _ in patches]
    try:
        for where, name, value in patches:
            setattr(where, name, value)
        compiled.make_advance.__wrapped__.cache_clear()
        yield
    finally:
        for where, name, value in before:
            setattr(where, name, value)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--only", nargs="*", metavar="WORD", help="tricks whose line contains one of these words")
    options = parser.parse_args()
    chosen = {
        name: patches
        for name, patches in WITHOUT.items()
        if options.only is None or any(word in name for word in options.only)
    }
    stretches = {}
    for name, patches in {"as it is": [], **chosen}.items():
        with _patched(patches):
            stretches[name] = _urbe(15)  # learns for a while, so that all is compiled while the patch holds
        print(f"{name}: compiled", file=sys.stderr, flush=True)
    cpu = dict.fromkeys(stretches, float("inf"))
    for _ in range(options.repeats):
        for name, run in stretches.items():
            began = time.process_time()
            run()
            cpu[name] = min(cpu[name], time.process_time() - began)
    print(f"as it is: {STRETCH / cpu['as it is']:.0f} steps per CPU s, batch {SETTINGS.batch}")
    for name in chosen:
        gain = cpu[name] / cpu["as it is"] - 1.0
        print(f"| {name} | {gain:+.1%} | {'stays' if gain >= KEPT else 'goes'} |")


if __name__ == "__main__":
    main()
