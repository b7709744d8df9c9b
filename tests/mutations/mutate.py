"""All mutations of the compiled functions of a module, as source texts of the whole module."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import NamedTuple

COMPILED = ("njit", "register_jitable", "in_order", "row_function", "vector_function", "elementwise")
ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
COMPARISONS = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
OTHERS = ("moments", "carr", "both", "answer")
"""Parts of the names of functions that serve variances, which the corpus does not ask for."""
CHOICES = {"min": "max", "max": "min"}


class Mutation(NamedTuple):
    """A changed module, and what was changed where."""

    text: str
    line: int
    what: str


def mutations(text: str) -> list[Mutation]:
    """One for each place in a compiled function that can be changed."""
    return [_mutated(text, at) for at in range(count(text))]


def count(text: str) -> int:
    """How many there are."""
    return sum(1 for _ in _places(ast.parse(text)))


def _mutated(text: str, at: int) -> Mutation:
    tree = ast.parse(text)
    node, change = list(_places(tree))[at]
    before = ast.unparse(node)
    change()
    return Mutation(ast.unparse(tree), node.lineno, f"{before}  ->  {ast.unparse(node)}")


def _places(tree: ast.Module) -> Iterator[tuple[ast.expr, Callable[[], None]]]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and _is_kernel(function):
            for statement in function.body:
                for node in ast.walk(statement):
                    change = _change(node)
                    if change is not None:
                        assert isinstance(node, ast.expr)
                        yield node, change


def _is_kernel(function: ast.FunctionDef) -> bool:
    compiled = any(_compiles(each) for each in function.decorator_list)
    return compiled and not any(part in function.name for part in OTHERS)


def _compiles(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Name) and called.id in COMPILED


def _change(node: ast.AST) -> Callable[[], None] | None:
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        return lambda: setattr(node, "op", ARITHMETIC[type(node.op)]())
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        return lambda: node.ops.__setitem__(0, COMPARISONS[type(node.ops[0])]())
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CHOICES:
        chosen = copy.copy(node.func)
        chosen.id = CHOICES[chosen.id]
        return lambda: setattr(node, "func", chosen)
    if isinstance(node, ast.Constant) and type(node.value) is float and node.value not in (0.0,):
        return lambda: setattr(node, "value", node.value * 1.001)
    return None
