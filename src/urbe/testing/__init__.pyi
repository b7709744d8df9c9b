from urbe.simulators.uncertainty_check import check_uncertainty_set as check_uncertainty_set
from urbe.testing.agent_probes import Probe as Probe
from urbe.testing.agent_probes import probes as probes
from urbe.testing.agents import check_agent as check_agent
from urbe.testing.sets import check_ambiguity_set as check_ambiguity_set
from urbe.testing.sets import small_models as small_models
from urbe.testing.simulators import check_simulator as check_simulator
