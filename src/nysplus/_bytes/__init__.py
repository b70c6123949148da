"""Size of a model in bytes: how many landmarks fit, and numbers stored in few bits."""
