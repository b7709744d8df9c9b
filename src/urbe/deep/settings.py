"""The settings of an agent: everything that can be chosen about it, as values."""

from urbe.deep.core.settings import Adam as Adam
from urbe.deep.core.settings import CopyEvery as CopyEvery
from urbe.deep.core.settings import Decay as Decay
from urbe.deep.core.settings import Epsilon as Epsilon
from urbe.deep.core.settings import Network as Network
from urbe.deep.core.settings import Settings as Settings
