"""Simulators with named parameters, in JAX, and uncertainty sets over them (extra `urbe[deep]`)."""

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
from urbe.simulators.gym_env import SimulatorEnv as SimulatorEnv
from urbe.simulators.mountain_car import MountainCar as MountainCar
from urbe.simulators.mountain_car import MountainCarParams as MountainCarParams
from urbe.simulators.register import register as register

register()
