"""Compare fits with a dense float64 reference on real data, at the paper's γ and ρ.

Prints the gap of the training objective to a reference that stores K(X, Z) and solves by QR, the
share of equal predictions, accuracies for float64 and float32 rows, and the peak memory on MNIST.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nysplus import NystroemClassifier
from nysplus_experiments.harness.bench import BenchOptions, load_from_tests
from nysplus_experiments.harness.datasets import load
from nysplus_experiments.harness.measurement import measure, run_in_child
from nysplus_experiments.speed.peers import RHO

CASES = {"letter": 1000, "cod_rna": 300, "ijcnn1": 500, "usps": 1000, "mnist": 1000}
SMOKE = "digits"


def dense_model(X: np.ndarray, Y: np.ndarray, Z: np.ndarray, gamma: float) -> tuple[Any, ...]:
    """Return the reference's whitening, weights, intercept, objective and two spectral ratios.

    docs/background/numerics.md assumes typical values of the ratios: ‖K_cᵀK_c‖ over N n, and the
    smallest eigenvalue of the features' scatter over N/n times that of B.
    """
    reference = load_from_tests("reference")
    T = reference.whitening(reference.rbf_matrix(Z, Z, gamma))
    K = reference.rbf_matrix(X, Z, gamma)
    features = K @ T
    W, b = reference.ridge(features, Y, RHO)
    best = reference.objective(features, Y, W, b, RHO)
    (N, n), smallest = K.shape, 1.0 / np.linalg.norm(T, 2) ** 2
    K -= K.mean(axis=0)
    centred = features - features.mean(axis=0)
    size = np.linalg.norm(K.T @ K) / (N * n)
    least = np.linalg.eigvalsh(centred.T @ centred)[0] / (smallest * N / n)
    return T, W, b, best, size, least


def objective(model: NystroemClassifier, X: np.ndarray, Y: np.ndarray) -> float:
    """Return the training objective at a fitted model, computed densely in float64."""
    rbf_matrix = load_from_tests("reference").rbf_matrix
    Z, A = model.landmarks_.astype(np.float64), model.dual_coef_.astype(np.float64)
    scores = rbf_matrix(X, Z, model.gamma_) @ A + model.intercept_
    penalty = np.einsum("il,ij,jl", A, rbf_matrix(Z, Z, model.gamma_), A)
    return float(((scores - Y) ** 2).sum() + RHO * penalty)


def compare(name: str, n: int) -> str:
    """Return one line of the table."""
    reference = load_from_tests("reference")
    split = load(name, public_split=name == "ijcnn1")
    # Both precisions are given the values that float32 holds: only the arithmetic differs.
    X32, test32 = split.X_train.astype(np.float32), split.X_test.astype(np.float32)
    X, test = X32.astype(np.float64), test32.astype(np.float64)
    fit: dict[str, Any] = {"selection": "uniform", "gamma": split.gamma, "random_state": 0}
    double = NystroemClassifier(n, alpha=RHO, **fit).fit(X, split.y_train)
    single = NystroemClassifier(n, alpha=RHO, **fit).fit(X32, split.y_train)
    Y = reference.one_vs_rest(split.y_train)
    T, W, b, best, size, least = dense_model(X, Y, double.landmarks_, split.gamma)
    scores = reference.rbf_matrix(test, double.landmarks_, split.gamma) @ (T @ W) + b
    codes = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
    expected = double.classes_[codes]
    gaps = [abs(objective(model, X, Y) / best - 1) for model in (double, single)]
    shares = (
        double.predict(test) == expected,
        expected == split.y_test,
        double.predict(test) == split.y_test,
        single.predict(test32) == split.y_test,
    )
    return (
        f"{name:8s} {n:5d} {best:10.1f} {gaps[0]:9.1e} {gaps[1]:9.1e} "
        + " ".join(f"{100 * share.mean():9.2f}" for share in shares)
        + f" {size:10.4f} {least:8.1f}   {double.solver_}, {single.solver_}"
    )


def memory_of_mnist() -> str:
    """Fit MNIST at n = 1000; return a sentence on the peak memory."""
    split = load("mnist")
    X, y = split.X_train, split.y_train
    del split
    model = NystroemClassifier(
        1000, gamma=0.01, alpha=RHO, selection="negative-margin", random_state=0
    )
    fitted = measure(model.fit, X, y)
    if fitted.peak_mb is None:
        return "The peak memory of a fit to MNIST is unknown on this system."
    peak = fitted.peak_mb * 2**20
    return (
        f"MNIST, n = 1000, negative-margin, default working memory: {peak / 1e9:.2f} GB resident "
        f"at the peak, {X.nbytes / 1e9:.2f} GB of training rows, {(peak - X.nbytes) / 1e9:.2f} GB "
        "beside them"
    )


def run(options: BenchOptions) -> None:
    """Print a line per dataset, and the memory."""
    options.expect()
    default = [SMOKE] if options.smoke else list(CASES)
    names = options.choose_datasets([*CASES, SMOKE], default)
    print("                              relative gap        same class   accuracy %")
    print(
        "data         n  objective   float64   float32  as dense  of dense   float64   float32"
        "  |KcᵀKc|/Nn    s_min   solvers"
    )
    for name in names:
        print(run_in_child(compare, name, CASES.get(name, 100)), flush=True)
    if "mnist" in names:
        print(run_in_child(memory_of_mnist))
