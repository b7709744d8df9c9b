"""User-defined natures, variances, networks and optimisers are trained, saved and set like built-in ones."""

import subprocess
import sys
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest

from fixtures import deep_parts as theirs
from urbe.deep import load, robust_dqn, train
from urbe.deep.core.last_layer import LastLayer, calibrated
from urbe.deep.core.natures import Average, CVaR, Soft, Worst
from urbe.deep.core.variances import NoVariance
from urbe.deep.settings import Adam, Network, Settings, Transformation, named_part
from urbe.overrides import override
from urbe.runs.errors import CheckpointError
from urbe.simulators import CartPole, UncertaintySet
from urbe.testing import check_nature, check_network, check_optimiser, check_variance

PARTS = {
    "nature": theirs.Median(above=1),
    "variance": theirs.ByCount(scale=0.5),
    "network": theirs.Dueling(units=6),
    "optimiser": theirs.Momentum(decay=0.8),
}
SMALL = {"batch": 8, "capacity": 100, "warm_up": 20, "learning_rate": 1e-3}


def new():
    poles = UncertaintySet.grid(CartPole(), half_length=(0.25, 1.0))
    return robust_dqn(CartPole(), poles, seed=0, log_every=50, **SMALL, **PARTS)


def same(one, other):
    ours, others = one.tensors(), other.tensors()
    return ours.keys() == others.keys() and all(ours[n].tobytes() == others[n].tobytes() for n in ours)


def test_an_agent_of_others_parts_is_trained_saved_loaded_and_resumed_bit_for_bit(tmp_path):
    agent = new().learn(200)
    assert agent.history.log["w"][-1] < agent.history.log["w"][0]  # counts grow
    agent.save(tmp_path / "agent")
    again = load(tmp_path / "agent")
    assert again.trainer.settings == agent.trainer.settings
    assert {name: getattr(again.trainer.settings, name) for name in PARTS} == PARTS
    assert agent.policy.n_actions == 2
    assert agent.policy.values([0.0] * 4).w.shape == (2,)
    assert agent.predict([0.0] * 4) == again.predict([0.0] * 4)
    assert same(agent.learn(60), again.learn(60))
    whole = train(new(), tmp_path / "whole", 260)
    train(new(), tmp_path / "pieces", 110)
    assert same(whole, train(new(), tmp_path / "pieces", 260))
    assert same(whole, agent)


def test_a_file_imports_nothing_and_says_what_to_import(tmp_path):
    new().save(tmp_path / "agent")
    code = (
        "from urbe.deep import load\n"
        "try:\n"
        f"    load({str(tmp_path / 'agent')!r})\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.startswith("CheckpointError")
    assert "settings.nature is fixtures.deep_parts:Median, but the module fixtures.deep_parts is not imported" in said
    assert "Import fixtures.deep_parts before loading, or give settings=." in said


@pytest.mark.parametrize(
    "name", ["os:system", "subprocess:Popen", "urbe.deep:dqn", "fixtures.deep_parts:Counts", "os:no"]
)
def test_only_parts_are_built_by_name(name):
    with pytest.raises(ValueError, match=r"expected a dataclass with the methods of a part \(nature: "):
        named_part("settings.nature", name)


def test_a_part_that_no_file_can_name_must_be_given_again(tmp_path):
    @dataclass(frozen=True)
    class Local(theirs.Median):
        pass

    agent = robust_dqn(CartPole(), UncertaintySet.grid(CartPole(), half_length=(1.0,)), seed=0, nature=Local(), **SMALL)
    agent.save(tmp_path / "agent")
    with pytest.raises(ValueError, match=r"settings is missing.*settings\.nature is of the kind Local"):
        load(tmp_path / "agent")
    assert same(load(tmp_path / "agent", settings=agent.trainer.settings), agent)


def test_a_part_is_set_from_the_command_line_with_its_fields():
    chosen = ["nature=fixtures.deep_parts:Median", "nature.above=1", "optimiser=fixtures.deep_parts:Momentum"]
    settings = override(Settings(), chosen)
    assert settings.nature == theirs.Median(above=1)
    assert settings.optimiser == theirs.Momentum()
    assert override(Settings(), ["variance=urbe.deep:LastLayer", "variance.beta=1"]).variance == LastLayer(beta=1.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Median", "names no module, expected module:attribute, such as urbe.deep:Worst, of a MemberNature"),
        ("nowhere.at.all:Median", r"cannot be made \(ModuleNotFoundError"),
        ("fixtures.deep_parts:Mean", r"cannot be made \(AttributeError"),
        ("urbe.deep:Soft", r"cannot be made \(TypeError"),
        ("fixtures.deep_parts:Momentum", r"is Momentum\(decay=0.9\), expected .* of a MemberNature"),
    ],
)
def test_what_is_no_part_is_refused_on_the_command_line(text, words):
    with pytest.raises(ValueError, match=f"--set nature={text}.*{words}"):
        override(Settings(), [f"nature={text}"])


@pytest.mark.parametrize("nature", [Average(), Worst(), CVaR(0.3), theirs.Median()])
def test_natures_keep_their_contract(nature):
    check_nature(nature)


def test_a_nature_of_a_fixed_size_keeps_its_contract():
    check_nature(Soft((0.25, 0.75)), members=(2,))


@pytest.mark.parametrize("network", [Network((8, 12)), Network((16,), (2.0,), "torch"), theirs.Dueling()])
def test_networks_keep_their_contract(network):
    check_network(network)


@pytest.mark.parametrize("optimiser", [Adam(), theirs.Momentum()])
def test_optimisers_keep_their_contract(optimiser):
    check_optimiser(optimiser)


@pytest.mark.parametrize("variance", [NoVariance(), LastLayer(hidden=(4,)), calibrated(hidden=(4,)), theirs.ByCount()])
def test_variances_keep_their_contract(variance):
    check_variance(variance)


class Pair(NamedTuple):
    """As Optax's transformations are."""

    init: object
    update: object


def test_a_gradient_transformation_is_scaled_by_the_rate():
    """Signs of the gradient, as `optax.chain(optax.scale_by_sign(), optax.scale(-1.0))`."""
    pair = Pair(lambda _: (), lambda gradient, state, _: (jax.tree.map(lambda g: -jnp.sign(g), gradient), state))
    weights = (jnp.asarray([1.0, -2.0]),)
    with pytest.raises(ValueError, match=r"optimiser is Pair.*expected an Adam.*Transformation\(pair\)"):
        Settings(optimiser=pair)
    changes, _ = Transformation(pair).update(weights, Transformation(pair).init(weights), weights, jnp.float32(0.5))
    assert changes[0].tolist() == [-0.5, 0.5]
    agent = robust_dqn(
        CartPole(), UncertaintySet.grid(CartPole(), half_length=(1.0,)), seed=0, optimiser=Transformation(pair), **SMALL
    )
    assert int(agent.learn(40).trainer.learner.updates) == 21


@dataclass(frozen=True)
class Doubled:
    """Weights that sum to two."""

    def weights(self, values):
        return 2.0 * Average().weights(values)


@dataclass(frozen=True)
class Uphill(theirs.Momentum):
    """The wrong way."""

    def update(self, gradient, state, weights, rate):
        changes, state = super().update(gradient, state, weights, rate)
        return jax.tree.map(jnp.negative, changes), state


@dataclass(frozen=True)
class OtherTraining(theirs.Dueling):
    """Trains other values than it acts by."""

    def training_values(self, weights, obs):
        return 2.0 * self.values(weights, self.features(weights, obs))


@dataclass(frozen=True)
class Growing(theirs.ByCount):
    """A head that changes its type."""

    def refresh(self, settings, head, q, replay, before, step):  # noqa: ARG002
        return head._replace(visits=head.visits.astype(jnp.float64))


@pytest.mark.parametrize(
    ("check", "part", "law"),
    [
        (check_nature, Doubled(), "the sum of the weights"),
        (check_nature, Average, "nature: found <class"),
        (check_optimiser, Uphill(), "the squared length after 300 steps"),
        (check_network, OtherTraining(), "training values and their gradients"),
        (check_variance, Growing(), "the head after step 1"),
        (check_variance, Worst(), "without acting, init, learn"),
        (
            check_optimiser,
            Transformation(Pair(len, len)),
            "the description of optimiser: found optimiser.pair is of the kind Pair",
        ),
    ],
)
def test_contracts_find_what_is_broken(check, part, law):
    with pytest.raises(AssertionError, match=law):
        check(part)


def test_a_damaged_name_is_a_checkpoint_error(tmp_path):
    new().save(tmp_path / "agent")
    saved = tmp_path / "agent"
    assert b"deep_parts:Median" in saved.read_bytes()
    saved.write_bytes(saved.read_bytes().replace(b"deep_parts:Median", b"deep_parts:Medium"))
    with pytest.raises(CheckpointError):
        load(tmp_path / "agent")


@dataclass(frozen=True)
class ZeroAtFirst(Network):
    """All values are zero before the first step, as in many publications."""

    def init(self, key, obs_size, n_actions):
        *layers, last = super().init(key, obs_size, n_actions)
        return (*layers, type(last)(jnp.zeros_like(last.weight), last.bias))


def test_networks_may_begin_with_values_of_zero():
    check_network(ZeroAtFirst((8,)))
