"""bmdp-tool files by hand, and the message of each error."""

import pytest

from fixtures.random_models import entries
from urbe.mdp.formats import ModelFileError, read_mdp

TEXT = """4
2
2
2
3
0 0 1 0.2 0.6
0 0 2 0.4 0.8
0 1 0 1.0 1.0
1 1 3 0.1 0.3
1 1 0 0.7 0.9
2 0 2 1.0 1.0
2 1 0 1.0 1.0
"""


def read(folder, text, name="model.bmdp"):
    path = folder / name
    path.write_text(text)
    return read_mdp(path, discount=1.0)


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("2\n2\n3\n", "2\n2 3\n"), TEXT.replace("\n", " \r\n")])
def test_reads_intervals_and_goals(tmp_path, text):
    mdp = read(tmp_path, text, "model.txt")
    assert mdp.terminal.tolist() == [False, False, True, True]
    assert entries(mdp) == {
        (0, 0, 1): (pytest.approx(0.4), 0.0, 0.2, 0.6),
        (0, 0, 2): (pytest.approx(0.6), 1.0, 0.4, 0.8),
        (0, 1, 0): (1.0, 0.0, 1.0, 1.0),
        (1, 1, 0): (pytest.approx(0.8), 0.0, 0.7, 0.9),
        (1, 1, 3): (pytest.approx(0.2), 1.0, 0.1, 0.3),
    }


def test_a_model_without_goals_pays_nothing(tmp_path):
    mdp = read(tmp_path, "1\n1\n0\n0 0 0 1 1\n")
    assert entries(mdp) == {(0, 0, 0): (1.0, 0.0, 1.0, 1.0)}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (TEXT, "", "model.bmdp: found the end of the file, expected the number of states"),
        (TEXT, "4\n2\n", "model.bmdp: found the end of the file, expected the number of terminal states"),
        (TEXT, "4\nx\n", "model.bmdp, line 2: found 'x', expected the number of actions"),
        (TEXT, "4\n2\n2\n2\n", "model.bmdp: found the end of the file, expected the ids, below 4, of 1 more terminal"),
        ("2\n2\n2\n3", "2\n2\n2\n4", "model.bmdp, line 5: found '4', expected the ids, below 4, of 1 more terminal"),
        ("2\n2\n2\n3", "2\n1\n2 3", "model.bmdp, line 4: found '2 3', expected the ids, below 4, of 1 more terminal"),
        ("4\n2\n2", "1000000000000000\n2\n2", "model.bmdp, line 1: found 1000000000000000 states for 7 transitions"),
        ("4\n2\n2", "4\n2\n100000000000000000", "model.bmdp, line 6: found '0 0 1 0.2 0.6', expected the ids, below 4"),
        ("4\n2\n2", "4\n1\n2", "model.bmdp, line 8, column action: found 1, expected a whole number from 0 to 0"),
        ("4\n2\n2", "5\n2\n2", "model.bmdp: 1 state is without actions: 4."),
        ("0 0 1 0.2 0.6", "0 0 5 0.2 0.6", "model.bmdp, line 6, column successor: found 5, expected a whole number"),
        ("0 0 1 0.2 0.6", "0 0 1 0.2", "model.bmdp, line 6: found '0 0 1 0.2' with 4 fields, expected state action"),
        ("0 0 1 0.2 0.6", "0 0 1 0.2 b", "model.bmdp, line 6, column upper: found 'b', expected a number"),
        (
            "0 0 1 0.2 0.6",
            "0 0 1 0.7 0.8",
            "model.bmdp, line 6: The intervals of state 0, action 0 hold no distribution",
        ),
        ("1 1 0 0.7 0.9", "1 1 0 0.9 0.7", "model.bmdp, line 9: The interval from state 1, action 1 to state 0 is"),
        (
            "1 1 0 0.7 0.9",
            "1 1 3 0.7 0.9",
            "model.bmdp, line 9: The transition from state 1, action 1 to state 3 is lis",
        ),
    ],
)
def test_refuses_naming_the_line(tmp_path, old, new, message):
    assert old in TEXT
    with pytest.raises(ModelFileError, match=message):
        read(tmp_path, TEXT.replace(old, new, 1))
