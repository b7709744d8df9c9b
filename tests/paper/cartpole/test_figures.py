"""The CartPole chapter on made-up numbers: every figure shows what it claims, at any scale."""

import re

import numpy as np
import pytest

from urbe.paper.cartpole import ALL, LENGTHS, PAPER, PICTURED, Row
from urbe.paper.cartpole.figures import sections as plot
from urbe.paper.cartpole.results import around_change, bands, over_lengths
from urbe.paper.cartpole.tables import iqm_of, mean_of
from urbe.paper.results import Results
from urbe.report.content import PageChapter
from urbe.report.drawing import svg
from urbe.report.page import render

NOISY = ("dqn-ube", "dqn-urbe", "robust-dqn-epsilon")


def rows_of(agent, seed, inputs="raw", changes=(1.25, 3.0), steps=6000):
    draw = np.random.default_rng([seed, len(agent)])
    made = [
        Row(inputs, agent, seed, 0.0, "training", metric, 0.0, 0.0, float(value))
        for metric, value in (("steps", steps), ("ended", steps // 100 + seed % 2))
    ]
    for acting in ("greedy", "noisy") if agent in NOISY else ("greedy",):
        made += [
            Row(inputs, agent, seed, 0.0, acting, "return", at, 0.0, 200.0 - 30.0 * at + draw.normal())
            for at in LENGTHS
        ]
        for metric in ("span", "spread-x", "spread-theta"):
            made.append(Row(inputs, agent, seed, 0.0, acting, metric, 0.0, 0.0, 1.0 + draw.random()))
        if agent in PICTURED:
            made += [
                Row(inputs, agent, seed, 0.0, acting, f"visits-{k % 2}", 0.05 + 0.1 * k, 0.25 - 0.5 * k, k + 1.0)
                for k in range(5)
            ]
    made += [
        Row(inputs, agent, seed, 0.0, "training", "curve", at, 0.0, 100.0 + at / 100.0)
        for at in np.arange(1000.0, steps + 1, 1000.0).tolist()
    ]
    for change in changes:
        expected = {
            "before": 190.0,
            "early": 90.0,
            "late": 150.0,
            "after": 120.0,
            "recovery": 3000.0 if seed % 2 else np.inf,
        }
        made += [
            Row(inputs, agent, seed, change, "training", m, 0.0, 0.0, v + draw.normal()) for m, v in expected.items()
        ]
        made.append(Row(inputs, agent, seed, change, "greedy", "return", change, 0.0, 150.0 + draw.normal()))
        for at in (1000.0, 2000.0):
            made.append(Row(inputs, agent, seed, change, "training", "curve", at, 0.0, at / 20.0))
        for at in (-1.0, 0.0, 1.0, 2.0):
            made.append(Row(inputs, agent, seed, change, "training", "episodes", at, 0.0, 100.0 + at))
    return made


def found(agents=ALL, seeds=(101, 102, 103), **of):
    return Results.of([row for agent in agents for seed in seeds for row in rows_of(agent, seed, **of)], Row)


@pytest.fixture(scope="module")
def chapter():
    scaled = [row for agent in PAPER for seed in (101, 102) for row in rows_of(agent, seed, "scaled", (3.0,))]
    raw = [row for agent in ALL for seed in (101, 102, 103) for row in rows_of(agent, seed)]
    return plot(Results.of(raw + scaled, Row))


def exhibits(sections):
    return {exhibit.name: exhibit for section in sections for exhibit in section.exhibits}


def test_the_chapter_has_all_figures_and_claims_of_the_paper(chapter):
    assert [section.title for section in chapter] == [
        "Verdicts",
        "Test returns over pole lengths, raw inputs",
        "Test returns over pole lengths, scaled inputs",
        "States visited in tests",
        "A change of the pole in training, raw inputs",
        "A change of the pole in training, scaled inputs",
        "Controls and noisy tests over pole lengths, raw inputs",
        "Controls and noisy tests over pole lengths, scaled inputs",
        "States visited in noisy tests",
        "Controls and returns by episode after a change, raw inputs",
        "Controls and returns by episode after a change, scaled inputs",
    ]
    assert [section.appendix for section in chapter] == [False] * 6 + [True] * 5
    main = {f"{name}-{inputs}" for inputs in ("raw", "scaled") for name in ("lengths", "states")}
    changes = {f"change-{inputs}-{over}" for inputs in ("raw", "scaled") for over in ("steps", "episodes")}
    controls = {"change-raw-steps-controls", "change-raw-episodes-controls"}
    noisy = {"lengths-raw-controls", "lengths-scaled-controls", "states-raw-noisy", "states-scaled-noisy"}
    assert set(exhibits(chapter)) == main | changes | controls | noisy
    expected = [verdict for section in chapter for verdict in section.verdicts]
    assert {verdict.source for verdict in expected} == {"Fig. 5", "Fig. 6a-b", "Fig. 6c", ""}
    assert {verdict.reading for verdict in expected if verdict.source == "Fig. 6c"} == {
        "raw inputs, 0.75 to 1.25",
        "raw inputs, 0.75 to 3",
        "scaled inputs, 0.75 to 3",
    }
    facts = dict(chapter[0].facts)
    assert "3 seeds" in facts["Replicates"]
    assert "0, 1, 2" in facts["Tuning"]
    assert facts["Training"].startswith("raw inputs: 6,000 steps, 60 to 61 episodes; scaled inputs: 6,000 steps")


def names_in(figure):
    return {text.get_text() for axes in figure.axes for text in axes.texts}


def test_every_agent_is_named_at_its_line(chapter):
    for name, exhibit in exhibits(chapter).items():
        if name.startswith(("lengths", "change")):
            controls = name.endswith("-controls") and "raw" in name
            agents = {"dqn-urbe"} | set(ALL) - set(PAPER) if controls else PAPER
            assert set(agents) <= names_in(exhibit.figure)
        assert len(exhibit.alt) > 40
        assert exhibit.caption


def test_lines_are_the_means_over_seeds():
    numbers = found()
    curves = over_lengths(numbers.where(inputs="raw"), "greedy", PAPER)
    assert curves.x.tolist() == list(LENGTHS)
    for agent in PAPER:
        rows = [row for seed in (101, 102, 103) for row in rows_of(agent, seed)]
        mine = [row for row in rows if (row.change, row.acting, row.metric) == (0.0, "greedy", "return")]
        by_hand = [np.mean([row.value for row in mine if row.at == at]) for at in LENGTHS]
        np.testing.assert_allclose(bands(curves)[agent].estimate, by_hand)


def test_curves_around_a_change_count_from_it():
    curves = around_change(found().where(inputs="raw"), "curve", 3.0, ["dqn", "dqn-urbe"])
    assert curves.x.tolist() == [*np.arange(-5000.0, 1, 1000.0), 1000.0, 2000.0]
    assert curves.of["dqn"].shape == (3, 8)
    np.testing.assert_allclose(curves.of["dqn"][0], [110, 120, 130, 140, 150, 160, 50, 100])
    episodes = around_change(found().where(inputs="raw"), "episodes", 3.0, ["dqn"])
    assert episodes.x.tolist() == [-1.0, 0.0, 1.0, 2.0]


def test_seeds_that_were_trained_for_different_times_are_aligned_at_the_change():
    rows = rows_of("dqn", 101, steps=6000) + rows_of("dqn", 102, steps=4000)
    curves = around_change(Results.of(rows, Row), "curve", 3.0, ["dqn"])
    assert curves.x.tolist() == [*np.arange(-3000.0, 1, 1000.0), 1000.0, 2000.0]
    np.testing.assert_allclose(curves.of["dqn"][:, 3], [160.0, 140.0])  # the last before the change


def test_pictures_of_states_are_small_and_pixels_stay_sharp(chapter):
    drawing = svg(exhibits(chapter)["states-raw"].figure, "states", "States.")
    assert drawing.count("<image") == 4  # robust DQN and DQN-URBE; one seed and all
    noisy = svg(exhibits(chapter)["states-raw-noisy"].figure, "states", "States.")
    assert noisy.count("<image") == 2  # robust DQN has no noise
    assert len(drawing) < 120_000
    assert "pixelated" in drawing
    assert not re.search(r'href="(?!data:|#)', drawing)


def test_the_page_is_light(chapter):
    page = render("Title", (), (), [PageChapter("cartpole", "CartPole", tuple(chapter))])["cartpole.html"]
    assert len(page) < 900_000
    assert "NaN" not in page


@pytest.mark.parametrize(
    ("agents", "seeds", "changes"),
    [(PAPER, (101,), (1.25, 3.0)), (("dqn",), (101, 102), ()), (("dqn-urbe", "robust-dqn"), (101, 102), (3.0,))],
)
def test_any_part_of_the_results_can_be_drawn(agents, seeds, changes):
    expected = plot(found(agents, seeds, changes=changes))
    render("Title", (), (), [PageChapter("cartpole", "CartPole", tuple(expected))])
    assert expected[0].verdicts


def test_tables_tell_who_never_recovered(chapter):
    section = next(s for s in chapter if s.title == "A change of the pole in training, raw inputs")
    table = section.tables[0]
    assert table.head[-1] == "steps to 90 %"
    assert all(row[-1].endswith("(1 of 3 never)") for row in table.rows)
    assert [row[0] for row in table.rows] == list(ALL)


def test_means_and_interquartile_means_in_tables():
    scores = np.array([1.0, 2.0, 3.0, 90.0, np.nan])
    assert mean_of(scores).estimate == 24.0
    assert iqm_of(scores).estimate == 2.5
    assert mean_of(np.array([np.nan])) is None
    assert mean_of(np.array([7.0])) == iqm_of(np.array([7.0])) == (7.0, 7.0, 7.0)
