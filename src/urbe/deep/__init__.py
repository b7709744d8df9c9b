"""Deep agents in JAX (extra `urbe[deep]`): DQN, robust DQN, DQN-UBE, DQN-URBE and soft-robust DQN;
and what is used in their place: domain randomisation with and without a memory, EWoK and IWOCS."""

from urbe.extras import need as _need

_need("Deep agents", "jax", "jaxtyping")

from urbe.deep import paper as paper
from urbe.deep.adaptive.agent import AdaptiveAgent as AdaptiveAgent
from urbe.deep.adaptive.load import load_adaptive as load_adaptive
from urbe.deep.adaptive.natures import BeliefCVaR as BeliefCVaR
from urbe.deep.adaptive.natures import BeliefMean as BeliefMean
from urbe.deep.adaptive.natures import BeliefNature as BeliefNature
from urbe.deep.adaptive.natures import CredibleWorst as CredibleWorst
from urbe.deep.adaptive.natures import EpisodeCVaR as EpisodeCVaR
from urbe.deep.adaptive.policy import AdaptivePolicy as AdaptivePolicy
from urbe.deep.adaptive.presets import adaptive_dqn as adaptive_dqn
from urbe.deep.adaptive.presets import bayes_adaptive_dqn as bayes_adaptive_dqn
from urbe.deep.adaptive.presets import thompson_dqn as thompson_dqn
from urbe.deep.adaptive.session import Session as Session
from urbe.deep.adaptive.settings import AdaptiveSettings as AdaptiveSettings
from urbe.deep.agent import Agent as Agent
from urbe.deep.baselines import domain_randomised_dqn as domain_randomised_dqn
from urbe.deep.baselines import ewok_dqn as ewok_dqn
from urbe.deep.baselines import iwocs_dqn as iwocs_dqn
from urbe.deep.baselines import recurrent_dqn as recurrent_dqn
from urbe.deep.baselines import stacked_dqn as stacked_dqn
from urbe.deep.callbacks import Callback as Callback
from urbe.deep.callbacks import Decision as Decision
from urbe.deep.core.dueling import DuelingNetwork as DuelingNetwork
from urbe.deep.core.finite import NotFinite as NotFinite
from urbe.deep.core.last_layer import LastLayer as LastLayer
from urbe.deep.core.last_layer import calibrated as calibrated
from urbe.deep.core.natures import Average as Average
from urbe.deep.core.natures import CVaR as CVaR
from urbe.deep.core.natures import MemberNature as MemberNature
from urbe.deep.core.natures import Soft as Soft
from urbe.deep.core.natures import Worst as Worst
from urbe.deep.core.recurrent import Memory as Memory
from urbe.deep.core.variances import NoVariance as NoVariance
from urbe.deep.evaluate import Evaluate as Evaluate
from urbe.deep.load import load as load
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
from urbe.deep.settings import Optimiser as Optimiser
from urbe.deep.settings import QNetwork as QNetwork
from urbe.deep.settings import Settings as Settings
from urbe.deep.settings import Transformation as Transformation
from urbe.deep.settings import Variance as Variance
from urbe.deep.train import train as train
from urbe.gym.adapters import Adapter as Adapter
from urbe.gym.discrete_actions import DiscreteActions as DiscreteActions
from urbe.gym.members.base import FunctionMembers as FunctionMembers
from urbe.gym.members.base import Members as Members
from urbe.gym.members.check import check_members as check_members
from urbe.gym.members.copies import EnvMembers as EnvMembers
