"""The random numbers of `urbe.deep.core.learner`, by purpose."""

import jax
import jax.numpy as jnp
import numpy as np

GOLDEN, ALL = 0x9E3779B97F4A7C15, 2**64 - 1


def split_mix(state):
    """SplitMix64 as published, in Python's integers."""
    while True:
        state = (state + GOLDEN) & ALL
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & ALL
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & ALL
        yield z ^ (z >> 31)


class Randomness:
    """The learner's random numbers, drawn from its key by name, turned into what they mean with plain integers."""

    def __init__(self, key):
        self.key = key

    def _stream(self, name, index):
        return jax.random.fold_in(jax.random.fold_in(self.key, name), jnp.int32(index))

    def acting(self, index, n, n_actions):
        noise_key, random_key = jax.random.split(self._stream(3, index))
        noise = np.asarray(jax.random.normal(noise_key, (n, n_actions), jnp.float32), float)
        share, action = np.asarray(jax.random.bits(random_key, (2, n), jnp.uint32)).tolist()
        return noise, [(word >> 8) / 2**24 for word in share], [(word * n_actions) >> 32 for word in action]

    def _places(self, name, index, count, present):
        high, low = np.asarray(jax.random.key_data(jax.random.fold_in(self.key, name))).tolist()
        generator = split_mix(((high << 32) + low + index * count - 1) * GOLDEN)
        return [((next(generator) >> 32) * present) >> 32 for _ in range(count)]

    def places(self, update, count, present):
        """Of a minibatch."""
        return self._places(2, update, count, present)

    def head_places(self, step, count, present):
        """Of what the head replays."""
        return self._places(4, step, count, present)
