"""Sets in which nature's choices at different states or steps depend on each other."""
