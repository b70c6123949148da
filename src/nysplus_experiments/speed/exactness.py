"""Is the fast fit the right one? Compare it with a dense float64 reference on real data.

For each dataset at the paper's γ and ρ: the relative gap of the training objective to a reference
that stores K(X, Z), takes distances from explicit differences and solves by QR; the share of test
rows on which both predict the same class; the accuracy for float64 and for float32 rows. Then the
peak memory of a fit on MNIST. Needs the datasets (NYSPLUS_DATA names their folder).

    python benchmarks/exactness.py [DATASET ...]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np

from nysplus import NystroemClassifier
from nysplus.experiments.datasets import load

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import reference

RHO = 1e-5
CASES = {"letter": 1000, "cod_rna": 300, "ijcnn1": 500, "usps": 1000, "mnist": 1000}
MEMORY_CASE = "--memory-of-mnist"


def dense_model(X, Y, Z, gamma):
    """Return the reference's whitening, weights, intercept, objective and two spectral ratios.

    The ratios are what docs/numerics.md takes as typical: ‖K_cᵀK_c‖ over N n, and the smallest
    eigenvalue of the features' scatter over N/n times that of B.
    """
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


def objective(model, X, Y):
    """Value of the training problem at a fitted model, computed densely in float64."""
    Z, A = model.landmarks_.astype(np.float64), model.dual_coef_.astype(np.float64)
    fit = reference.rbf_matrix(X, Z, model.gamma_) @ A + model.intercept_
    penalty = np.einsum("il,ij,jl", A, reference.rbf_matrix(Z, Z, model.gamma_), A)
    return ((fit - Y) ** 2).sum() + RHO * penalty


def compare(name: str, n: int) -> str:
    """Return one line of the table."""
    split = load(name, public_split=name == "ijcnn1")
    # What float32 rows hold is what both precisions are given: only the arithmetic differs.
    X32, T32 = split.X_train.astype(np.float32), split.X_test.astype(np.float32)
    X, test = X32.astype(np.float64), T32.astype(np.float64)
    fit = {"selection": "uniform", "gamma": split.gamma, "alpha": RHO, "random_state": 0}
    double = NystroemClassifier(n, **fit).fit(X, split.y_train)
    single = NystroemClassifier(n, **fit).fit(X32, split.y_train)
    Y = reference.one_vs_rest(split.y_train)
    Z = double.landmarks_
    T, W, b, best, size, least = dense_model(X, Y, Z, split.gamma)
    scores = reference.rbf_matrix(test, Z, split.gamma) @ (T @ W) + b
    codes = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
    expected = double.classes_[codes]
    gap = {
        "float64": abs(objective(double, X, Y) / best - 1),
        "float32": abs(objective(single, X, Y) / best - 1),
    }
    accuracy = [
        100 * right.mean()
        for right in (
            double.predict(test) == expected,
            expected == split.y_test,
            double.predict(test) == split.y_test,
            single.predict(T32) == split.y_test,
        )
    ]
    return (
        f"{name:8s} {n:5d} {best:10.1f} {gap['float64']:9.1e} {gap['float32']:9.1e} "
        + " ".join(f"{share:9.2f}" for share in accuracy)
        + f" {size:10.4f} {least:8.1f}   {double.solver_}, {single.solver_}"
    )


def memory_of_mnist() -> str:
    """Fit MNIST at n = 1000 in this process; return the peak beside the data."""
    split = load("mnist")
    X, y = split.X_train, split.y_train
    del split
    NystroemClassifier(1000, gamma=0.01, alpha=RHO, random_state=0).fit(X, y)
    # VmHWM starts anew with each program; getrusage's ru_maxrss inherits the parent's peak.
    status = Path("/proc/self/status").read_text()
    peak = 1024 * int(status.split("VmHWM:")[1].split()[0])
    return (
        f"mnist n=1000, negative-margin, default working memory: {peak / 1e9:.2f} GB resident at "
        f"the peak, {X.nbytes / 1e9:.2f} GB of training rows, so {(peak - X.nbytes) / 1e9:.2f} GB "
        "beside them"
    )


def main() -> None:
    if sys.argv[1:] == [MEMORY_CASE]:
        print(memory_of_mnist())
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("datasets", nargs="*", choices=[[], *CASES], default=[])
    names = parser.parse_args().datasets or list(CASES)
    print("                              relative gap        same class   accuracy %")
    print(
        "data         n  objective   float64   float32  as dense  of dense   float64   float32"
        "  |KcᵀKc|/Nn    s_min   solvers"
    )
    for name in names:
        print(compare(name, CASES[name]), flush=True)
    if "mnist" in names:
        subprocess.run([sys.executable, __file__, MEMORY_CASE], check=True)


if __name__ == "__main__":
    main()
