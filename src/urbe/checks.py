"""Validate public arguments; all messages about numbers and arrays are here.

A message names the argument and the index, what was found, what was expected and what to do. Numbers are real numbers
of Python or NumPy, 0-d arrays, fractions and decimals. Text, booleans, complex numbers and NaN are rejected, also in
arrays and even if NumPy could convert them, because they are usually a mistake.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from decimal import Decimal
from enum import Enum
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from urbe.types import BoolArray, FloatArray, IntArray


def listing(items: Sequence[object], most: int = 5) -> str:
    """Lists the first few of many items: `3, 7, 9 and 12 more`."""
    shown = ", ".join(str(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"


def kind(name: str, value: object, fits: bool, expected: str) -> None:
    """Raises unless `value` is of the expected kind; a class instead of an instance is reported as such.

    Args:
      name: name of the argument.
      value: the argument.
      fits: whether `value` is of the right kind.
      expected: the right kind, with an example.

    >>> kind("nature", 0.5, False, "a set such as L1Ball(0.5)")
    Traceback (most recent call last):
    TypeError: nature is 0.5, expected a set such as L1Ball(0.5).
    """
    if isinstance(value, type):
        raise TypeError(f"{name} is the class {value.__name__}, expected {expected}; write {value.__name__}(...).")
    if not fits:
        raise TypeError(f"{name} is {shown(value)}, expected {expected}.")


def shown(value: object, most: int = 60) -> str:
    """Formats `value`, or its type if the text would be long."""
    text = repr(value)
    kind_name = type(value).__name__
    return (
        text
        if len(text) <= most and "\n" not in text
        else f"{'an' if kind_name[0] in 'aeiouAEIOU' else 'a'} {kind_name}"
    )


def generator(name: str, value: object) -> np.random.Generator:
    """Returns `value` if it is a NumPy generator; else raises."""
    example = value if isinstance(value, int) else 0
    kind(name, value, isinstance(value, np.random.Generator), f"a generator such as np.random.default_rng({example})")
    assert isinstance(value, np.random.Generator)
    return value


def numbers(name: str, value: object) -> None:
    """Raises unless `value` is a number, an array of numbers, or a mapping to numbers; does not check their range."""
    kind(name, value, True, "a number or an array of numbers")
    if isinstance(value, Mapping):
        for key, one in value.items():
            _scalar(f"{name}[{key!r}]", one)
    else:
        float_array(name, value, all_finite=False)  # type: ignore[arg-type]


def float_array(name: str, value: ArrayLike, ndim: int | None = None, *, all_finite: bool = True) -> FloatArray:
    """Returns `value` as contiguous float64, finite if `all_finite`; errors name the first invalid index."""
    array = _real_array(name, value)
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name} has shape {array.shape}, expected {ndim} dimension{'s' if ndim != 1 else ''}.")
    if all_finite:
        finite(name, array)
    return array


def _real_array(name: str, value: ArrayLike) -> FloatArray:
    """Returns `value` as contiguous float64; it may contain NaN."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read as an array of numbers: {str(error).rstrip('.')}.") from None
    if array.ndim == 0 and array.dtype == object and not isinstance(array.item(), Real | Decimal):
        raise ValueError(f"{name} is {shown(array.item())}, expected a number or an array of numbers.")
    if array.dtype == object:  # fractions, decimals, very large integers, or no numbers
        found = [_scalar(index_text(name, at), x) for at, x in np.ndenumerate(array)]
        return np.array(found, dtype=np.float64).reshape(array.shape)
    if array.dtype.kind not in "fiu":
        what = shown(value) if array.ndim == 0 else f"an array of {_NOT_NUMBERS.get(array.dtype.kind, array.dtype)}"
        raise ValueError(f"{name} cannot be read as an array of numbers: it is {what}.{_cure(array)}")
    return np.asarray(array, dtype=np.float64, order="C")


_NOT_NUMBERS = {"b": "truth values", "c": "complex numbers", "U": "text", "S": "bytes"}


def _cure(array: np.ndarray) -> str:
    """Says how to convert an array that does not contain real numbers."""
    if array.dtype.kind in "bUS":
        return " Convert it explicitly, with float(...) or .astype(float)."
    return " Take its real part." if array.dtype.kind == "c" else ""


def finite(name: str, array: FloatArray) -> None:
    """Raises if an entry is NaN or infinite."""
    if not np.isfinite(array).all():
        bad = np.argwhere(~np.isfinite(array))
        found = f"{index_text(name, bad[0])} is {array[tuple(bad[0])]}, expected a finite number."
        many = f" {some(len(bad), array.size, 'entry', 'entries')} not finite; remove or impute them first."
        raise ValueError(found + (many if array.ndim else ""))


def int_array(name: str, value: ArrayLike, low: int, high: int | None = None, meaning: str = "index") -> IntArray:
    """Returns `value` as a 1-D integer array within `[low, high)`; floats are accepted if they are whole."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read as whole numbers: {error}.") from None
    if array.dtype.kind not in "fiu":
        for k, x in enumerate(array.tolist() if array.ndim == 1 else ()):
            if not isinstance(x, Real):
                raise ValueError(f"{name}[{k}] is {shown(x)}, expected a whole number.")
        raise ValueError(f"{name} cannot be read as whole numbers: its type is {array.dtype}.")
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}, expected one dimension.")
    if not np.issubdtype(array.dtype, np.integer):
        with np.errstate(invalid="ignore"):
            whole = np.isfinite(array) & (array == np.floor(array)) & (np.abs(array) < 2**53)
        if not whole.all():
            at = int(np.argmin(whole))
            raise ValueError(f"{name}[{at}] is {array[at]}, expected a whole number (0-based {meaning}).")
        array = array.astype(np.int64)
    if array.size:
        if array.min() < low:
            at = int(np.argmax(array < low))
            raise ValueError(f"{name}[{at}] is {array[at]}, expected at least {low} (0-based {meaning}).")
        if high is not None and array.max() >= high:
            at = int(np.argmax(array >= high))
            raise ValueError(f"{name}[{at}] is {array[at]}, expected a 0-based {meaning} below {high}.")
    return array


def same_length(arrays: dict[str, Any]) -> int:
    """Returns the common length of named 1-D arrays; raises if the lengths differ."""
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"The columns differ in length: {listed}; expected one entry per transition in each.")
    return next(iter(lengths.values()))


def number(name: str, value: object, low: float, high: float, *, closed: bool = True) -> float:
    """Returns a scalar within `[low, high]` (`[low, high)` if not `closed`); else raises."""
    x = _scalar(name, value)
    if not (low <= x <= high if closed else low <= x < high):
        interval = f"[{low:g}, {high:g}{']' if closed else ')'}"
        raise ValueError(f"{name} is {value!r}, expected a number in {interval}.")
    return x


def _scalar(name: str, value: object) -> float:
    x = _plain(value)
    if isinstance(x, bool) or not isinstance(x, Real | Decimal):
        cure = ", without quotes" if isinstance(x, str | bytes) else ""
        raise ValueError(f"{name} is {shown(value)}, expected a number{cure}.")
    return float(x)


def _plain(value: object) -> object:
    """Returns the number in a NumPy scalar or a 0-d array; anything else unchanged."""
    return np.asarray(value).item() if hasattr(value, "dtype") and np.ndim(value) == 0 else value  # type: ignore[arg-type]


def finite_number(name: str, value: object) -> float:
    """Returns a scalar that is neither NaN nor infinite; else raises."""
    x = _scalar(name, value)
    if not np.isfinite(x):
        raise ValueError(f"{name} is {value!r}, expected a finite number.")
    return x


def positive(name: str, value: object) -> float:
    """Returns a finite number above 0; else raises."""
    x = finite_number(name, value)
    if x <= 0.0:
        raise ValueError(f"{name} is {value!r}, expected a number above 0.")
    return x


def whole_number(name: str, value: object, low: int) -> int:
    """Returns an integer of at least `low`; booleans and fractions are rejected."""
    x = _plain(value)
    if isinstance(x, bool) or not isinstance(x, int) or x < low:
        raise ValueError(f"{name} is {shown(value)}, expected a whole number of at least {low}.")
    return x


def index(name: str, value: object, n: int) -> int:
    """Returns one of 0, ..., n - 1; else raises."""
    x = _plain(value)
    if isinstance(x, bool) or not isinstance(x, int) or not 0 <= x < n:
        raise ValueError(f"{name} is {shown(value)}, expected one of 0, ..., {n - 1}.")
    return x


def flag(name: str, value: object) -> bool:
    """True or False, and nothing that only counts as one of them."""
    x = _plain(value)
    if not isinstance(x, bool):
        raise ValueError(f"{name} is {shown(value)}, expected True or False.")
    return x


def choice(name: str, value: object, choices: type[Enum]) -> None:
    """Raises unless `value` is one of an enumeration's."""
    expected = f"one of {', '.join(f'{choices.__name__}.{each.name}' for each in choices)}"
    kind(name, value, isinstance(value, choices), expected)


def changed(given: Any, name: str, example: str, changes: Mapping[str, Any]) -> Any:
    """The settings `given`, called `name`, with some fields changed; raises naming what there is no field for."""
    kind(name, given, is_dataclass(given), f"settings such as {example}")
    try:
        known_names(changes, [each.name for each in fields(given)], type(given).__name__)
    except ValueError as error:  # an unknown keyword, as Python sees it
        raise TypeError(str(error)) from None
    return replace(given, **changes)


def file_path(name: str, value: object) -> str:
    """The path of a file or folder, as text or a `Path`."""
    kind(name, value, isinstance(value, str | os.PathLike), "the path of a file, such as 'model.csv'")
    return os.fsdecode(value)  # type: ignore[arg-type]


def sequence(name: str, value: object, expected: str) -> None:
    """Raises unless `value` is a list, a tuple or an array with something in it."""
    kind(name, value, isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes), expected)
    if not len(value):  # type: ignore[arg-type]
        raise ValueError(f"{name} is empty, expected {expected}.")


def probability(name: str, value: object) -> float:
    """Returns a number in (0, 1); else raises."""
    x = number(name, value, 0.0, 1.0)
    if x in (0.0, 1.0):
        raise ValueError(f"{name} is {x:g}, expected a number in (0, 1).")
    return x


def confidence(value: object) -> float:
    """Returns the confidence of an interval, a number in (0, 1); else raises."""
    x = _scalar("confidence", value)
    if not 0.0 < x < 1.0:
        raise ValueError(f"confidence is {value!r}, expected a number in (0, 1), like 0.95.")
    return x


def discount(value: object) -> float:
    """Returns a discount in [0, 1]; else raises."""
    return number("discount", value, 0.0, 1.0)


def one_of(name: str, value: object, choices: Sequence[str]) -> str:
    """Returns `value` if it is one of `choices`; else raises."""
    if value not in choices:
        raise ValueError(f"{name} is {value!r}, expected one of {', '.join(map(repr, choices))}.")
    return str(value)


def known_names(given: Iterable[str], known: Sequence[str], of: str) -> None:
    """Raises if a given parameter is not one of `of`."""
    unknown = [repr(name) for name in given if name not in known]
    if unknown:
        raise ValueError(
            f"{listing(unknown)} {'is' if len(unknown) == 1 else 'are'} not among the parameters of {of}, which are "
            f"{listing(known, 40)}."
        )


def non_negative(name: str, array: FloatArray) -> None:
    """Raises if an entry is below zero."""
    if array.size and array.min() < 0:
        at = np.argwhere(array < 0)[0]
        raise ValueError(f"{index_text(name, at)} is {array[tuple(at)]:.17g}, expected at least 0.")


def sum_tolerance(*given: Any) -> float:
    """How far from one such probabilities may sum: 1e-9, or 16 roundings of numbers given as float32."""
    first = (each[0] if isinstance(each, (list, tuple)) and each else each for each in given)
    return 2e-6 if any(getattr(each, "dtype", None) == np.float32 for each in first) else 1e-9


def distribution(name: str, value: ArrayLike, length: int, tolerance: float | None = None) -> FloatArray:
    """Returns a probability vector of `length`; a sum within `tolerance`, or its rounding, of one is normalised."""
    tolerance = sum_tolerance(value) if tolerance is None else tolerance
    array = float_array(name, value, ndim=1)
    if len(array) != length:
        raise ValueError(f"{name} has {len(array)} entries, expected {length}.")
    non_negative(name, array)
    total = array.sum()
    if abs(total - 1.0) > tolerance:
        raise ValueError(f"{name} sums to {total:.12g}, expected 1.")
    scaled: FloatArray = array / total
    return scaled


def mask(name: str, value: ArrayLike, shape: tuple[int, ...]) -> BoolArray:
    """Returns a boolean array of exactly `shape`; else raises."""
    array = np.asarray(value)
    if array.dtype != bool or array.shape != shape:
        raise ValueError(f"{name} has type {array.dtype} and shape {array.shape}, expected booleans of shape {shape}.")
    return array


def index_text(name: str, index: Sequence[int] | IntArray) -> str:
    """Formats an index as `name[3, 1]`, or as `name` for a scalar."""
    return f"{name}[{', '.join(str(int(i)) for i in index)}]" if len(index) else name


def some(n: int, total: int, one: str, many: str) -> str:
    """Formats a count as `1 of 12 rows is` / `4 of 12 rows are`; without a total, `1 row is` / `4 rows are`."""
    of_total = f"{n} of {total}" if total else str(n)
    return f"{of_total} {one if max(n, total) == 1 else many} {'is' if n == 1 else 'are'}"


def row_range(name: str, values: FloatArray, low: float, high: float, row_name: Callable[[int], str]) -> None:
    """Raises, naming state and action, if the number of a row is outside `[low, high]`."""
    wrong = ~((values >= low) & (values <= high))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(
            f"{name} is {values[at]:g} for {row_name(at)}, expected a number in [{low:g}, {high:g}]. "
            f"{some(int(wrong.sum()), len(values), 'row', 'rows')} outside."
        )


def per_replicate(
    name: str, value: ArrayLike, replicates: int, low: float, high: float, *, above: bool = False
) -> FloatArray:
    """Returns `(B,)` numbers within `[low, high]` (`(low, high]` if `above`) from a number or one per replicate."""
    array = float_array(name, value)
    if array.ndim and array.shape != (replicates,):
        raise ValueError(f"{name} has shape {array.shape}, expected a number or one per replicate ({replicates},).")
    wrong = ~((array > low if above else array >= low) & (array <= high))
    if wrong.any():
        at = np.argwhere(wrong)[0]
        interval = f"{'(' if above else '['}{low:g}, {high:g}]"
        raise ValueError(f"{index_text(name, at)} is {array[tuple(at)]:g}, expected a number in {interval}.")
    return np.array(np.broadcast_to(array, (replicates,)))
