"""Worst cases over divergence balls: bracketed by a member of the ball and by weak duality.

Every function takes a distribution p with positive entries, values z and a radius, and returns an `Answer`.
"""

from oracles.high_precision.numbers import (
    NEGLIGIBLE,
    Answer,
    D,
    dot,
    exp,
    extra_digits,
    ln,
    precise,
    rescaled,
    root,
    tolerance,
)


def kl(p: list[D], z: list[D], radius: D) -> Answer:
    """min q . z with sum q log(q / p) <= radius.

    The dual is max_beta low - (log sum p exp(-beta y) + radius) / beta for y = z - low; the tilted distribution
    q ~ p exp(-beta y) is a member while its divergence is at most the radius.
    """
    with precise(extra_digits(radius)):
        p = rescaled(p)
        low, y, span = _heights(z)
        lowest = sum((a for a, b in zip(p, y, strict=True) if not b), D(0))
        if not span or radius >= -ln(lowest):
            return Answer(low, low, [a / lowest if not b else D(0) for a, b in zip(p, y, strict=True)])
        if radius <= NEGLIGIBLE:
            return _unmoved(p, z, span, radius)

        def tilted(beta: D) -> tuple[list[D], D]:
            powers = {b: exp(-beta * b) for b in set(y)}
            return _normalised([a * powers[b] for a, b in zip(p, y, strict=True)])

        def spent(log_beta: D) -> tuple[D, D]:
            beta = exp(log_beta)
            q, mass = tilted(beta)
            mean = dot(q, y)
            variance = dot(q, [(b - mean) ** 2 for b in y])
            return -beta * mean - ln(mass) - radius, beta * beta * variance

        start = ln((8 * radius).sqrt() / span)  # KL <= (beta span)^2 / 8
        inside, beyond = root(spent, start, _beyond(spent, start))
        q, _ = tilted(exp(inside))
        beta = exp(beyond)
        _, mass = tilted(beta)
        return Answer.around(low - (ln(mass) + radius) / beta, low + dot(q, y), q, z)


def likelihood(p: list[D], z: list[D], radius: D, outside: D | None = None) -> Answer:
    """min q . z with sum p log(p / q) <= radius, where mass may also go to a value `outside` the row.

    The dual is max_X low + exp(sum p log(y + X) - radius) - X; q ~ p / (y + X) is a member while
    H(X) = sum p log(y + X) + log sum p / (y + X) is at most the radius. The answer's q ends with the mass outside.
    """
    with precise(extra_digits(radius)):
        p = rescaled(p)
        low, y, span = _heights(z if outside is None else [*z, outside])
        inner = y if outside is None else y[:-1]
        if not span:
            return Answer(low, low, [*p, D(0)])
        if radius <= NEGLIGIBLE:
            return _unmoved(p, z, span, radius, D(0))

        def spent_at(x: D) -> D:
            logs = {b: ln(b + x) for b in set(inner)}
            return sum((a * logs[b] for a, b in zip(p, inner, strict=True)), D(0))

        if min(inner) > 0 and (all_of_it := spent_at(D(0))) + ln(sum(a / b for a, b in zip(p, inner, strict=True))) <= (
            radius
        ):
            c = exp(all_of_it - radius)
            q = [c * a / b for a, b in zip(p, inner, strict=True)]
            return Answer.around(low + c, low + c, [*q, 1 - sum(q, D(0))], [*z, low])

        def spare(log_x: D) -> tuple[D, D]:
            x = exp(log_x)
            shares = [a / (b + x) for a, b in zip(p, inner, strict=True)]
            total = sum(shares, D(0))
            squares = sum((s / (b + x) for s, b in zip(shares, inner, strict=True)), D(0))
            return radius - spent_at(x) - ln(total), x * (squares / total - total)

        end = ln(span) + ln(1 + 1 / (8 * radius).sqrt())
        start = end - 1
        while spare(start)[0] > 0:
            if start < -7000:  # what is left above the lowest value is below 10^-2000
                q, _ = _normalised([a / (b + exp(start)) for a, b in zip(p, inner, strict=True)])
                return Answer.around(low, low + dot(q, inner), [*q, D(0)], z)
            start -= 4 * (end - start)
        beyond, inside = root(spare, start, end)
        q, _ = _normalised([a / (b + exp(inside)) for a, b in zip(p, inner, strict=True)])
        x = exp(beyond)
        return Answer.around(low + exp(spent_at(x) - radius) - x, low + dot(q, inner), [*q, D(0)], z)


def chi2(p: list[D], z: list[D], radius: D) -> Answer:
    """min q . z with sum (q - p)^2 / p <= radius.

    The dual is max_eta eta - sqrt((1 + radius) sum p (eta - z)_+^2) and q ~ p (eta - z)_+; the successors with z < eta
    are the lowest k of them, and each k is tried.
    """
    # eta stands as close to a value as the root of the least probability
    with precise(2 * extra_digits(radius) + max(0, -min(p).adjusted())):
        p = rescaled(p)
        low, y, span = _heights(z)
        lowest = sum((a for a, b in zip(p, y, strict=True) if not b), D(0))
        if not span or lowest * (1 + radius) >= 1:
            return Answer(low, low, [a / lowest if not b else D(0) for a, b in zip(p, y, strict=True)])
        if radius <= NEGLIGIBLE:
            return _unmoved(p, z, span, radius)
        order = sorted(range(len(p)), key=lambda j: y[j])
        mass, mean, square = D(0), D(0), D(0)
        best, slack = None, span * tolerance() / 1000
        for at, j in enumerate(order):
            share = p[j] / (mass + p[j])
            square += mass * share * (y[j] - mean) ** 2
            mass, mean = mass + p[j], mean + share * (y[j] - mean)
            following = order[at + 1] if at + 1 < len(order) else None
            if following is not None and y[following] == y[j]:
                continue
            room = radius if following is None else (1 + radius) * mass - 1
            if room <= 0:
                continue
            eta = mean + (square / mass / room).sqrt()
            if eta > 0 and eta >= y[j] - slack and (following is None or eta <= y[following] + slack):
                best = eta
                break
        assert best is not None
        gaps = [max(best - b, D(0)) for b in y]
        q, _ = _normalised([a * g for a, g in zip(p, gaps, strict=True)])
        dual = best - ((1 + radius) * dot(p, [g * g for g in gaps])).sqrt()
        q = _inward(q, p)
        assert sum((x - a) ** 2 / a for x, a in zip(q, p, strict=True)) <= radius
        return Answer.around(low + dual, low + dot(q, y), q, z)


def l2(p: list[D], z: list[D], radius: D) -> Answer:
    """min q . z with ||q - p||_2 <= radius; entries of p may be zero.

    q = max(p - x y + theta, 0) at the x where it is `radius` from p. For any x and eta

        eta + sum_j min_{q_j >= 0} [q_j (y_j - eta) + (q_j - p_j)^2 / (2 x)] - radius^2 / (2 x)

    bounds the value from below.
    """
    with precise(2 * extra_digits(radius)):
        p = rescaled(p)
        low, y, span = _heights(z)
        if not span:
            return Answer(low, low, p)
        if radius <= NEGLIGIBLE:
            return _unmoved(p, z, span, radius * radius * len(p))
        ground = [j for j, b in enumerate(y) if not b]
        rest = sum((p[j] for j, b in enumerate(y) if b), D(0)) / len(ground)
        floor = [p[j] + rest if not b else D(0) for j, b in enumerate(y)]
        if _square(floor, p) <= radius * radius:
            return Answer(low, low, floor)

        def spent(log_x: D) -> tuple[D, D]:
            x = exp(log_x)
            q, _ = _projection(p, y, x)
            active = [b for b, a in zip(y, q, strict=True) if a > 0]
            mean = sum(active, D(0)) / len(active)
            return _square(q, p) - radius * radius, 2 * x * x * sum((b - mean) ** 2 for b in active)

        start = ln(radius / (len(p) * span))
        inside, beyond = root(spent, start, _beyond(spent, start))
        q, _ = _projection(p, y, exp(inside))
        x = exp(beyond)
        eta = _projection(p, y, x)[1] / x
        dual = eta - radius * radius / (2 * x)
        for a, b in zip(p, y, strict=True):
            best = max(a - x * (b - eta), D(0))
            dual += best * (b - eta) + (best - a) ** 2 / (2 * x)
        return Answer.around(low + dual, low + dot(q, y), q, z)


def _projection(p: list[D], y: list[D], x: D) -> tuple[list[D], D]:
    """max(p - x y + theta, 0) and the theta at which it sums to one."""
    points = sorted((a - x * b for a, b in zip(p, y, strict=True)), reverse=True)
    total, theta = D(0), D(0)
    for k, point in enumerate(points, 1):
        total += point
        candidate = (1 - total) / k
        if point + candidate <= 0:
            break
        theta = candidate
    return [max(a - x * b + theta, D(0)) for a, b in zip(p, y, strict=True)], theta


def _square(q: list[D], p: list[D]) -> D:
    return sum(((a - b) ** 2 for a, b in zip(q, p, strict=True)), D(0))


def _heights(z: list[D]) -> tuple[D, list[D], D]:
    """The lowest value, the others above it, and the largest of those."""
    low = min(z)
    y = [b - low for b in z]
    return low, y, max(y)


def _normalised(weights: list[D]) -> tuple[list[D], D]:
    total = sum(weights, D(0))
    return [w / total for w in weights], total


def _inward(q: list[D], p: list[D]) -> list[D]:
    """q moved towards p by a hundredth of the tolerance: inside, whatever rounding did."""
    share = tolerance() / 100
    return [a + share * (b - a) for a, b in zip(q, p, strict=True)]


def _beyond(spent, start: D) -> D:
    """A point above `start` where the budget is exceeded."""
    step = D(1)
    while spent(start + step)[0] <= 0:
        step *= 2
        assert step < 10**7, "the budget is never spent"
    return start + step


def _unmoved(p: list[D], z: list[D], span: D, square: D, *more: D) -> Answer:
    """p itself, for balls so small that |q . z - p . z| <= sqrt(square) span says all."""
    mean = dot(p, z)
    return Answer(mean - square.sqrt() * span, mean, [*p, *more])
