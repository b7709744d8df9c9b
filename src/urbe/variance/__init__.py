"""The posterior variance of robust values: uncertainty (robust) Bellman equations for every ambiguity set."""
