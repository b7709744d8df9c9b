"""Environments for tabular agents."""

from urbe.envs.base import Arrivals as Arrivals
from urbe.envs.base import Env as Env
from urbe.envs.base import EnvConfig as EnvConfig
from urbe.envs.finite import FiniteEnv as FiniteEnv
from urbe.envs.finite import Phase as Phase
from urbe.envs.turning import TurningEnv as TurningEnv
