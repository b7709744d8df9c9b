"""Wrong arguments of deep agents, simulators and environments: what was found, what was expected, what to write."""

import pytest

import urbe
from urbe import deep, gym
from urbe.simulators import CartPole, Constant, Drift, MarsRover, Stacked, StepChange, UncertaintySet

POLE = CartPole()

MISTAKES = {
    "a class": (lambda: deep.dqn(CartPole, seed=0), "env is the class CartPole, expected a simulator"),
    "no such setting": (
        lambda: deep.dqn(POLE, seed=0, batch_size=8),
        "'batch_size' is not among the parameters of Set",
    ),
    "settings": (lambda: deep.dqn(POLE, seed=0, settings=5), "settings is 5, expected settings such as Settings(...)."),
    "layers": (lambda: deep.Network(hidden=64), "hidden is 64, expected a tuple of numbers, such as (64, 64)"),
    "path": (lambda: deep.load(5), "path is 5, expected the path of a file"),
    "swapped": (
        lambda: deep.train("folder", POLE, 10),
        "agent is 'folder', expected an agent such as dqn(env, seed=0)",
    ),
    "a name": (
        lambda: gym.EnvMembers("CartPole-v1", []),
        "env is 'CartPole-v1', expected an environment, such as gymn",
    ),
    "a name, for a log": (lambda: gym.record("Taxi-v3", episodes=1, seed=0), "env is 'Taxi-v3', expected an environm"),
    "no evaluation": (lambda: urbe.compare({"a": 5}), "evaluations is 5, expected one or more results of urbe.eval"),
    "another thing": (lambda: urbe.compare({"a": [5]}), "evaluations[0] is 5, expected a result of urbe.evaluate."),
    "members of a class": (lambda: UncertaintySet.grid(CartPole, masspole=[0.1]), "simulator is the class CartPole"),
    "no members": (lambda: UncertaintySet(5, None), "params is 5, expected parameters of a simulator"),
    "no simulator": (lambda: Stacked(5, 2), "simulator is 5, expected a simulator such as CartPole()."),
    "no phases": (lambda: StepChange(5), "phases is 5, expected at least one (episodes, params)."),
    "no schedule": (lambda: deep.dqn(POLE, seed=0, schedule=POLE.nominal()), "expected a schedule such as StepChange("),
    "another simulator's": (
        lambda: deep.dqn(POLE, seed=0, schedule=Constant(MarsRover().nominal())),
        "schedule has the parameters failure, expected those of CartPole: half_length",
    ),
    "out of range": (
        lambda: deep.dqn(POLE, seed=0, schedule=Constant(POLE.nominal()._replace(half_length=-1.0))),
        "The first parameters of schedule: half_length is -1.0, expected",
    ),
    "no bounds": (lambda: Drift(POLE.nominal(), 5, 3), "bounds or distributions is 5, expected a mapping from names"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_what_was_given_is_named(case):
    call, message = MISTAKES[case]
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert message in str(caught.value)
