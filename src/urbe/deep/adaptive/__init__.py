"""Deep agents whose uncertainty set adapts: observations update a belief over its members."""
