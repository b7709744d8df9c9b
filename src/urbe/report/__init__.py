"""Draw figures and write self-contained pages; the only package that imports matplotlib."""
