"""Deep agents whose uncertainty set adapts: a belief over its members follows what is observed."""
