"""Parts of a chapter: built-in and user-defined agents, seeds, settings; and cells that keep their directories."""

import pytest

from urbe.paper import CHAPTERS, reproduce
from urbe.paper.choice import Selection
from urbe.sweep.cells import Code, directory, jobs
from urbe.sweep.local import LocalProcesses

BY_NAME = {chapter.name: chapter for chapter in CHAPTERS}
OWN = """
from urbe.agents import PSRL
from urbe.paper.tuning import Contender

sampler = Contender((), ((),), lambda _, belief, __: PSRL(belief))
number = 3
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The name of a module with an agent of one's own."""
    name = f"own_agents_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def chosen(chapter, scale="quick", **choice):
    return BY_NAME[chapter].chosen(scale, Selection(**choice))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_no_choice_is_the_whole_chapter(chapter):
    assert chapter.chosen("quick", Selection()) is chapter.cells["quick"]


@pytest.mark.parametrize("name", ["seven_states", "riverswim_regret", "mars_rover", "cartpole"])
@pytest.mark.parametrize("scale", ["quick", "medium", "paper"])
def test_the_agents_of_a_scale_chosen_by_name_are_its_cells(name, scale):
    whole = BY_NAME[name].cells[scale]
    everyone = tuple(agent for agent in BY_NAME[name].agents if any(cell.agent == agent for cell in whole))
    found = chosen(name, scale, agents=everyone)
    assert {directory(name, cell) for cell in whole} <= {directory(name, cell) for cell in found}


def test_seeds_count_on_from_the_first_of_the_scale():
    for name, first in (("mars_rover", 100), ("cartpole", 101)):
        cells = chosen(name, agents=("dqn-urbe",), seeds=5)
        assert {cell.seed for cell in cells if cell.agent == "dqn-urbe"} == set(range(first, first + 5))
    assert {cell.reported_seeds for cell in chosen("seven_states", seeds=7)} == {7}


def test_what_figures_compare_with_stays():
    assert {cell.agent for cell in chosen("mars_rover", agents=("dqn-urbe",))} == {
        "dqn-urbe",
        "optimum",
        "exact robust",
    }
    assert {cell.agent for cell in chosen("seven_states", agents=("UBE",))} == {"UBE", "oracle"}


def test_settings_are_of_the_cells_or_of_the_agents():
    cells = chosen("mars_rover", agents=("dqn-urbe",), settings=("variance.beta=1", "steps=500"))
    learned = [cell for cell in cells if cell.agent == "dqn-urbe"]
    assert {(cell.steps, cell.settings) for cell in learned} == {(500, ("variance.beta=1",))}
    assert {cell.draws for cell in chosen("variance_study", settings=("draws=20",))} == {20}


def test_settings_reach_the_agent():
    from urbe.paper.cartpole import agents as cartpole
    from urbe.paper.mars_rover import WORLDS
    from urbe.paper.mars_rover import agents as mars

    agent = mars.make("dqn-urbe", WORLDS["harsh"], "small", 1, ("variance.beta=1", "discount=0.8"))
    assert (agent.policy.settings.variance.beta, agent.policy.settings.discount) == (1.0, 0.8)
    (cell, *_) = chosen("cartpole", agents=("dqn-ube",), settings=("variance.beta=1",))
    assert cartpole.make(cell).policy.settings.variance.beta == 1.0


@pytest.mark.parametrize(
    ("chapter", "choice", "message"),
    [
        (
            "mars_rover",
            {"agents": ("nobody",)},
            "nobody is not an agent of this chapter, expected one of dqn, robust-dqn",
        ),
        ("seven_states", {"agents": ("dqn",)}, "expected one of calibrated URBE, URBE"),
        ("mars_rover", {"agents": ("no_such_module:x",)}, "no_such_module:x cannot be loaded"),
        ("mars_rover", {"settings": ("colour=red",)}, "colour=red names no field"),
        ("riverswim_regret", {"settings": ("episodes=many",)}, "has the value 'many', expected a whole number"),
        ("price_of_robustness", {"agents": ("dqn",)}, "price_of_robustness has no agents or seeds to choose"),
        ("safe_policies", {"seeds": 3}, "safe_policies has no agents or seeds to choose"),
    ],
)
def test_unknown_choices_are_refused_with_the_valid_ones(chapter, choice, message):
    with pytest.raises(ValueError, match=message):
        chosen(chapter, **choice)


def test_an_attribute_of_another_kind_is_refused(own):
    with pytest.raises(ValueError, match="number is int, expected a urbe"):
        chosen("seven_states", agents=(f"{own}:number",))


def test_an_agent_of_ones_own_is_run_beside_another_and_again_when_its_module_changes(own, tmp_path):
    river = BY_NAME["riverswim_regret"]
    choice = Selection(("PSRL", f"{own}:sampler"), 3, ("episodes=5",))
    seen = []
    page = reproduce(tmp_path / "out", seen.append, chapters=(river,), choice=choice, launcher=LocalProcesses(1))
    rows = (tmp_path / "out" / "rows" / "riverswim_regret.csv").read_text().splitlines()[1:]
    mine, theirs = ([row.partition(",")[2] for row in rows if row.startswith(name)] for name in (own, "PSRL"))
    assert mine == theirs != []  # the same agent under another name
    text = page.read_text()
    assert f"not the paper&#x27;s comparison: {choice.options}" in text
    assert f"Not the paper&#x27;s comparison: run with {choice.options}." in text
    assert (page.parent / "claims.md").read_text().startswith(f"Not the paper's comparison: run with {choice.options}.")
    assert "of other code" not in text

    cells = river.chosen("quick", choice)
    code = Code(river.module, river.name, river.row, "digest of the chapter")
    before = jobs(code, cells, tmp_path)
    (tmp_path / f"{own}.py").write_text(OWN + "\nmore = 1\n")
    after = jobs(code, cells, tmp_path)
    assert [job.folder for job in before] == [job.folder for job in after]
    assert [a.identity == b.identity for a, b in zip(before, after, strict=True)] == [True, False]


def test_a_choice_is_about_one_chapter(tmp_path):
    with pytest.raises(ValueError, match="--seeds 3 applies to one chapter, expected one instead of 2"):
        reproduce(tmp_path, chapters=CHAPTERS[:2], choice=Selection(seeds=3))
