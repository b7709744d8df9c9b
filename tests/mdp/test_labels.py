"""Labels: from values to ids and back, their order, and errors."""

import re

import numpy as np
import pytest

import urbe
from urbe.mdp.labels import Labels, encode


def column(*values):
    return np.array([*values, None], dtype=object)[:-1]


@pytest.mark.parametrize(
    ("values", "labels", "names", "ids"),
    [
        (column("b", "a", "b"), None, ("a", "b"), [1, 0, 1]),
        (column("s10", "s2", "s1"), None, ("s1", "s2", "s10"), [2, 1, 0]),
        (np.array([7, 1001, 7]), True, (7, 1001), [0, 1, 0]),
        (np.array([-1.0, 0.5, 2.0]), True, (-1, 0.5, 2), [0, 1, 2]),
        (column("x", 3, "10", 20), True, (3, 20, "10", "x"), [3, 0, 2, 1]),
        (np.array([2, 0, 1]), None, None, [2, 0, 1]),
        (np.array([True, False]), None, ("False", "True"), [1, 0]),
    ],
    ids=["texts", "numbers in texts", "numbers", "fractions", "mixed", "ids", "flags"],
)
def test_values_become_ids_in_a_natural_order(values, labels, names, ids):
    found, named = encode({"state": values}, labels)
    assert named == names
    assert found["state"].tolist() == ids


def test_columns_share_their_labels_and_keep_the_order_of_a_categorical():
    columns = {"state": column("good", "worn"), "next_state": column("worn", "broken")}
    found, names = encode(columns, order=["good", "worn", "unused", "broken"])
    assert names == ("good", "worn", "broken")
    assert [found[name].tolist() for name in columns] == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    ("values", "labels", "message"),
    [
        (column(0, 1, "left"), None, "state[2] is 'left', expected a number. Other values are numbers: correct it, or"),
        (column("a", "b", 3), None, "state[2] is 3, expected a text. Other values are texts: correct it, or take all"),
        (column("a", (1, 2)), True, "state[1] is (1, 2), expected a text or a number as a label."),
        (column("a", "b"), False, "state[0] is 'a', expected a whole number from 0 on. If values are names, take"),
        (np.array([0, -1]), None, "state[1] is -1, expected a whole number from 0 on."),
    ],
)
def test_refusals_name_the_row(values, labels, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        encode({"state": values}, labels)


def test_labels_differ_and_are_enough():
    with pytest.raises(ValueError, match=re.escape("states[2] is 'a', as is states[0]; expected labels that differ.")):
        Labels(states=("a", "b", "a"))
    with pytest.raises(ValueError, match=re.escape("actions[0] is None, expected a text or a number")):
        Labels(actions=(None,))
    with pytest.raises(ValueError, match="states has 5 labels, expected one for each of 6 states"):
        urbe.library.riverswim(6).with_labels(states=list("abcde"))
    with pytest.raises(ValueError, match="expected a list of labels"):
        Labels(states="ab")


def test_ids_of_labels():
    labels = Labels(states=("good", 7))
    assert labels.state_ids("start", ["good", 7]).tolist() == [0, 1]
    assert labels.action_ids("action", [3]).tolist() == [3]
    with pytest.raises(ValueError, match=re.escape("start[0] is 'bad', expected a state: 'good', 7.")):
        labels.state_ids("start", "bad")


@pytest.mark.parametrize("labels", [Labels(), Labels(states=("ä", 3, 0.5)), Labels(actions=("x",))])
def test_there_and_back_as_text(labels):
    assert Labels.from_json(labels.to_json()) == labels


def machine():
    return urbe.MDP.from_transitions(
        ["good", "good", "good", "worn", "worn"],
        ["run", "run", "repair", "run", "repair"],
        ["good", "worn", "good", "sold", "good"],
        [0.7, 0.3, 1.0, 1.0, 1.0],
        [10.0, 10.0, -4.0, 5.0, -4.0],
        discount=0.9,
        terminal=["sold"],
        initial={"good": 0.25, "worn": 0.75},
    )


def test_a_model_with_labels_is_the_model_with_their_ids():
    mdp = machine()
    plain = urbe.MDP.from_transitions(
        [0, 0, 0, 2, 2], [1, 1, 0, 1, 0], [0, 2, 0, 1, 0], [0.7, 0.3, 1, 1, 1], [10, 10, -4, 5, -4], discount=0.9,
        terminal=[1],
    )  # fmt: skip
    assert mdp.labels == Labels(("good", "sold", "worn"), ("repair", "run"))
    assert mdp.initial.tolist() == [0.25, 0.0, 0.75]
    one, two = urbe.solve(mdp, urbe.L1Ball(0.2)), urbe.solve(plain, urbe.L1Ball(0.2))
    assert np.array_equal(one.value, two.value)
    assert one.kernel.labels == mdp.labels


def test_results_print_labels():
    solution = urbe.solve(machine())
    words = [line.split()[:2] for line in str(solution).splitlines()[2:]]
    assert words == [["good", "run"], ["sold", "end"], ["worn", "repair"]]


def test_errors_name_labels():
    mdp = machine()
    assert mdp.row_name(1) == "state good, action run"
    with pytest.raises(KeyError, match="State sold has no action run; it has"):
        mdp.row_of(1, 1)
    with pytest.raises(ValueError, match=re.escape("policy[0] is 5, but state good has the actions repair, run.")):
        urbe.evaluate_policy(mdp, [5, -1, 0])
    with pytest.raises(ValueError, match=r"The probabilities of state b, action x sum to 0\.9, expected 1"):
        urbe.MDP.from_transitions(["b", "a"], ["x", "x"], ["a", "b"], [0.9, 1.0], 0.0, discount=0.9)
    with pytest.raises(ValueError, match="1 state is without actions: b"):
        urbe.MDP.from_transitions(["a"], ["x"], ["b"], [1.0], 0.0, discount=0.9)


def test_radii_by_label():
    mdp = machine()
    radius = {("good", "run"): 0.5, ("good", "repair"): 0.1, ("worn", "run"): 0.2, ("worn", "repair"): 0.3}
    assert mdp.per_row("radius", radius).tolist() == [0.1, 0.5, 0.3, 0.2]
    with pytest.raises(ValueError, match=re.escape("radius[0] is 'bad', expected a state: 'good', 'sold', 'worn'.")):
        mdp.per_row("radius", {("bad", "run"): 0.1})


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_files_keep_labels(tmp_path, suffix):
    path = tmp_path / f"model{suffix}"
    urbe.write_mdp(machine(), path)
    again = urbe.read_mdp(path, discount=0.9)
    assert again.labels == machine().labels
    assert np.array_equal(urbe.solve(again).value, urbe.solve(machine()).value)


def test_a_csv_model_of_texts_may_have_semicolons_and_other_columns(tmp_path):
    path = tmp_path / "model.csv"
    path.write_text(
        "idstatefrom;idaction;note;idstateto;probability;reward\n"
        "low;wait;x;low;0,5;1\nlow;wait;;high;0,5;1\nhigh;wait;;low;1;2,5\n"
    )
    mdp = urbe.read_mdp(path, discount=0.5)
    assert mdp.labels == Labels(("high", "low"), ("wait",))
    # v(low) = 1 + 0.25 v(low) + 0.25 v(high), v(high) = 2.5 + 0.5 v(low)
    assert urbe.solve(mdp).value == pytest.approx([2.5 + 0.5 * 2.6, 2.6], abs=1e-6)
    path.write_text(path.read_text().replace("high;wait;;low;1", "high;wait;;low;?"))
    with pytest.raises(urbe.ModelFileError, match=re.escape("line 4, column probability: is '?', expected a number.")):
        urbe.read_mdp(path, discount=0.5)


def test_a_log_is_no_model(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("machine;condition;decision;profit\nM1;good;run;8.4\n")
    with pytest.raises(
        urbe.ModelFileError, match=r"Say which column is which.* A log without probabilities is for plan"
    ):
        urbe.read_mdp(path, discount=0.9)


def test_a_policy_file_has_labels(tmp_path):
    solution = urbe.solve(machine())
    urbe.write_policy(tmp_path / "policy.csv", solution.policy, solution.value, machine().labels)
    lines = (tmp_path / "policy.csv").read_text().splitlines()
    assert lines[0] == "idstate,idaction,value"
    assert [line.split(",")[:2] for line in lines[1:]] == [["good", "run"], ["sold", "end"], ["worn", "repair"]]


def test_policies_may_be_given_by_label():
    mdp = urbe.MDP.from_transitions(
        state=["old", "old", "new"], action=["mend", "run", "run"], next_state=["new", "gone", "old"],
        probability=[1.0] * 3, reward=[-1.0, 2.0, 3.0], discount=0.9, terminal="gone",
    )  # fmt: skip
    assert mdp.labels.states == ("gone", "new", "old")
    expected = urbe.evaluate_policy(mdp, [-1, mdp.labels.actions.index("run"), mdp.labels.actions.index("mend")])
    for policy in ({"old": "mend", "new": "run"}, ["end", "run", "mend"], np.array(["", "run", "mend"])):
        assert np.array_equal(urbe.evaluate_policy(mdp, policy).value, expected.value)
    table = expected.table()
    again = urbe.evaluate_policy(mdp, dict(zip(table["state"], table["action"], strict=True)))
    assert np.array_equal(again.value, expected.value)
    for policy, message in (
        ({"old": "mend"}, "policy has no action for new, expected one for each state."),
        ({"old": "mend", "nwe": "run"}, "policy[1] is 'nwe', expected a state: 'gone', 'new', 'old'."),
        (["end", "walk", "mend"], "policy[1] is 'walk', expected an action: 'mend', 'run'."),
        (["end", "mend", "mend"], "policy[1] is mend, but state new has the actions run."),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            urbe.evaluate_policy(mdp, policy)
    with pytest.raises(ValueError, match=re.escape("start is a list of states, expected one state or their prob")):
        urbe.plan(urbe.Posterior.fit(urbe.Transitions.from_tuples([(0, 0, 1.0, 0)]), discount=0.5), start=["0", "1"])
