"""Measurements of `nysplus`: the paper's reproduction and the benchmarks, on one harness."""
