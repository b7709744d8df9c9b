"""Equations as MathML: browsers draw it by themselves, with no script, font or network."""

from __future__ import annotations

from typing import Any

from latex2mathml.converter import convert


def visit_inline(translator: Any, node: Any) -> None:
    """Within a line."""
    from docutils.nodes import SkipNode

    translator.body.append(convert(node.astext()))
    raise SkipNode


def visit_block(translator: Any, node: Any) -> None:
    """On lines of its own; wide ones scroll within their box."""
    from docutils.nodes import SkipNode

    translator.body.append(f'<div class="equation">{convert(node.astext(), display="block")}</div>')
    raise SkipNode


def setup(app: Any) -> dict[str, bool]:
    """The renderer `mathml` of Sphinx."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
