"""Gymnasium, the only package that imports it: our models and simulators as environments, and environments of others.

Importing it registers the simulators: `gymnasium.make("urbe/CartPole-v0")`. What needs JAX is imported when it is used.
"""

from urbe.extras import need as _need

_need("Environments of Gymnasium", "gymnasium")

from urbe.gym.registration import register as _register
from urbe.lazy import public_names

__getattr__, __dir__ = public_names(__name__)
_register()
