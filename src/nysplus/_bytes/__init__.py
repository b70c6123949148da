"""Size of a model in bytes: sizes within a budget, and quantisation."""
