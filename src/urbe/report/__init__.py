"""Figures and self-contained pages; the only package that imports matplotlib."""
