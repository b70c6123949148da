"""Kernels, solvers, estimators and probabilities against solutions in extended precision."""

from __future__ import annotations

import numpy as np
import pytest

from nysplus._ridge.rules import DEFAULT_RULES
from nysplus_experiments.harness import records
from nysplus_experiments.harness.bench import ROOT, BenchOptions, load_from_tests
from nysplus_experiments.numerics import page, truth

pytest.importorskip("mpmath", reason="extended precision needs mpmath")
pytestmark = pytest.mark.skipif(
    not (ROOT / "tests" / "extended.py").is_file(), reason="needs a checkout of the repository"
)

# Largest errors by the type of the rows, in the units of `truth.Error`. docs/background/numerics.md
# has the errors that are reached.
BOUNDS = {
    ("kernel", "float64"): 1e-7,
    ("kernel", "float32"): 1e-3,
    ("direct-float64", "float64"): 1e-4,
    ("direct-float64", "float32"): 1e-4,
    ("gram-float64", "float64"): 1e-3,
    ("gram-float64", "float32"): 1e-3,
    ("direct-float32", "float32"): 1e-3,
    ("iterative-float64", "float64"): 1e-3,
    ("iterative-float64", "float32"): 1e-3,
    ("iterative-float32", "float32"): 1e-3,
    ("estimator", "float64"): 1e-3,
    ("estimator", "float32"): 1e-3,
    ("leave-one-out, direct-float64", "float64"): 1e-4,
    ("leave-one-out, direct-float64", "float32"): 1e-4,
    ("leave-one-out, gram-float64", "float64"): 1e-2,
    ("leave-one-out, gram-float64", "float32"): 1e-2,
    ("leave-one-out, direct-float32", "float32"): 1e-1,
    ("probability", "float64"): 1e-3,
    ("probability", "float32"): 1e-3,
}
SAMPLE = range(0, truth.PROBLEMS, 13)


def check(seed):
    for found in truth.measure(seed):
        if found.allowed and found.error is not None:
            bound = BOUNDS[found.result, found.dtype]
            assert found.error <= bound, found
            assert found.gap is None or found.gap <= DEFAULT_RULES.tolerance, found


@pytest.mark.parametrize("seed", SAMPLE)
def test_results_are_those_of_extended_precision(seed):
    check(seed)


@pytest.mark.all_combinations
@pytest.mark.parametrize("seed", sorted({*range(truth.PROBLEMS)} - {*SAMPLE}))
def test_results_of_all_problems_are_those_of_extended_precision(seed):
    check(seed)


def test_every_kernel_condition_and_type_occurs():
    extended = load_from_tests("extended")
    problems = [extended.random_problem(seed) for seed in range(72)]
    assert {(p.kernel, p.condition) for p in problems} == {
        (kernel, condition) for kernel in extended.KERNELS for condition in extended.CONDITIONS
    }
    assert {p.X.dtype.name for p in problems} == {"float32", "float64"}
    assert {p.discrete for p in problems} == {p.weight is None for p in problems} == {True, False}


def test_the_extended_solution_is_that_of_the_plain_reference():
    """In a well-conditioned problem, dense float64 formulas agree to many digits."""
    extended, reference = load_from_tests("extended"), load_from_tests("reference")
    problem = extended.random_problem(1)
    assert (problem.kernel, problem.condition) == ("laplacian", "plain")
    solved = problem.solve()
    X, Z, more = (R.astype(np.float64) for R in (problem.X, problem.Z, problem.more))
    fill, gamma = reference.KERNEL_MATRICES["laplacian"], problem.params["gamma"]
    T = reference.whitening(fill(Z, Z, gamma))
    features = fill(np.vstack([X, more]), Z, gamma) @ T
    W, b = reference.ridge(features[: len(X)], problem.Y, problem.alpha, problem.weight)
    np.testing.assert_allclose(solved.scores, features @ W + b, rtol=1e-10, atol=1e-10)
    left_out = reference.leave_one_out(features[: len(X)], problem.Y, problem.alpha)
    if problem.weight is None:
        np.testing.assert_allclose(solved.left_out, left_out, rtol=1e-9, atol=1e-9)


def test_the_measurement_resumes_and_fills_the_tables(tmp_path, capsys):
    pytest.importorskip("pandas", reason="tables need pandas")
    options = BenchOptions("numerics", tmp_path, extra={"problems": "2"})
    truth.run(options)
    content = options.path("truth.csv").read_text()
    truth.run(options)
    assert options.path("truth.csv").read_text() == content
    assert "direct-float64" in capsys.readouterr().out
    assert {row.problem for row in records.read(options.path("truth.csv"), truth.Error)} == {0, 1}
    assert set(page.parts(tmp_path)) == {"truth", "kernels"}
