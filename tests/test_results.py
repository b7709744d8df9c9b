"""The results in docs/results: complete, with enough seeds, and as described in their README."""

import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"


@pytest.fixture(scope="module")
def manifest():
    return json.loads((RESULTS / "manifest.json").read_text())


def test_every_file_of_the_manifest_is_there_and_no_other(manifest):
    found = {str(path.relative_to(RESULTS)) for path in RESULTS.rglob("*") if path.is_file()}
    assert found == {*manifest["files"], "README.md"}


@pytest.mark.parametrize("page", [path.name for path in sorted(RESULTS.glob("*.html"))])
def test_pages_lead_to_files_that_are_there(page):
    beside = re.findall(r'<a [^>]*href="([^"#][^"#]*)', (RESULTS / page).read_text())
    assert len(set(beside)) > 5
    assert all((RESULTS / path).is_file() for path in beside)


def test_every_cell_is_finished_and_of_one_commit_without_changes(manifest):
    for name, expected in manifest["experiments"].items():
        assert expected["missing"] == [], name
        assert len(expected["commits"]) == 1, name
        assert all(len(commit) == 40 for commit in expected["commits"]), name


@pytest.mark.parametrize(("experiment", "keys"), [("mars_rover", ("world", "members")), ("cartpole", ("inputs",))])
def test_every_deep_agent_has_ten_seeds_that_were_not_tuned_on(manifest, experiment, keys):
    seeds = defaultdict(set)
    for config in manifest["experiments"][experiment]["config"]:
        if config["agent"] != "optimum":
            seeds[(*(config[key] for key in keys), config["agent"])].add(config["seed"])
            assert config["seed"] not in config["tuning_seeds"]
    assert len(seeds) >= 10
    assert min(map(len, seeds.values())) >= 10


def test_the_readme_counts_the_claims_as_they_were_found():
    verdicts = re.findall(
        r"\| \*\*(holds|does not hold|undecided|not testable)\*\*( under)?", (RESULTS / "claims.md").read_text()
    )
    count = Counter(verdicts)
    assert len(verdicts) > 15
    numbers = {
        "hold": count["holds", ""],
        "hold under some assumptions": count["holds", " under"],
        "do not hold": count["does not hold", ""],
        "are undecided": count["undecided", ""],
        "could not be tested": count["not testable", ""],
    }
    *first, last = (f"{number} {outcome}" for outcome, number in numbers.items() if number)
    tally = f"{', '.join(first)} and {last}"
    words = " ".join((ROOT / "README.md").read_text().split())
    assert f"Of its {len(verdicts)} claims" in words
    assert tally in words


@pytest.mark.parametrize(
    ("page", "count"), [(ROOT / "README.md", 2), (RESULTS / "README.md", 3)], ids=["front", "results"]
)
def test_pictures_are_there(page, count):
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", page.read_text())
    assert len(pictures) == count
    assert all((page.parent / picture).is_file() for picture in pictures)
