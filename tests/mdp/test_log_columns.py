"""Logs from messy tables: frames of several packages, missing values, labels, next states from consecutive rows."""

import re
from decimal import Decimal

import numpy as np
import pyarrow
import pytest

import urbe
from fixtures.machines import GAPS, NAMES, clean_rows, expected_transitions, messy_rows, named, numeric
from urbe import Posterior, Transitions

ROWS = {"state": ["new", "old", "new"], "action": ["run", "mend", "run"], "reward": [5.0, -2.0, 4.0]}
LOG = ROWS | {"next_state": ["old", "new", "new"]}


def pandas_frame(columns):
    return pytest.importorskip("pandas").DataFrame(columns)


def pandas_categoricals(columns):
    frame = pandas_frame(columns)
    texts = [name for name in columns if name not in ("profit", "reward", "date")]
    return frame.astype(dict.fromkeys(texts, "category"))


def polars_frame(columns):
    return pytest.importorskip("polars").DataFrame(columns)


def arrow_dictionaries(columns):
    table = pyarrow.table(columns)
    for at, name in enumerate(table.column_names):
        if pyarrow.types.is_string(table.schema.field(name).type):
            table = table.set_column(at, name, table[name].dictionary_encode())
    return table


FRAMES = [dict, pyarrow.table, arrow_dictionaries, pandas_frame, pandas_categoricals, polars_frame]


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame.__name__)
def test_texts_in_frames_of_every_kind_are_labels(frame):
    log = Transitions.from_columns(frame(LOG))
    assert named(log) == list(zip(*(LOG[name] for name in LOG), strict=True))
    assert log.labels.states == ("new", "old")


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame.__name__)
def test_next_states_of_a_messy_table_are_those_found_by_hand(frame):
    log = Transitions.from_columns(frame(numeric(messy_rows())), names=NAMES, missing="drop")
    assert sorted(named(log)) == sorted(expected_transitions())
    assert log.notes == (
        "Next states are those of the following row, in 40 trajectories ordered by date.",
        "1 of 601 rows is repeated and left out.",
        "5 of 601 rows are left out for missing values: condition 1, profit 3, condition of the next row 1.",
    )
    assert log.step.max() == 13
    assert len(np.unique(log.episode)) == 40


@pytest.mark.parametrize("encode", [False, True], ids=["plain", "dictionary"])
def test_nulls_of_arrow_are_missing_whatever_the_column_holds(encode):
    numbers = pyarrow.chunked_array([[0, None, 1]])
    table = pyarrow.table({"s": numbers.dictionary_encode() if encode else numbers, "a": [0] * 3, "r": [1.0] * 3,
                           "s_next": [1, 1, 0]})  # fmt: skip
    with pytest.raises(ValueError, match=re.escape("s[1] is missing, expected a value.")):
        Transitions.from_columns(table)
    assert Transitions.from_columns(table, missing="drop").state.tolist() == [0, 1]


def test_order_of_rows_does_not_matter_where_there_are_times():
    rows = messy_rows()
    shuffled = [rows[k] for k in np.random.default_rng(0).permutation(len(rows))]
    logs = [Transitions.from_columns(numeric(each), names=NAMES, missing="drop") for each in (rows, shuffled)]
    assert sorted(named(logs[0])) == sorted(named(logs[1]))
    dates = numeric(shuffled)
    dates["date"] = np.array(dates["date"], dtype="datetime64[D]")
    assert sorted(named(Transitions.from_columns(dates, names=NAMES, missing="drop"))) == sorted(named(logs[0]))


def test_missing_values_are_refused_by_row_unless_asked_otherwise():
    first = min(GAPS)
    with pytest.raises(ValueError, match=re.escape(f"profit[{first}] is missing, expected a value. 5 of 601 rows are")):
        Transitions.from_columns(numeric(messy_rows()), names=NAMES)
    with pytest.raises(ValueError, match="All 3 rows lack some value"):
        Transitions.from_columns(LOG | {"reward": [None, np.nan, ""]}, missing="drop")
    with pytest.raises(ValueError, match="missing is 'ignore', expected"):
        Transitions.from_columns(LOG, missing="ignore")


@pytest.mark.parametrize("gap", [None, float("nan"), "", " NA ", "n/a", "null", "NaN"])
def test_every_way_to_write_nothing(gap):
    log = Transitions.from_columns(LOG | {"next_state": ["old", gap, "new"]}, missing="drop")
    assert named(log) == [("new", "run", 5.0, "old"), ("new", "run", 4.0, "new")]
    assert log.notes == ("1 of 3 rows is left out for missing values: next_state 1.",)


def test_without_times_rows_follow_as_they_stand():
    columns = ROWS | {"episode": ["b", "b", "a"]}
    log = Transitions.from_columns(columns)
    assert named(log) == [("new", "run", 5.0, "old")]
    assert log.notes == (
        "Next states are those of the following row, in 1 trajectory.",
        "Rows that are alone in their trajectory give no transition: 1.",
    )


def test_the_last_row_of_a_trajectory_may_lack_action_and_reward():
    log = Transitions.from_columns(ROWS | {"action": ["run", "mend", None], "reward": [5, -2, None], "t": [0, 1, 2]})
    assert named(log) == [("new", "run", 5.0, "old"), ("old", "mend", -2.0, "new")]


def test_an_action_that_ends_leads_to_a_state_of_its_own():
    log = Transitions.from_columns(ROWS | {"step": [0, 1, 2], "done": [False, False, True]})
    assert named(log)[-1] == ("new", "run", 4.0, "(end)")
    assert log.terminated.tolist() == [False, False, True]
    posterior = Posterior.fit(log, discount=0.9)
    assert posterior.model.terminal.tolist() == [False, False, True]
    ids = Transitions.from_columns(
        {"state": [0, 1, 0], "action": [0, 0, 0], "reward": [1, 1, 1], "t": [0, 1, 2], "done": [0, 0, 1]}
    )
    assert ids.next_state.tolist() == [1, 0, 2]


def test_a_final_state_without_an_action_is_where_the_process_ended():
    columns = {
        "state": ["new", "old"],
        "action": ["run", None],
        "reward": [5, None],
        "t": [0, 1],
        "done": [False, True],
    }
    log = Transitions.from_columns(columns)
    assert named(log) == [("new", "run", 5.0, "old")]
    assert log.terminated.tolist() == [True]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"t": [0, 1, 1]},
            "state[2] is 'new' and 'old' in row 1, which has the same trajectory and t; expected one row",
        ),
        ({"t": [0, 1, 2], "done": [False, True, False]}, "done[1] says that the process ended, but row 2 continues"),
        ({"time": ["2026-01-01", "yesterday", "2026-01-03"]}, "time[1] is 'yesterday', expected a number or a date"),
        ({"episode": ["a", None, "a"]}, "episode[1] is missing, expected the trajectory that the row belongs to."),
        ({"episode": ["a", "b", "c"]}, "No row is followed by another of its trajectory"),
        ({}, "missing next_state (or s_next, s', idstateto, next_obs, next_observation). Or a column episode, step or"),
        ({"t": [0, 1, 2], "reward": [1, "much", 2]}, "reward[1] is 'much', expected a number."),
        ({"t": [0, 1, 2], "state": ["new", "old", 3]}, "state[2] is 3, expected a text."),
    ],
)
def test_refusals_of_trajectories(columns, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Transitions.from_columns(ROWS | columns)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"condition": "state"}, "names has 'condition', expected one of state, action, reward, next_state"),
        ({"state": "place"}, "names['state'] is 'place', expected a column of the table: state, action, reward"),
    ],
)
def test_names_must_be_of_columns(names, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Transitions.from_columns(LOG, names=names)


def test_numbers_are_ids_unless_they_are_said_to_be_labels():
    columns = {"state": [1, 2], "action": [7, 7], "reward": [0, 1], "next_state": [2, 1]}
    ids = Transitions.from_columns(columns)
    assert not ids.labels
    assert ids.notes[0].startswith("The smallest state is 1, and ids begin at 0: state 0 never occurs.")
    log = Transitions.from_columns(columns, labels=True)
    assert (log.labels.states, log.labels.actions, log.notes) == ((1, 2), (7,), ())
    assert log.state.tolist() == [0, 1]


def test_steps_come_from_times_within_episodes():
    columns = LOG | {"episode": ["x", "x", "y"], "timestamp": ["2026-01-02", "2026-01-01", "2026-01-05"]}
    assert Transitions.from_columns(columns).step.tolist() == [1, 0, 0]
    assert Transitions.from_columns(LOG | {"time": ["3 pm", "noon", "now"]}).step is None


def test_a_log_takes_the_ids_of_a_model():
    log = Transitions.from_columns(LOG)
    posterior = Posterior.fit(log, discount=0.9)
    assert posterior.model.labels == log.labels
    fewer = Transitions.from_columns({"state": ["old"], "action": ["mend"], "reward": [-2], "next_state": ["new"]})
    assert posterior.update(fewer).seen.tolist() == [2.0, 2.0]
    again = Posterior.fit(fewer, model=posterior.model)
    assert again.seen.tolist() == [0.0, 1.0]
    odd = Transitions.from_columns({"state": ["odd"], "action": ["mend"], "reward": [-2], "next_state": ["new"]})
    with pytest.raises(ValueError, match=re.escape("states of the log[1] is 'odd', expected a state: 'new', 'old'.")):
        Posterior.fit(odd, model=posterior.model)


def test_numbers_as_labels_are_the_ids_of_a_model_without_labels():
    from urbe import library

    columns = {"state": [1, 2], "action": [1, 1], "reward": [0, 0], "next_state": [2, 3]}
    model = library.riverswim(6)
    one = Posterior.fit(Transitions.from_columns(columns, labels=True), model=model)
    assert one.seen.tolist() == Posterior.fit(Transitions.from_columns(columns), model=model).seen.tolist()
    texts = Transitions.from_columns(LOG)
    with pytest.raises(ValueError, match=re.escape("but the model has only numbers; give it labels with model.with_l")):
        Posterior.fit(texts, model=model)


def test_errors_of_fitting_name_labels():
    random = LOG | {"next_state": ["old", "new", "old"]}
    with pytest.raises(ValueError, match="Transition 0 from state new by action run to state old paid 5, transition 2"):
        Posterior.fit(Transitions.from_columns(random), discount=0.9)
    cut = LOG | {"next_state": ["old", "new", "gone"]}
    with pytest.raises(ValueError, match="Transition 2 enters state gone, which no transition leaves"):
        Posterior.fit(Transitions.from_columns(cut), discount=0.9)
    fitted = Posterior.fit(Transitions.from_columns(cut), discount=0.9, terminal=["gone"])
    assert fitted.model.terminal.tolist() == [True, False, False]


def test_clean_tables_have_no_gaps():
    log = Transitions.from_columns(numeric(clean_rows()), names=NAMES)
    assert len(log) == 40 * 14
    assert len(log.notes) == 1


def test_costs_are_rewards_with_the_sign_changed():
    table = {"state": ROWS["state"], "action": ROWS["action"], "next_state": ["old", "new", "new"]}
    log = Transitions.from_columns(table | {"paid": [5, -2.0, None]}, names={"cost": "paid"}, missing="drop")
    assert log.reward.tolist() == [-5.0, 2.0]
    assert log.notes[-1] == "Rewards are minus the column paid, so values are minus costs."
    assert Transitions.from_columns(table | {"Cost": [1.0, 0.0, 2.0]}).reward.tolist() == [-1.0, 0.0, -2.0]
    assert Transitions.from_columns(LOG | {"cost": [7.0] * 3}).reward.tolist() == ROWS["reward"]
    assert Transitions.from_tuples([(0, 0, 3.0, 1)], names=("s", "a", "cost", "s_next")).reward.tolist() == [-3.0]
    with pytest.raises(ValueError, match="names has both reward and cost"):
        Transitions.from_columns(LOG | {"cost": [7.0] * 3}, names={"reward": "reward", "cost": "cost"})


@pytest.mark.parametrize("written", [-999, "-999", " -999.0 ", -999.0])
def test_values_that_stand_for_none_are_named(written):
    table = LOG | {"reward": [5.0, written, 4.0], "action": ["run", "mend", "?"]}
    log = Transitions.from_columns(table, missing="drop", missing_values=[-999, "?"])
    assert named(log) == [("new", "run", 5.0, "old")]
    assert log.notes == ("2 of 3 rows are left out for missing values: action 1, reward 1.",)
    with pytest.raises(ValueError, match=re.escape("reward[1] is missing, expected a value.")):
        Transitions.from_columns(table, missing_values=["-999"])
    with pytest.raises(ValueError, match="missing_values is '-999', expected a list"):
        Transitions.from_columns(table, missing_values="-999")


def test_labels_that_differ_in_case_alone_are_pointed_out():
    log = Transitions.from_columns(LOG | {"action": ["run", "mend", " Run"]})
    assert log.notes == ("Some actions differ only in case or blanks: ' Run' and 'run'. If they are one, rename them.",)


def test_columns_as_other_packages_keep_them():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    whole = pandas.DataFrame(LOG | {"episode": ["a", "a", "b"], "day": pandas.date_range("2026", periods=3, tz="CET")})
    names = {"time": "day"}
    expected = named(Transitions.from_columns(whole, names=names))
    for frame in (
        whole.set_index(["episode", "day"]),
        polars.DataFrame(LOG | {"episode": ["a", "a", "b"], "day": [1, 2, 3]}).lazy(),
        whole.assign(reward=[Decimal("5.0"), Decimal(-2), "4.00"]),
        whole.assign(day=pandas.to_timedelta([1, 2, 3], unit="h")),
    ):
        assert named(Transitions.from_columns(frame, names=names)) == expected
    cut = Transitions.from_columns(whole.assign(action=pandas.cut(whole["reward"], [-9, 0, 4, 9])))
    assert cut.labels.actions == ("(-9, 0]", "(0, 4]", "(4, 9]")
    for wrong in (whole.groupby("episode"), whole.to_dict("records")):
        with pytest.raises(ValueError, match="expected a table: a dict of columns"):
            Transitions.from_columns(wrong)


def test_a_model_is_no_log_without_a_word():
    log = Transitions.from_columns(LOG | {"Probability": [0.5, 0.5, 1.0]})
    assert log.notes[0].startswith("The column Probability is ignored: every row counts as one transition")


@pytest.mark.parametrize(
    ("times", "note"),
    [
        ([1, 2, 3, 9, 10], "1 of 4 next states come later than usual, which is after 1: the first between t 3 and 9."),
        (["2026-01-03", "2026-01-01", "2026-01-02", "2026-01-07"], "1 of 3 next states come later than usual, which is "
         "after 1 day: the first between t 2026-01-03 and 2026-01-07."),
        ([0.5, 1.0, 1.5, 2.0], None),
        ([0.0, 1.0, 3.0, 7.0, 20.0], None),  # no usual time
    ],
)  # fmt: skip
def test_a_note_shows_gaps_between_times_that_are_mostly_equal(times, note):
    n = len(times)
    columns = {"t": times, "s": ["a", "b", "a", "b", "a"][:n], "a": ["go"] * n, "r": [1.0] * n}
    log = urbe.Transitions.from_columns(columns, names={"time": "t"})
    found = [each for each in log.notes if "later than usual" in each]
    advice = " If rows are missing there, give the rest a trajectory of its own."
    assert found == ([] if note is None else [note + advice])


def test_a_counter_that_begins_again_needs_trajectories():
    columns = {"step": [0, 1, 0, 1], "s": ["a", "b", "a", "c"], "a": ["go"] * 4, "r": [1.0] * 4}
    with pytest.raises(ValueError, match="If step begins again with every trajectory, number the trajectories"):
        urbe.Transitions.from_columns(columns)


@pytest.mark.parametrize("names", ["01", "ab"])
def test_a_header_inside_the_file_is_named(tmp_path, names):
    one, two = names
    path = tmp_path / "log.csv"
    path.write_text(
        f"state,action,reward,next_state\n{one},0,1,{two}\nstate,action,reward,next_state\n{two},0,1,{one}\n"
    )
    with pytest.raises(urbe.ModelFileError, match="line 3: repeats the header, as when files are joined"):
        urbe.read_log(path)
