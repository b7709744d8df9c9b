"""craam's CSV files by hand: models, scenarios, budgets, policies, and the message of each error."""

import re
import tracemalloc

import numpy as np
import pytest

import urbe
from fixtures.random_models import entries
from urbe import MDP
from urbe.mdp.formats import ModelFileError, read_budget, read_mdp, read_scenarios, write_policy

HEADER = "idstatefrom,idaction,idstateto,probability,reward\n"
GOOD = HEADER + "0,0,0,0.25,1\n0,0,1,0.75,2\n1,0,0,1,-3\n"
SCENARIOS = """idstatefrom,idaction,idoutcome,idstateto,probability,reward
0,0,0,0,0.5,1
0,0,0,1,0.5,4
0,0,1,1,0.25,8
0,0,1,2,0.75,6
1,3,7,2,1.0,5
"""


@pytest.fixture
def file(tmp_path):
    def put(text, name="model.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return put


def refusal(call, *args, **kwargs):
    with pytest.raises(ModelFileError) as caught:
        call(*args, **kwargs)
    return caught.value


def read(path):
    return read_mdp(path, discount=0.9)


def test_reads_a_model(file):
    assert entries(read(file(GOOD))) == {
        (0, 0, 0): (0.25, 1.0, None, None),
        (0, 0, 1): (0.75, 2.0, None, None),
        (1, 0, 0): (1.0, -3.0, None, None),
    }


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "\r"),
        GOOD.replace(",", " ,\t "),
        GOOD.replace("\n", "\n\n  \n") + "# the end\n",
        GOOD.rstrip("\n"),
        '"idstatefrom","idaction","idstateto","probability","reward"\n' + GOOD[len(HEADER) :],
        # other columns, with commas in quotes, and another order
        'reward,note,idstateto,"",probability,idstatefrom,idaction\n1,,0,"1",0.25,0,0\n2,"a, b",1,"2",.75,0,0\n'
        "-3.0,c,0,,1e0,1,0\n",
        # ids as R writes large numbers
        GOOD.replace("\n1,0,0", "\n1e+00,0.0,0"),
        # one outcome for each pair, whatever its id
        "idoutcome," + GOOD.replace("\n", "\n7,").removesuffix("7,"),
    ],
)
def test_tolerates_the_ways_csv_files_come(file, text):
    assert entries(read(file(text))) == entries(read(file(GOOD, "plain.csv")))


def test_repeats_add_up_and_average(file):
    text = HEADER + "0,0,0,0.25,1\n0,0,1,0.5,2\n0,0,0,0.25,4\n1,0,0,1,0\n"
    assert entries(read(file(text)))[0, 0, 0] == (0.5, 2.5, None, None)


def test_a_state_that_is_only_a_successor_is_terminal(file):
    mdp = read(file(HEADER + "0,2,1,1,5\n"))
    assert mdp.terminal.tolist() == [False, True]
    assert mdp.action.tolist() == [2]


def test_six_digits_are_enough(file):
    mdp = read(file(HEADER + "".join(f"0,0,{t},0.333333,0\n" for t in range(3))))
    assert mdp.rows.probability.tolist() == pytest.approx([1 / 3] * 3, abs=1e-15)


def test_reads_intervals(file):
    bounds = "idstatefrom,idaction,idstateto,lower,upper,reward\n0,0,0,0.2,0.6,0\n0,0,1,0.4,0.8,0\n1,0,1,1,1,0\n"
    mdp = read(file(bounds))
    assert entries(mdp) == {
        (0, 0, 0): (pytest.approx(0.4), 0.0, 0.2, 0.6),
        (0, 0, 1): (pytest.approx(0.6), 0.0, 0.4, 0.8),
        (1, 0, 1): (1.0, 0.0, 1.0, 1.0),
    }
    nominal = bounds.replace("lower", "probability,lower").replace("0,0,0,", "0,0,0,0.5,", 1)
    nominal = nominal.replace("0,0,1,", "0,0,1,0.5,").replace("1,0,1,", "1,0,1,1,")
    assert entries(read(file(nominal)))[0, 0, 0] == (0.5, 0.0, 0.2, 0.6)
    assert "line 2: The probability from state 0, action 0 to state 0 is 0.1, expected within" in str(
        refusal(read, file(nominal.replace("0,0,0,0.5", "0,0,0,0.1").replace("0,0,1,0.5", "0,0,1,0.9")))
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (GOOD, "", ": is empty, expected a header with idstatefrom"),
        (GOOD, HEADER, ": has a header and no rows"),
        ("probability", "prob", ", line 1: has no column probability; only lower and upper together can replace it."),
        ("reward", "gain", "line 1: found the header .* expected the columns idstatefrom, .*; reward is missing."),
        ("idaction", "reward", "line 1: .*idaction is missing."),
        ("reward\n", "reward,reward\n", "line 1: the header names reward twice"),
        ("probability", "lower", "line 1: has only one of the columns lower and upper"),
        ("0.75", "abc", ", line 3, column probability: found 'abc', expected a number."),
        ("0.75", "", ", line 3, column probability: found '', expected a number."),
        ("0.75", "nan", ", line 3, column probability: found 'nan', expected a number."),
        ("0.75", "0x1", ", line 3, column probability: found '0x1', expected a number."),
        ("0.75", "1e999", ", line 3, column probability: found inf, expected a finite number."),
        ("0.75", "-0.75", ", line 3, column probability: found -0.75, expected a probability from 0 to 1."),
        ("0.75", "1.75", ", line 3, column probability: found 1.75, expected a probability from 0 to 1."),
        ("0.75", "0,75", ", line 3: found '0,0,1,0,75,2' with 6 fields, expected 5 as in the header."),
        ("0.75,2", "0.75", ", line 3: found '0,0,1,0.75' with 4 fields, expected 5 as in the header."),
        ("0.75", '"0.75"', ", line 3: found .* expected numbers without quotes"),
        ("0.75", "0.7", ", line 2: The probabilities of state 0, action 0 sum to 0.95, expected 1. 1 of 2 rows"),
        ("1,0,0,1,-3", "1,0,0,1,inf", ", line 4, column reward: found 'inf', expected a number."),
        ("1,0,0,1,-3", "-1,0,0,1,-3", ", line 4, column idstatefrom: found -1, expected a whole number from 0"),
        ("1,0,0,1,-3", "1,0.5,0,1,-3", ", line 4, column idaction: found 0.5, expected a whole number from 0"),
        ("1,0,0,1,-3", "1,0,1000000000000,1,-3", ", line 4, column idstateto: found 1e\\+12, expected a whole number"),
        ("1,0,0,1,-3", "1,0,2000000000,1,-3", "line 4, column idstateto: found state 2000000000, but state 2 appears"),
        ("0,0,1,0.75,2\n1,", "0,0,4,0.75,2\n4,", "line 4, column idstatefrom: found state 4, but state 1 appears now"),
        ("idaction", "idaction\0", "line 1: is not text"),
    ],
)
def test_refuses_naming_file_line_and_column(file, old, new, message):
    assert old in GOOD
    path = file(GOOD.replace(old, new))
    error = refusal(read, path)
    assert str(error).startswith(str(path))
    assert re.search(message, str(error)), str(error)
    assert error.path == path


def test_a_wild_id_costs_no_memory(file):
    path = file(GOOD.replace("1,0,0,1,-3", "1,0,2000000000,1,-3"))
    tracemalloc.start()
    refusal(read, path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 << 20


@pytest.mark.parametrize("size", [1, 30, 120])
def test_chunks_change_nothing(file, monkeypatch, size):
    text = "\n# made by hand\n\n" + GOOD.replace("0,0,1,0.75", "\n\n0,0,1,0.75")
    whole = entries(read(file(text)))
    monkeypatch.setattr("urbe.mdp.formats.text._CHUNK", size)
    assert entries(read(file(text))) == whole
    assert ", line 9, column reward: found 'x'" in str(refusal(read, file(text.replace("-3", "x"))))


def test_one_based_ids_are_pointed_out(file):
    text = HEADER + "1,1,2,1,0\n2,1,1,1,0\n"
    assert "found state 2, but state 0 appears nowhere" in str(refusal(read, file(text)))


def test_the_line_is_right_after_blank_lines_and_comments(file):
    text = "\n# made by hand\n" + GOOD.replace("0,0,1,0.75", "\n0,0,1,x")
    assert ", line 6, column probability: found 'x'" in str(refusal(read, file(text)))


def test_text_that_is_not_utf8_is_named_with_its_line(file):
    error = refusal(read, file(GOOD.encode() + b"0,0,0,\xff,1\n"))
    assert "line 5: is not text in UTF-8" in str(error)


def test_intervals_are_checked_with_their_line(file):
    head = "idstatefrom,idaction,idstateto,lower,upper,reward\n"
    cases = {
        "0,0,0,0.7,0.6,0\n0,0,1,0.3,0.5,0\n": r"line 2: The interval from state 0, action 0 to state 0 is \[0.7, 0.6\]",
        "0,0,0,0.2,0.6,0\n0,0,0,0.2,0.6,0\n": "line 2: The transition from state 0, action 0 to state 0 is listed mo",
        "1,0,0,1,1,0\n0,0,0,0,0.4,0\n0,0,1,0,0.5,0\n": "line 3: The intervals of state 0, action 0 hold no distrib.*"
        "lower bounds sum to 0, expected at most 1, and the upper bounds to 0.9",
    }
    for rows, message in cases.items():
        assert re.search(message, str(refusal(read, file(head + rows))))


def test_scenarios_are_kept_beside_their_mean(file):
    mdp, scenarios = read_scenarios(file(SCENARIOS), discount=0.9)
    assert entries(mdp) == {
        (0, 0, 0): (0.25, 1.0, None, None),
        (0, 0, 1): (0.375, pytest.approx((0.5 * 4 + 0.25 * 8) / 0.75), None, None),
        (0, 0, 2): (0.375, 6.0, None, None),
        (1, 3, 2): (1.0, 5.0, None, None),
    }
    assert mdp.terminal.tolist() == [False, False, True]
    assert scenarios.tolist() == [[0.5, 0.0], [0.5, 0.25], [0.0, 0.75], [1.0, 1.0]]


def test_scenarios_of_six_digits_are_distributions(file):
    text = SCENARIOS.replace("1,0.25,8", "1,0.333333,8").replace("2,0.75,6", "2,0.666666,6")
    _, scenarios = read_scenarios(file(text), discount=0.9)
    assert scenarios[:3].sum(axis=0).tolist() == pytest.approx([1.0, 1.0], abs=1e-15)


def test_scenarios_do_not_depend_on_the_order_of_lines(file):
    head, *lines = SCENARIOS.splitlines()
    mdp, scenarios = read_scenarios(file("\n".join([head, *lines[::-1]])), discount=0.9)
    again, same = read_scenarios(file(SCENARIOS), discount=0.9)
    assert entries(mdp) == entries(again)
    assert np.array_equal(scenarios, same)


def test_a_file_without_outcomes_is_one_scenario(file):
    mdp, scenarios = read_scenarios(file(GOOD), discount=0.9)
    assert scenarios.tolist() == [[0.25], [0.75], [1.0]]
    assert entries(mdp) == entries(read(file(GOOD)))


def test_read_mdp_sends_scenarios_to_their_reader(file):
    error = refusal(read, file(SCENARIOS))
    assert "line 4, column idoutcome: state 0, action 0 has more than one outcome" in str(error)
    assert "read_scenarios" in str(error)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0,0,1,2,0.75,6", "0,0,1,2,0.7,6", "line 4: the probabilities of state 0, action 0, outcome 1 sum to 0.95"),
        ("0,0,1,", "0,0,2,", "line 4, column idoutcome: state 0, action 0 has the outcomes 0, 2, expected 0, ..., 1"),
        (
            "1,3,7,2,1.0,5",
            "1,3,0,2,1,5\n1,3,1,2,1,5\n1,3,2,2,1,5",
            "line 2, column idoutcome: state 0, action 0 has the outcomes 0, 1, expected 0, ..., 2",
        ),
    ],
)
def test_scenarios_are_refused_with_their_line(file, old, new, message):
    assert old in SCENARIOS
    assert message in str(refusal(read_scenarios, file(SCENARIOS.replace(old, new)), discount=0.9))


def test_ragged_scenarios_do_not_ask_for_all_memory(file):
    head = "idstatefrom,idaction,idstateto,idoutcome,probability,reward\n"
    many = "".join(f"0,0,0,{k},1,0\n" for k in range(30_000)) + "".join(f"0,1,{t},0,0,0\n" for t in range(29_999))
    error = refusal(read_scenarios, file(head + many + "0,1,29999,0,1,0\n"), discount=0.9)
    assert "asks for 30001 x 30000 scenario probabilities, too many to hold" in str(error)


@pytest.fixture
def three_pairs():
    return MDP.from_transitions([0, 0, 1], [1, 4, 0], [1, 0, 0], [1.0] * 3, 0.0, discount=0.9)


def test_reads_budgets_in_any_order(file, three_pairs):
    path = file("idaction,idstate,budget\n0,1,0.3\n4,0,0.2\n1,0,0.1\n")
    assert read_budget(path, three_pairs).tolist() == [0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("0,1,0.1\n0,4,0.2\n", ": has no budget for state 1, action 0; expected one for every pair"),
        ("0,1,0.1\n0,2,0.2\n", "line 3: gives a budget for state 0, action 2, a pair that the model does not have"),
        ("0,1,0.1\n1,9,0.2\n", "line 3: gives a budget for state 1, action 9, a pair that the model does not have"),
        ("0,1,0.1\n5,0,0.2\n", "line 3, column idstate: found 5, expected a whole number from 0 to 1"),
        ("0,1,0.1\n0,4,1\n1,0,1\n0,1,0.1\n", "line 5: gives a second budget for state 0, action 1"),
        ("0,1,-0.1\n", "line 2, column budget: found -0.1, expected at least 0"),
    ],
)
def test_budgets_are_refused_with_their_line(file, three_pairs, rows, message):
    assert message in str(refusal(read_budget, file("idstate,idaction,budget\n" + rows), three_pairs))


def test_writes_policies(tmp_path):
    path = tmp_path / "policy.csv"
    write_policy(path, np.array([2, -1]), [0.1, 0.0])
    assert path.read_text() == "idstate,idaction,value\n0,2,0.1\n1,-1,0.0\n"
    write_policy(path, [[0.25, 0.0, 0.75], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [0.1, 0.0, 5.0])
    assert path.read_text() == (
        "idstate,idaction,probability,value\n0,0,0.25,0.1\n0,2,0.75,0.1\n1,-1,1.0,0.0\n2,1,1.0,5.0\n"
    )


@pytest.mark.parametrize(
    ("policy", "value", "message"),
    [
        ([0, 1], [0.0], "policy has 2 entries and value 1"),
        ([-2], [0.0], r"policy\[0\] is -2, expected at least -1"),
        ([0], [np.nan], r"value\[0\] is nan"),
        ([[0.5, 0.4]], [0.0], r"policy\[0\] sums to 0.9, expected 1"),
        ([[1.5, -0.5]], [0.0], r"policy\[0, 1\] is -0.5, expected at least 0"),
        ([[1.0]], [0.0, 0.0], "policy has 1 lines and value 2 entries"),
    ],
)
def test_policies_that_are_none_are_refused(tmp_path, policy, value, message):
    with pytest.raises(ValueError, match=message):
        write_policy(tmp_path / "policy.csv", policy, value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "names",
    [("# first", "b", "c"), ("-1", "b", "2"), ("1", "10", "20"), ('say "x"', "y;z,", "a b"), ("0", "2", "1")],
)
def test_any_label_survives_a_file(tmp_path, names):
    mdp = urbe.library.riverswim(3, discount=0.9).with_labels(states=names, actions=["#left", "7"])
    urbe.write_mdp(mdp, tmp_path / "m.csv")
    again = urbe.read_mdp(tmp_path / "m.csv", discount=0.9, labels=True)
    values = dict(zip(names, urbe.solve(mdp).value.tolist(), strict=True))
    found = dict(zip(map(str, again.labels.states), urbe.solve(again).value.tolist(), strict=True))
    assert found == pytest.approx(values, rel=1e-9)  # states are in another order, and so are sums


def test_ids_from_one_need_labels(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("state,action,next_state,probability,reward\n1,1,2,1,0.5\n2,1,1,1,0\n")
    with pytest.raises(ValueError, match=r"1 state is without actions: 0\. .* labels=True"):
        urbe.read_mdp(path, discount=0.9)
    assert urbe.read_mdp(path, discount=0.9, labels=True).labels.states == (1, 2)
    path.write_text(HEADER + "1,1,2,1,0.5\n2,1,1,1,0\n")
    with pytest.raises(ValueError, match=r"state 0 appears nowhere; .* with labels=True"):
        urbe.read_mdp(path, discount=0.9)
    with pytest.raises(ValueError, match="labels=True is for CSV and Parquet files"):
        urbe.read_mdp(tmp_path / "m.npz", labels=True)


def test_columns_may_have_the_names_of_logs(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("state,action,next_state,probability,reward\n0,0,1,1,0.5\n1,0,0,1,0\n")
    assert np.allclose(urbe.read_mdp(path, discount=0.5).rows.reward, [0.5, 0.0])
