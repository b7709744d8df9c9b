"""LunarLander, whose state Box2D does not give away whole: a copy is brought to it by living through the same again."""

import warnings

import gymnasium


class Recorded(gymnasium.Wrapper):
    """Remembers where the generator stood when the episode began, under which gravity, and the actions since."""

    def reset(self, **named):
        if named.get("seed") is not None:
            self.unwrapped.reset(seed=named.pop("seed"))
        self.begun, self.gravity, self.actions = (
            self.unwrapped.np_random.bit_generator.state,
            self.unwrapped.gravity,
            [],
        )
        return super().reset(**named)

    def step(self, action):
        self.actions.append(int(action))
        return super().step(action)


class LanderAdapter:
    """For `Recorded(LunarLander)`."""

    def get_state(self, env):
        return {"begun": env.begun, "gravity": env.gravity, "actions": list(env.actions)}

    def set_state(self, env, state):
        own = self.get_params(env)
        self.set_params(env, {"gravity": state["gravity"]})
        env.unwrapped.np_random.bit_generator.state = state["begun"]
        env.reset()
        for action in state["actions"]:
            env.step(action)
        self.set_params(env, own)

    def get_params(self, env):
        return {"gravity": env.unwrapped.gravity}

    def set_params(self, env, params):
        env.unwrapped.gravity = params.get("gravity", env.unwrapped.gravity)
        env.unwrapped.world.gravity = (0.0, env.unwrapped.gravity)


def lunar_lander():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Box2D's own, raised while it is imported
        env = Recorded(gymnasium.make("LunarLander-v3"))
    env.reset(seed=0)
    return env
