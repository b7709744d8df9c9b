"""Simulators with named parameters, in JAX, and uncertainty sets over them (extra `urbe[deep]`)."""

from urbe.simulators.base import Arrival as Arrival
from urbe.simulators.base import Outcomes as Outcomes
from urbe.simulators.base import Simulator as Simulator
from urbe.simulators.base import step as step
