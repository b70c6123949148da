"""Reproduction of the paper: datasets, methods, runs, figures and report."""
