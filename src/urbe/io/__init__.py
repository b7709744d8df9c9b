"""Models, policies, budgets and logs in files."""

from urbe.io.checkpoint import AgentFileError as AgentFileError
from urbe.io.checkpoint import load_agent as load_agent
from urbe.io.checkpoint import save_agent as save_agent
from urbe.io.craam_csv import read_scenarios as read_scenarios
from urbe.io.craam_policy import read_budget as read_budget
from urbe.io.craam_policy import write_policy as write_policy
from urbe.io.errors import ModelFileError as ModelFileError
from urbe.io.logs import read_log as read_log
from urbe.io.logs import write_log as write_log
from urbe.io.mdp_files import read_mdp as read_mdp
from urbe.io.mdp_files import write_mdp as write_mdp
