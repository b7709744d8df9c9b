"""Mars Rover in plain Python, written from its description: a dictionary of rows."""

MOVES = {0: (-1, 0), 1: (0, 1), 2: (1, 0), 3: (0, -1)}


def distance(cell, size):
    """Steps from a cell's number to the bottom right one."""
    return (size - 1 - cell // size) + (size - 1 - cell % size)


def is_risky(row, column, new_row, new_column, size, rule):
    """Whether a move may fail; rules by name."""
    nearer_vertical, nearer_horizontal = new_row > row, new_column > column
    in_line = row == size - 1 or column == size - 1
    return {
        "any": nearer_vertical or nearer_horizontal,
        "vertical": nearer_vertical,
        "horizontal": nearer_horizontal,
        "diagonal": (nearer_vertical or nearer_horizontal) and not in_line,
    }[rule]


def rows(size, failure, success, fail, step_reward, rule="any"):
    """{(state, action): {next state: (probability, reward)}} for all states but the goal and the wreck."""
    goal, wreck, table = size * size - 1, size * size, {}
    for state in range(goal):
        row, column = divmod(state, size)
        for action, (down, right) in MOVES.items():
            new_row = min(max(row + down, 0), size - 1)
            new_column = min(max(column + right, 0), size - 1)
            target = new_row * size + new_column
            risk = failure if is_risky(row, column, new_row, new_column, size, rule) else 0.0
            table[state, action] = {target: (1.0 - risk, success if target == goal else step_reward)}
            if risk > 0.0:
                table[state, action][wreck] = (risk, fail)
            if risk == 1.0:
                del table[state, action][target]
    return table


def robust_values(tables, n_states, discount, sweeps=400):
    """V(s) = max_a min_k E_k[r + discount V(s')] by plain value iteration over several tables."""
    v = [0.0] * n_states
    for _ in range(sweeps):
        q = {
            pair: min(sum(p * (r + discount * v[t]) for t, (p, r) in table[pair].items()) for table in tables)
            for pair in tables[0]
        }
        v = [max((x for (s, _), x in q.items() if s == state), default=0.0) for state in range(n_states)]
    return v
