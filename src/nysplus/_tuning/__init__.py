"""Kernel width and metric chosen on a sample of the rows."""
