"""The contract checker finds and names every law that is broken on purpose."""

import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from urbe.ambiguity.l1 import L1Ball
from urbe.ambiguity.nature import WorstCase
from urbe.ambiguity.optimistic import Optimistic
from urbe.ambiguity.rectangular import RectangularSet
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.testing import check_ambiguity_set, small_models
from urbe.workers import SERIAL

PAGE = Path(__file__).parents[2] / "docs" / "extend" / "ambiguity_set.md"


@dataclass
class Tampered:
    """A sound nature with some answers replaced: `changes[name](nature, *args)`."""

    inner: Any
    changes: dict[str, Any]

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def _answer(self, name, *args):
        change = self.changes.get(name)
        return change(self, *args) if change else getattr(self.inner, name)(*args)

    @property
    def accuracy(self):
        return self.changes.get("accuracy", self.inner.accuracy)

    @property
    def discount(self):
        return self.changes.get("discount", self.inner.discount)

    def values(self, v, shift=0.0, workers=SERIAL, out=None, memory=None):
        found = self._answer("values", v, shift, workers, out)
        return self.changes["memory"](found, memory) if "memory" in self.changes and memory is not None else found

    def worst_case(self, v, memory=None):  # noqa: ARG002
        return self._answer("worst_case", v)

    def take(self, chosen):
        if "take" in self.changes:
            return self.changes["take"](self, chosen)
        return Tampered(self.inner.take(chosen), self.changes)

    def excess(self, kernel):
        return self._answer("excess", kernel)

    def dual_bound(self, v):
        return self._answer("dual_bound", v)


@dataclass
class Broken(RectangularSet):
    """An L1 ball whose nature has been tampered with."""

    changes: dict[str, Any]
    radius: float = 0.3

    def bind(self, mdp):
        return Tampered(L1Ball(self.radius).bind(mdp), self.changes)


def with_q(rows, q):
    return Rows(rows.n_states, rows.entry_start, rows.successor, q, rows.reward)


def nominal_kernel(nature, v):
    worst = nature.inner.worst_case(v)
    return WorstCase(worst.value, nature.inner.rows, worst.sensitivity)


def another_point_of_the_row(nature, v):
    """All mass on the first successor."""
    worst = nature.inner.worst_case(v)
    q = np.zeros(worst.rows.n_entries)
    q[worst.rows.entry_start[:-1]] = 1.0
    z = nature.inner.discount * v[worst.rows.successor]
    z = (
        z
        + np.repeat(worst.rows.row_reward, worst.rows.length)
        + (0.0 if worst.rows.entry_reward is None else worst.rows.entry_reward)
    )
    return WorstCase(worst.rows.row_sums(q * z), with_q(worst.rows, q), worst.sensitivity)


def mutating(nature, v, shift, workers, out):
    out = nature.inner.values(v, shift, workers, out)
    v += 1e-7
    return out


def only_the_last_block(nature, v, shift, workers, out):
    out = nature.inner.values(v, shift, workers, out)
    if workers is not SERIAL:
        blocks = []
        workers.run(nature.inner.rows.entry_start, lambda first, last: blocks.append((first, last)))
        out[: max(first for first, _ in blocks)] = 0.0
    return out


def edit(name, change):
    """Replaces one field of the worst case."""

    def worst_case(nature, v):
        worst = nature.inner.worst_case(v)
        return worst._replace(**{name: change(getattr(worst, name))})

    return worst_case


def into_an_array_of_its_own(nature, v, shift, workers, out):  # noqa: ARG001  that is what is wrong with it
    return nature.inner.values(v, shift, workers)


def exact(nature, v, shift, workers, out):
    return nature.inner.values(v, shift, workers, out)


def pulled(f):
    """values(v) + f(v)."""
    return lambda nature, v, shift, workers, out: nature.inner.values(v, shift, workers, out) + f(v)


def too_high_reward(rows):
    return Rows(rows.n_states, rows.entry_start, rows.successor, rows.probability, rows.reward + 1e-6)


def swapped_successors(rows):
    return Rows(rows.n_states, rows.entry_start, rows.successor[::-1].copy(), rows.probability, rows.reward)


BROKEN = {
    "discount": {"discount": 0.123},
    "accuracy": {"accuracy": float("nan")},
    "values has one number per row": {"values": lambda n, *a: n.inner.values(*a)[:, None]},
    "values has one number per row: .*found float32": {"values": lambda n, *a: n.inner.values(*a).astype(np.float32)},
    "values are finite": {"values": lambda n, *a: n.inner.values(*a) * np.nan},
    "inputs stay untouched: on sparse rows: v was": {"values": mutating},
    "Q is monotone in v": {"values": pulled(lambda v: -3.0 * v.max())},
    r"Q\(v \+ c\) = Q\(v\) \+ discount c": {"values": pulled(lambda v: 1e-3 * v.sum())},
    r"values\(v, shift=c\) = values\(v \+ c\)": {"values": lambda n, v, _, w, out: n.inner.values(v, 0.0, w, out)},
    r"worst_case\(v\)\.value = values\(v\)": {"worst_case": edit("value", lambda x: x + 1e-6)},
    "the worst-case kernel attains the value": {"worst_case": nominal_kernel},
    "the worst-case kernel's rows are distributions: .*found 1.1": {
        "worst_case": edit("rows", lambda rows: with_q(rows, 1.1 * rows.probability))
    },
    "the worst-case kernel's rows are distributions: .*a probability is -": {
        "worst_case": edit("rows", lambda rows: with_q(rows, rows.probability - 1.0))
    },
    "the worst-case kernel's rows are distributions: .*increase": {"worst_case": edit("rows", swapped_successors)},
    r"worst_case\(v\)\.rows carries the model's rewards": {"worst_case": edit("rows", too_high_reward)},
    "the worst-case kernel lies in the set": {"excess": lambda n, kernel: n.inner.excess(kernel) + 1e-6},
    "the worst-case kernel lies in the set: .*action": {
        "worst_case": another_point_of_the_row,
        "values": lambda n, v, shift, *_: another_point_of_the_row(n, v).value + n.inner.discount * shift,
    },
    "sensitivity has one number per entry": {"worst_case": edit("sensitivity", lambda m: m[:-1])},
    "sensitivity is the derivative by the centre": {"worst_case": edit("sensitivity", lambda m: 0.9 * m)},
    "dual_bound bounds Q from below": {"dual_bound": lambda n, v: n.inner.dual_bound(v) + 1e-9},
    "dual_bound is tight": {"dual_bound": lambda n, v: n.inner.dual_bound(v) - 1e-6},
    r"take\(rows\) answers like the full sweep": {"take": lambda n, chosen: n.inner.take(np.sort(chosen))},
    r"take\(rows\) .* has shape": {"take": lambda n, chosen: n.inner.take(np.append(chosen, 0))},
    "values do not depend on the workers": {"values": only_the_last_block},
    r"values\(v, out=x\) writes x and returns it": {"values": into_an_array_of_its_own},
    "excess is positive outside the set": {"excess": lambda n, kernel: np.zeros_like(n.inner.excess(kernel))},
}


@pytest.mark.parametrize("law", BROKEN)
def test_a_broken_law_is_named(law):
    with pytest.raises(AssertionError, match=law):
        check_ambiguity_set(Broken(BROKEN[law]))


@dataclass
class Growing(RectangularSet):
    """A ball that is larger after its first sweep, and consistent from then on."""

    def bind(self, mdp):
        larger = L1Ball(0.31).bind(mdp)

        def values(nature, *arguments):
            out = nature.inner.values(*arguments)
            nature.inner = larger
            return out

        return Tampered(L1Ball(0.3).bind(mdp), {"values": values, "take": lambda n, chosen: n.inner.take(chosen)})


def test_answers_that_change_after_a_sweep_are_noticed():
    with pytest.raises(AssertionError, match="values do not depend on earlier sweeps"):
        check_ambiguity_set(Growing())


def adding_up(found, memory):
    memory += 1e-7
    return found + memory


def test_answers_that_depend_on_what_is_remembered_are_noticed():
    with pytest.raises(AssertionError, match="values do not depend on earlier sweeps"):
        check_ambiguity_set(Broken({"memory": adding_up}))


def test_a_set_that_only_binds_hears_what_it_lacks():
    class Bound:
        def bind(self, mdp):
            return L1Ball(0.3).bind(mdp)

    with pytest.raises(AssertionError, match=r"a set has an operator: .*inherit from urbe\.ambiguity\.RectangularSet"):
        check_ambiguity_set(Bound())


def test_the_untampered_set_passes():
    check_ambiguity_set(Broken({"values": exact}))
    check_ambiguity_set(Broken({}), seed=1)


def test_an_optimist_is_not_a_pessimist():
    with pytest.raises(AssertionError, match="Q is concave in v"):
        check_ambiguity_set(Optimistic(L1Ball(0.3)))
    with pytest.raises(AssertionError, match="Q is convex in v"):
        check_ambiguity_set(L1Ball(0.3), optimistic=True)


def test_an_optimists_bound_comes_from_above():
    @dataclass
    class TooLow(RectangularSet):
        def bind(self, mdp):
            lower = {"dual_bound": lambda n, v: n.inner.dual_bound(v) - 1e-9}
            return Tampered(Optimistic(L1Ball(0.3)).bind(mdp), lower)

    with pytest.raises(AssertionError, match="dual_bound bounds Q from above"):
        check_ambiguity_set(TooLow(), optimistic=True)


def test_a_wrong_oracle_is_noticed():
    with pytest.raises(AssertionError, match="values agree with the oracle"):
        check_ambiguity_set(L1Ball(0.3), oracle=lambda p, z: p @ z)


def test_messages_name_model_row_and_numbers():
    with pytest.raises(AssertionError) as failure:
        check_ambiguity_set(Broken({"dual_bound": lambda n, v: n.inner.dual_bound(v) - 1.0}))
    expected = r"found \S+, expected \S+, off by 1 where \S+ is allowed\."
    assert re.fullmatch(r"dual_bound is tight: on sparse rows, state 0, action 0: " + expected, str(failure.value))


def test_nothing_to_compare_is_said():
    mdp = MDP.from_dense(np.full((2, 1, 2), 0.5), 0.0, discount=0.0, terminal=[1])

    @dataclass
    class Jumpy(RectangularSet):
        """Depends on the centre with a kink wherever it stands."""

        def bind(self, mdp):
            bend = np.abs(mdp.rows.probability[:1] - 0.5)
            return Tampered(L1Ball(0.0).bind(mdp), {"values": lambda n, *a: n.inner.values(*a) + bend})

    with pytest.raises(AssertionError, match="kink at every tested value"):
        check_ambiguity_set(Jumpy(), mdp)
    check_ambiguity_set(Jumpy(), mdp, center_moves=False)


def test_small_models_are_what_they_are_called():
    models = small_models()
    assert (models["single successors"].rows.length == 1).all()
    assert models["one state"].n_states == 1
    assert models["terminal states"].terminal.sum() == 2
    assert models["rewards of successors"].rows.rewards_successors
    assert models["negative rewards"].rows.reward.max() < 0
    assert len(np.unique(models["ties"].rows.probability)) == 1
    lengths = models["sparse rows"].rows.length
    assert lengths.min() < models["sparse rows"].n_states
    same, other = small_models(0)["sparse rows"], small_models(1)["sparse rows"]
    assert np.array_equal(models["sparse rows"].rows.probability, same.rows.probability)
    assert not np.array_equal(same.rows.reward, other.rows.reward)


def test_the_tutorial_runs(tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert len(blocks) == 3
    file = tmp_path / "bounded_ratio_tutorial.py"
    file.write_text("\n\n".join(blocks))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, file.stem, module)
    spec.loader.exec_module(module)
    mdp = MDP.from_dense([[[0.4, 0.6]], [[1.0, 0.0]]], 0.0, discount=1.0)
    # 1.5 * 0.4 of the mass at 0, the rest at 1
    assert module.BoundedRatio(1.5).bind(mdp).values(np.array([0.0, 1.0]))[0] == pytest.approx(0.4, abs=1e-15)
    with pytest.raises(ValueError, match=r"ratio is 0\.5 for state 0, action 0"):
        module.BoundedRatio(0.5).bind(mdp)
