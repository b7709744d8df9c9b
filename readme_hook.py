"""The long description of a distribution: README.md as it reads away from the repository.

On an index page relative links and pictures lead nowhere, and there is no clone to install from. So a link becomes its
text, a picture its caption, and the commands install from the index. Whoever publishes may give the address of the
repository when building, `URBE_README_BASE=ADDRESS python -m build`: then links and pictures lead there.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ModuleNotFoundError:  # read by tests alone
    MetadataHookInterface = object

NOT_YET = "urbe is not on a package index yet. Install it from a clone or an unpacked archive, with Python"
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")


class ReadmeHook(MetadataHookInterface):  # type: ignore[misc]
    """Sets `readme`, which pyproject.toml calls dynamic."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Reads README.md beside pyproject.toml."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": long_description(text, os.environ.get("URBE_README_BASE", "")),
        }


def long_description(text: str, base: str = "") -> str:
    """README.md for an index page.

    Args:
      text: of README.md.
      base: what stands before relative links and pictures; without it links are plain text and pictures captions.

    Raises:
      ValueError: the sentence about the index is not there any more.
    """
    if NOT_YET not in text:
        raise ValueError(
            f"README.md has no line {NOT_YET!r}, which is replaced on an index page; change readme_hook.py."
        )
    text = text.replace(NOT_YET, "Install it with Python").replace('pip install ".[', 'pip install "urbe[')

    def without_repository(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        if base:
            return f"{picture}[{words}]({base.rstrip('/')}/{target})"
        return f"*Picture in the repository: {words}.*" if picture else words

    return _LINK.sub(without_repository, text)
