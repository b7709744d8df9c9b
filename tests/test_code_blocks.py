"""Code blocks of the pages other than doctests: Python runs, and commands and options exist.

Doctests run in test_pages.py, extension pages in testing/test_extension_pages.py, tutorials in test_tutorials.py, the
README in test_examples.py.
"""

import re
import shlex
import tomllib
from inspect import signature
from pathlib import Path

import pytest

import urbe.paper
from urbe.cli.main import build_parser

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
ELSEWHERE = {"README.md", "tutorials", "extend"}


def blocks(page, languages):
    found = re.findall(r"^( *)```(\w*)\n(.*?)^ *```$", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [body for _, language, body in found if language in languages]


def plain_python():
    """`(page, all plain blocks of Python, in order)` of pages that no other test runs."""
    for page in PAGES:
        if page.name not in ELSEWHERE and page.parent.name not in ELSEWHERE:
            code = [body for body in blocks(page, ("python",)) if ">>>" not in body]
            if code:
                yield page, "\n".join(code)


@pytest.mark.parametrize(("page", "code"), list(plain_python()), ids=lambda each: getattr(each, "name", ""))
def test_python_runs(page, code, tmp_path, monkeypatch):
    """Runs it as it stands; whole reproductions, which take hours, are called with arguments that they take."""
    if "urbe.sweep.ray" in code:
        pytest.importorskip("ray", reason='Ray is missing: pip install "urbe[ray]"')
    called = []

    def instead(*given, **named):
        called.append(signature(urbe.paper.reproduce.__wrapped__).bind(*given, **named))

    instead.__wrapped__ = urbe.paper.reproduce
    monkeypatch.setattr(urbe.paper, "reproduce", instead)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, page.name, "exec"), {"__name__": page.stem})
    assert len(called) == code.count("reproduce(")


def commands():
    """`(page, command)` of all lines of shell blocks, without comments and prompts; continued lines are one."""
    for page in PAGES:
        for body in blocks(page, ("sh", "bash", "text", "")):
            for line in body.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True) if re.match(r"(urbe|make|pip) ", line) else []
                if words:
                    yield str(page.relative_to(ROOT)), words


COMMANDS = list(commands())


@pytest.mark.parametrize(
    ("page", "words"), COMMANDS, ids=lambda each: each if isinstance(each, str) else "-".join(each[:2])
)
def test_commands_are_understood(page, words):
    if words[0] == "urbe":
        build_parser().parse_args([word for word in words[1:] if word != "..."])
    elif words[0] == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
        assert {word for word in words[1:] if "=" not in word} <= set(targets)
    else:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        asked = re.findall(r"\[([\w,]+)\]", " ".join(words))
        assert set(",".join(asked).split(",")) - {""} <= set(extras), page


def test_there_are_commands_of_every_kind():
    assert {words[0] for _, words in COMMANDS} == {"urbe", "make", "pip"}
    assert len(COMMANDS) > 25
