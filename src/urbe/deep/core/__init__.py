"""The learning core: what an agent keeps, and what one more transition does to it."""
