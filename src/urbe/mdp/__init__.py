"""Finite Markov decision processes."""

from urbe.mdp.model import MDP as MDP
from urbe.mdp.rows import Rows as Rows
from urbe.mdp.transitions import Transitions as Transitions
