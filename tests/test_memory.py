"""Memory: available memory, forecasts against measured peaks, and errors before anything is allocated."""

import copy
import os
import subprocess
import sys

import numpy as np
import pytest

import urbe
from urbe import memory
from urbe.cli.main import main
from urbe.deep.core.replay import init_replay, replay_bytes
from urbe.mdp.formats import read_mdp, write_mdp
from urbe.planners.draws import drawn_rows
from urbe.posteriors.sampling import dirichlet_draws

GB = 10**9
RIVER = urbe.library.riverswim(6)
LOG = urbe.Transitions([0, 1], [0, 0], [1.0, 1.0], [1, 0])


@pytest.fixture
def little(monkeypatch):
    """A machine with a hundred bytes left."""
    monkeypatch.setattr(memory, "UNNOTICED", 0)
    monkeypatch.setattr(memory, "available", lambda: 100)


@pytest.mark.usefixtures("little")
def test_a_refusal_says_how_much_what_for_and_what_to_do():
    with pytest.raises(memory.NotEnoughMemory) as refused:
        memory.require({"a table": 2 * GB, "an index": GB}, "Use a smaller table.")
    assert str(refused.value) == (
        "About 3 GB of memory are needed, of which 2 GB for a table, but 1e-07 GB are available. Use a smaller table."
    )
    assert isinstance(refused.value, MemoryError)  # which the command line prints without a traceback


def test_what_fits_or_is_unknown_or_small_is_let_through(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 3 * GB)
    memory.require({"a table": 3 * GB}, "")
    monkeypatch.setattr(memory, "available", lambda: None)
    memory.require({"a table": 1e30}, "")
    monkeypatch.setattr(memory, "available", lambda: 0)
    memory.require({"a table": memory.UNNOTICED - 1}, "")


def transitions(in_order):
    """Two states that swap, listed in order or not."""
    state = [0, 1] if in_order else [1, 0]
    return urbe.MDP.from_transitions(state, [0, 0], state[::-1], [1.0, 1.0], 0.0, discount=0.9)


REFUSED = {
    "a replay": (lambda: init_replay(1000, 30, 4, 2), "smaller capacity, fewer members"),
    "draws": (lambda: dirichlet_draws(np.random.default_rng(0), np.ones(4), np.array([0, 4]), 99), "fewer draws"),
    "planning": (
        lambda: drawn_rows(urbe.Posterior.before(RIVER), np.random.default_rng(0), 99),
        "Use fewer draws",
    ),
    "all states": (lambda: urbe.L2Ball(0.1, support="all").bind(RIVER), 'support="nominal"'),
    "dense": (lambda: urbe.MDP.from_dense(np.full((4, 2, 4), 0.25), 0.0, discount=0.9), "MDP.from_transitions"),
    "dense with zeros": (
        lambda: urbe.MDP.from_dense(np.eye(4)[:, None], 0.0, discount=0.9, keep_zeros=True),
        "keep_zeros=False",
    ),
    "sorted transitions": (lambda: transitions(in_order=True), "Use fewer transitions."),
    "unsorted transitions": (lambda: transitions(in_order=False), "sort them by state, action and next_state"),
    "pymdptoolbox arrays": (
        lambda: urbe.MDP.from_pymdptoolbox(np.full((2, 2, 2), 0.5), np.zeros((2, 2)), discount=0.9),
        "sparse matrices",
    ),
    "scenarios": (lambda: urbe.Scenarios([RIVER, RIVER]).bind(RIVER), "fewer scenarios"),
    "a posterior that may lead anywhere": (
        lambda: urbe.Posterior.fit(LOG, discount=0.9, feasible="all"),
        "feasible='observed'",
    ),
    "a Garnet": (lambda: urbe.library.garnet(20, 2, 5, seed=0), "fewer states, actions or successors"),
    "a banded Garnet": (lambda: urbe.library.banded_garnet(20, 2, 5, seed=0), "fewer states, actions or successors"),
    "a model made dense": (RIVER.to_dense, "Use matrix()"),
    "a Gymnasium table": (
        lambda: urbe.MDP.from_gymnasium({s: {0: [(1.0, s, 0.0, False)]} for s in range(9)}, discount=0.9),
        "fewer transitions",
    ),
}


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize("case", REFUSED)
def test_large_things_are_refused_with_advice(case):
    call, advice = REFUSED[case]
    with pytest.raises(memory.NotEnoughMemory) as refused:
        call()
    assert advice in str(refused.value)


@pytest.mark.parametrize("suffix", ["csv", "tra", "npz"])
def test_files_that_do_not_fit_are_refused_before_they_are_read(suffix, tmp_path, monkeypatch):
    path = tmp_path / f"model.{suffix}"
    write_mdp(RIVER, path)
    monkeypatch.setattr(memory, "UNNOTICED", 0)
    monkeypatch.setattr(memory, "available", lambda: 100)
    with pytest.raises(memory.NotEnoughMemory, match=f"{path.name}.*Use a smaller file"):
        read_mdp(path, discount=0.9)


def fake(root, meminfo=None, cgroup="", **files):
    """A tree like that of Linux."""
    (root / "proc/self").mkdir(parents=True)
    if meminfo is not None:
        (root / "proc/meminfo").write_text(f"MemTotal: 9 kB\nMemAvailable: {meminfo // 1024} kB\n")
    (root / "proc/self/cgroup").write_text(cgroup)
    for folder, contents in files.items():
        path = root / "sys/fs/cgroup" / folder.replace("__", "/").replace("base", "")
        path.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (path / name).write_text(f"{content}\n")
    return root


V2 = {"memory.max": 3000, "memory.current": 2500, "memory.stat": "anon 1\ninactive_file 200"}
V1 = {"memory.limit_in_bytes": 5000, "memory.usage_in_bytes": 4000, "memory.stat": "total_inactive_file 30"}
FREE = {**V2, "memory.max": "max"}


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ({}, 1024 * 1024),
        ({"cgroup": "0::/a/b\n", "a__b": V2}, 700),  # 3000 - 2500 + 200 that the kernel gives up
        ({"cgroup": "0::/a/b\n", "a": V2, "a__b": FREE}, 700),  # the limit of a group above
        ({"cgroup": "0::/of/the/host\n", "base": V2}, 700),  # inside a container
        ({"cgroup": "0::/a\n", "a": FREE}, 1024 * 1024),
        ({"cgroup": "7:cpu,memory:/a\n0::/\n", "memory__a": V1}, 1030),
        ({"cgroup": "0::/a\n", "a": {**V2, "memory.current": 9000}}, 0),
    ],
)
def test_the_least_of_machine_and_groups_is_available(tmp_path, reported, expected):
    assert memory.available(fake(tmp_path, 1024 * 1024, **reported)) == expected


def test_without_linux_the_system_is_asked_and_may_not_know(tmp_path, monkeypatch):
    names = {"SC_AVPHYS_PAGES": 7, "SC_PAGE_SIZE": 100}
    monkeypatch.setattr(memory.os, "sysconf", names.__getitem__)
    assert memory.available(tmp_path) == 700

    def unknown(_):
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(memory.os, "sysconf", unknown)
    assert memory.available(tmp_path) is None


PEAK = """
import sys
import numpy as np

def peak(make):
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    with open("/proc/self/statm") as file:
        before = int(file.read().split()[1]) * 4096
    made = make()
    with open("/proc/self/status") as file:
        highest = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
    return highest - before
"""

MEASURED = {
    "replay": """
import jax
from urbe.deep.core.replay import init_replay, replay_bytes
jax.block_until_ready(init_replay(9, 300, 4, 2))
print(peak(lambda: jax.block_until_ready(init_replay(15_000, 300, 4, 2))))
""",
    "draws": """
from urbe.posteriors.sampling import dirichlet_draws
start = np.arange(0, 20_001, 10)
dirichlet_draws(np.random.default_rng(0), np.ones(20_000), start, 1)
print(peak(lambda: dirichlet_draws(np.random.default_rng(0), np.ones(20_000), start, 600)))
""",
    "small draws": """
from urbe.posteriors.sampling import dirichlet_draws
start = np.arange(0, 20_001, 10)
dirichlet_draws(np.random.default_rng(0), np.full(20_000, 0.05), start, 1)
print(peak(lambda: dirichlet_draws(np.random.default_rng(0), np.full(20_000, 0.05), start, 300)))
""",
    "all states": """
import urbe
rows = urbe.library.garnet(1500, 6, 3, seed=0, discount=0.9).rows
print(peak(rows.with_all_states))
""",
}
WRITTEN = """
import tempfile
from urbe.mdp.formats import read_mdp, write_mdp
folder = tempfile.TemporaryDirectory()
path = folder.name + "/model.{suffix}"
write_mdp(urbe.library.garnet(40_000, 4, 5, seed=0, discount=0.9), path)
asked.clear()
make = lambda: read_mdp(path, discount=0.9)
"""
PEAKS = {
    "dense": """
p = np.full((700, 10, 700), 1 / 700)
make = lambda: urbe.MDP.from_dense(p, np.zeros((700, 10)), discount=0.9)
""",
    "dense with rewards and a terminal state": """
p = np.full((500, 10, 500), 1 / 500)
make = lambda: urbe.MDP.from_dense(p, p, discount=0.9, terminal=[3])
""",
    "sorted transitions": """
row = np.repeat(np.arange(200_000), 8)
t, p = np.tile(np.arange(8), 200_000), np.full(1_600_000, 1 / 8)
columns = (row // 4, row % 4, t, p, t.astype(float))
make = lambda: urbe.MDP.from_transitions(*columns, discount=0.9)
""",
    "sorted transitions with one successor each": """
row, p = np.arange(1_500_000), np.ones(1_500_000)
columns = (row // 4, row % 4, row // 4, p, p)
make = lambda: urbe.MDP.from_transitions(*columns, discount=0.9)
""",
    "unsorted transitions": """
row = np.tile(np.arange(200_000), 8)
t, p = np.repeat(np.arange(8), 200_000), np.full(1_600_000, 1 / 8)
columns = (row // 4, row % 4, t, p, t.astype(float))
make = lambda: urbe.MDP.from_transitions(*columns, discount=0.9)
""",
    "sparse matrices of short rows": """
from scipy.sparse import diags_array
band = diags_array([np.full(100_000, 0.5), np.full(99_999, 0.5)], offsets=[0, 1]).tocsr()
band.data[-1] = 1.0
make = lambda: urbe.MDP.from_sparse([band] * 4, 0.0, discount=0.9)
""",
    "pymdptoolbox arrays": """
p = np.full((4, 600, 600), 1 / 600)
make = lambda: urbe.MDP.from_pymdptoolbox(p, np.zeros((600, 4)), discount=0.9)
""",
    "scenarios as an array": """
model = urbe.library.garnet(150, 4, 150, seed=0, discount=0.9)
kernels = np.full((60, 150, 4, 150), 1 / 150)
make = lambda: urbe.Scenarios(kernels).bind(model)
""",
    "scenarios on entries": """
model = urbe.library.garnet(1500, 4, 5, seed=0, discount=0.9)
kernels = np.repeat(model.rows.probability[:, None], 300, axis=1)
make = lambda: urbe.Scenarios(kernels).bind(model)
""",
    "scenarios as models": """
model = urbe.library.garnet(5000, 4, 5, seed=0, discount=0.9)
make = lambda: urbe.Scenarios([model] * 50).bind(model)
""",
    "a posterior that may lead anywhere": """
state = np.arange(2000)
log = urbe.Transitions(state, np.zeros(2000, int), np.zeros(2000), (state + 1) % 2000)
make = lambda: urbe.Posterior.fit(log, discount=0.9, feasible="all")
""",
    "a CSV file": WRITTEN.format(suffix="csv"),
    "a PRISM file": WRITTEN.format(suffix="tra"),
    "an .npz file": WRITTEN.format(suffix="npz"),
    "planning with values at risk": """
def prior(size):
    return urbe.Posterior.before(urbe.library.garnet(size, 4, 5, seed=0, discount=0.9))
def safe(posterior):
    return urbe.plan(posterior, method=urbe.VaRBellman(), rng=np.random.default_rng(0), held_out=2)
safe(prior(6))
posterior = prior(60)
asked.clear()
make = lambda: safe(posterior)
""",
    "a learning agent": """
import gymnasium
from urbe import deep
class Images(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0.0, 1.0, (3072,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(3072, np.float32), {}
    def step(self, action):
        return self.np_random.random(3072, dtype=np.float32), 1.0, False, False, {}
def learned(capacity):
    network = deep.Network(hidden=(16,))
    return deep.dqn(Images(), seed=0, capacity=capacity, network=network, warm_up=32, batch=16).learn(100)
learned(100)
asked.clear()
make = lambda: learned(20_000)  # large beside what compiling it takes
""",
}
ASKED = """
import urbe
from urbe import memory
urbe.MDP.from_dense(np.full((2, 1, 2), 0.5), [[1.0], [0.0]], discount=0.9)
urbe.MDP.from_transitions([1, 0], [0, 0], [0, 1], [1.0, 1.0], 0.0, discount=0.9)
asked = []
memory.require = lambda parts, advice: asked.append(sum(parts.values()))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("what", PEAKS)
def test_the_largest_forecast_is_the_peak(what):
    script = PEAK + ASKED + PEAKS[what] + "print(peak(make), max(asked))"
    # every large array in pages of its own, so that none is hidden in what was freed before
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
    for _ in range(2):  # the first time code may be compiled and cached, which takes memory of its own
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
        )
        measured, asked = map(float, done.stdout.split())
        if asked == pytest.approx(measured, rel=0.2):
            return
    assert asked == pytest.approx(measured, rel=0.2)


def test_an_interface_gives_its_own_advice():
    with pytest.raises(memory.NotEnoughMemory) as refused, memory.advising("Use fewer --draws."):
        raise memory.NotEnoughMemory("Much is needed.", "Use fewer draws.")
    assert str(refused.value) == "Much is needed. Use fewer --draws."
    assert str(copy.copy(refused.value)) == str(refused.value)


@pytest.mark.parametrize(("method", "advice"), [("var", "--method bci"), ("rsvf", "--draws"), ("bci", "--held-out")])
def test_urbe_plan_refuses_in_the_words_of_its_options(method, advice, tmp_path, monkeypatch, capsys):
    log = tmp_path / "log.csv"
    log.write_text("state,action,reward,next_state\n0,0,0,1\n0,0,0,0\n1,0,1,0\n1,0,1,1\n")
    monkeypatch.setattr(memory, "UNNOTICED", 1000)  # let the model through, and refuse the draws
    monkeypatch.setattr(memory, "available", lambda: 1000)
    assert main(["plan", str(log), "--discount", "0.9", "--method", method, "--quiet"]) == 2
    said = capsys.readouterr().err
    assert advice in said
    assert "draws of" in said
    assert "draws=" not in said


def test_a_learning_agent_whose_replay_is_too_large_is_refused_before_it_is_made(monkeypatch):
    import gymnasium

    from urbe import deep

    class Images(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(0.0, 1.0, (3072,), np.float32)
        action_space = gymnasium.spaces.Discrete(2)

    monkeypatch.setattr(memory, "available", lambda: 20 * GB)
    with pytest.raises(memory.NotEnoughMemory) as refused:
        deep.dqn(Images(), seed=0, capacity=10**6)
    said = str(refused.value)
    assert said.startswith(
        "About 36.9 GB of memory are needed, of which 24.6 GB for 1000000 observations of 3072 numbers"
    )
    assert "smaller capacity" in said


FORECAST = {
    "replay": sum(replay_bytes(15_000, 300, 4, 2).values()),
    "draws": 2.0 * 8 * 20_000 * 600,
    "small draws": 4.0 * 8 * 20_000 * 300,
    "all states": 12.0 * 9000 * 1500,
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("what", MEASURED)
def test_forecasts_are_within_a_fifth_of_the_measured_peak(what):
    done = subprocess.run([sys.executable, "-c", PEAK + MEASURED[what]], capture_output=True, text=True, check=True)
    assert FORECAST[what] == pytest.approx(float(done.stdout), rel=0.2)


@pytest.mark.parametrize("what", ["draws", "small draws", "all states", "replay"])
def test_forecasts_are_those_that_are_asked_for(what, monkeypatch):
    asked = []
    rows = urbe.library.garnet(1500, 6, 3, seed=0, discount=0.9).rows
    monkeypatch.setattr(memory, "require", lambda parts, _: asked.append(sum(parts.values())))
    start = np.arange(0, 20_001, 10)
    if what == "draws":
        dirichlet_draws(np.random.default_rng(0), np.ones(20_000), start, 600)
    elif what == "small draws":
        dirichlet_draws(np.random.default_rng(0), np.full(20_000, 0.05), start, 300)
    elif what == "replay":
        init_replay(15_000, 300, 4, 2)
    else:
        rows.with_all_states()
    assert asked == [pytest.approx(FORECAST[what])]
