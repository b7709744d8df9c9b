"""The DQN family in plain NumPy and float64, from the paper's listing: slow, one transition at a time.

Nothing is cached and nothing is updated by formula: targets are computed anew for every minibatch, gradients are
written out layer by layer, and Sigma is the inverse of a sum of outer products. What is random is handed in.
"""

from collections import defaultdict

import numpy as np

from urbe.deep import Average, CVaR, LastLayer, Soft, Worst


def as_lists(layers):
    """The layers of a network of ours, in float64."""
    return [(np.asarray(layer.weight, float), np.asarray(layer.bias, float)) for layer in layers]


def forward(layers, x):
    """The input, the activations of every ReLU layer, and the output, in this order."""
    found = [np.asarray(x, float)]
    for i, (weight, bias) in enumerate(layers):
        z = found[-1] @ weight + bias
        found.append(z if i == len(layers) - 1 else np.maximum(z, 0.0))
    return found


def gradient(layers, x, slope):
    """Of a loss whose derivative with respect to the output is `slope`: a (weight, bias) per layer."""
    found = forward(layers, x)
    gradients = []
    for i in reversed(range(len(layers))):
        gradients.append((found[i].T @ slope, slope.sum(axis=0)))
        slope = (slope @ layers[i][0].T) * (found[i] > 0.0)
    return gradients[::-1]


class PlainAdam:
    """Kingma and Ba's first algorithm, line by line, after the gradient's norm has been limited."""

    def __init__(self, adam, rate, limit=None):
        self.b1, self.b2, self.offset, self.rate = adam.first_decay, adam.second_decay, adam.offset, rate
        self.limit = limit
        self.m, self.v, self.t = defaultdict(float), defaultdict(float), 0
        self.clipped = 0

    def step(self, layers, gradients, factor=1.0):
        """The layers after a step with `factor` times the rate."""
        self.t += 1
        length = np.linalg.norm(np.concatenate([np.ravel(g) for slopes in gradients for g in slopes]))
        if self.limit is not None and length > self.limit:
            gradients = [tuple(g * self.limit / length for g in slopes) for slopes in gradients]
            self.clipped += 1
        moved = []
        for i, (arrays, slopes) in enumerate(zip(layers, gradients, strict=True)):
            new = []
            for j, (x, g) in enumerate(zip(arrays, slopes, strict=True)):
                self.m[i, j] = self.b1 * self.m[i, j] + (1 - self.b1) * g
                self.v[i, j] = self.b2 * self.v[i, j] + (1 - self.b2) * g**2
                m_hat = self.m[i, j] / (1 - self.b1**self.t)
                v_hat = self.v[i, j] / (1 - self.b2**self.t)
                new.append(x - factor * self.rate * m_hat / (np.sqrt(v_hat) + self.offset))
            moved.append(tuple(new))
        return moved


def mixture(nature, values):
    """What nature makes of the K values of one transition."""
    if isinstance(nature, Worst):
        return min(values)
    if isinstance(nature, Average):
        return sum(values) / len(values)
    if isinstance(nature, Soft):
        return sum(share * value for share, value in zip(nature.shares, values, strict=True))
    assert isinstance(nature, CVaR)
    # concave and piecewise linear in c: the best c is one of the values
    return max(c - np.mean([max(c - value, 0.0) for value in values]) / nature.level for c in values)


class PaperAgent:
    """What `urbe.deep.core.learner` should do.

    Args:
      settings: what kind of agent it is.
      q, head: first weights, lists of (weight, bias); head is None without one.
      random: see `Randomness` in the test.
    """

    def __init__(self, settings, q, head, random):
        self.settings, self.random = settings, random
        self.variance = settings.variance if isinstance(settings.variance, LastLayer) else None
        self.q, self.target, self.head = q, q, head
        self.n_actions = len(q[-1][1])
        self.q_adam = PlainAdam(settings.optimiser, settings.learning_rate, settings.clip_norm)
        self.replay, self.seen, self.updates, self.episodes, self.copies = {}, 0, 0, 0, 0
        if self.variance is not None:
            self.head_adam = PlainAdam(settings.optimiser, self.variance.learning_rate, settings.clip_norm)
            size = settings.network.hidden[-1] + self.variance.constant
            self.prior = np.eye(size) / self.variance.mu
            self.precision = [self.prior.copy() for _ in range(self.n_actions)]
            self.squares, self.weight = [0.0] * self.n_actions, [0.0] * self.n_actions

    # what is computed from weights

    def scaled(self, obs):
        return np.asarray(obs, float) / np.asarray(self.settings.network.scale)

    def phi(self, obs):
        return forward(self.q, self.scaled(obs))[-2]

    def q_of(self, obs, layers=None):
        return forward(self.q if layers is None else layers, self.scaled(obs))[-1]

    def head_input(self, obs):
        return self.scaled(obs) if self.variance.raw_input else self.phi(obs)

    def w_of(self, x):
        out = forward(self.head, x)[-1]
        return np.log1p(np.exp(out)) if self.variance.non_negative else out

    def features(self, phi):
        if self.variance.normalise:
            phi = phi / np.sqrt((phi**2).mean() + 1e-8)
        return np.append(phi, 1.0) if self.variance.constant else phi

    def nu(self, phi, action):
        x = self.features(phi)
        scale = 1.0
        if self.variance.residual_decay is not None and self.weight[action] > 0.0:
            scale = self.squares[action] / self.weight[action]
        return scale * (x @ np.linalg.inv(self.precision[action]) @ x)

    def target_of(self, entry):
        """y of one remembered transition."""
        values = []
        for gain, weights, places in zip(*entry["successors"], strict=True):
            value = gain
            for weight, obs in zip(weights, places, strict=True):
                q = self.q_of(obs, self.target)
                value += weight * (q[self.q_of(obs).argmax()] if self.settings.double else q.max())
            values.append(value)
        return mixture(self.settings.nature, values)

    # acting and learning

    def act(self, obs, index):
        """Actions at `(n, D)` observations, and what there is to tell of them."""
        noise, uniform, anything = self.random.acting(index, len(obs), self.n_actions)
        e = self.settings.epsilon
        epsilon = e.first + min(self.seen / e.steps, 1.0) * (e.last - e.first)
        actions, flips, ws = [], [], []
        for row, o in enumerate(obs):
            q = self.q_of(o)
            best = q.argmax()
            ws.append(np.zeros(self.n_actions))
            if self.variance is not None:
                ws[-1] = self.w_of(self.head_input(o))
                best = (q + self.variance.beta * noise[row] * np.sqrt(np.maximum(ws[-1], 0.0))).argmax()
            flips.append(best != q.argmax())
            actions.append(int(anything[row]) if uniform[row] < epsilon else int(best))
        expected = {
            "epsilon": epsilon,
            "flipped": np.mean(flips),
            "w": np.mean(ws),
            "negative_w": np.mean(np.array(ws) < 0),
        }
        return actions, expected

    def observe(self, entries, acting_obs):
        """n transitions {obs, action, successors, last}; gives the next actions and the diagnostics."""
        s, before = self.settings, self.seen
        actions, expected = self.act(acting_obs, self.seen)
        phis = [self.phi(entry["obs"]) for entry in entries]
        expected["feature_norm"] = np.mean([np.linalg.norm(phi) for phi in phis])
        visits = []
        for entry, obs, action in zip(entries, acting_obs, actions, strict=True):
            visit = entry | {"next_obs": obs, "next_action": action}
            visits.append(visit)
            self.replay[self.seen % s.capacity] = visit
            self.seen += 1
            self.episodes += bool(entry["last"])
        if self.variance is not None:
            expected["nu"] = self.learn_head(visits)
            if self.variance.replayed:
                places = self.random.head_places(self.seen, self.variance.replayed, len(self.replay))
                self.learn_head([self.replay[place] for place in places])
        losses = []
        for number in range(before + 1, self.seen + 1):
            if number % s.train_every == 0 and self.seen >= s.warm_up:
                losses += [self.learn_q() for _ in range(s.gradient_steps)]
        every = s.copy.episodes
        if every is not None and (self.episodes // every) > (self.episodes - sum(e["last"] for e in entries)) // every:
            self.copy()
        if self.variance is not None:
            for entry, phi in zip(entries, phis, strict=True):
                x = self.features(phi)
                self.precision[entry["action"]] = self.precision[entry["action"]] + np.outer(x, x)
            self.keep_counts(before)
        expected["updates"] = len(losses)
        expected["loss"], expected["td_error"] = np.mean(losses, axis=0) if losses else (0.0, 0.0)
        return actions, expected

    def learn_head(self, visits):
        """One gradient step on the mean of (y - w(s, a))^2; gives the mean nu."""
        v = self.variance
        nus, wanted = [], []
        for visit in visits:
            nus.append(self.nu(self.phi(visit["obs"]), visit["action"]))
            w = self.w_of(self.head_input(visit["next_obs"]))[visit["next_action"]]
            wanted.append(nus[-1] + (0.0 if visit["last"] else self.settings.discount**2 * max(w, 0.0)))
        x = np.array([self.head_input(visit["obs"]) for visit in visits])
        out = forward(self.head, x)[-1]
        slope = np.zeros_like(out)
        for i, (visit, y) in enumerate(zip(visits, wanted, strict=True)):
            a = visit["action"]
            slope[i, a] = -2.0 * (y - self.w_of(x[i])[a]) / len(visits)
            if v.non_negative:
                slope[i, a] *= 1.0 / (1.0 + np.exp(-out[i, a]))
        self.head = self.head_adam.step(self.head, gradient(self.head, x, slope), self.decay())
        return np.mean(nus)

    def learn_q(self):
        """One gradient step on a minibatch; gives its loss and mean absolute TD error."""
        s = self.settings
        batch = [self.replay[place] for place in self.random.places(self.updates, s.batch, len(self.replay))]
        x = self.scaled([entry["obs"] for entry in batch])
        q = forward(self.q, x)[-1]
        td = np.array([self.target_of(entry) - q[i, entry["action"]] for i, entry in enumerate(batch)])
        limit = np.inf if s.huber is None else s.huber
        losses = np.array([d**2 if abs(d) <= limit else 2 * limit * abs(d) - limit**2 for d in td])
        slope = np.zeros_like(q)
        for i, entry in enumerate(batch):
            slope[i, entry["action"]] = -2.0 * np.clip(td[i], -limit, limit) / len(batch)
        self.q = self.q_adam.step(self.q, gradient(self.q, x, slope), self.decay())
        self.updates += 1
        if s.copy.updates is not None and self.updates % s.copy.updates == 0:
            self.copy()
        if self.variance is not None and self.variance.residual_decay is not None:
            for a in range(self.n_actions):
                errors = [d for d, entry in zip(td, batch, strict=True) if entry["action"] == a]
                if errors:
                    keep = self.variance.residual_decay
                    self.squares[a] = keep * self.squares[a] + (1 - keep) * np.mean(np.square(errors))
                    self.weight[a] = keep * self.weight[a] + (1 - keep)
        return losses.mean(), np.abs(td).mean()

    def copy(self):
        tau = self.settings.copy.tau
        self.target = [
            tuple((1 - tau) * old + tau * new for old, new in zip(*layers, strict=True))
            for layers in zip(self.target, self.q, strict=True)
        ]
        self.copies += 1

    def decay(self):
        """What learning rates are multiplied by after `seen` transitions, by interpolation."""
        d = self.settings.decay
        way = np.linspace(0.0, 1.0, d.steps + 1)[min(self.seen, d.steps)]
        return 1.0 + (d.last - 1.0) * (np.sin(0.5 * np.pi * way) ** 2 if d.cosine else way)

    def keep_counts(self, before):
        """Forgetting, and rebuilding from what is remembered, when due."""
        v = self.variance
        for number in range(before + 1, self.seen + 1):
            if number % v.refresh_every == 0:
                lam = v.forget**v.refresh_every
                self.precision = [lam * p + (1 - lam) * self.prior for p in self.precision]
        if v.rebuild_every and self.seen // v.rebuild_every > before // v.rebuild_every:
            self.precision = [self.prior.copy() for _ in range(self.n_actions)]
            for entry in self.replay.values():
                x = self.features(self.phi(entry["obs"]))
                self.precision[entry["action"]] += np.outer(x, x)
