"""Simulators with named parameters, in JAX, and uncertainty sets over them (extra `urbe[deep]`)."""

from urbe.extras import need as _need

_need("Simulators", "jax", "jaxtyping")

from urbe.simulators.acrobot import Acrobot as Acrobot
from urbe.simulators.acrobot import AcrobotParams as AcrobotParams
from urbe.simulators.base import Arrival as Arrival
from urbe.simulators.base import Outcomes as Outcomes
from urbe.simulators.base import Simulator as Simulator
from urbe.simulators.base import step as step
from urbe.simulators.cartpole import CartPole as CartPole
from urbe.simulators.cartpole import CartPoleParams as CartPoleParams
from urbe.simulators.deep_sea import DeepSea as DeepSea
from urbe.simulators.deep_sea import DeepSeaParams as DeepSeaParams
from urbe.simulators.distributions import Distribution as Distribution
from urbe.simulators.distributions import LogUniform as LogUniform
from urbe.simulators.distributions import Normal as Normal
from urbe.simulators.distributions import Uniform as Uniform
from urbe.simulators.exact import Performance as Performance
from urbe.simulators.exact import break_even_rover as break_even_rover
from urbe.simulators.exact import crossing as crossing
from urbe.simulators.exact import performance as performance
from urbe.simulators.finite import FiniteSimulator as FiniteSimulator
from urbe.simulators.finite import RobustModel as RobustModel
from urbe.simulators.finite import scenarios as scenarios
from urbe.simulators.finite import to_mdp as to_mdp
from urbe.simulators.mars_rover import MarsRover as MarsRover
from urbe.simulators.mars_rover import MarsRoverParams as MarsRoverParams
from urbe.simulators.mountain_car import MountainCar as MountainCar
from urbe.simulators.mountain_car import MountainCarParams as MountainCarParams
from urbe.simulators.random_member import RandomMember as RandomMember
from urbe.simulators.schedules import Constant as Constant
from urbe.simulators.schedules import Cyclic as Cyclic
from urbe.simulators.schedules import DomainRandomisation as DomainRandomisation
from urbe.simulators.schedules import Drift as Drift
from urbe.simulators.schedules import RandomJumps as RandomJumps
from urbe.simulators.schedules import RandomWalk as RandomWalk
from urbe.simulators.schedules import Sawtooth as Sawtooth
from urbe.simulators.schedules import Schedule as Schedule
from urbe.simulators.schedules import StepChange as StepChange
from urbe.simulators.seven_states import SevenStates as SevenStates
from urbe.simulators.seven_states import SevenStatesParams as SevenStatesParams
from urbe.simulators.stacked import Stacked as Stacked
from urbe.simulators.uncertainty import UncertaintySet as UncertaintySet
from urbe.simulators.uncertainty_check import SetReport as SetReport
from urbe.simulators.uncertainty_check import check_uncertainty_set as check_uncertainty_set
