"""`urbe plan` on a messy log."""

import csv
import json

import pytest

import urbe
from fixtures.machines import NAMES, messy_csv
from urbe.cli import main
from urbe.cli.wording import in_options

COLUMNS = ",".join(f"{what}={name}" for what, name in NAMES.items())
READ = ("--columns", COLUMNS, "--missing", "drop")


@pytest.fixture
def machines(tmp_path):
    path = tmp_path / "machines.csv"
    path.write_text(messy_csv())
    return path


@pytest.fixture
def run(capsys, machines):
    def call(*arguments, log=machines):
        code = main([str(a) for a in ("plan", log, "--discount", 0.95, *arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_from_the_messy_file_to_policy_and_figure(run, tmp_path):
    code, out, _ = run(
        "--columns", COLUMNS, "--missing", "drop", "--start", "good", "--output", tmp_path / "policy.csv", "--figure",
        tmp_path / "plan.png",
    )  # fmt: skip
    assert code == 0
    assert "5 of 601 rows are left out for missing values: condition 1, profit 3, condition of the next row 1." in out
    assert "Rewards are random: the mean of each pair is uncertain, with a prior around" in out
    assert "The start: state good." in out
    rows = list(csv.DictReader((tmp_path / "policy.csv").read_text().splitlines()))
    assert [(row["idstate"], row["idaction"]) for row in rows][1] == ("good", "run")
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_json_is_what_python_gives(run, machines):
    code, out, _ = run(*READ, "--start", "good", "--seed", 4, "--json")
    found = json.loads(out)
    log = urbe.read_log(machines, names=NAMES, missing="drop")
    prior = urbe.NormalGamma.around(log.reward)
    wanted = urbe.plan(urbe.Posterior.fit(log, discount=0.95, rewards=prior), seed=4, start="good")
    assert code == 0
    assert found["guaranteed"] == wanted.guaranteed.tolist()
    assert found["guaranteed_at_start"] == wanted.guaranteed_at_start
    assert found["start"] == "state good"
    assert (found["states"], found["actions"]) == (["broken", "good", "worn"], ["repair", "run"])
    assert len(found["notes"]) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "Say which column is which, as in --columns state=condition,action=decision."),
        (("--columns", COLUMNS), "line 19, column profit: is missing, expected a value. 5 of 601 rows are without some "
         "value; leave them out with --missing drop, or fill them in first."),
        (("--columns", COLUMNS.replace("profit", "gain")), "--columns reward=gain, expected a column of the table: "),
        (("--columns", "where=condition"), "--columns has where, expected one of state, action, reward"),
        ((*READ, "--rewards", "known"), "If rewards are random, use --rewards ra"),
        ((*READ, "--start", "bad"), "--start is 'bad', expected a state: 'broken',"),
        ((*READ, "--terminal", "bad"), "--terminal is 'bad', expected a state: 'bro"),
        ((*READ, "--untried"), "--untried needs --feasible all"),
        ((*READ, "--confidence", 1.5), "--confidence is 1.5, expected a number in ["),
        (("--figure", "plan.jpg"), "--figure plan.jpg ends in '.jpg', expected one of .png, .svg, .pdf."),
    ],
)  # fmt: skip
def test_errors_speak_of_options(run, options, message):
    code, out, err = run(*options)
    assert (code, out) == (2, "")
    assert message in err
    assert not any(python in err for python in ("labels=", "names=", "missing=", "NormalGamma", "start["))


def test_a_missing_package_is_named_with_its_extra_before_anything_is_read(run, monkeypatch):
    monkeypatch.setattr("urbe.extras.find_spec", lambda _: None)
    code, _, err = run("--figure", "plan.png", log="none.csv")
    assert code == 2
    assert 'Figures need matplotlib, which is not installed; install it with: pip install "urbe[plots]"' in err


def test_numbers_as_names(run, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("state,action,reward,next_state,time\n1,1,0,2,2026-01-01\n2,1,1,1,2026-01-02\n")
    _, out, _ = run(log=path)
    assert "The smallest state is 1, and ids begin at 0: state 0 never occurs." in out
    assert "take them as such with --labels." in out
    _, out, _ = run("--labels", "--start", "2", log=path)
    assert "never occurs" not in out
    assert "The start: state 2." in out


def test_a_model_is_no_log(run, tmp_path):
    path = tmp_path / "model.csv"
    path.write_text("idstatefrom,idaction,idstateto,probability,reward\n0,0,0,0.5,1\n0,0,1,0.5,1\n1,0,1,1,0\n")
    code, _, err = run(log=path)
    assert code == 2
    assert "The columns idstateto and probability are those of a model, which urbe solve and urbe.read_mdp read" in err


def test_untried_pairs_and_terminal_states(run, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("s,a,r,s_next\nnew,run,1,old\nold,run,1,sold\nold,mend,-1,new\n")
    code, _, err = run(log=path)
    assert code == 2
    assert "enters state sold, which no transition leaves" in err
    assert "--terminal sold" in err
    _, out, _ = run("--terminal", "sold", log=path)
    assert "1 pair of state and action is in neither log nor model, so the policy never takes them: mend in new." in out
    _, out, _ = run("--terminal", "sold", "--feasible", "all", "--untried", "--rewards", "random", log=path)
    assert "1 pair of state and action is without data, only with the prior: mend in new." in out


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("Give it, as in read_mdp(path, discount=0.95).", "Give it, as in --discount 0.95."),
        ("give n_actions= so that", "give --untried so that"),
        ("feasible='all' with n_actions= so", "--feasible all --untried so"),
        ("draws is 3, expected at least 9", "--draws is 3, expected at least 9"),
        ("Use --held-out draws", "Use --held-out draws"),
        (
            "--set discount=2 has one of: double=false, discount=0.9",
            "--set discount=2 has one of: double=false, discount=0.9",
        ),
        ("horizon is 0, expected", "--horizon is 0, expected"),
        ("tolerance is -1.0, expected", "--tolerance is -1.0, expected"),
    ],
)
def test_words_of_python_become_options(message, wanted):
    assert in_options(message) == wanted


def test_costs_local_dates_and_other_signs_of_a_gap(run, tmp_path):
    path = tmp_path / "export.csv"
    lines = ["Nr;Zustand;Maßnahme;Kosten;Tag"]
    for k in range(40):
        day = f"{1 + k % 28:02d}.{3 + k // 28:02d}.2026"
        cost = "-999" if k == 7 else f"1.2{k:02d},5"
        lines.append(
            f"{k};{'Betrieb [A]' if k % 3 else 'Stillstand [B]'};{'warten' if k % 3 else 'starten'};{cost};{day}"
        )
    path.write_text("\n".join(lines), encoding="cp1252")
    columns = "state=Zustand,action=Maßnahme,cost=Kosten,time=Tag"
    arguments = ("--columns", columns, "--missing", "drop", "--missing-values=-999,?", "--held-out", "10")
    code, out, _ = run(*arguments, log=path)
    assert code == 0
    assert "The file is not in UTF-8 and was read as Windows-1252." in out
    assert "1 of 40 rows is left out for missing values: Kosten 1." in out
    assert "Rewards are minus the column Kosten, so values are minus costs." in out
    assert "with a prior around -1220" in out
    assert "Stillstand [B]   starten" in out


def test_folders_are_looked_for_before_anything_is_computed(run, tmp_path):
    code, out, err = run(*READ, "--output", tmp_path / "none" / "policy.csv")
    assert (code, out) == (2, "")
    assert "No such directory to write into" in err
