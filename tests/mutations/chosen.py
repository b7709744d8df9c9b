"""Breaks chosen by reading: wrong signs, dropped terms, mishandled ties, swapped bounds, slack left out.

Each replaces one piece of text, which occurs once in its file, and names the families of the corpus that should notice.
"""

from __future__ import annotations

from typing import NamedTuple


class Break(NamedTuple):
    """A piece of a file in `src/urbe`, what replaces it, and who should notice."""

    path: str
    before: str
    after: str
    families: tuple[str, ...]


_BREAKS = {
    ("ambiguity/l1.py", ("l1", "optimistic l1")): [
        (
            "stale[row - first] = (above > moved) | (above + row_p[marginal] < moved) | (below > 0.0)",
            "stale[row - first] = (above > moved) | (below > 0.0)",
        ),
        (
            "stale[row - first] = (above > moved) | (above + row_p[marginal] < moved) | (below > 0.0)",
            "stale[row - first] = (above > moved) | (above + row_p[marginal] < moved)",
        ),
        (
            "out[row] = total - moved * (tau - min(least, outside)) + shift",
            "out[row] = total - moved * (tau - least) + shift",
        ),
        (
            "value = np.cumsum(p * tau, axis=1) + (above - radius[:, None] / 2.0) * tau",
            "value = np.cumsum(p * tau, axis=1) + (above - radius[:, None] / 2.000001) * tau",
        ),
        ("return low + np.maximum(value.max(axis=1), 0.0)", "return low + value.min(axis=1)"),
        ("return np.abs(q - p).sum(axis=1)", "return np.abs(q - p).max(axis=1)"),
    ],
    ("ambiguity/l1_search.py", ("long l1", "l1", "optimistic l1")): [
        ("above[j] += p_i if z_i > z[j] else 0.0", "above[j] += p_i if z_i >= z[j] else 0.0"),
        (
            "tau = min(tau, z[j] if above[j] <= moved else np.inf)",
            "tau = min(tau, z[j] if above[j] < moved else np.inf)",
        ),
        ("left, total = moved - above, 0.0", "left, total = moved, 0.0"),
        (
            "between += z[j] if (z[j] > bottom) & (z[j] <= top) else 0.0",
            "between += z[j] if (z[j] > bottom) & (z[j] < top) else 0.0",
        ),
        (
            "return _walk_down(p, z, moved - above_top, bottom, top), least",
            "return _walk_down(p, z, moved, bottom, top), least",
        ),
    ],
    ("ambiguity/l1_dense.py", ("dense l1",)): [
        ("while above > moved and k > 0:", "while above > moved and k > 1:"),
        ("total += above * (step - tau)", "total += moved * (step - tau)"),
        (
            "while k < n - 1 and above + row_p[order[k]] < moved:",
            "while k < n - 2 and above + row_p[order[k]] < moved:",
        ),
        (
            "out[row] = total - moved * (tau - low) + reward[row] + shift",
            "out[row] = total - moved * (tau - low) + reward[row]",
        ),
        ("total -= above * (tau - step)", "total += above * (tau - step)"),
    ],
    ("ambiguity/weighted_l1.py", ("weighted_l1", "optimistic weighted_l1")): [
        (
            "if here < level:\n            best, level = i, here",
            "if here <= level + 1e-9:\n            best, level = i, here",
        ),
        ("cost += p[j] * (base + weight[j]) if moves else 0.0", "cost += p[j] * weight[j] if moves else 0.0"),
        ("moves = z[j] > level + lam * weight[j]", "moves = z[j] > level"),
        (
            "cost = np.where(np.eye(p.shape[1], dtype=np.bool_), 0.0, weight[:, :, None] + weight[:, None, :])",
            "cost = weight[:, :, None] + weight[:, None, :]",
        ),
        ("return (data[..., 0] * np.abs(q - p)).sum(axis=1)", "return (data[..., 0] * np.abs(q - p)).max(axis=1)"),
    ],
    ("ambiguity/budget_search.py", ("weighted_l1", "wasserstein", "optimistic wasserstein")): [
        ("if costly_cost <= budget:", "if costly_cost < budget:"),
        ("share = (budget - cheap_cost) / (costly_cost - cheap_cost)", "share = budget / costly_cost"),
        ("value + lam * cost >= costly_value + lam * costly_cost", "value + lam * cost >= costly_value"),
        (
            "return np.ldexp(cost, -k), np.minimum(np.ldexp(radius, -k), 1e200)",
            "return np.ldexp(cost, -k), np.minimum(radius, 1e200)",
        ),
        ("return share * costly_value + (1.0 - share) * cheap_value, lam,", "return costly_value, lam,"),
    ],
    ("ambiguity/l2.py", ("l2", "optimistic l2")): [
        ("if radius * radius >= _reach(p, y):", "if radius >= _reach(p, y):"),
        ("room = radius * radius - rest_square - rest * rest / count", "room = radius * radius - rest_square"),
        (
            "value = mean + tilt - math.sqrt(max(room, 0.0) * spread)",
            "value = mean - math.sqrt(max(room, 0.0) * spread)",
        ),
        ("return rest_square + rest * rest / count", "return rest_square"),
        ("if moved == 0.0:", "if moved <= 1.0:"),
        (
            "return inner.sum(axis=1) - radius**2 / (2.0 * x[:, 0])",
            "return inner.sum(axis=1) - radius**2 / (4.0 * x[:, 0])",
        ),
        (
            "return np.sqrt(((q.astype(np.longdouble) - p) ** 2).sum(axis=1))",
            "return ((q.astype(np.longdouble) - p) ** 2).sum(axis=1)",
        ),
    ],
    ("ambiguity/interval.py", ("interval", "linf", "optimistic interval", "optimistic linf")): [
        (
            "total += (upper[j] if filled else lower[j]) * z[j]",
            "total += (upper[j] if z[j] <= tau else lower[j]) * z[j]",
        ),
        ("if below > free or below + upper[marginal] - lower[marginal] < free:", "if below > free:"),
        (
            "if room >= free:\n            q[j] = lower[j] + max(free, 0.0)",
            "if room > 2.0 * free:\n            q[j] = lower[j] + max(free, 0.0)",
        ),
        ("lower[j] = max(p[j] - radius, 0.0)", "lower[j] = p[j] - radius"),
        ("return np.maximum(data[..., 0] - q, q - data[..., 1]).max(axis=1)", "return (q - data[..., 1]).max(axis=1)"),
        (
            "return low + (tau + (above - above_mass * tau) + (below - below_mass * tau)).max(axis=1)",
            "return low + (tau + (above - above_mass * tau)).max(axis=1)",
        ),
        (
            "np.maximum(p - radius[:, None], 0.0), np.minimum(p + radius[:, None], 1.0)",
            "p - radius[:, None], p + radius[:, None]",
        ),
    ],
    ("ambiguity/kl.py", ("kl", "optimistic kl", "long kl")): [
        (
            "value = max(-(log_mass + radius) * lam + (gain if sharp else 0.0), 0.0)",
            "value = max(-(log_mass + radius) * lam, 0.0)",
        ),
        ("reached = (unused >= 0.0) & (unused * lam <= TOLERANCE)", "reached = (unused >= 0.0) & (unused <= 1e-3)"),
        ("return -math.log(min(lowest, 1.0))", "return -math.log(lowest) * 0.999999"),
        (
            "scale, total = math.exp(min(reach, LARGEST_LOG)), 0.0",
            "scale, total = math.exp(reach) if reach < 700.0 else 0.0, 0.0",
        ),
        ("x = _polished(p, y, t, u, m, radius, x)", "pass"),
        ("return -(log_mass + radius) / beta", "return -(log_mass + 0.999999 * radius) / beta"),
        (
            "best = np.fmax(highest_of_each(bound, first, last, y, weight, radius), 0.0)",
            "best = np.fmax(highest_of_each(bound, first, last, y, weight, radius), 1e-6)",
        ),
    ],
    ("ambiguity/exponential.py", ("kl", "likelihood", "s_kl")): [
        ("d = less if k == 0 else c - 1.0", "d = c - 1.0"),
        ("return scale + part, (scale - 1.0) + part", "return scale + part, (scale + part) - 1.0"),
        ("t = max(t, LEAST)", "t = max(t, -100.0)"),
        ("return max(total, 0.0)", "return max(total, 1e-18)"),
        ("own * (np.log(own) - np.log(other)) - d", "own * (np.log(own) - np.log(other))"),
        ("np.where(some, np.where(b > 0.0, far, np.inf), b)", "np.where(some, np.where(b > 0.0, far, np.inf), 0.0)"),
    ],
    ("ambiguity/block_sweep.py", ("kl", "likelihood", "long kl")): [
        ("least = min(least, outside)", "pass"),
        ("if span[k] > NO_SPAN:", "if span[k] > 1e-12:"),
        ("y[j] = (y[j] - least) * unit", "y[j] = y[j] - least"),
        ("place[unfinished] = k\n", "place[unfinished] = i\n"),
        ("span[k] * out[block + k] + shift", "span[k] * out[block + k]"),
    ],
    ("ambiguity/chi2.py", ("chi2", "optimistic chi2", "long chi2")): [
        (
            "e = radius[row] if rest <= 0.0 else (1.0 + radius[row]) * mass - 1.0\n            if not e",
            "e = (1.0 + radius[row]) * mass - 1.0\n            if not e",
        ),
        ("between += 0.0 if (y[j] < eta) == (y[j] < following) else 1.0", "between += 0.0"),
        (
            "return inside - lag - s * root, inside, gap, mass * s / root",
            "return inside - s * root, inside, gap, mass * s / root",
        ),
        (
            "gap = s / root - lag\n            if gap > 0.0 and gap <= beyond - inside:",
            "gap = s / root - lag\n            if gap > 0.0:",
        ),
        ("root = math.sqrt(1.0 + radius)\n", "root = math.sqrt(radius)\n"),
        ("eta, c = np.exp(log_eta), 1.0 + radius", "eta, c = np.exp(log_eta), 1.0 + 0.999999 * radius"),
        ("terms = (own - other) ** 2 / np.where(other > 0.0, other, 1.0)", "terms = (own - other) ** 2"),
        ("constant = gap * gap if rest > 0.0 else 0.0", "constant = 0.0"),
    ],
    ("ambiguity/likelihood.py", ("likelihood", "optimistic likelihood", "long likelihood")): [
        (
            "if radius >= limit:\n        return math.exp(mean_log - radius), MOST",
            "if radius >= 2.0 * limit:\n        return math.exp(mean_log - radius), MOST",
        ),
        ("return math.exp(mean_log - radius), MOST", "return math.exp(mean_log), MOST"),
        (
            "value = max(big * power_less_one + power + (gain if sharp else 0.0), 0.0)",
            "value = max(big * power_less_one + power, 0.0)",
        ),
        ("logs += p[a + j] * u[b + j]", "logs += p[a + j] * abs(u[b + j])"),
        ("q[j] = max(q[j] / mass, LEAST_NUMBER) if p[j] > 0.0 else 0.0", "q[j] = q[j] / mass"),
    ],
    ("ambiguity/contamination.py", ("contamination", "optimistic contamination")): [
        (
            "return (1.0 - radius) * _mean(p, z) + radius * low, hint",
            "return (1.0 - radius) * _mean(p, z) + radius * z.min(), hint",
        ),
        ("q[j] = (1.0 - radius) * p[j] if p[j] > SMALL else p[j]", "q[j] = (1.0 - radius) * p[j]"),
        ("if receiver >= 0:\n        q[receiver] += radius", "if receiver >= 0:\n        q[receiver] = radius"),
        (
            "return np.where(p > 0.0, 1.0 - q / p, -np.inf).max(axis=1)",
            "return np.where(p > 0.0, 1.0 - q / p, -np.inf).min(axis=1)",
        ),
        (
            "return low + (1.0 - radius) * (p * (z - low[:, None])).sum(axis=1)",
            "return low + (p * (z - low[:, None])).sum(axis=1)",
        ),
    ],
    ("ambiguity/dual_search.py", ("kl", "l2", "wasserstein")): [
        ("rises = mean(mass, paid) > budget", "rises = mean(mass, paid) < budget"),
        ("return (p * lowest).sum(axis=1) - lam * budget", "return (p * lowest).sum(axis=1) - 0.999999 * lam * budget"),
        ("return np.fmax.reduce(values)", "return np.fmin.reduce(values)"),
        ("return p / p.sum(axis=1, keepdims=True), y /", "return p, y /"),
        (
            "multipliers = np.zeros(len(p)), most, low.view(np.float64), high.view(np.float64)",
            "multipliers = np.zeros(len(p)), most",
        ),
    ],
    ("ambiguity/wasserstein_kernels.py", ("wasserstein", "optimistic wasserstein", "dense wasserstein")): [
        ("if n > 0 and level >= x[n - 1]:", "if n > 0 and level > x[n - 1] + 1e-9:"),
        ("if n > 0 and here == d[n - 1]:\n                n -= 1", "if False:\n                n -= 1"),
        ("if x[k] - x[k + 1] > lam * (d[k + 1] - d[k]):", "if x[k] - x[k + 1] > lam * d[k + 1]:"),
        ("while n > 1 and (x[n - 2] - x[n - 1])", "while n > 2 and (x[n - 2] - x[n - 1])"),
        ("if distance[np.uint32(successor[i])] == 0.0 and z[i] < z[best]:", "if False:"),
        ("here = z[i] + lam * d\n", "here = z[i] + lam * d * d\n"),
        (
            "plans.cheap[a + j] = nearest if lam_cheap < 0.0 else best(j, lam_cheap, row)[0]",
            "plans.cheap[a + j] = j if lam_cheap < 0.0 else best(j, lam_cheap, row)[0]",
        ),
    ],
    ("ambiguity/wasserstein.py", ("wasserstein", "optimistic wasserstein")): [
        (
            "first = np.where(plans.costly == plans.cheap, p, plans.share[rows.entry_row] * p)",
            "first = plans.share[rows.entry_row] * p",
        ),
        ("return np.maximum(excess / self._unit(), simplex)", "return np.maximum(excess / self._unit(), 0.0)"),
        ("rows = mdp.rows.without_zeros", "rows = mdp.rows"),
        (
            "return replace(self, rows=self.rows.take(chosen), radius=self.radius[chosen])",
            "return replace(self, rows=self.rows.take(chosen))",
        ),
        (
            "out[:] = np.ldexp(small, k) + rows.row_reward + self.discount * shift",
            "out[:] = np.ldexp(small, k) + rows.row_reward",
        ),
    ],
    ("ambiguity/transport.py", ("wasserstein",)): [
        ("excess = saved[-1] - task.radius", "excess = saved[-1] - 2.0 * task.radius"),
        (
            "moved = np.append(x.ravel(), give.sum()) * task.total",
            "moved = np.append(x.ravel(), 0.0 * give.sum()) * task.total",
        ),
        ("<= LEFT_BEHIND:", "<= 1e-3:"),
        ("out[row] = -radius[row]", "out[row] = np.inf"),
        (
            "x = x * np.minimum(1.0, most / np.where(total > 0.0, total, 1.0))",
            "x = x * np.minimum(1.0, 0.5 * most / np.where(total > 0.0, total, 1.0))",
        ),
    ],
    (
        "ambiguity/scenario_nature.py",
        (
            "scenarios",
            "value_at_risk",
            "conditional_value_at_risk",
            "optimistic value_at_risk",
            "optimistic conditional_value_at_risk",
        ),
    ): [
        (
            "y[k] = left if weight[k] >= level * left else weight[k] / level",
            "y[k] = min(left, weight[k] / level) if level > 1e-9 else left",
        ),
        (
            "y[k] = left if weight[k] >= level * left else weight[k] / level",
            "y[k] = left if weight[k] >= level else weight[k] / level",
        ),
        ("left -= y[k]\n", "left -= weight[k]\n"),
        ("if reached >= level - LEVEL_SLACK and j >= first:", "if reached > level and j >= first:"),
        ("return pivot\n        below, first = reached, i", "return pivot\n        below, first = below, i"),
        (
            "y[:] = 0.0\n    y[_select(x, order, level, weight)] = 1.0",
            "y[:] = 0.0\n    y[_select(x, order, 1.0 - level, weight)] = 1.0",
        ),
        ("reached = (x[:, None] <= x).T @ weight", "reached = (x[:, None] < x).T @ weight"),
        ("return float((x - short / np.longdouble(level)).max())", "return float((x - short).max())"),
        (
            "return float(np.abs(q[:, None] - members).sum(axis=0).min())",
            "return float(np.abs(q[:, None] - members).sum(axis=0).max())",
        ),
        (
            "most = np.minimum(weight / level, 1.0) if level > 0.0 else np.ones(n_scenarios)",
            "most = np.ones(n_scenarios)",
        ),
        (
            "QUANTILE = ScenarioRule(make_mix(_weigh_quantile), _distance_to_closest, _quantile, attained=False)",
            "QUANTILE = ScenarioRule(make_mix(_weigh_quantile), _distance_to_closest, _quantile)",
        ),
        (
            "return replace(self, rows=self.rows.take(chosen), members=members, level=self.level[chosen])",
            "return replace(self, rows=self.rows.take(chosen), members=members)",
        ),
    ],
    ("ambiguity/optimistic.py", ("optimistic l1", "optimistic kl", "optimistic interval")): [
        (
            "least = self.inner.values(-v, -shift, workers, out, memory)",
            "least = self.inner.values(-v, shift, workers, out, memory)",
        ),
        (
            "return OptimisticNature(self.set.bind(replace(mdp, rows=_negated(mdp.rows))))",
            "return OptimisticNature(self.set.bind(mdp))",
        ),
        (
            "found._replace(above=lambda v: 0.0 - found.below(-v), below=lambda v: 0.0 - found.above(-v))",
            "found._replace(above=lambda v: 0.0 - found.above(-v), below=lambda v: 0.0 - found.below(-v))",
        ),
        (
            "value, rows, sensitivity = self.inner.worst_case(-v, memory)",
            "value, rows, sensitivity = self.inner.worst_case(v, memory)",
        ),
    ],
    ("ambiguity/shared_budget/gather.py", ("s_l1", "s_l2", "s_linf", "s_kl")): [
        ("y[j] = above if above > least else 0.0", "y[j] = above if above > 1e-6 * largest else 0.0"),
        ("lowest = outside + constant", "lowest = outside"),
        (
            "z = w[np.uint32(successor[a + j])] + (reward[a + j] if by_entry else constant)",
            "z = w[np.uint32(successor[a + j])] + constant",
        ),
        ("size = max(size, largest)", "size = largest"),
        ("mean[k] = total\n", "mean[k] = total + lowest\n"),
    ],
    ("ambiguity/shared_budget/improve.py", ("s_l1", "s_l2", "s_linf", "s_kl")): [
        (
            "new = u + (spent - budget[s]) / steep if steep > 0.0 else best",
            "new = u + (spent + budget[s]) / steep if steep > 0.0 else best",
        ),
        ("weights[a + k] = slope[k] / steep", "weights[a + k] = 1.0 / count"),
        (
            "if spent <= budget[s]:\n                        high = min(high, u)",
            "if spent <= 1.01 * budget[s]:\n                        high = min(high, u)",
        ),
        ("lowest = k if low[k] > low[lowest] else lowest", "lowest = k if low[k] < low[lowest] else lowest"),
        ("if high - best <= tol or not best < high:", "if high - best <= 1e6 * tol or not best < high:"),
        ("q[a + k] = min(low[k] + mean[k], best) + shift", "q[a + k] = low[k] + mean[k] + shift"),
        ("c = upper[s] - low[0]\n", "c = upper[s]\n"),
    ],
    ("ambiguity/shared_budget/evaluate.py", ("s_l1", "s_l2", "s_linf", "s_kl")): [
        (
            "penalty(*row, mean[k], mu / pi[k], hint[k], work[:, : b - a])",
            "penalty(*row, mean[k], mu, hint[k], work[:, : b - a])",
        ),
        ("best = max(best, total - mu * budget)", "best = max(best, total - 0.99999 * mu * budget)"),
        ("mix = (budget - right_spent) / (left_spent - right_spent) if left_spent > budget else 1.0", "mix = 1.0"),
        ("path[2] = path[0]\n", "path[2] = path[1]\n"),
        ("if upper - best <= tol:", "if upper - best <= 1e6 * tol:"),
        ("base += pi[a + k] * low[k]", "base += low[k]"),
        ("q[j] += back * (p[j] - q[j])", "q[j] += 0.5 * back * (p[j] - q[j])"),
        ("value[s] = base + best + shift", "value[s] = base + best"),
        (
            "if left_spent <= budget:\n                    return 0.0, 0.0, right, 1.0, 0.0",
            "if left_spent <= 2.0 * budget:\n                    return 0.0, 0.0, right, 1.0, 0.0",
        ),
    ],
    ("ambiguity/shared_budget/l1.py", ("s_l1",)): [
        (
            "distance = 2.0 * _mass_above(p, y, 0.0)\n        return distance, np.inf",
            "distance = _mass_above(p, y, 0.0)\n        return distance, np.inf",
        ),
        ("xi = max((_capped(p, y, tau) - c) * beta, 0.0)", "xi = max((_capped(p, y, tau) + c) * beta, 0.0)"),
        ("tau = 2.0 * max(price, 0.0)", "tau = max(price, 0.0)"),
        ("left = 0.5 * x - _mass_above(p, y, tau)", "left = 0.5 * x"),
        ("return np.abs(q - p).sum(axis=-1)", "return np.abs(q - p).max(axis=-1)"),
        (
            "return (p * np.minimum(y, 2.0 * price[:, None])).sum(axis=1)",
            "return (p * np.minimum(y, 2.001 * price[:, None])).sum(axis=1)",
        ),
        (
            "if y[j] == 0.0:\n            q[j] += sent\n            return 0.0",
            "if y[j] <= 1e-3:\n            q[j] += sent\n            return 0.0",
        ),
    ],
    ("ambiguity/shared_budget/l2.py", ("s_l2",)): [
        ("out * math.sqrt(1.0 / count + square)", "out * math.sqrt(square)"),
        ("t = max((value + out * centre - c) / spread, t)", "t = max((value - c) / spread, t)"),
        ("if square_price >= _start(p, y, active):", "if square_price >= 0.5 * _start(p, y, active):"),
        ("h = value + out * centre - t * spread + price * distance", "h = value + out * centre - t * spread"),
        (
            "q[j] = max(p[j] - x * (y[j] - nu) + lift, 0.0) if active[j] > 0.0 else 0.0",
            "q[j] = max(p[j] - x * (y[j] - nu), 0.0) if active[j] > 0.0 else 0.0",
        ),
        ("return (y + u).min(axis=1) - (p * u).sum(axis=1)", "return (y + u).min(axis=1) + (p * u).sum(axis=1)"),
        ("return (y + u).min(axis=1) - (p * u).sum(axis=1)", "return (y + u).mean(axis=1) - (p * u).sum(axis=1)"),
        ("return np.sqrt(((q - p) ** 2).sum(axis=-1))", "return ((q - p) ** 2).sum(axis=-1)"),
    ],
    ("ambiguity/shared_budget/linf.py", ("s_linf",)): [
        ("if r * (j + 1) >= lose:", "if r * j >= lose:"),
        ("less += min(p[j], r) * above + r * below", "less += r * above + r * below"),
        ("return max(largest, mass / count)", "return mass / count"),
        ("if price >= slope_left:", "if price >= 0.5 * slope_left:"),
        ("step = min(max(left, 0.0), p[j] + x - q[j])", "step = max(left, 0.0)"),
        ("return np.abs(q - p).max(axis=-1)", "return np.abs(q - p).mean(axis=-1)"),
        ("left = np.maximum(price - raised.sum(axis=1), 0.0)[:, None]", "left = price[:, None]"),
    ],
    ("ambiguity/shared_budget/kl.py", ("s_kl",)): [
        (
            "return max(-log_mass - beta * c, 0.0), beta, better, better",
            "return max(-log_mass + beta * c, 0.0), beta, better, better",
        ),
        ("beta = min(1.0 / price, UNPAID)", "beta = min(1.0 / price, 1e3)"),
        (
            "return -log_mass * price, max(-log_mass - beta * level, 0.0)",
            "return -log_mass * price, max(-log_mass, 0.0)",
        ),
        ("if abs(above * step) <= 2.0 * LOSS * beta * mean or", "if abs(above * step) <= 1e-3 * beta * mean or"),
        ("if beta * farthest <= DEEP or mass >= FAINT:", "if True:"),
        ("return -price * np.where(less > -0.5", "return -1.0001 * price * np.where(less > -0.5"),
        ("return -price * np.where(less > -0.5", "return -0.9999 * price * np.where(less > -0.5"),
    ],
    ("ambiguity/shared_budget/nature.py", ("s_l1", "s_l2", "s_linf", "s_kl")): [
        (
            "return np.bincount(self.mdp.row_state, spent, minlength=self.mdp.n_states) - self.budget",
            "return spent[self.mdp.row_start[:-1].clip(0, len(spent) - 1)] - self.budget",
        ),
        (
            "return (np.add.reduceat(pi * h, first, axis=1) - mu * budget).reshape(-1)",
            "return np.add.reduceat(pi * h, first, axis=1).reshape(-1)",
        ),
        ("price = mu[:, of] / pi", "price = mu[:, of] * pi"),
        ("out[states] = base + span * np.where(budget > 0.0, best, nominal)", "out[states] = base + span * nominal"),
        ("self._budget = nature.budget[self.states]", "self._budget = nature.budget[: len(self.states)]"),
        ("return (self.rows.longest + 32) * 2.0**-51", "return (self.rows.longest + 32) * 2.0**-36"),
        ("if not self.everywhere:\n            spent[stray > 0.0] = np.inf", "pass"),
    ],
    ("ambiguity/shared_budget/operator.py", ("s_l1", "s_l2", "s_linf", "s_kl")): [
        (
            "lowest = self.nature.policy_bound(v, policy.weights(mdp.n_rows)) - slack",
            "lowest = self.nature.policy_bound(v, policy.weights(mdp.n_rows)) + slack + 1e-9",
        ),
        ("if (facing.values(centred) >= best - 4.0 * self.error(v)).all():", "if True:"),
        ("if (facing.values(centred) >= best - 4.0 * self.error(v)).all():", "if False:"),
        (
            "(self.nature.accuracy + 2.0 * actions * ROUNDING) * size\n            + whole",
            "0.0 * actions\n            + whole",
        ),
        ("return self._under(self.kernel(at, policy), v), None", "return self.improve(v).q, None"),
    ],
    ("ambiguity/closed_form/deviation.py", ("twice_regularised",)): [
        ("return 0.5 * (high - low)", "return high - low"),
        ("return _length(z, z[0] + total / n, norm)", "return _length(z, z[0], norm)"),
        ("return _length(z, work[n // 2], norm)", "return _length(z, work[0], norm)"),
        ("out[order[k]], out[order[n - 1 - k]] = -1.0, 1.0", "out[order[k]], out[order[n - 1 - k]] = 1.0, -1.0"),
        ("out[high], out[low] = 0.5, -0.5", "out[high], out[low] = 1.0, -1.0"),
    ],
    ("ambiguity/closed_form/nature.py", ("twice_regularised",)): [
        ("w[row] = alpha[row] + beta[row] * spread", "w[row] = beta[row] * spread"),
        (
            "reward -= loss[rows.entry_row] if rows.rewards_successors else loss",
            "reward += loss[rows.entry_row] if rows.rewards_successors else loss",
        ),
        ("p[a + j] -= beta[row] * work[1, j]", "p[a + j] += beta[row] * work[1, j]"),
        (
            "return replace(self, rows=self.rows.take(chosen), alpha=self.alpha[chosen], beta=self.beta[chosen])",
            "return replace(self, rows=self.rows.take(chosen))",
        ),
        (
            "q[row] = (total if by_entry else reward[row] + total) + shift",
            "q[row] = (total if by_entry else reward[row] + total)",
        ),
    ],
    ("ambiguity/closed_form/evidence.py", ("twice_regularised",)): [
        ("w = nature.alpha + nature.beta * bound", "w = nature.beta * bound"),
        ("return q - w - slack", "return q + slack"),
        (
            "fallen = np.maximum(rows.reward.astype(np.longdouble) - kernel.reward",
            "fallen = 0.0 * np.maximum(rows.reward.astype(np.longdouble) - kernel.reward",
        ),
        ("centre = (z.max(axis=1) + z.min(axis=1)) / 2.0", "centre = z.min(axis=1)"),
        (
            "back = np.where(used > 1.0, 1.0 - 1.0 / np.where(used > 1.0, used, 1.0), 0.0)",
            "back = np.where(used > 1.0, 0.0, 0.0)",
        ),
    ],
    ("ambiguity/closed_form/operator.py", ("twice_regularised",)): [
        ("q -= w\n", "q += w\n"),
        ("return q - self._share(at, policy) * w, None", "return q, None"),
        ("(PER_ENTRY * (n + 8.0) + 8.0 * actions * ROUNDING) * (size + lost)", "0.0 * actions * lost"),
        ("out[s] -= largest_loss(pi[a:b], w[a:b], norm)", "out[s] -= 0.0"),
        ("+ gamma * abs(middle) * rows.mass_error\n            + 6.0 * ROUNDING * whole", "+ 0.0"),
    ],
    (
        "ambiguity/evidence.py",
        ("l1", "exact", "linf", "kl", "interval", "optimistic l1", "scenarios", "s_l1", "s_kl", "value_at_risk"),
    ): [
        (
            "return excess, ~(excess <= LARGEST_EXCESS * np.fmax(1.0, radius))",
            "return excess, ~(excess <= 1.0 * np.fmax(1.0, radius))",
        ),
        ("mixed = np.where(centred, value + share * (nominal(v) - value), value + moved)", "mixed = value"),
        (
            "return mixed + eps * largest_value(own, discount, v)",
            "return mixed - eps * largest_value(own, discount, v)",
        ),
        ("outer = np.maximum if side > 0.0 else np.minimum", "outer = np.minimum if side > 0.0 else np.maximum"),
        (
            "return nature.dual_bound(v).astype(np.longdouble) + side * slack",
            "return nature.dual_bound(v).astype(np.longdouble) - side * slack",
        ),
        ("eps = 6.0 * 2.0**-53 +", "eps = 6.0 * 2.0**-33 +"),
        ("above = best(highest) if optimal else follow(highest)", "above = follow(highest)"),
        (
            "return lambda v: answer(v) + side * eps * largest_value(own, discount, v)",
            "return lambda v: answer(v) + side * 1e300",
        ),
    ],
    ("solvers/certificate.py", ("exact", "l1", "loops", "s_l1", "kl", "value_at_risk", "labels")): [
        ("rise = evidence.above(upper, policy) - upper", "rise = upper - evidence.above(upper, policy)"),
        (
            "fall = evidence.below(lower, policy) - lower",
            "fall = np.maximum(evidence.below(lower, policy) - lower, 0.0)",
        ),
        (
            "_outward(lower, -down, steps, -np.inf), _outward(upper, up, steps, np.inf)",
            "_outward(lower, -down, 1.0, -np.inf), _outward(upper, up, 1.0, np.inf)",
        ),
        ("_outward(lower, -down, steps, -np.inf), _outward(upper, up, steps, np.inf)", "lower.copy(), upper.copy()"),
        (
            "below, above = evidence.below(lower[step + 1], policy), evidence.above(upper[step + 1], policy)",
            "below, above = evidence.below(upper[step + 1], policy), evidence.above(lower[step + 1], policy)",
        ),
        ("wrong = ~((found >= below - slack) & (found <= above + slack))", "wrong = ~(found <= above + slack)"),
        (
            "found, slack = q[mdp.row_state, mdp.action], solution.gap + tolerance",
            "found, slack = q[mdp.row_state, mdp.action], 1e6 * solution.gap + tolerance",
        ),
        ("upper <= solution.upper + tolerance),", "upper <= np.inf),"),
        ('lower >= solution.lower - tolerance),\n        ("upper', 'lower >= -np.inf),\n        ("upper'),
        ("TOLERANCE = 1e-12", "TOLERANCE = 1e-6"),
        ("TOLERANCE = 1e-12", "TOLERANCE = 1e-16"),
        ("sentences = [stopped(gap), gave_up(steps, gap)]", "return None"),
        ("failures = [evidence.failure, _wrong", "failures = [None, _wrong"),
        ("steps: FloatArray = w / (1.0 - left)", "steps: FloatArray = 0.1 * w / (1.0 - left)"),
        ("np.full(mdp.n_states, 1.0 / (1.0 - gamma))", "np.full(mdp.n_states, 0.5 / (1.0 - gamma))"),
    ],
    ("solvers/bounds.py", ("exact", "loops", "l1", "kl", "s_l2")): [
        ("lo, hi = lo - error, hi + error", "lo, hi = lo, hi"),
        (
            "below, above = self._remaining(inward=lo > 0), self._remaining(inward=hi < 0)",
            "below = above = self._remaining(inward=False)",
        ),
        ("slack = error + 4.0 * ROUNDING * size + underflow(size)", "slack = 0.0"),
        (
            "lower, upper = new + low - slack, new + high + slack",
            "lower, upper = new + high - slack, new + low + slack",
        ),
        (
            "gamma = self.operator.mdp.discount * (1.0 - mass if inward else 1.0 + mass)",
            "gamma = self.operator.mdp.discount",
        ),
        ("return gamma / (1.0 - gamma)", "return 1.0 / (1.0 - gamma)"),
    ],
    ("solvers/iterate.py", ("exact", "l1", "s_l1")): [
        ("if gap <= method.tolerance:", "if bounds.spread <= method.tolerance:"),
        ("since_best >= PATIENCE and gap <= 4.0 * bounds.floor + method.tolerance", "since_best >= PATIENCE"),
        (
            "return IterationOutcome(at, improvement, bounds, method.max_steps, sweeps, status, False)",
            "return IterationOutcome(at, improvement, bounds, method.max_steps, sweeps, status, True)",
        ),
        ("return self.operator.error(v) + 2.0 * n_actions * ROUNDING * size", "return 0.0 * n_actions * size"),
        (
            "value, memory = self._following.apply(v, memory, workers)",
            "value, memory = self.operator.improve(v, None, workers).value, memory",
        ),
    ],
    ("solvers/backward_induction.py", ("exact", "l1", "linf", "s_l1")): [
        ("lower, upper = value - margin, value + margin", "lower, upper = value, value"),
        ("error[step] = operator.error(value[step + 1])", "error[step] = 0.0"),
        ("at=value[1:],", "at=value[:-1],"),
        (
            "for step in range(horizon - 1, -1, -1):\n        if given",
            "for step in range(horizon - 1, 0, -1):\n        if given",
        ),
    ],
    ("solvers/evaluation.py", ("exact", "l1", "s_l1")): [
        ("candidate[live] = solved", "candidate[live] = solved + 1.0"),
    ],
    ("solvers/duration.py", ("loops", "exact")): [
        (
            "bound: FloatArray = w / (1.0 - growth - 2.0 * clock.error(w))",
            "bound: FloatArray = 0.5 * w / (1.0 - growth - 2.0 * clock.error(w))",
        ),
        ("if growth <= 1e-3:", "if growth <= 1e3:"),
        (
            "clock, mdp, memory = operator.clock(), operator.mdp, None",
            "clock, mdp, memory = operator, operator.mdp, None",
        ),
        ("improvement.value - w)[live].max(initial=0.0)", "improvement.value - w)[live].min(initial=0.0)"),
    ],
    ("ambiguity/coupled/nested.py", ("nested",)): [
        ("out += np.longdouble(weight) * part(v)", "out = np.maximum(out, part(v))"),
        ("above, below = attained(above, answer, 1.0), attained(below, answer, -1.0)", "pass"),
        (
            "out += weight * nature.values(v, shift, workers, None, known)",
            "out += weight * nature.values(v, 0.0, workers, None, known)",
        ),
        ("outside = ~(excess <= LARGEST_EXCESS)", "outside = ~(excess <= 1e3)"),
    ],
    ("ambiguity/coupled/label_nature.py", ("labels",)): [
        ("out[branch.at] = np.minimum(out[branch.at], found)", "out[branch.at] = found"),
        ("best[branch.at[lower]] = found[-1].value[lower]", "pass"),
        ("return v[branch.label * self.n_states : (branch.label + 1) * self.n_states]", "return v[: self.n_states]"),
        (
            "return replace(rows, n_states=self.rows.n_states, successor=rows.successor + label * self.n_states)",
            "return replace(rows, n_states=self.rows.n_states)",
        ),
        (
            "stray = np.bincount(kernel.entry_row[used & ~inside]",
            "stray = 0 * np.bincount(kernel.entry_row[used & ~inside]",
        ),
        (
            "out[branch.at] = np.minimum(out[branch.at], below(self._under(v, branch)))",
            "out[branch.at] = below(self._under(v, branch))",
        ),
        (
            "out[branch.at[own]] = np.minimum(out[branch.at[own]], evidence.above(self._under(v, branch)))",
            "out[branch.at[own]] = evidence.above(self._under(v, branch)) - 1e-3",
        ),
    ],
    ("ambiguity/coupled/factor_operator.py", ("factors",)): [
        ("q = self.mixing.values(f, middle, workers, out)", "q = self.mixing.values(f, 0.0, workers, out)"),
        ("off = 4.0 * (self.nature.rows.mass_error + self.mixing.rows.mass_error)", "off = -0.5"),
        ("return rows.row_reward + gamma * mean + side", "return rows.row_reward + mean + side"),
        ("below, above = proofs.attained(below, answer, -1.0), proofs.attained(above, answer, 1.0)", "pass"),
        ("if (beyond > proofs.LARGEST_EXCESS).any():", "if False:"),
    ],
    ("ambiguity/coupled/moment_program.py", ("moments",)): [
        ("mean_error - p,\n", "mean_error + p,\n"),
        ("np.full(k, deviation),\n", "np.full(k, 2.0 * deviation),\n"),
        ("-confidence[:-1],", "0.0 * confidence[:-1],"),
        (
            "bound = price @ self.bound + level @ self.right + np.minimum(reduced, 0.0).sum()",
            "bound = price @ self.bound + level @ self.right",
        ),
        ("d *= _factor(np.abs(d).sum(axis=1), self.radius * mu[:, 0])[:, None]", "pass"),
        (
            "mean: Extended = p + moved * _factor(np.abs(moved), np.full(k, self.mean_error)).min()",
            "mean: Extended = p + moved",
        ),
    ],
    ("ambiguity/coupled/moments.py", ("moments",)): [
        ("return 2.0 * ACCURACY + (self.rows.longest + 8) * ROUNDING", "return 0.0"),
        (
            "return Solved(mean, low + span * proven, sensitivity * span[rows.entry_row])",
            "return Solved(mean, low + span * (proven + 1e-4), sensitivity * span[rows.entry_row])",
        ),
        (
            "return replace(self, rows=self.rows.take(chosen), **of_rows)",
            "return replace(self, rows=self.rows.take(chosen))",
        ),
        ("np.append(radius, 2.0), np.append(level, 1.0)", "np.append(radius, 1.0), np.append(level, 1.0)"),
        ("return np.where((stray > 0.0) | np.isnan(apart), np.inf, apart), near", "return 0.0 * apart, near"),
    ],
    ("ambiguity/rectangular.py", ("exact", "l1", "kl", "linf")): [
        ("self.nature.accuracy * (entry_reward + gamma * spread)\n", "0.0 * (entry_reward + gamma * spread)\n"),
        ("+ gamma * abs(middle) * rows.mass_error\n", "+ 0.0\n"),
        (
            "return RectangularPolicy(self.mdp, self.nature, policy), None if memory is None else memory[policy.rows]",
            "return RectangularPolicy(self.mdp, self.nature, policy), memory",
        ),
        (
            "return self._average(self._nature.values(v - middle, middle, workers, memory=memory)), memory",
            "return self._average(self._nature.values(v - middle, 0.0, workers, memory=memory)), memory",
        ),
        (
            "return self.nature.worst_case(v - midrange(v)).rows\n\n    def action_values",
            "return self.nature.worst_case(-v).rows\n\n    def action_values",
        ),
    ],
    ("ambiguity/row_nature.py", ("l1", "kl", "weighted_l1", "chi2", "linf", "optimistic l2")): [
        (
            "return self.radius / self._unit() if self.kernel.centred else None",
            "return self.radius if self.kernel.centred else None",
        ),
        ("return out if self.everywhere else np.where(stray > 0.0, np.inf, out)", "return out"),
        ("simplex = np.maximum(-own.min(axis=1), np.abs(mass - 1.0) - 1e-12)", "simplex = np.zeros(len(mass))"),
        (
            "return np.ldexp(rescaled(self, -k).dual_bound(np.ldexp(w, -k)), k) + rows.row_reward",
            "return np.ldexp(rescaled(self, -k).dual_bound(np.ldexp(w, -k)), k)",
        ),
        ("low = np.minimum(own.min(axis=1), self._outside(w))", "low = own.min(axis=1)"),
        ("out[:] = np.ldexp(small, k) + constant + rows.row_reward", "out[:] = np.ldexp(small, k) + rows.row_reward"),
        (
            "apart = (self.kernel.distance(own, p, data) - self.radius[some]) / unit[some]",
            "apart = (self.kernel.distance(own, p, data) - 1.01 * self.radius[some] - 1e-7) / unit[some]",
        ),
    ],
    ("ambiguity/sweep.py", ("l2", "weighted_l1", "chi2", "kl")): [
        ("low = min(low, z[j])\n", "low = z[j]\n"),
        ("return value + shift + reward", "return value + reward"),
        ("row_q[j] += back * (row_p[j] - row_q[j])", "row_q[j] -= back * (row_p[j] - row_q[j])"),
        ("z[j] += r[a + j]\n        low", "z[j] += r[j]\n        low"),
        ("z[j] = w[np.uint32(successor[a + j])]\n        if r", "z[j] = w[np.uint32(successor[j])]\n        if r"),
    ],
    ("ambiguity/exact.py", ("exact", "dense exact", "factors")): [
        ("out[a:b] += constant", "pass"),
        (
            "total += row_p[j] * (w[np.uint32(row_successor[j])] + r[a + j])\n        out[row]",
            "total += row_p[j] * w[np.uint32(row_successor[j])] + r[a + j]\n        out[row]",
        ),
        ("out[a:b] += self.rows.reward[a:b]", "pass"),
        ("return (self.rows.longest + 4) * 2.0**-53", "return -1e-3"),
        (
            "return np.asarray(total + self.rows.row_reward, dtype=np.float64)",
            "return np.asarray(total, dtype=np.float64)",
        ),
    ],
}

CHOSEN = [
    Break(path, before, after, families) for (path, families), pairs in _BREAKS.items() for before, after in pairs
]
