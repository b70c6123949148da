"""Rows and targets wherever they are: in memory, on disk, on a cluster."""
