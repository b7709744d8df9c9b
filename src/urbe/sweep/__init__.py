"""Run many cells, each once, on one machine or many; finished cells are kept and killed ones are resumed."""
