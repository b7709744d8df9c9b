"""Read and write models, policies, budgets and logs; the readers and writers are also names of `urbe`."""

from urbe.mdp.formats.craam_csv import read_scenarios as read_scenarios
from urbe.mdp.formats.craam_policy import read_budget as read_budget
from urbe.mdp.formats.craam_policy import write_policy as write_policy
from urbe.mdp.formats.errors import LabelsLost as LabelsLost
from urbe.mdp.formats.errors import ModelFileError as ModelFileError
from urbe.mdp.formats.logs import read_log as read_log
from urbe.mdp.formats.logs import write_log as write_log
from urbe.mdp.formats.mdp_files import read_mdp as read_mdp
from urbe.mdp.formats.mdp_files import write_mdp as write_mdp
from urbe.mdp.formats.policy_table import read_policy as read_policy
