"""Sets with a closed-form worst case: norm balls around kernels and rewards, without the simplex constraint."""
