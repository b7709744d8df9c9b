"""Nested containers of arrays become arrays by name and are restored; other structures are errors."""

import re
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from urbe.runs.errors import CheckpointError
from urbe.runs.tensors import load_tensors, save_tensors
from urbe.runs.tree import flatten, unflatten


class Pair(NamedTuple):
    left: object
    right: object


class Nothing(NamedTuple):
    pass


def example():
    return {
        "net": Pair((np.zeros(2, np.float32), [np.ones((1, 3))]), {}),
        "steps": 3,
        "rate": 0.5,
        "yes": True,
        "none": None,
        "empty": [Nothing(), ()],
        "scalar": np.float32(2.5),
    }


def test_names_are_paths():
    flat = flatten(example())
    assert list(flat) == ["net/left/0", "net/left/1/0", "steps", "rate", "yes", "scalar"]
    assert all(type(array) is np.ndarray for array in flat.values())
    assert flat["scalar"].dtype == np.float32


def test_trees_come_back_with_their_containers_and_plain_numbers():
    back = unflatten(dict(reversed(flatten(example()).items())), example())
    assert type(back["net"]) is Pair
    assert type(back["net"].left) is tuple
    assert type(back["net"].left[1]) is list
    assert back["empty"] == [Nothing(), ()]
    assert type(back["empty"][0]) is Nothing
    assert back["none"] is None
    assert (back["steps"], back["rate"], back["yes"]) == (3, 0.5, True)
    assert [type(back[name]) for name in ("steps", "rate", "yes", "scalar")] == [int, float, bool, np.ndarray]
    assert np.array_equal(back["net"].left[1][0], np.ones((1, 3)))


leaves = st.integers(0, 4).map(lambda n: np.arange(n, dtype=np.int16))
keys = st.text("abc_ é0", min_size=1, max_size=3)
trees = st.recursive(
    leaves | st.none(),
    lambda inner: (
        st.dictionaries(keys, inner, max_size=3)
        | st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.builds(Pair, inner, inner)
    ),
    max_leaves=8,
).filter(lambda tree: not isinstance(tree, np.ndarray))


def same(a, b):
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return type(b) is dict and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if a is None:
        return b is None
    return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))


@given(tree=trees)
def test_every_tree_comes_back(tree):
    flat = flatten(tree)
    assert same(unflatten(flat, tree), tree)
    assert len(flat) == len(jax.tree.leaves(tree))  # JAX, too, finds nothing in None and in empty containers


def test_arrays_are_not_copied():
    x = np.ones(3)
    assert flatten([x])["0"] is x
    assert unflatten({"0": x}, [x])[0] is x


def test_arrays_of_jax_go_through_a_checkpoint(tmp_path):
    tree = {"w": jnp.arange(6, dtype=jnp.float32).reshape(2, 3), "key": jax.random.key_data(jax.random.key(3))}
    save_tensors(tmp_path / "c", flatten(tree), {})
    tensors, _ = load_tensors(tmp_path / "c")
    described = jax.eval_shape(lambda: tree)  # shapes and types alone say what is expected
    for like in (tree, described):
        back = unflatten(tensors, like, tmp_path / "c")
        assert all(type(back[name]) is np.ndarray for name in tree)
        assert all(back[name].dtype == tree[name].dtype and np.array_equal(back[name], tree[name]) for name in tree)
    with pytest.raises(CheckpointError, match="holds 'w' as float32"):
        unflatten(tensors, {**described, "w": jax.ShapeDtypeStruct((2, 3), jnp.int32)})
    with pytest.raises(TypeError, match=r"key is of type .*, expected an array"):
        flatten({"key": jax.random.key(3)})


FLAT = {"a/0": np.zeros(2), "a/1": np.zeros((2, 3), np.float32), "b": np.array(1)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"b": None}, "c: lacks 'b'; expected the 3 arrays of that structure."),
        ({"c": np.ones(1)}, "c: has the unexpected 'c'; expected the 3 arrays"),
        ({"b": None, "c": np.ones(1)}, "c: lacks 'b' and has the unexpected 'c';"),
        ({"a/1": np.zeros((2, 3))}, "c: holds 'a/1' as float64 of shape (2, 3), expected float32 of shape (2, 3)."),
        ({"a/0": np.zeros((2, 1))}, "c: holds 'a/0' as float64 of shape (2, 1), expected float64 of shape (2,)."),
        ({"b": np.array(1.0)}, "c: holds 'b' as float64 of shape (), expected int64 of shape ()."),
    ],
)
def test_other_arrays_are_refused_in_words(change, message):
    like = {"a": [FLAT["a/0"], FLAT["a/1"]], "b": 1}
    unflatten(FLAT, like)
    changed = {name: array for name, array in (FLAT | change).items() if array is not None}
    with pytest.raises(CheckpointError, match=re.escape(message)):
        unflatten(changed, like, "c")


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (np.zeros(2), "tree is of type ndarray, expected a dict, a tuple or a list of arrays"),
        ({"a": {"b/c": 1}}, "a has the key 'b/c', expected a text, not empty and without '/'"),
        ({"": 1}, "tree has the key '', expected"),
        ({3: 1}, "tree has the key 3, expected"),
        ({"a": [object()]}, "a/0 is of type object, expected an array of numbers"),
        ({"a": 2**70}, "a is of type int, expected an array of numbers"),
    ],
)
def test_trees_without_names_are_refused(tree, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        flatten(tree)
