"""Reproduction of the paper: grid, methods, runs, claims, figures and report."""
