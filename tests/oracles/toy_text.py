"""Adapters for Gymnasium's toy-text environments: their state is a few attributes, their dynamics a table."""

import gymnasium


class TableAdapter:
    """Environments with a table `P` of outcomes; the parameter is the reward of every step in addition to its own."""

    def get_state(self, env):
        return [int(env.unwrapped.s), env.unwrapped.lastaction]

    def set_state(self, env, state):
        env.unwrapped.s, env.unwrapped.lastaction = state

    def get_params(self, env):
        return {"toll": getattr(env.unwrapped, "toll", 0.0)}

    def set_params(self, env, params):
        inner = env.unwrapped
        more = params.get("toll", self.get_params(env)["toll"]) - self.get_params(env)["toll"]
        inner.toll = self.get_params(env)["toll"] + more
        inner.P = {
            s: {a: [(p, after, r - more, end) for p, after, r, end in ways] for a, ways in row.items()}
            for s, row in inner.P.items()
        }


class BlackjackAdapter:
    """Cards on the table; the parameter is whether a natural pays more."""

    def get_state(self, env):
        return {"player": list(env.unwrapped.player), "dealer": list(env.unwrapped.dealer)}

    def set_state(self, env, state):
        env.unwrapped.player, env.unwrapped.dealer = list(state["player"]), list(state["dealer"])

    def get_params(self, env):
        return {"natural": float(env.unwrapped.natural)}

    def set_params(self, env, params):
        env.unwrapped.natural = bool(params.get("natural", env.unwrapped.natural))


def blackjack():
    """Its observation, a tuple, as numbers."""
    return gymnasium.wrappers.FlattenObservation(gymnasium.make("Blackjack-v1", sab=False))


TOYS = {
    "FrozenLake": (lambda: gymnasium.make("FrozenLake-v1"), TableAdapter(), [{"toll": 0.1}]),
    "CliffWalking": (lambda: gymnasium.make("CliffWalking-v1", is_slippery=True), TableAdapter(), [{"toll": 0.1}]),
    "Taxi": (lambda: gymnasium.make("Taxi-v4"), TableAdapter(), [{"toll": 0.1}]),
    "Blackjack": (blackjack, BlackjackAdapter(), [{"natural": 1.0}]),
}
"""Name: how it is made, an adapter, members."""
