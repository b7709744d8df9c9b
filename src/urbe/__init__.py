"""Robust Markov decision processes with certified bounds."""

from urbe.mdp import MDP as MDP
