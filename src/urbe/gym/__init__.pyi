# The names of `urbe.gym`, once: `urbe.lazy` imports each when it is first asked for.
from urbe.gym.adapters import Adapter as Adapter
from urbe.gym.cells import Cells as Cells
from urbe.gym.changing_params import ChangingParams as ChangingParams
from urbe.gym.discrete_actions import DiscreteActions as DiscreteActions
from urbe.gym.env_simulator import EnvSimulator as EnvSimulator
from urbe.gym.logs import record as record
from urbe.gym.members.base import FunctionMembers as FunctionMembers
from urbe.gym.members.base import Members as Members
from urbe.gym.members.check import check_members as check_members
from urbe.gym.members.copies import EnvMembers as EnvMembers
from urbe.gym.minari import from_minari as from_minari
from urbe.gym.randomised_params import RandomisedParams as RandomisedParams
from urbe.gym.simulator_env import SimulatorEnv as SimulatorEnv
from urbe.gym.stacked_history import StackedHistory as StackedHistory
from urbe.gym.tabular import GymEnv as GymEnv
from urbe.gym.tabular import gym_task as gym_task
