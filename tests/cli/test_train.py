"""`urbe train` from the command line; killed runs are in tests/deep/training/test_kill.py."""

import os
import re
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest

from fixtures import deep_parts
from urbe import overrides
from urbe.belief import Switching
from urbe.cli import agents, main, train, worlds
from urbe.cli.main import build_parser
from urbe.cli.worlds import set_up_jax
from urbe.deep import Adam, BeliefCVaR, BeliefMean, KalmanLastLayer, LastLayer, NotFinite, NoVariance, Worst, paper
from urbe.deep.adaptive.rules import OnMembers
from urbe.deep.presets import dqn_urbe
from urbe.deep.saving.load import load
from urbe.deep.settings import CopyEvery, Decay, Network, Settings
from urbe.deep.training.train import train as train_agent
from urbe.runs.directory import RunDirectory, read_checkpoint, read_config, read_finished, saved_steps
from urbe.runs.row_log import read_rows
from urbe.simulators import CartPole, LogUniform, MarsRover, Normal, UncertaintySet, Uniform
from urbe.sweep.launcher import JAX_ONE_THREAD

TINY = ("--set", "network.hidden=16,16", "batch=16", "capacity=300", "warm_up=50", "--log-every", "50")
POLES = ("--over", "half_length=0.25,1")


@pytest.fixture(autouse=True)
def _as_found(monkeypatch):
    for name in JAX_ONE_THREAD:
        monkeypatch.setenv(name, os.environ.get(name, ""))


def run(capsys, *arguments):
    code = main(["train", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def options(*arguments):
    return build_parser().parse_args(["train", *arguments, "--seed", "0", "--out", "nowhere"])


def test_the_command_trains_what_the_functions_train_and_goes_on(capsys, tmp_path):
    command = ("cartpole", "--agent", "dqn-urbe", "--seed", 3, "--out", tmp_path / "run", *POLES, *TINY)
    code, out, err = run(capsys, *command, "--steps", 150, "--checkpoint-every", 100)
    assert code == 0
    assert err.startswith("dqn-urbe: 0 of 150 steps.\ndqn-urbe: 150 of 150 steps in ")
    assert f"{tmp_path}/run: dqn-urbe on cartpole, seed 3, a new run." in out
    assert "150 steps" in out
    assert f"In {tmp_path}/run: log.csv, episodes.csv, members.csv, checkpoints." in out
    assert "Targets decided in the second half of training: half_length " in out
    assert f"Next: urbe evaluate {tmp_path}/run --over half_length=0.1:5:11" in out
    assert saved_steps(tmp_path / "run") == [100, 150]

    code, out, _ = run(capsys, *command, "--steps", 200)
    assert code == 0
    assert "resuming from step 150." in out
    _, out, _ = run(capsys, *command, "--steps", 200)
    assert "is at step 200 already" in out
    assert run(capsys, *command, "--steps", 200, "--quiet")[1:] == ("", "")

    poles = UncertaintySet.grid(CartPole(), half_length=(0.25, 1.0))
    tiny = {"network": Network(hidden=(16, 16)), "batch": 16, "capacity": 300, "warm_up": 50}
    agent = dqn_urbe(CartPole(), poles, seed=3, log_every=50, **tiny)
    train_agent(agent, tmp_path / "same", 200)
    for name in ("log.csv", "episodes.csv", "config.json", "finished.json"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "same" / name).read_bytes()
    one, other = (read_checkpoint(tmp_path / name).tensors for name in ("run", "same"))
    assert all(one[name].tobytes() == other[name].tobytes() for name in other)

    code, out, err = run(capsys, *command, "--steps", 200, "--set", "discount=0.8")
    assert (code, out.count("\n")) == (2, 1)
    assert "settings.discount is 0.9 in the file, expected 0.8" in err


def test_the_evaluation_that_is_proposed_names_what_is_of_the_user():
    own = ("--adapter", "mine:Adapter", "--set", "nature=mine.natures:Soft", "nature.share=0.5", "batch=8")
    found = train._further(options("Mine-v0", "--agent", "robust-dqn", "--over", "drag=1,2", *own))
    assert found == " --over drag=1,2 --adapter mine:Adapter --import mine.natures"


def test_a_gymnasium_environment_by_its_id(capsys, tmp_path):
    code, out, err = run(
        capsys, "CartPole-v1", "--agent", "dqn", "--seed", 0, "--out", tmp_path / "run", "--steps", 60, *TINY
    )
    assert (code, err.count("\n")) == (0, 2)
    assert "CartPole" in str(read_config(tmp_path / "run")["world"])
    assert out.endswith(f"Next: urbe evaluate {tmp_path}/run\n")


EVALUATED = ("--evaluate-every", 40, "--evaluate-over", "half_length=0.25,1", "--evaluate-episodes", 2)


def test_evaluation_keeps_the_best_and_stops_and_says_so(capsys, tmp_path):
    command = ("cartpole", "--agent", "dqn", "--seed", 3, "--out", tmp_path / "run", *TINY, *EVALUATED)
    stop = ("--keep-best", "worst", "--stop-at", 1)
    code, out, err = run(capsys, *command, *stop, "--steps", 150)
    assert code == 0
    assert "dqn: 40 of 150 steps in " in err
    assert "evaluation " in err
    why = read_finished(tmp_path / "run")["stopped"]
    assert why.startswith("The worst return of evaluation was ")
    assert f"Stopped: {why} To continue, raise --stop-at or --patience." in out
    assert f"In {tmp_path}/run: log.csv, episodes.csv, evaluation.csv, checkpoints, best.safetensors." in out
    assert f"Next: urbe evaluate {tmp_path}/run/best.safetensors --over" in out
    assert load(tmp_path / "run" / "best.safetensors").step == 40

    code, out, err = run(capsys, *command, *stop, "--steps", 150)
    assert (code, err) == (0, "")
    assert f"{tmp_path}/run: an evaluation stopped this run at step 40." in out
    assert f"Stopped: {why}" in out
    assert saved_steps(tmp_path / "run")[-1] == 40

    log = tmp_path / "run" / "evaluation.csv"
    sound = log.read_bytes()
    log.write_bytes(sound.replace(b"40,", b"41,"))
    code, out, err = run(capsys, *command, "--keep-best", "worst", "--steps", 150)
    assert code == 2
    assert f"{log}: is damaged: its first {len(sound)} bytes have the SHA-256 " in err
    log.write_bytes(sound)
    assert run(capsys, *command, "--keep-best", "worst", "--steps", 150)[0] == 0
    assert read_finished(tmp_path / "run") == {"step": 150}
    assert read_rows(log)["step"].tolist() == [40, 80, 120]
    code, _, err = run(capsys, *command, "--keep-best", "mean", "--steps", 150)
    assert code == 2
    assert 'callbacks.evaluation.by is "worst" in the file, expected "mean"' in err


def test_a_gymnasium_environment_is_evaluated_on_one_of_its_own(capsys, tmp_path):
    command = ("urbe/CartPole-v0", "--agent", "dqn", "--seed", 0, "--out", tmp_path / "run", "--steps", 60, *TINY)
    code, _, _ = run(capsys, *command, *EVALUATED)
    assert code == 0
    rows = read_rows(tmp_path / "run" / "evaluation.csv")
    assert rows["step"].tolist() == [40]
    assert rows["worst"][0] < rows["mean"][0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--stop-at", "3"), "--stop-at has no effect without evaluations; add --evaluate-every N."),
        (("--keep-best", "worst"), "--keep-best has no effect"),
        (("--evaluate-over", "half_length=1"), "--evaluate-over has no effect"),
        (("--evaluate-every", "5", "--evaluate-over", "half_length"), "--evaluate-over half_length cannot be read"),
        (("--evaluate-every", "0"), "every is 0"),
        (("--evaluate-every", "5", "--patience", "0"), "patience is 0"),
        (("--evaluate-every", "5", "--evaluate-over", "length=1"), "length"),
    ],
)
def test_evaluations_that_cannot_be_are_refused_at_once(capsys, tmp_path, words, message):
    code, _, err = run(capsys, "cartpole", "--agent", "dqn", "--seed", 0, "--out", tmp_path / "run", *TINY, *words)
    assert code == 2
    assert message in err
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_numbers_that_are_none_end_it_with_a_word(capsys, tmp_path, monkeypatch):
    def broken(*_, **__):
        raise NotFinite("The reward at step 7 is not finite, expected numbers.")

    monkeypatch.setattr(sys.modules["urbe.deep.training.train"], "train", broken)
    monkeypatch.setattr(train, "make_agent", lambda _: None)
    code, _, err = run(capsys, "cartpole", "--agent", "dqn", "--seed", 0, "--out", tmp_path / "run")
    assert code == 1
    assert err == (
        "urbe: The reward at step 7 is not finite, expected numbers. "
        f"See {tmp_path}/run/log.csv for the steps before.\n"
    )


def test_ctrl_c_says_from_where_it_will_go_on(capsys, tmp_path, monkeypatch):
    def pressed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["urbe.deep.training.train"], "train", pressed)
    monkeypatch.setattr(train, "make_agent", lambda _: None)
    with RunDirectory(tmp_path / "run", {}) as folder:
        folder.save(1200, {})
    code, out, err = run(capsys, "cartpole", "--agent", "dqn", "--seed", 0, "--out", tmp_path / "run")
    assert (code, err) == (130, "urbe: interrupted; the same command resumes from step 1200.\n")
    assert out == f"{tmp_path}/run: resuming from step 1200.\n"


# what the words mean


@pytest.mark.parametrize("name", agents.AGENTS)
def test_every_agent_has_its_settings_and_set(name):
    env, members, settings = agents.parts(options("cartpole", "--agent", name))
    assert env == CartPole()
    assert (members is not None) == (name in agents.ROBUST)
    assert settings == replace(Settings(), variance=LastLayer() if name in agents.EXPLORING else NoVariance())


@pytest.mark.parametrize("name", worlds.SIMULATORS)
def test_every_environment_has_a_simulator(name):
    env, _, _ = agents.parts(options(name, "--agent", "dqn"))
    assert type(env).__name__.lower() == name.replace("-", "")


@pytest.mark.parametrize(
    ("name", "env", "settings", "members"),
    [
        ("cartpole", paper.cartpole, paper.CARTPOLE, paper.cartpole_set),
        ("mars-rover", paper.mars_rover, paper.MARS_ROVER, paper.mars_rover_set),
    ],
)
def test_paper_is_the_published_experiment(name, env, settings, members):
    found = agents.parts(options(name, "--agent", "dqn-urbe", "--paper", "--over-seed", "5"))
    assert found[0] == env()
    assert found[1].describe() == members(5).describe()
    assert found[2] == settings
    plain = agents.parts(options(name, "--agent", "robust-dqn", "--paper"))
    assert plain[2] == replace(settings, variance=NoVariance())


@pytest.mark.parametrize(
    ("over", "expected"),
    [
        (["half_length=0.5,1,2"], {"half_length": (0.5, 1.0, 2.0)}),
        (["half_length=0.25:1.25:5"], {"half_length": (0.25, 0.5, 0.75, 1.0, 1.25)}),
        (["half_length=1:2:1", "masspole=0.1"], {"half_length": (1.0,), "masspole": (0.1,)}),
        (["half_length=-1:2:2"], None),
    ],
)
def test_sets_of_values(over, expected):
    if expected is None:
        with pytest.raises(ValueError, match="half_length"):
            worlds.uncertainty_set("cartpole", CartPole(), over, 15, 0)
        return
    found = worlds.uncertainty_set("cartpole", CartPole(), over, 15, 0)
    assert found.describe() == UncertaintySet.grid(CartPole(), **expected).describe()


@pytest.mark.parametrize(
    ("over", "laws"),
    [
        ("half_length=normal:0.75:0.25:0.1", {"half_length": Normal(0.75, 0.25, low=0.1)}),
        ("half_length=normal:0.75:0.25:0.1:2", {"half_length": Normal(0.75, 0.25, low=0.1, high=2.0)}),
        ("masspole=normal:5:0.25", {"masspole": Normal(5.0, 0.25)}),
        ("half_length=uniform:0.25:1", {"half_length": Uniform(0.25, 1.0)}),
        ("half_length=loguniform:0.1:5", {"half_length": LogUniform(0.1, 5.0)}),
    ],
)
def test_sets_of_draws(over, laws):
    found = worlds.uncertainty_set("cartpole", CartPole(), [over], 4, 9)
    assert found.describe() == UncertaintySet.samples(CartPole(), 9, count=4, **laws).describe()


def test_the_default_sets_are_the_papers_laws():
    found = worlds.uncertainty_set("mars-rover", MarsRover(), [], 15, 2)
    assert found.describe() == paper.mars_rover_set(2).describe()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pole", "--agent", "dqn"), "ENV is 'pole', expected one of cartpole"),
        (("NoSuchEnv-v7", "--agent", "dqn"), "ENV is 'NoSuchEnv-v7'"),
        (("CartPole-v1", "--agent", "dqn-urbe"), "--over is missing: a robust agent on CartPole-v1 needs"),
        (("acrobot", "--agent", "dqn", "--paper"), "--paper supports cartpole and mars-rover, not acrobot"),
        (("acrobot", "--agent", "robust-dqn"), "--over is missing"),
        (("cartpole", "--agent", "dqn", *POLES), "--over is for robust-dqn"),
        (("cartpole", "--agent", "dqn-urbe", "--over", "half_length"), "it has no name and '='"),
        (("cartpole", "--agent", "dqn-urbe", "--over", "half_length=1:2"), "or NAME=V1,V2"),
        (("cartpole", "--agent", "dqn-urbe", "--over", "half_length=1:2:x"), "or NAME=V1,V2"),
        (("cartpole", "--agent", "dqn-urbe", "--over", "half_length=1:2:0"), "count is 0"),
        (("cartpole", "--agent", "dqn-urbe", "--over", "half_length=uniform:1"), "takes 2 numbers, found 1"),
        (("cartpole", "--agent", "dqn-urbe", "--over", "half_length=uniform:2:1"), "expected the lower one first"),
        (
            ("cartpole", "--agent", "dqn-urbe", "--over", "length=1,2"),
            "--over has 'length', expected some of the parameters of cartpole: half_length",
        ),
        (("cartpole", "--agent", "dqn-urbe", "--over", "half_length=1", "half_length=2"), "twice"),
        (("cartpole", "--agent", "dqn-urbe", "--over", "half_length=1", "masspole=uniform:0:1"), "mixes"),
        (("cartpole", "--agent", "dqn-urbe", "--members", "0"), "count is 0"),
        (("cartpole", "--agent", "dqn", "--set", "speed=3"), "--set speed=3 names no field"),
        (("cartpole", "--agent", "dqn", "--set", "variance.beta=1"), "names no field"),
        (("cartpole", "--agent", "dqn", "--set", "batch=1.5"), "expected a whole number"),
        (("cartpole", "--agent", "dqn", "--set", "discount=2"), "discount is 2.0"),
        (("cartpole", "--agent", "dqn", "--seed", "-1"), "seed is -1"),
    ],
)
def test_what_cannot_be_is_refused(capsys, tmp_path, arguments, message):
    seed = () if "--seed" in arguments else ("--seed", 0)
    code, out, err = run(capsys, *arguments, *seed, "--out", tmp_path / "run")
    assert (code, out) == (2, "")
    assert message in err
    assert not (tmp_path / "run").exists()


# settings in words


def test_settings_change_by_name_and_type():
    words = [
        "discount=0.99", "batch=32", "double=true", "huber=1", "network.hidden=64,32", "network.scale=2.4,1,0.2,1",
        "epsilon.steps=5_000", "variance.beta=1.0", "variance.residual_decay=0.9", "copy.episodes=none",
        "copy.updates=500", "optimiser.offset=1e-5", "clip_norm=5", "decay.last=0.1", "decay.cosine=true",
        "copy.tau=0.5", "train_every=256", "gradient_steps=128",
    ]  # fmt: skip
    found = overrides.override(Settings(nature=Worst(), variance=LastLayer()), words)
    expected = Settings(
        nature=Worst(), variance=LastLayer(beta=1.0, residual_decay=0.9),
        network=Network((64, 32), (2.4, 1.0, 0.2, 1.0)), double=True, discount=0.99, batch=32,
        copy=CopyEvery(updates=500, tau=0.5), huber=1.0, clip_norm=5.0, decay=Decay(0.1, cosine=True),
        train_every=256, gradient_steps=128,
    )  # fmt: skip
    expected = replace(expected, epsilon=replace(expected.epsilon, steps=5000))
    assert found == replace(expected, optimiser=replace(expected.optimiser, offset=1e-5))
    assert type(found.huber) is float
    assert overrides.override(found, ["huber=none"]).huber is None
    assert overrides.override(found, ["clip_norm=none"]).clip_norm is None


def test_a_part_of_another_module_reaches_the_agent_with_its_fields():
    words = ("nature=fixtures.deep_parts:Median", "nature.above=1", "variance=fixtures.deep_parts:ByCount")
    given = options("cartpole", "--agent", "robust-dqn", *POLES, *TINY[:-2], *words)
    settings = agents.make_agent(given).trainer.settings
    assert settings.nature == deep_parts.Median(above=1)
    assert settings.variance == deep_parts.ByCount()


def test_what_is_shown_can_be_given_back():
    settings = Settings(variance=LastLayer(), network=Network((7, 9), (0.1, 3.0)))
    words = [f"{name}={overrides.show(value)}" for name, (_, value) in overrides._fields(settings)]
    assert len(words) > 25
    assert overrides.override(Settings(variance=LastLayer()), words) == settings


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("batch=x", "'x', expected a whole number"),
        ("double=yes", "expected true or false"),
        ("network.hidden=64,,64", "expected whole numbers with commas between"),
        ("network.scale=a", "expected numbers with commas between"),
        ("huber=no", "expected a number or none"),
        ("copy.updates=1.5", "expected a whole number or none"),
        ("nature=worst", "names no module, expected module:attribute"),
        ("network=3", "names no module, expected module:attribute"),
        ("batch", "names no field"),
        ("nurture=1", "names no field"),
        ("=3", "names no field"),
        ("copy.updates=5", "expected exactly one of episodes and updates"),
    ],
)
def test_wrong_words_are_named_and_the_right_ones_listed(word, message):
    with pytest.raises(ValueError, match=message) as error:
        overrides.override(Settings(), [word])
    if "names no field" in message:
        assert "network.hidden=128,128,128, network.scale=1.0, network.initial=he, double=false" in str(error.value)


@dataclass(frozen=True)
class Odd:
    """A field of a type that has no words."""

    fine: int = 1
    table: tuple[tuple[int, int], ...] = ()


def test_fields_without_words_are_not_offered():
    with pytest.raises(ValueError, match=r"one of: fine=1\.$"):
        overrides.override(Odd(), ["table=1"])


# how JAX is set up


def test_one_thread_unless_the_user_says_otherwise(monkeypatch):
    for name in JAX_ONE_THREAD:
        monkeypatch.delenv(name)
    set_up_jax()
    assert {name: os.environ[name] for name in JAX_ONE_THREAD} == JAX_ONE_THREAD
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    set_up_jax()
    assert os.environ["XLA_FLAGS"] == "--xla_cpu_enable_fast_math=false"


def test_a_cache_that_cannot_be_written_is_done_without(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    set_up_jax()


def test_help_teaches(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    out = capsys.readouterr().out
    words = " ".join(out.split()).replace("- ", "-")
    for word in (
        *agents.AGENTS,
        *worlds.SIMULATORS,
        "half_length=normal:0.75:0.25:0.1",
        "--set discount=0.99",
        "--evaluate-over half_length=0.25,0.5,1",
        "--keep-best worst --stop-at 475 --patience 5",
        "examples:",
    ):
        assert word in words
    assert max(map(len, out.split("\n"))) <= 120


@pytest.mark.parametrize(
    ("agent", "own"),
    [
        ("domain-randomised-dqn", ["hazard=0.5"]),
        ("stacked-dqn", ["length=2", "survives=false", "hazard=0.2"]),
        ("recurrent-dqn", ["memory.units=5", "memory.length=3", "memory.burn_in=1"]),
        ("ewok-dqn", ["kappa=0.25", "draws=2"]),
        ("iwocs-dqn", ["round_steps=30", "episodes=2"]),
    ],
)
def test_what_is_used_in_place_of_robust_agents_has_options_of_its_own(agent, own):
    made = agents.make_agent(options("cartpole", "--agent", agent, *POLES, *TINY, "--set", *own))
    assert made.name == agent
    assert (made.trainer.settings.batch, made.trainer.settings.capacity) == (16, 300)
    described = str(made.about())
    for assignment in own:
        name, _, value = assignment.partition("=")
        shown = {"false": "False"}.get(value, value)
        assert f"'{name.rpartition('.')[2]}': {shown}" in described


def test_the_kalman_filter_is_an_agent_whose_filter_can_be_set():
    made = agents.make_agent(options("cartpole", "--agent", "deep-rok", *POLES, *TINY))
    assert (made.name, made.trainer.settings.optimiser) == ("deep-rok", KalmanLastLayer())
    own = ("--set", "optimiser=urbe.deep:Adam")
    made = agents.make_agent(options("cartpole", "--agent", "deep-rok", *POLES, *TINY, *own))
    assert made.trainer.settings.optimiser == Adam()


def test_an_option_of_another_agent_is_no_setting():
    with pytest.raises(ValueError, match=r"--set kappa=0\.5 names no field"):
        agents.make_agent(options("cartpole", "--agent", "dqn", "--set", "kappa=0.5"))
    with pytest.raises(ValueError, match="--set draws=few has the value 'few', expected a whole number"):
        agents.make_agent(options("cartpole", "--agent", "ewok-dqn", "--set", "draws=few"))


SMALL = ("lives=4", "length=4", "minibatches=1", "network.hidden=8", "hazard=0.01,0.1")


def test_adaptive_agents_are_trained_resumed_evaluated_and_compared(capsys, tmp_path):
    def command(name, steps, every):
        where = ("cartpole", "--agent", "thompson-dqn", "--seed", 1, "--out", tmp_path / name)
        return (*where, "--over", "force=-10,5", "--steps", steps, "--checkpoint-every", every, "--set", *SMALL)

    code, out, err = run(capsys, *command("whole", 50, 10_000))
    assert code == 0, err
    assert "64 steps of simulated lives" in out
    assert f"Next: urbe evaluate {tmp_path}/whole --over force=-10,5" in out
    run(capsys, *command("parts", 20, 7))
    _, out, _ = run(capsys, *command("parts", 50, 7))
    assert "resuming from step 32." in out
    whole, parts = (read_checkpoint(tmp_path / name) for name in ("whole", "parts"))
    assert whole.tensors.keys() == parts.tensors.keys()
    for name, array in whole.tensors.items():
        np.testing.assert_array_equal(array, parts.tensors[name], err_msg=name)
    logs = [(tmp_path / name / "log.csv").read_bytes() for name in ("whole", "parts")]
    assert logs[0] == logs[1]
    assert logs[0].count(b"\n") == 5

    asked = ("--over", "force=-10,10", "--episodes", "3")
    assert main(["evaluate", str(tmp_path / "whole"), *asked]) == 0
    assert "thompson-dqn, seed 1, after 64 steps" in capsys.readouterr().out
    assert main(["compare", str(tmp_path / "whole"), str(tmp_path / "parts"), *asked]) == 0
    assert "thompson-dqn" in capsys.readouterr().out


def test_options_of_adaptive_agents_reach_them():
    given = ("cartpole", "--over", "force=-10,5", "--set", *SMALL, "per=episode", "temper=0.5", "flip=0.1")
    made = agents.make_agent(options(*given, "level=0.5", "--agent", "bayes-adaptive-dqn"))
    assert made.model.switching == Switching((0.01, 0.1), "episode", temper=0.5)
    assert (made.model.flip, made.settings.nature, made.settings.informed) == (0.1, BeliefCVaR(0.5), False)
    made = agents.make_agent(options(*given, "boundary=0.5", "nature=urbe.deep:BeliefMean", "--agent", "adaptive-dqn"))
    assert (made.rule, made.settings.boundary, made.settings.informed) == (OnMembers(BeliefMean()), 0.5, True)
    for more, said in (
        (["--paper"], "--paper is for agents of the DQN family; thompson-dqn has no such option."),
        (["--evaluate-every", "10"], "--evaluate-every is for agents of the DQN family"),
        (["--set", "level=0.5"], "--set level is the caution of bayes-adaptive-dqn"),
        (["--set", "nature=urbe.deep:BeliefMean"], "--set nature has no effect on thompson-dqn"),
        (["--set", "hazards=1"], "--set hazards=1 names no field"),
    ):
        with pytest.raises(ValueError, match=re.escape(said)):
            agents.make_agent(options("cartpole", "--agent", "thompson-dqn", "--over", "force=-10,5", *more))
