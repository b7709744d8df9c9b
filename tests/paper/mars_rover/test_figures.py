"""The Mars Rover chapter from made-up rows: figures and their texts show what they claim."""

import re

import numpy as np
import pytest

from fixtures.mars_rows import results_of, rows, travels, waits
from urbe.paper.mars_rover import GRID, MAIN, SMALL, WIDE
from urbe.paper.mars_rover import figures as mars_plots
from urbe.paper.mars_rover import front as mars_front
from urbe.paper.mars_rover import maps as mars_maps
from urbe.paper.mars_rover.results import find, goals, over_grid, returns, training, visits
from urbe.report.content import PageChapter
from urbe.report.page import render
from urbe.report.values import panels_of

AGENTS = {
    "dqn": travels(), "robust-dqn": waits(), "dqn-ube": travels(share=0.9), "dqn-urbe": waits(),
    "calibrated-dqn-urbe": travels(share=0.5), "dqn-epsilon": travels(share=0.8), "robust-dqn-epsilon": waits(),
}  # fmt: skip


@pytest.fixture(scope="module")
def results():
    return results_of(rows(AGENTS, seeds=(100, 101, 102), worlds=("harsh", "mild")))


@pytest.fixture(scope="module")
def sections(results):
    return mars_plots.sections(results)


def test_quantities_do_not_depend_on_the_order_of_rows():
    made = rows({"dqn-urbe": travels(), "dqn": travels()}, seeds=(102, 100))
    shuffled = [made[i] for i in np.random.default_rng(0).permutation(len(made))]
    for agent, acting in (("dqn-urbe", "noisy"), ("dqn", "greedy"), ("optimum", "greedy")):
        tables = [results_of(given) for given in (made, shuffled)]
        one, other = (find(table, "harsh", SMALL, agent, acting) for table in tables)
        assert sorted(one.unique("seed")) == ([0] if agent == "optimum" else [100, 102])
        for metric in ("return", "goal"):
            np.testing.assert_array_equal(over_grid(one, metric), over_grid(other, metric))
        np.testing.assert_allclose(visits(one, 0.005), visits(other, 0.005), rtol=1e-14)
        lengths = [training(table, mine, "episodes") for table, mine in zip(tables, (one, other), strict=True)]
        np.testing.assert_array_equal(*lengths)
    urbe = find(results_of(made), "harsh", SMALL, "dqn-urbe", "noisy")
    assert over_grid(urbe, "return").shape == over_grid(urbe, "sampled").shape == (2, len(GRID))
    assert visits(urbe, 0.005)[0] == pytest.approx(9.0)
    assert not find(results_of(made), "harsh", "none", "dqn", "noisy")


def test_every_world_has_its_returns_and_its_maps(sections):
    titles = ["Rewards (1, -1, -0.0048)", "Rewards (1, -0.235, -0.001)"]
    assert [section.title for section in sections] == [
        "Verdicts", *titles, *(f"{title}: noisy tests and controls" for title in titles),
    ]  # fmt: skip
    assert [section.appendix for section in sections] == [False] * 3 + [True] * 2
    for k, world in enumerate(("harsh", "mild")):
        for section, suffix, way in ((sections[1 + k], "", "greedy"), (sections[3 + k], "-noisy", "noisy")):
            names = [exhibit.name for exhibit in section.exhibits]
            maps = [f"visits-{world}-{members}-{way}" for members in (WIDE, SMALL)]
            assert names == [f"returns-{world}{suffix}", f"nominal-{world}{suffix}", *maps]
            assert all(exhibit.alt.endswith(".") for exhibit in section.exhibits)
        (table,) = sections[3 + k].tables
        agents = {(row[0], row[1], row[2]) for row in table.rows}
        assert len(agents) == len(table.rows) == 2 * (3 + 2 * 4)


def test_returns_are_drawn_as_they_are(sections, results):
    panels = []
    for section in (sections[1], sections[3]):
        figure = section.exhibits[0].figure
        figure.canvas.draw()
        panels += panels_of(figure)
    assert [panel.name for panel in panels] == ["set (0, 1)", "set (0, 0.015)"] * 2
    greedy = {"dqn", "robust-dqn", "dqn-ube", "dqn-urbe", "optimum", "exact robust"}
    noisy = {"dqn-ube", "dqn-urbe", "calibrated-dqn-urbe", "dqn-epsilon", "robust-dqn-epsilon", "optimum"}
    assert [{series.name for series in panel.series} for panel in panels] == [greedy, greedy, noisy, noisy]
    (shown,) = (series for series in panels[0].series if series.name == "dqn-ube")
    assert shown.where == tuple(f"{p:g}" for p in GRID if p <= mars_plots.LAST)
    drawn = float(shown.value[GRID.index(0.2)].split(" ")[0])
    ube = find(results, "harsh", "none", "dqn-ube", "greedy")
    assert drawn == pytest.approx(returns(ube, 0.2).mean(), rel=1e-3)


def test_dots_tell_the_nominal_return_of_every_agent(sections, results):
    panels = []
    for section in (sections[1], sections[3]):
        figure = section.exhibits[1].figure
        figure.canvas.draw()
        panels += panels_of(figure)
        assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()
    for panel in panels[:2]:
        assert [series.name for series in panel.series] == list(MAIN)
    noisy = [f"{agent}, {acting}" for agent, acting in mars_plots.NOISY]
    controls = ["dqn-epsilon, greedy", "robust-dqn-epsilon, greedy", "calibrated-dqn-urbe, greedy"]
    for panel in panels[2:]:
        assert [series.name for series in panel.series] == noisy + controls
    (shown,) = (series for series in panels[3].series if series.name == "calibrated-dqn-urbe, noisy")
    result = find(results, "harsh", SMALL, "calibrated-dqn-urbe", "noisy")
    assert float(shown.value[0].split(" ")[0]) == pytest.approx(returns(result, 0.005).mean(), abs=1e-4)


def test_an_agent_of_the_list_is_drawn_and_one_of_the_users_own(monkeypatch):
    """One line in the chapter's list is enough, for a name and for `module:attribute`."""
    made = [
        row._replace(agent=new) for new in ("tall", "mine:best") for row in rows({"dqn": travels()}, seeds=(100, 101))
    ]
    found = results_of([*made, *rows({"dqn": travels()}, seeds=(100, 101))])
    shown = [list(mars_plots._greedy(found, "harsh", SMALL))]
    for name in ("tall", "mine:best"):
        monkeypatch.setitem(MAIN, name, SMALL)
    shown.append(list(mars_plots._greedy(found, "harsh", SMALL)))
    assert shown == [
        ["dqn", "mine:best", "optimum", "exact robust"], ["dqn", "tall", "mine:best", "optimum", "exact robust"],
    ]  # fmt: skip


def test_bands_are_means_within_what_seeds_allow():
    grid = np.zeros(len(GRID))
    agents = {"dqn": lambda seed: (grid + seed - 100.0, grid)}
    spread = find(results_of(rows(agents, seeds=(100, 101, 102), sets=(), noise=0.0)), "harsh", "none", "dqn", "greedy")
    band = mars_plots.band(spread)
    np.testing.assert_array_equal(band.estimate, 1.0)
    # the mean of three draws from (0, 1, 2): below 1/3 with probability 1/27 > 2.5 %, so the interval reaches 0
    np.testing.assert_allclose((band.low, band.high), np.array([[0.0], [2.0]]) + grid)
    lone = mars_plots.band(spread.where(seed=100))
    np.testing.assert_array_equal(lone.low, lone.high)


def test_intervals_of_probabilities_stay_between_zero_and_one(sections):
    for section in sections[3:]:
        (table,) = section.tables
        for row in table.rows:
            for cell in row[5:8]:
                ends = [float(text) for text in re.findall(r"-?[0-9.]+", cell.replace("\u2007", ""))]
                assert all(0.0 <= end <= 1.0 for end in ends), (table.title, row)


def test_the_papers_four_maps_come_first_and_end_as_rows_say(sections):
    figure = sections[1].exhibits[2].figure
    titles = [axes.get_title(loc="left") for axes in figure.axes[:8]]
    assert titles[:4] == [
        "(a) robust-dqn, p = 0.005", "(b) dqn-urbe, p = 0.005", "(c) dqn-ube, p = 0.2", "(d) dqn-urbe, p = 0.2",
    ]  # fmt: skip
    everyone = [f"{a}, p = {p}" for a in ("dqn", "robust-dqn", "dqn-ube", "dqn-urbe") for p in ("0.005", "0.2")]
    assert sorted(title.split(") ")[-1] for title in titles) == sorted(everyone)
    alt = sections[1].exhibits[2].alt
    assert "robust-dqn at 0.005 goal 0\xa0%, wrecked 100\xa0%, out of time 0\xa0%" in alt
    assert "dqn at 0.005 goal 92\xa0%" in alt
    noisy = sections[3].exhibits[2].figure
    assert {axes.get_title(loc="left").split(",")[0] for axes in noisy.axes[:4]} == {"dqn-ube", "dqn-urbe"}


def test_shares_are_of_the_visits_to_cells(results):
    ube = find(results, "harsh", "none", "dqn-ube", "greedy")
    shares = mars_maps.shares(ube, 0.005)
    assert shares.shape == (10, 10)
    assert shares.sum() == pytest.approx(1.0)
    goal = goals(ube, 0.005).mean()
    assert shares[0, 0] == pytest.approx(9.0 / (9.5 + goal))
    assert shares[9, 9] == pytest.approx(goal / (9.5 + goal))


def test_the_page_is_whole(sections):
    page = render("Mars", (), (), [PageChapter("mars_rover", "Mars Rover", tuple(sections))])["mars_rover.html"]
    assert page.count("<figure") == 16
    assert "3 seeds for each agent and assumption: 100, 101, 102" in page
    assert "Seeds 0, 1, 2, 3 were used to choose the number of steps; results of 100, 101, 102" in page
    assert "the latter are shown here" in page
    fresh = mars_plots.sections(results_of(rows({"dqn": travels()}, seeds=(110, 111), sets=())))
    assert "none of them is shown" in dict(fresh[0].facts)["Tuning"]
    assert "60000 steps, in which agents finished 400 to 402 episodes" in page


def test_a_page_can_be_drawn_from_one_agent_and_one_seed():
    found = results_of(rows({"dqn": travels()}, seeds=(100,), sets=()))
    assert len(mars_plots.sections(found)) == 3


def test_the_highlight_compares_both_sets(results):
    found = mars_front.highlight(results)
    assert "0\xa0% of episodes with the paper's set and in 0\xa0% with a narrow one" in found.message
    figure = found.exhibit.figure
    figure.canvas.draw()
    (panel,) = panels_of(figure)
    assert [series.name for series in panel.series] == [
        *("optimum", "DQN", "DQN-URBE, paper's set", "DQN-URBE, narrow set")
    ]
    assert mars_front.highlight(results_of(rows({"dqn": travels()}, seeds=(100,), sets=()))) is None
