"""What nature may do: one file for each family of sets."""

from urbe.ambiguity.base import AmbiguitySet as AmbiguitySet
from urbe.ambiguity.base import Nature as Nature
from urbe.ambiguity.base import WorstCase as WorstCase
from urbe.ambiguity.exact import Exact as Exact
from urbe.ambiguity.l1 import L1Ball as L1Ball
