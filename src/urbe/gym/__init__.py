"""Gymnasium: urbe's models and simulators as environments, and environments of others. No other package imports it.

Importing it registers the simulators: `gymnasium.make("urbe/CartPole-v0")`. Modules that need JAX are imported on use.
"""

from urbe.extras import need as _need

_need("Environments of Gymnasium", "gymnasium")

from urbe.gym.registration import register as _register
from urbe.lazy import public_names

__getattr__, __dir__ = public_names(__name__)
_register()
