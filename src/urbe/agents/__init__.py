"""Agents that learn while they act: a belief about the model and a plan made from it, or values alone."""

from urbe.agents.base import Agent as Agent
from urbe.agents.base import AgentKind as AgentKind
from urbe.agents.base import Steps as Steps
from urbe.agents.base import Streams as Streams
from urbe.agents.base import Task as Task
from urbe.agents.bayes_q import BayesianQ as BayesianQ
from urbe.agents.bayes_q_rules import Mixture as Mixture
from urbe.agents.bayes_q_rules import Moments as Moments
from urbe.agents.bayes_q_rules import QSampling as QSampling
from urbe.agents.bayes_q_rules import ValueOfInformation as ValueOfInformation
from urbe.agents.decay import Decay as Decay
from urbe.agents.q_learning import ContaminationQ as ContaminationQ
from urbe.agents.q_learning import MismatchQ as MismatchQ
from urbe.agents.q_learning import QLearning as QLearning
from urbe.agents.q_learning import Shape as Shape
from urbe.agents.rlsvi import RLSVI as RLSVI
from urbe.agents.run import Record as Record
from urbe.agents.run import Run as Run
from urbe.agents.run import run as run
from urbe.agents.single import Single as Single
from urbe.agents.urbe import URBE as URBE
