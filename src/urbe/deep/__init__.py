"""Deep agents in JAX (extra `urbe[deep]`): DQN, robust DQN, DQN-UBE, DQN-URBE and soft-robust DQN."""

from urbe.extras import need as _need

_need("Deep agents", "jax", "jaxtyping")

from urbe.deep import paper as paper
from urbe.deep.agent import Agent as Agent
from urbe.deep.callbacks import Callback as Callback
from urbe.deep.callbacks import Verdict as Verdict
from urbe.deep.evaluate import Evaluate as Evaluate
from urbe.deep.host.adapters import Adapter as Adapter
from urbe.deep.host.discrete_actions import DiscreteActions as DiscreteActions
from urbe.deep.host.member_check import check_members as check_members
from urbe.deep.host.member_envs import EnvMembers as EnvMembers
from urbe.deep.host.members import FunctionMembers as FunctionMembers
from urbe.deep.host.members import Members as Members
from urbe.deep.load import load as load
from urbe.deep.natures import Average as Average
from urbe.deep.natures import CVaR as CVaR
from urbe.deep.natures import Nature as Nature
from urbe.deep.natures import Soft as Soft
from urbe.deep.natures import Worst as Worst
from urbe.deep.policy import Policy as Policy
from urbe.deep.presets import dqn as dqn
from urbe.deep.presets import dqn_ube as dqn_ube
from urbe.deep.presets import dqn_urbe as dqn_urbe
from urbe.deep.presets import robust_dqn as robust_dqn
from urbe.deep.presets import soft_robust_dqn as soft_robust_dqn
from urbe.deep.sb3 import SB3Policy as SB3Policy
from urbe.deep.settings import Adam as Adam
from urbe.deep.settings import CopyEvery as CopyEvery
from urbe.deep.settings import Decay as Decay
from urbe.deep.settings import Epsilon as Epsilon
from urbe.deep.settings import Network as Network
from urbe.deep.settings import Settings as Settings
from urbe.deep.train import train as train
from urbe.deep.trouble import NotFinite as NotFinite
from urbe.deep.variances import LastLayer as LastLayer
from urbe.deep.variances import NoVariance as NoVariance
from urbe.deep.variances import calibrated as calibrated
