"""Fits whose results must not change by a single bit when private modules change.

``python tests/golden/fits.py write FOLDER`` runs all fits and stores their results in a folder
outside of the repository. ``python tests/golden/fits.py check FOLDER`` runs them again, with
another version of the package on the path, and compares. ``--only PATTERN`` takes the fits whose
names match; the command ``list`` prints the names. Results depend on the machine and on the
libraries, so that a folder is of use only where it was written. Fits run on one thread.
"""

from __future__ import annotations

import os

if __name__ == "__main__":  # before numpy reads it
    for variable in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR"):
        os.environ[f"{variable}_NUM_THREADS"] = "1"

import argparse
import fnmatch
import json
import platform
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from golden_models import MODELS
from golden_records import (
    Fit,
    computed,
    differences,
    file_differences,
    loaded_differences,
    record,
)
from golden_rows import STORES, Breaking, Interrupted, rows_of, sparse, weights
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem as SklearnNystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVC
from threadpoolctl import threadpool_limits

import nysplus
from nysplus import (
    Checkpoint,
    EnsembleMap,
    LearnedMetric,
    Nystroem,
    NystroemClassifier,
    NystroemRegressor,
    RandomizedMap,
    Refinement,
    StandardMap,
    export,
    from_svc,
    landmark_curve,
)
from nysplus.kernels import FunctionKernel, Matern, Polynomial
from nysplus.landmarks import (
    SELECTORS,
    CholeskyPicker,
    ClassCentroids,
    FarthestPicker,
    KMeans,
    LeverageScores,
    NegativeMargin,
    Residual,
    RPCholesky,
    SupervisedKMeans,
    SupportCentroids,
)

# MiB that make several blocks of a few hundred rows.
SMALL_MEMORY = 0.1

FITS: dict[str, Callable[[Path], Fit]] = {}


def golden(function: Callable[[Path], Fit]) -> Callable[[Path], Fit]:
    """Add a fit to the table under the function's name."""
    FITS[function.__name__.strip("_").replace("_", "-")] = function
    return function


def add(
    name: str,
    model: Any,
    data: str = "digits",
    n: int = 300,
    *,
    dtype: Any = np.float64,
    change_X: Callable[[Any], Any] = lambda X: X,
    change_y: Callable[[Any], Any] = lambda y: y,
    memory: float = 1024,
    weighted: bool = False,
    exported: bool = False,
    saved: bool = True,
) -> None:
    """Add a plain call of `fit` to the table.

    Parameters
    ----------
    name : str
    model : estimator
    data : str
        Name of a dataset.
    n : int
        Number of rows.
    dtype : type
        Of the rows.
    change_X, change_y : callable
        Applied to features and targets first.
    memory : float
        Scikit-learn's `working_memory` in MiB.
    weighted : bool
        Whether rows have weights.
    exported, saved : bool
        As in `Fit`.
    """

    def run(folder: Path) -> Fit:
        X, y, T = rows_of(data, n, dtype=dtype)
        more = {"sample_weight": weights(n)} if weighted else {}
        with sklearn.config_context(working_memory=memory):
            model.fit(change_X(X), change_y(y), **more)
            return Fit(model, change_X(T), exported=exported, saved=saved)

    assert name not in FITS, name
    FITS[name] = run


def classifier(n_components: int = 25, **params: Any) -> NystroemClassifier:
    """Return a classifier with a fixed seed."""
    return NystroemClassifier(n_components, random_state=0, **params)


def regressor(n_components: int = 25, **params: Any) -> NystroemRegressor:
    """Return a regressor with a fixed seed."""
    return NystroemRegressor(n_components, random_state=0, **params)


def transformer(n_components: int = 25, **params: Any) -> Nystroem:
    """Return a transformer with a fixed seed."""
    return Nystroem(n_components=n_components, random_state=0, **params)


def first_column(Y: Any) -> Any:
    """Return the first of several outputs."""
    return Y[:, 0]


def overlap(x: Any, z: Any) -> float:
    """Return a kernel of two rows: the sum of the smaller entries."""
    return float(np.minimum(x, z).sum())


def squared_products(X: Any, Z: Any, power: int = 2) -> Any:
    """Return a kernel matrix: powers of the scalar products."""
    return (X @ Z.T) ** power


# ---- selectors ----------------------------------------------------------------------------------

for rule in SELECTORS:
    add(f"classes-{rule}", classifier(60, selection=rule), n=400, memory=SMALL_MEMORY)
for rule in ("auto", "kmeans", "leverage", "residual", "rpcholesky", "uniform"):
    add(f"values-{rule}", regressor(selection=rule), "diabetes", memory=SMALL_MEMORY)

add("few-auto", classifier(12), exported=True)
add("few-auto-weighted", classifier(12, class_weight="balanced"), weighted=True)
add("given-landmarks", classifier(selection=rows_of("digits", 40).X), memory=SMALL_MEMORY)
add("given-csr-landmarks", classifier(selection=sparse(rows_of("digits", 40).X)), change_X=sparse)
MARGINS = {
    "cholesky": NegativeMargin(picker="cholesky", n_rounds=2),
    "greedy": NegativeMargin(picker=CholeskyPicker(greedy=True, block=8), oversampling=2),
    "farthest": NegativeMargin(picker=FarthestPicker(), max_quantile=0.8),
    "agreement": NegativeMargin(min_agreement=0.5, max_negative_margin=1.0, n_rounds=3),
    "pilot": NegativeMargin(n_initial=15, approximation=StandardMap(rank=10)),
    "everything": NegativeMargin(
        picker="cholesky", n_initial=40, max_quantile=0.9, min_agreement=0.3, n_rounds=2
    ),
}
for rule, selector in MARGINS.items():
    add(f"margin-{rule}", classifier(30, selection=selector), n=400, memory=SMALL_MEMORY)
KNOBS = {
    "centroids-root": ClassCentroids(power=1.0, share="root"),
    "centroids-rows": ClassCentroids(power=0.0, share="rows"),
    "kmeans": KMeans(max_rows=150, max_iter=5),
    "leverage": LeverageScores(max_rows=150, alpha=0.1),
    "residual": Residual(picker="farthest", max_quantile=0.9, min_agreement=0.3),
    "rpcholesky": RPCholesky(max_rows=150, block=8),
    "weighted-rpcholesky": RPCholesky(weight=lambda X: X.sum(axis=1)),
    "supervised-kmeans": SupervisedKMeans(n_initial=15, n_candidates=90, max_iter=5),
    "support-centroids": SupportCentroids(n_initial=15, oversampling=2, max_rows=150),
}
for rule, selector in KNOBS.items():
    # functions cannot be saved
    add(f"knobs-{rule}", classifier(selection=selector), saved="weighted" not in rule)
add("knobs-residual-values", regressor(selection=Residual(min_agreement=0.3)), "diabetes")
for rule in ("class-centroids", "supervised-kmeans", "support-centroids", "kmeans"):
    add(f"labels-{rule}", classifier(selection=rule), "labels", weighted=True)
add("given-landmarks-metric", classifier(selection=rows_of("cancer", 40).X, metric=3), "cancer")
add("given-landmarks-auto", classifier(selection=rows_of("digits", 40).X, gamma="auto"))

# ---- kernels ------------------------------------------------------------------------------------

for rule in ("laplacian", "matern", "rbf"):
    add(f"kernel-{rule}-median", classifier(kernel=rule, gamma="median"), exported=True)
for rule in ("additive_chi2", "chi2", "cosine", "linear", "polynomial", "sigmoid"):
    add(f"kernel-{rule}", classifier(12, kernel=rule), exported=True)
add("kernel-chi2-transformer", transformer(kernel="chi2"))
add("kernel-matern-0.5", classifier(kernel=Matern(nu=0.5)))
add("kernel-matern-2.5", regressor(kernel=Matern(0.1, nu=2.5)), "waves", exported=True)
add("kernel-chi2-median", classifier(kernel="chi2", gamma="median"))
add("kernel-polynomial-object", regressor(kernel=Polynomial(0.1, degree=2, coef0=2.0)), "diabetes")
add("kernel-function", classifier(12, kernel=overlap), n=120, saved=False)
add(
    "kernel-matrix-function",
    classifier(kernel=FunctionKernel(squared_products, vectorized=True, params={"power": 3})),
    saved=False,
)
for rule in ("rbf", "laplacian", "chi2"):
    add(f"gamma-auto-{rule}", classifier(kernel=rule, gamma="auto"))
add("gamma-auto-values", regressor(gamma="auto"), "diabetes")
add("gamma-none", classifier(gamma=None, alpha=1e-3), "cancer", exported=True)
add("gamma-auto-transformer", transformer(gamma="auto"))

# ---- approximations, ridges and solvers ---------------------------------------------------------

MAPS = {
    "randomized": "randomized",
    "ensemble": "ensemble",
    "rank": StandardMap(rank=9),
    "randomized-rank": RandomizedMap(rank=9, n_oversamples=3, n_iter=1),
    "experts": EnsembleMap(n_experts=3),
}
for rule, approximation in MAPS.items():
    add(f"map-{rule}", classifier(36, approximation=approximation, selection="uniform"))
    add(f"map-{rule}-values", regressor(36, approximation=approximation), "diabetes")
    add(f"map-{rule}-transformer", transformer(36, approximation=approximation))
add("alpha-list", classifier(alpha=[1e-4, 1e-2, 1.0]), "cancer")
add("alpha-list-values", regressor(alpha=[1e-4, 1e-2, 1.0]), "diabetes", weighted=True)
add("repeated-landmarks", classifier(selection=np.tile(rows_of("iris", 9).X, (3, 1))), "iris", 100)
add("solver-float32", classifier(60, gamma=1.0, alpha=1.0), n=1500, dtype=np.float32)
add("solver-float32-auto", classifier(60, gamma=1.0), n=1500, dtype=np.float32)
add("solver-gram", classifier(200, selection="uniform", gamma=1.0, alpha=1.0), n=1500)
add("solver-gram-values", regressor(200, selection="uniform", gamma=2.0), "waves", 2500)
add("solver-float32-wider", classifier(60, gamma=0.1, alpha=0.1), n=1500, dtype=np.float32)
for dtype, gamma in (("float64", 1e-4), ("float32", 2.0)):
    add(
        f"solver-iterative-{dtype}",
        regressor(3000, selection="uniform", gamma=gamma, alpha=[0.1, 1.0]),
        "space",
        44_000,
        dtype=dtype,
        saved=False,
    )

# ---- rows and targets ---------------------------------------------------------------------------

add("binary", classifier(), "cancer", exported=True)
add("binary-weighted", classifier(class_weight={0: 3.0, 1: 1.0}), "cancer", weighted=True)
NAMES = np.array(["a", "bé", "c"])
add("strings", classifier(), "wine", 120, change_y=lambda y: NAMES[y], exported=True)
add("string-objects", classifier(), "wine", 120, change_y=lambda y: NAMES.astype(object)[y])
add("large-classes", classifier(), "wine", 120, change_y=lambda y: 10**12 * y, exported=True)
add("negative-classes", classifier(), "wine", 120, change_y=lambda y: 5 - 3 * y, exported=True)
add("boolean-classes", classifier(), "cancer", change_y=lambda y: y > 0)
add("multilabel", classifier(), "labels", exported=True)
add("multilabel-weighted", classifier(selection="negative-margin"), "labels", weighted=True)
add("multilabel-residual", classifier(selection="residual"), "labels")
add("outputs", regressor(), "waves", exported=True)
add("outputs-weighted", regressor(selection="residual"), "waves", weighted=True)
add("one-column", regressor(), "waves", change_y=lambda Y: Y[:, :1])
add("float32", classifier(), dtype=np.float32, exported=True)
add("float32-values", regressor(), "diabetes", dtype=np.float32)
add("float32-transformer", transformer(), dtype=np.float32)
add("float16", classifier(), dtype=np.float16)
add("integers", classifier(), change_X=lambda X: (16.0 * X).astype(np.int8))
add("csr", classifier(), change_X=sparse, memory=SMALL_MEMORY, exported=True)
add("csr-values", regressor(), "diabetes", change_X=sparse)
add("csr-negative-margin", classifier(selection="negative-margin"), change_X=sparse)
add("csr-kmeans", classifier(selection="kmeans"), change_X=sparse)
add("csr-laplacian", classifier(kernel="laplacian", selection="uniform"), change_X=sparse)
add("csr-transformer", transformer(kernel="cosine"), change_X=sparse)
add("csr-float32", classifier(), dtype=np.float32, change_X=sparse)
add("far-from-origin", regressor(), "diabetes", change_X=lambda X: X + 1e4)
add("transformer", transformer(), memory=SMALL_MEMORY)
add("transformer-negative-margin", transformer(selection="negative-margin", gamma="scale"))
add("transformer-auto", transformer(selection="auto", gamma="median"), change_y=lambda y: None)
add("transformer-polynomial", transformer(kernel="poly", degree=2, coef0=0.5, gamma=0.1))
add("transformer-sigmoid", transformer(kernel="sigmoid", coef0=0.1))
add(
    "transformer-function",
    transformer(
        kernel=lambda x, z, power: float(x @ z) ** power,
        kernel_params={"power": 2},
    ),
    n=100,
)


# ---- rows from elsewhere ------------------------------------------------------------------------


def add_stored(store: str, data: str, model: Any, name: str = "") -> None:
    """Add a fit to rows that are read from somewhere, and scored and predicted there as well."""

    def run(folder: Path) -> Fit:
        import dask

        X, y, T = rows_of("quadrants" if data == "strings" else data, 400, 80)
        y = NAMES[y] if data == "strings" else y[:, 0] if data == "waves" else y
        (folder / "test").mkdir()
        with (
            sklearn.config_context(working_memory=SMALL_MEMORY),
            dask.config.set(scheduler="synchronous"),
        ):
            args = STORES[store](folder, X, y, weights(len(X)))
            model.fit(*args)
            test = STORES[store](folder / "test", T, y[:80], np.ones(len(T)))
            extra = {
                "score": model.score(*args),
                "elsewhere": computed(model.predict(test[0])),
            }
        return Fit(model, sparse(T) if store in ("csr-blocks", "libsvm") else T, extra=extra)

    FITS[f"store-{store}-{name or data}"] = run


for place in STORES:
    add_stored(place, "quadrants", classifier(selection="negative-margin"))
for place in ("blocks", "csr-blocks", "dask-array", "memmap", "parquet"):
    add_stored(place, "waves", regressor())
for place in ("dask-frame", "parquet-folder"):
    add_stored(place, "cancer", classifier(class_weight="balanced", gamma="median"))
for rule in SELECTORS:
    for place in ("blocks", "dask-array"):
        add_stored(place, "quadrants", classifier(12, selection=rule), name=rule)
for place in ("blocks", "dask-array", "memmap"):
    add_stored(place, "strings", classifier(), name="strings")
    add_stored(place, "labels", classifier(), name="labels")
for place in ("blocks", "dask-array"):
    add_stored(place, "quadrants", classifier(gamma="auto", metric="diagonal"), name="metric")
    add_stored(place, "quadrants", classifier(budget=900), name="budget")


@golden
def dask_cluster(folder: Path) -> Fit:
    """Two workers on this machine, in this process."""
    from distributed import Client, LocalCluster

    X, y, T = rows_of("quadrants", 400, 80)
    local = {"host": "127.0.0.1", "protocol": "tcp://", "dashboard_address": "127.0.0.1:0"}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, **local) as cluster,
        Client(cluster),
    ):
        model = classifier(selection="negative-margin")
        model.fit(*STORES["dask-array"](folder, X, y, weights(len(X))))
    return Fit(model, T)


@golden
def labels_in_parquet(folder: Path) -> Fit:
    import pandas as pd

    X, Y, _ = rows_of("labels", 400)
    frame = pd.DataFrame(np.c_[X, Y], columns=["x0", "x1", "x2", "x3", "y0", "y1", "y2"])
    frame = frame.astype({"y0": int, "y1": int, "y2": int})
    frame.to_parquet(folder / "rows.parquet", row_group_size=70)
    with sklearn.config_context(working_memory=SMALL_MEMORY):
        model = classifier().fit(folder / "rows.parquet", ["y0", "y1", "y2"])
        elsewhere = model.predict_proba(folder / "rows.parquet")
    return Fit(model, frame[["x0", "x1", "x2", "x3"]].iloc[:40], extra={"elsewhere": elsewhere})


@golden
def transformer_of_dask(folder: Path) -> Fit:
    X, y, T = rows_of("quadrants", 400)
    given, *_ = STORES["dask-array"](folder, X, y, y)
    tested, *_ = STORES["dask-array"](folder, T, T, T)
    return Fit(transformer(selection="kmeans").fit(given), tested)


@golden
def transformer_of_blocks(folder: Path) -> Fit:
    X, y, T = rows_of("digits", 400)
    with sklearn.config_context(working_memory=SMALL_MEMORY):
        model = transformer(selection="negative-margin")
        model.fit(*STORES["blocks"](folder, X, y, np.ones(len(X))))
    return Fit(model, T)


@golden
def checkpoint(folder: Path) -> Fit:
    """A fit that is broken off and goes on from its file."""
    X, y, T = rows_of("quadrants", 600)
    (blocks,) = STORES["blocks"](folder, X, y, weights(len(X)))
    kept = Checkpoint(folder / "fit.checkpoint", seconds=0)
    with sklearn.config_context(working_memory=SMALL_MEMORY):
        whole = Breaking(blocks)
        model = classifier(selection="negative-margin").fit(whole)
        broken = Breaking(blocks, stop=whole.n_read - 12)
        try:
            classifier(selection="negative-margin").fit(broken, checkpoint=kept)
        except Interrupted:
            assert Path(kept.path).exists()
        rest = Breaking(blocks)
        resumed = classifier(selection="negative-margin").fit(rest, checkpoint=kept)
    extra = {"read": whole.n_read, "read again": rest.n_read, "resumed": resumed.dual_coef_}
    return Fit(model, T, extra=extra)


@golden
def checkpoint_of_objects(folder: Path) -> Fit:
    """Parameters that are objects and functions tell fits apart."""
    X, y, T = rows_of("digits", 200)
    model = classifier(
        12, kernel=overlap, selection=NegativeMargin(n_rounds=2), approximation=StandardMap(10)
    )
    return Fit(model.fit(X, y, checkpoint=folder / "fit.checkpoint"), T, saved=False)


@golden
def random_state(folder: Path) -> Fit:
    X, y, T = rows_of("digits", 200)
    model = NystroemClassifier(12, random_state=np.random.RandomState(5))
    return Fit(model.fit(X, y), T)


@golden
def checkpoint_of_values(folder: Path) -> Fit:
    X, Y, T = rows_of("waves", 600)
    with sklearn.config_context(working_memory=SMALL_MEMORY):
        model = regressor().fit(X, Y, weights(len(X)), checkpoint=folder / "fit.checkpoint")
    return Fit(model, T)


@golden
def two_threads(folder: Path) -> Fit:
    X, y, T = rows_of("digits", 600)
    model = classifier(60, selection="negative-margin")
    with (
        threadpool_limits(2, user_api="blas"),
        sklearn.config_context(working_memory=SMALL_MEMORY),
    ):
        model.fit(X, y)
    return Fit(model, T)


# ---- metric, refinement and budget --------------------------------------------------------------

QUICK = Refinement(n_epochs=30, search=False)
SEARCH = Refinement(n_epochs=15)

add("metric-diagonal", classifier(metric="diagonal"), "quadrants", exported=True)
add("metric-full", classifier(metric="full"), "wine", 120)
add("metric-directions", classifier(metric=3), "cancer", exported=True)
add("metric-rounds", regressor(metric=LearnedMetric("diagonal", n_rounds=3, max_rows=200)), "waves")
add("metric-values", regressor(metric="full", kernel="matern"), "diabetes")
add("metric-negative-margin", classifier(metric="diagonal", selection="negative-margin"), "cancer")
add("metric-csr", classifier(metric="diagonal"), "cancer", change_X=sparse)
add("metric-float32", classifier(metric=2), "cancer", dtype=np.float32)
add("refine-search", classifier(8, refine=SEARCH), "quadrants", 800)
add("refine-search-values", regressor(8, refine=SEARCH), "waves", 300)
add("refine-search-negative-margin", classifier(8, refine=SEARCH, selection="negative-margin"))
add("refine-quick", classifier(10, refine=Refinement(n_epochs=60, search=False)), n=1500)
add("refine-default", classifier(4, refine=True), "iris", 100)
add("refine-kept-not", classifier(refine=Refinement(n_epochs=1, search=False)), "cancer")
add("refine-rank", classifier(8, refine=Refinement(3, 40, search=False)), "quadrants", 800)
add("refine-widths", regressor(8, refine=Refinement(n_epochs=30, widths=(1.0, 3.0))), "waves", 400)
add("refine-steps", classifier(refine=Refinement("auto", 9, 32, 0.02, search=False)), "labels", 500)
add(
    "refine-max-rows", classifier(8, refine=Refinement(n_epochs=30, max_rows=600)), "quadrants", 800
)
add("refine-matern", classifier(15, refine=QUICK, kernel="matern"), "quadrants", 500)
add("refine-matern-values", regressor(8, refine=QUICK, kernel=Matern(nu=2.5)), "waves", 500)
add("refine-csr", classifier(10, refine=QUICK), "quadrants", 800, change_X=sparse, exported=True)
add("refine-csr-digits", classifier(15, refine=QUICK), n=400, change_X=sparse)
add("refine-float32", classifier(8, refine=QUICK), "quadrants", 800, dtype=np.float32)
add("refine-weighted", classifier(8, refine=QUICK), "quadrants", 1200, weighted=True)
add("refine-metric", classifier(6, refine=QUICK, metric="diagonal"), "quadrants", 1000)
add("refine-directions", regressor(6, refine=QUICK, metric=3), "waves", 1000)
add("refine-binary", classifier(6, refine=QUICK), "labels", 2000, change_y=lambda Y: Y[:, 1])
add("refine-balanced", classifier(8, refine=QUICK, class_weight="balanced"), "quadrants", 2000)
add("refine-too-few", classifier(5, refine=True), "iris", 35)
add("refine-memory", classifier(8, refine=QUICK), "quadrants", 3000, memory=0.05)
add("refine-memory-csr", classifier(8, refine=QUICK), "digits", 400, memory=0.1, change_X=sparse)
add("refine-16000-rows", regressor(4, refine=Refinement(rank=2)), "space", 16_000)
add("refine-one-epoch", classifier(20, refine=Refinement(n_epochs=1)), "quadrants", 5500)
add("refine-many-rows", classifier(8, refine=Refinement(n_epochs=6)), "quadrants", 5500)
add("budget", classifier(budget="4kB"), n=600, exported=True)
add("budget-bytes", classifier(budget=700), "quadrants", 400, memory=SMALL_MEMORY)
add("budget-large", classifier(budget="1MB"), "iris", 100, exported=True)
add("budget-values", regressor(budget="2kB"), "diabetes", exported=True)
add("budget-multilabel", classifier(budget="1kB"), "labels")
add("budget-csr", classifier(budget="4kB"), change_X=sparse)
add("budget-metric", classifier(budget="1kB", metric="diagonal"), "cancer", exported=True)
add("budget-negative-margin", classifier(budget="4kB", selection="negative-margin"))
add("budget-laplacian", classifier(budget="4kB", kernel="laplacian"))
add("budget-refine", classifier(budget="300B", refine=QUICK), "quadrants", 1500, exported=True)
add("budget-refine-digits", classifier(budget="2kB", refine=QUICK), n=1500, exported=True)
add("budget-refine-search", classifier(budget="200B", refine=SEARCH), "quadrants", 1000)
add("budget-refine-rank", classifier(budget="300B", refine=Refinement(3, 30)), "quadrants", 1000)
add("budget-refine-values", regressor(budget="300B", refine=QUICK), "waves", 1000, exported=True)
add("budget-refine-metric", classifier(budget="300B", refine=QUICK, metric=3), "quadrants", 1000)
add("budget-refine-sizes", classifier(budget="1kB", refine=Refinement(n_epochs=4)), n=500)
add("budget-refine-none", classifier(budget=90, refine=QUICK), "cancer")
add("budget-refine-csr", classifier(budget="300B", refine=QUICK), "quadrants", 800, change_X=sparse)

# ---- rows that come bit by bit ------------------------------------------------------------------


@golden
def partial_fit(folder: Path) -> Fit:
    X, y, T = rows_of("digits", 400)
    model = classifier(selection="negative-margin")
    for start in range(0, 400, 100):
        some = slice(start, start + 100)
        model.partial_fit(X[some], y[some], classes=np.arange(10), sample_weight=weights(100))
    before = model.decision_function(T)
    return Fit(model.retune(), T, extra={"before": before})


@golden
def partial_fit_of_values(folder: Path) -> Fit:
    X, Y, T = rows_of("waves", 400)
    model = regressor(approximation="ensemble", metric="diagonal")
    for start in range(0, 400, 100):
        model.partial_fit(X[start : start + 100], Y[start : start + 100])
    before = model.predict(T)
    return Fit(model.retune([1e-3, 1e-1]), T, extra={"before": before})


@golden
def partial_fit_of_labels(folder: Path) -> Fit:
    X, Y, T = rows_of("labels", 300)
    model = classifier(12)
    for start in range(0, 300, 100):
        model.partial_fit(X[start : start + 100], Y[start : start + 100])
    return Fit(model, T)


@golden
def partial_fit_after_fit(folder: Path) -> Fit:
    X, y, T = rows_of("cancer", 400)
    model = classifier(class_weight={0: 2.0, 1: 1.0}).fit(X[:100], y[:100])
    return Fit(model.partial_fit(X[100:], y[100:]), T)


@golden
def partial_fit_of_csr(folder: Path) -> Fit:
    X, y, T = rows_of("digits", 300)
    model = classifier(selection="uniform", alpha=0.1)
    for start in range(0, 300, 100):
        some = slice(start, start + 100)
        model.partial_fit(sparse(X[some]), y[some], classes=np.arange(10))
    return Fit(model, sparse(T))


@golden
def partial_fit_of_blocks(folder: Path) -> Fit:
    X, y, T = rows_of("quadrants", 400)
    model = classifier()
    for some in (slice(0, 200), slice(200, 400)):
        blocks = STORES["blocks"](folder, X[some], y[some], weights(200))
        model.partial_fit(*blocks, classes=[0, 1, 2])
    return Fit(model, T)


@golden
def merge(folder: Path) -> Fit:
    X, y, T = rows_of("digits", 400)
    first, second = (classifier(selection=X[:30], gamma=0.05, alpha=0.1) for _ in range(2))
    first.partial_fit(X[:150], y[:150], classes=np.arange(10))
    second.partial_fit(X[150:], y[150:], classes=np.arange(10))
    merged = first.merge(second)
    before = merged.decision_function(T)
    return Fit(merged.retune("auto"), T, extra={"before": before})


@golden
def merge_of_values(folder: Path) -> Fit:
    X, Y, T = rows_of("waves", 400)
    first, second = (regressor(selection=X[:30], gamma=0.5, alpha=0.1) for _ in range(2))
    return Fit(first.partial_fit(X[:150], Y[:150]).merge(second.partial_fit(X[150:], Y[150:])), T)


@golden
def merge_of_metrics(folder: Path) -> Fit:
    X, y, T = rows_of("cancer", 400)
    first = classifier(metric="diagonal").fit(X[:200], y[:200])
    second = clone(first).fit(X[:200], y[:200])
    first.partial_fit(X[:150], y[:150])
    second.partial_fit(X[150:], y[150:])
    return Fit(first.merge(second), T)


@golden
def merge_of_csr(folder: Path) -> Fit:
    X, y, T = rows_of("digits", 400)
    first, second = (classifier(selection=sparse(X[:30]), gamma=0.05) for _ in range(2))
    first.partial_fit(sparse(X[:150]), y[:150], classes=np.arange(10)).retune(0.3)
    second.partial_fit(sparse(X[150:]), y[150:], classes=np.arange(10))
    return Fit(first.merge(second), sparse(T))


# ---- smaller models -----------------------------------------------------------------------------


def add_compressed(name: str, model: Any, data: str, *given: Any, **size: Any) -> None:
    """Add a fit whose model is compressed, by the first `given` of rows and targets."""

    def run(folder: Path) -> Fit:
        rows = rows_of(data, 400)
        model.fit(rows.X, rows.y)
        arguments = {name: getattr(rows, name) for name in given}
        return Fit(model.compress(**size, **arguments), rows.T)

    FITS[f"compress-{name}"] = run


add_compressed("landmarks", classifier(40), "digits", n_components=15)
add_compressed("none", classifier(40), "digits", n_components=40)
add_compressed("rows", classifier(40), "digits", "X", n_components=15)
add_compressed("targets", classifier(40), "digits", "X", "y", n_components=15)
add_compressed("budget", classifier(40), "digits", budget="2kB")
add_compressed("budget-rows", classifier(40), "digits", "X", budget="2kB")
add_compressed("budget-targets", classifier(40), "quadrants", "X", "y", budget=600)
add_compressed("values", regressor(40), "waves", n_components=10)
add_compressed("values-rows", regressor(40), "waves", "X", n_components=10)
add_compressed("values-budget", regressor(40), "waves", "X", "y", budget=500)
add_compressed("labels", classifier(40), "labels", "X", budget=500)
add_compressed("linear", classifier(30, kernel="linear"), "cancer", n_components=8)
add_compressed("laplacian", classifier(30, kernel="laplacian"), "cancer", "X", n_components=8)
add_compressed("matern", regressor(30, kernel="matern"), "diabetes", "X", "y", n_components=8)
add_compressed("metric", classifier(30, metric="diagonal"), "cancer", "X", "y", budget="1kB")
add_compressed("metric-landmarks", classifier(30, metric="diagonal"), "cancer", n_components=8)
add_compressed("full-metric", classifier(30, metric="full"), "quadrants", n_components=8)
add_compressed("directions", classifier(30, metric=2), "cancer", budget=300)
add_compressed("labels-rows", classifier(40), "labels", "X", n_components=4)
add_compressed("refined", classifier(30, refine=QUICK), "quadrants", "X", "y", n_components=8)
add_compressed("rounded", classifier(budget="2kB"), "quadrants", "X", budget="1kB")


@golden
def compress_csr(folder: Path) -> Fit:
    X, y, T = rows_of("digits", 300)
    model = classifier(30).fit(sparse(X), y)
    return Fit(model.compress(10), sparse(T))


@golden
def compress_csr_budget(folder: Path) -> Fit:
    X, y, T = rows_of("digits", 300)
    model = classifier(30).fit(sparse(X), y)
    return Fit(model.compress(budget="2kB"), sparse(T))


@golden
def compress_csr_rows(folder: Path) -> Fit:
    X, y, T = rows_of("digits", 300)
    model = classifier(30).fit(sparse(X), y)
    return Fit(model.compress(X=sparse(X), y=y, budget="2kB"), sparse(T))


@golden
def compress_few_rows(folder: Path) -> Fit:
    X, y, T = rows_of("digits", 300)
    return Fit(classifier(30).fit(X, y).compress(10, X[:30]), T)


def add_imported(name: str, model: Any, data: str, *given: str, **size: Any) -> None:
    """Add a model of scikit-learn, by the first `given` of rows and targets."""

    def run(folder: Path) -> Fit:
        rows = rows_of(data, 200)
        model.fit(rows.X, rows.y)
        arguments = {name: getattr(rows, name) for name in given}
        return Fit(from_svc(model, **size, **arguments), rows.T)

    FITS[f"from-{name}"] = run


add_imported("svc", SVC(), "cancer")
add_imported("svc-scaled", SVC(), "cancer", "X", "y")
add_imported("svc-classes", SVC(gamma=0.05), "digits")
add_imported("svc-linear-classes", SVC(kernel="linear"), "digits")
add_imported("svc-compressed", SVC(gamma=0.05), "digits", n_components=20)
add_imported("svc-budget", SVC(gamma=0.05), "digits", "X", "y", budget="4kB")
add_imported("nusvc", NuSVC(kernel="poly", degree=2), "cancer")
add_imported("svr", SVR(C=100.0), "diabetes")
add_imported("svr-compressed", SVR(C=100.0), "diabetes", "X", n_components=20)
add_imported("kernel-ridge", KernelRidge(kernel="rbf", gamma=0.05, alpha=1.0), "waves")
add_imported(
    "pipeline",
    make_pipeline(
        SklearnNystroem(gamma=0.05, n_components=30, random_state=0),
        LogisticRegression(max_iter=50),
    ),
    "cancer",
)


add_imported(
    "ridge-pipeline",
    make_pipeline(SklearnNystroem(gamma=0.05, n_components=30, random_state=0), Ridge()),
    "waves",
)


@golden
def from_svc_with_names(folder: Path) -> Fit:
    X, y, _ = STORES["pandas"](folder, *rows_of("cancer", 200)[:2], np.ones(200))
    return Fit(from_svc(SVC().fit(X, y)), X.iloc[:40])


@golden
def cost(folder: Path) -> Fit:
    """Everything but the seconds."""
    found = classifier().estimate_cost((500, 4), n_outputs=3)
    return Fit(extra={"passes": found.passes, "bytes": found.bytes})


@golden
def converted(folder: Path) -> Fit:
    """Pipelines in ONNX, by way of skl2onnx."""
    import skl2onnx

    export.register_converters()
    X, y, _ = rows_of("cancer", 200)
    pipelines = {
        "classes": make_pipeline(StandardScaler(), classifier(12)),
        "values": make_pipeline(StandardScaler(), regressor(12)),
        "features": make_pipeline(transformer(12), LogisticRegression()),
    }
    graphs = {}
    for name, pipeline in pipelines.items():
        graph = skl2onnx.to_onnx(pipeline.fit(X, y), X[:1].astype(np.float32), name="golden")
        graph.opset_import.sort(key=lambda opset: opset.domain)  # a set in skl2onnx
        graphs[name] = graph.SerializeToString(deterministic=True)
    return Fit(extra=graphs)


@golden
def export_files(folder: Path) -> Fit:
    X, y, T = rows_of("iris", 100)
    model = classifier(8).fit(X, y)
    export.to_c(model, folder / "model.h", dtype="float32")
    export.to_json(model, folder / "model.json")
    files = {name: (folder / name).read_text() for name in ("model.h", "model.json")}
    return Fit(model, T, extra=files)


def add_curve(name: str, data: str, weighted: bool = False, **options: Any) -> None:
    """Add a curve of scores against sizes."""

    def run(folder: Path) -> Fit:
        X, y, _ = rows_of(data, 400)
        weight = weights(len(X)) if weighted else None
        curve = landmark_curve(X, y, sample_weight=weight, random_state=0, **options)
        fields = ("sizes", "scores", "errors", "bytes", "alphas", "landmarks", "metric")
        more = {"text": str(curve), "best": curve.best, "recommended": curve.recommended}
        return Fit(extra={field: getattr(curve, field) for field in fields} | more)

    FITS[f"curve-{name}"] = run


add_curve("classes", "digits")
add_curve("values", "waves", sizes=[40, 20, 5], test_size=100)
add_curve("labels", "labels", sizes=[30, 20], weighted=True)
add_curve("negative-margin", "quadrants", estimator=classifier(selection="negative-margin"))
add_curve("given", "cancer", sizes=[20, 5], estimator=classifier(selection=np.eye(25, 30)))
REPEATED = np.tile(rows_of("iris", 10).X, (3, 1))
add_curve("repeated", "quadrants", sizes=[25, 10], estimator=classifier(selection=REPEATED))
add_curve(
    "wide", "quadrants", sizes=[60, 30], estimator=classifier(gamma=1e-3, selection="uniform")
)
add_curve("metric", "quadrants", estimator=classifier(metric="diagonal", gamma="auto"))
add_curve("diabetes", "diabetes", estimator=regressor(kernel="matern", selection="uniform"))

for kept_name, kept in MODELS.items():
    FITS[f"kept-{kept_name}"] = lambda folder, kept=kept: Fit(kept.fit(), kept.rows())


# ---- commands -----------------------------------------------------------------------------------


def environment() -> dict[str, str]:
    """Return what results depend on beside the package."""
    versions = {library.__name__: library.__version__ for library in (np, scipy, sklearn)}
    return {"machine": platform.machine(), "python": platform.python_version(), **versions}


def run(name: str, path: Path) -> tuple[Fit, dict[str, np.ndarray]]:
    """Run a fit in a folder of its own; return it and its results. The model goes to `path`."""
    with tempfile.TemporaryDirectory() as folder:
        np.random.seed(0)  # models of `from_svc` have no seed of their own
        fit = FITS[name](Path(folder))
        return fit, record(fit, path)


def write(folder: Path, names: list[str]) -> int:
    """Store the results of some fits."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "environment.json").write_text(json.dumps(environment()))
    for name in names:
        begin = time.perf_counter()
        path = folder / f"{name}.safetensors"
        path.unlink(missing_ok=True)
        _, items = run(name, path)
        np.savez_compressed(folder / f"{name}.npz", **items)
        seconds = time.perf_counter() - begin
        print(f"{name:<36} {len(items):3d} items {seconds:6.2f} s  {summary(items)}", flush=True)
    print(f"{len(names)} fits written to {folder}")
    return 0


def summary(items: dict[str, np.ndarray]) -> str:
    """Return the results of a fit that tell which way it went."""
    shown = ("solver_", "refined_", "model_bytes_", "n_passes_")
    return " ".join(f"{name}={items[name]}" for name in shown if name in items)


def check(folder: Path, names: list[str]) -> int:
    """Run some fits again and print how they differ from the stored results."""
    if json.loads((folder / "environment.json").read_text()) != environment():
        print(f"The results were written with other libraries: {folder / 'environment.json'}")
    counts = {"bit-equal": 0, "different": 0, "failed": 0}
    for name in names:
        try:
            found = compare(folder, name)
        except Exception as error:  # of any kind: the other fits are to be compared too
            counts["failed"] += 1
            print(f"{name:<36} FAILED: {type(error).__name__}: {error}", flush=True)
            continue
        counts["different" if found else "bit-equal"] += 1
        print(f"{name:<36} {'; '.join(found) if found else 'bit-equal'}", flush=True)
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return int(counts["bit-equal"] < len(names))


def compare(folder: Path, name: str) -> list[str]:
    """Return all differences between a fit and its stored results."""
    with np.load(folder / f"{name}.npz") as stored:
        expected = dict(stored)
    old = folder / f"{name}.safetensors"
    with tempfile.TemporaryDirectory() as scratch:
        new = Path(scratch) / old.name
        fit, items = run(name, new)
        found = differences(expected, items) + file_differences(old, new)
    return found + loaded_differences(old, fit.rows, expected)


def main(arguments: list[str]) -> int:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=["write", "check", "list"])
    parser.add_argument("folder", type=Path, nargs="?", help="outside of the repository")
    parser.add_argument("--only", default="*", help="names of fits, such as 'store-*'")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    names = fnmatch.filter(FITS, options.only)
    if options.command == "list":
        print("\n".join(names))
        return 0
    if options.folder is None:
        parser.error("a folder is needed")
    if not names:
        parser.error(f"no fit matches {options.only!r}")
    print(f"nysplus {nysplus.__version__} in {Path(nysplus.__file__).parent}")
    return {"write": write, "check": check}[options.command](options.folder, names)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
