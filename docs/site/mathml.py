"""Equations as MathML: browsers draw it by themselves, with no script, font or network."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

LIMITS = ("max", "min")
RELATIONS = ("⟹",)
PRIME = "′"


def mathml(text: str, display: str) -> str:
    """LaTeX as MathML, with limits beneath their operators and primes where text has them."""
    tree = ElementTree.fromstring(convert(text, display=display))
    for element in tree.iter():
        element.tag = element.tag.rpartition("}")[2]  # without the namespace
        first = element[0].text if len(element) else None
        if element.tag.endswith("msub") and first in LIMITS and display == "block":
            element.tag = "munder"
        elif element.tag == "mi" and element.text in RELATIONS:
            element.tag = "mo"
    for element in list(tree.iter()):
        if element.tag in ("msup", "msubsup") and element[-1].text == PRIME:
            _set_prime(element)
    return ElementTree.tostring(tree, encoding="unicode")


def _set_prime(element: ElementTree.Element) -> None:
    """The character is a raised one in fonts of text: as a superscript it would be raised twice."""
    parts = list(element)[:-1]
    for part in list(element):
        element.remove(part)
    if element.tag == "msubsup":
        below = ElementTree.Element("msub")
        below.extend(parts)
        parts = [below]
    prime = ElementTree.Element("mo", {"lspace": "0", "rspace": "0"})
    prime.text = PRIME
    element.tag = "mrow"
    element.extend([*parts, prime])


def visit_inline(translator: Any, node: Any) -> None:
    """Within a line."""
    translator.body.append(mathml(node.astext(), "inline"))
    raise SkipNode


def visit_block(translator: Any, node: Any) -> None:
    """On lines of its own; wide ones scroll within their box."""
    translator.body.append(f'<div class="equation">{mathml(node.astext(), "block")}</div>')
    raise SkipNode


def setup(app: Any) -> dict[str, bool]:
    """The renderer `mathml` of Sphinx."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
