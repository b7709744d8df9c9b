"""The members of each domain: the values of the parameter that changes, over which beliefs are held."""

from __future__ import annotations

from urbe.paper.adaptation import ACROBOT, CAR, EVEN, GAIN, LENGTH, PENDULUM, ROVER, STATES

FAILURES = (0.002, 0.005, 0.01, 0.02, 0.03, 0.045, 0.06, 0.08, 0.12, 0.2, 0.3, 0.5, 0.8)
"""Failure probabilities of the rover: about evenly spaced in logarithm, around 0.054, above which waiting is better."""

GAINS = (-1.6, -1.4, -1.2, -1.0, -0.8, -0.65, -0.5, 0.4, 0.5, 0.65, 0.8, 1.0, 1.2, 1.4, 1.6)
"""Gains of the actuator, in units of the nominal force; a negative gain reverses it."""

LENGTHS = (0.25, 0.35, 0.5, 0.75, 1.1, 1.6, 2.3, 3.4)
"""Half lengths of the pole, in metres; short poles differ more from each other than long ones."""

SWINGS = (-1.2, -1.0, -0.8, 0.8, 1.0, 1.2)
"""Gains of a motor that swings up a load, in units of the nominal one; a negative gain reverses it."""

GAMBLES = (0.001, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9)
"""Success probabilities of a gamble of the seven states, on both sides of 0.14, the reward of the safe action."""

GRAVITIES = (2.5, 9.81, 16.0, 23.0, 30.0)
"""Gravities, in metres per square second; the mass of the pole is in proportion to them."""

MEMBERS: dict[str, tuple[float, ...]] = {
    ROVER: FAILURES,
    EVEN: FAILURES,
    STATES: GAMBLES,
    GAIN: GAINS,
    LENGTH: LENGTHS,
    ACROBOT: SWINGS,
    CAR: SWINGS,
    PENDULUM: GRAVITIES,
}
"""The members by domain, in the units of its axes."""
