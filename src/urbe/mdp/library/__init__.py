"""Classic models from the literature, to test and compare methods."""

from urbe.mdp.library.classic import inventory as inventory
from urbe.mdp.library.classic import machine_replacement as machine_replacement
from urbe.mdp.library.classic import riverswim as riverswim
from urbe.mdp.library.exploration import chain as chain
from urbe.mdp.library.exploration import deep_sea as deep_sea
from urbe.mdp.library.garnet import banded_garnet as banded_garnet
from urbe.mdp.library.garnet import garnet as garnet
from urbe.mdp.library.goals import BET_CHANCES as BET_CHANCES
from urbe.mdp.library.goals import BET_SHARES as BET_SHARES
from urbe.mdp.library.goals import bets as bets
from urbe.mdp.library.goals import distance_grid as distance_grid
from urbe.mdp.library.goals import gambler as gambler
from urbe.mdp.library.goals import grid_world as grid_world
from urbe.mdp.library.goals import haddad_monmege as haddad_monmege
from urbe.mdp.library.goals import seven_states as seven_states
from urbe.mdp.library.options import american_put as american_put
