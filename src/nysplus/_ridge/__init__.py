"""Ridge regression on Nyström features: A and b of the expansion."""
