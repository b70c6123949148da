"""Measure speed against other libraries, how costs grow, overhead, and how exact fits are."""

from nysplus_experiments.harness.bench import steps

#: The first five write results; the others print their findings.
STEPS = steps(
    __name__,
    {
        "peers": "peer_comparison",
        "crossover": "crossover",
        "growth": "growth",
        "overhead": "overhead",
        "sweep": "sweep",
        "exactness": "exactness",
        "reference-figures": "reference_figures",
        "floor": "blas_floor",
    },
)
