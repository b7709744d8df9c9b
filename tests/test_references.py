"""Every citation in the source has an entry in docs/references.bib."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_cited_keys_are_in_the_bibliography() -> None:
    known = re.findall(r"^@\w+\{(\w+),", (ROOT / "docs/references.bib").read_text(), flags=re.MULTILINE)
    cited = {
        key: str(path.relative_to(ROOT))
        for path in sorted((ROOT / "src").rglob("*.py"))
        for key in re.findall(r"\[([A-Z][A-Za-z]+\d{4})\]", path.read_text())
    }
    assert "HaddadMonmege2018" in cited  # the pattern finds citations
    assert {key: path for key, path in cited.items() if key not in known} == {}
    assert sorted(known) == sorted(set(known))
