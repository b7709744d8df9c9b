import gymnasium
import numpy as np
import pytest

from urbe.gym.wrapping import keeps_state


class Scaled(gymnasium.RewardWrapper):
    def __init__(self, env, scale):
        super().__init__(env)
        self.scale = scale

    def reward(self, reward):
        return self.scale * reward


class Noisy(gymnasium.ObservationWrapper):
    def observation(self, observation):
        return observation + self.np_random.normal(size=observation.shape)  # the environment's own generator


class Reversed(gymnasium.ActionWrapper):
    def __init__(self, env):
        super().__init__(env)
        self.action_space = gymnasium.spaces.Discrete(2)

    def action(self, action):
        return 1 - action


class Fading(gymnasium.RewardWrapper):
    count = 0

    def reward(self, reward):
        self.count += 1
        return reward / self.count


class Remembering(gymnasium.ObservationWrapper):
    def __init__(self, env):
        super().__init__(env)
        self.seen = []

    def observation(self, observation):
        self.seen.append(observation)
        return self.seen[-2:][0]


class OwnNoise(gymnasium.ObservationWrapper):
    def __init__(self, env):
        super().__init__(env)
        self.draws = np.random.default_rng(0)

    def observation(self, observation):
        return observation + self.draws.normal(size=observation.shape)


class Counter:
    def __init__(self):
        self.self, self.resets = self, 0


class PerEpisode(gymnasium.ActionWrapper):
    def __init__(self, env):
        super().__init__(env)
        self.counter = Counter()

    def reset(self, **options):
        self.counter.resets += 1
        return super().reset(**options)

    def action(self, action):
        return action


class Uncopied(Scaled):
    def __deepcopy__(self, memo):
        raise TypeError("no copies")


@pytest.mark.parametrize(
    ("wrap", "expected"),
    [
        (lambda env: Scaled(env, 2.0), None),
        (Noisy, None),
        (Reversed, None),
        (lambda env: Reversed(Scaled(Noisy(env), 0.5)), None),
        (Fading, "Fading"),
        (Remembering, "Remembering"),
        (OwnNoise, "OwnNoise"),
        (PerEpisode, "PerEpisode"),
        (lambda env: Uncopied(env, 1.0), "Uncopied"),
        (lambda env: Reversed(Fading(Scaled(env, 2.0))), "Fading"),
        (gymnasium.Wrapper, None),
        (gymnasium.wrappers.NormalizeObservation, "NormalizeObservation"),
        (lambda env: gymnasium.wrappers.StickyAction(env, 0.5), "StickyAction"),
        (lambda env: gymnasium.wrappers.DelayObservation(env, 2), "DelayObservation"),
        (gymnasium.wrappers.TimeAwareObservation, "TimeAwareObservation"),
        (lambda env: gymnasium.wrappers.ClipReward(env, 0.0, 1.0), None),
    ],
)
def test_which_wrapper_has_a_memory(wrap, expected):
    env = wrap(gymnasium.make("CartPole-v1"))
    env.reset(seed=3)
    before = env.unwrapped.state.copy()
    assert keeps_state(env, across_episodes=True) == expected
    np.testing.assert_array_equal(env.unwrapped.state, before)
