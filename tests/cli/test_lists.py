"""Lists in options whose items have commas, and messages that speak of options."""

import pytest

from urbe.cli import main
from urbe.cli.wording import in_options

ROWS = "ward,do,cost,next\n" + '"ICU, bed 1",stay,5,home\n"ICU, bed 1",move,7,"ICU, bed 1"\n' * 4


def test_names_with_commas(tmp_path, capsys):
    path = tmp_path / "log.csv"
    path.write_text(ROWS.replace("cost", '"cost, in euros"'))
    columns = 'state=ward,action=do,"cost=cost, in euros",next_state=next'
    plan = ["plan", str(path), "--discount", "0.9", "--columns", columns, "--terminal", "home", "--held-out", "2"]
    assert main([*plan, "--start", "ICU, bed 1"]) == 0
    assert "The start: state ICU, bed 1." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("python", "options"),
    [
        ("constants=N=3 is for programs in the PRISM language", "--constants N=3 is for programs"),
        ("Use a discount below 1, BackwardInduction(horizon=...), or a smaller set.", "below 1, --horizon, or a"),
        ("has the rewards cost, time; choose one, reward='cost'.", "choose one, --reward cost."),
        ("Declare goals that loop with with_terminal([...]), or", "Declare goals that loop with --terminal, or"),
        ("found cost, time, but reward is 'gain'.", "but --reward is 'gain'."),
    ],
)
def test_python_becomes_options(python, options):
    assert options in in_options(python)


def test_intervals_that_the_file_lacks(tmp_path, capsys):
    path = tmp_path / "model.csv"
    path.write_text("idstatefrom,idaction,idstateto,probability,reward\n0,0,0,1,1\n")
    assert main(["solve", str(path), "--discount", "0.9", "--set", "interval"]) == 2
    said = capsys.readouterr().err
    assert "has no intervals" in said
    assert "(" not in said


def test_a_pair_the_wrong_way_round(tmp_path, capsys):
    path = tmp_path / "log.csv"
    path.write_text(ROWS)
    assert main(["plan", str(path), "--discount", "0.9", "--columns", "ward=state"]) == 2
    assert "write state=ward" in capsys.readouterr().err
