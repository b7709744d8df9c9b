"""Sets whose worst case is a formula: norm balls around kernels and rewards, without the simplex constraint."""
