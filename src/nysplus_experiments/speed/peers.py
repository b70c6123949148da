"""The systems that are compared: how each is constructed, and how many bytes its model takes.

All get the same rows, kernel width, ridge, seed and threads; other parameters have their defaults.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import gen_batches

from nysplus_experiments.harness.measurement import n_threads

RHO = 1e-5  # the paper's ridge
SVC_C = 10.0
SEED = 0
FLOOR = "blas-floor"


class Expansion(NamedTuple):
    """A fitted function ``k(x, Z) A + b`` with the RBF kernel."""

    landmarks: np.ndarray
    dual_coef: np.ndarray
    intercept: np.ndarray

    def objective(self, X: np.ndarray, codes: np.ndarray, gamma: float) -> float:
        """Return ``‖K(X, Z) A + b − Y‖² + ρ tr(Aᵀ K(Z, Z) A)`` in float64 and in blocks.

        Targets Y are ±1, one column a class, or one column for two classes.
        """
        A = self.dual_coef.astype(np.float64)
        # Distances about the landmarks' mean: far from the origin ‖x‖² + ‖z‖² − 2xz cancels.
        center = self.landmarks.mean(axis=0, dtype=np.float64)
        Z = self.landmarks - center
        classes = np.arange(A.shape[1]) if A.shape[1] > 1 else 1
        total = RHO * float(np.einsum("il,il", A, rbf_kernel(Z, Z, gamma) @ A))
        for rows in gen_batches(len(X), 4096):
            scores = rbf_kernel(X[rows] - center, Z, gamma) @ A + self.intercept
            Y = np.where(codes[rows, None] == classes, 1.0, -1.0)
            total += float(np.square(scores - Y).sum())
        return total


@dataclass(frozen=True)
class System:
    """One line of the comparison.

    ``make(n, gamma)`` returns an unfitted estimator; ``n`` is None for systems that are not sized.
    ``dtype`` is the type of the rows. ``trees`` marks gradient boosting, whose many short parallel
    loops wait often. ``expansion`` exists for systems that solve the same problem as nysplus.
    """

    name: str
    title: str
    dtype: str
    make: Callable[[Any, float], Any]
    stored_bytes: Callable[[Any], int]
    sized: bool = True
    trees: bool = False
    requires: str = ""
    package: str = ""
    expansion: Callable[[Any], Expansion] | None = None

    @property
    def installed(self) -> bool:
        """Whether the library is installed."""
        return not self.requires or importlib.util.find_spec(self.requires) is not None


def _nysplus(n: Any, gamma: float, **options: Any) -> Any:
    from nysplus import NystroemClassifier

    return NystroemClassifier(n, gamma=gamma, random_state=SEED, **options)


def _sklearn_features(n: Any, gamma: float, name: str) -> Any:
    from sklearn import kernel_approximation
    from sklearn.linear_model import RidgeClassifier
    from sklearn.pipeline import make_pipeline

    transformer = getattr(kernel_approximation, name)
    features = transformer(gamma=gamma, n_components=n, random_state=SEED)
    return make_pipeline(features, RidgeClassifier(alpha=RHO))


def _svc(n: None, gamma: float, library: str) -> Any:
    if library == "sklearnex":
        from daal4py import daalinit

        daalinit(n_threads())  # it does not look at OMP_NUM_THREADS
    return import_module(f"{library}.svm").SVC(C=SVC_C, gamma=gamma)


def _boosting(n: None, gamma: float, library: str, name: str, **options: Any) -> Any:
    make = getattr(import_module(library), name)
    return make(n_jobs=n_threads(), random_state=SEED, **options)


def _nysplus_expansion(model: Any) -> Expansion:
    return Expansion(model.landmarks_, model.dual_coef_, model.intercept_)


def _sklearn_expansion(model: Any) -> Expansion:
    features, ridge = model[0], model[-1]
    weights = np.atleast_2d(ridge.coef_).astype(np.float64)
    dual_coef = features.normalization_.T.astype(np.float64) @ weights.T
    return Expansion(features.components_, dual_coef, np.atleast_1d(ridge.intercept_))


def _nysplus_bytes(model: Any) -> int:
    return int(model.model_bytes_)


def _lightgbm_bytes(model: Any) -> int:
    return len(model.booster_.model_to_string().encode())


def _xgboost_bytes(model: Any) -> int:
    return len(model.get_booster().save_raw("ubj"))


def array_bytes(model: Any, names: tuple[str, ...]) -> int:
    """Count the arrays of these names in an estimator or in the steps of a pipeline."""
    steps = [step for _, step in getattr(model, "steps", [("", model)])]
    arrays = (getattr(step, name) for step in steps for name in names if hasattr(step, name))
    return sum(np.asarray(array).nbytes for array in arrays)


_svc_bytes = partial(array_bytes, names=("support_vectors_", "dual_coef_", "intercept_"))
_nystroem_bytes = partial(
    array_bytes, names=("components_", "normalization_", "coef_", "intercept_")
)
_fourier_bytes = partial(
    array_bytes, names=("random_weights_", "random_offset_", "coef_", "intercept_")
)
_uniform = partial(_nysplus, alpha=RHO, selection="uniform")
_nystroem = partial(_sklearn_features, name="Nystroem")
_fourier = partial(_sklearn_features, name="RBFSampler")
_sklearn_svc, _intelex_svc = partial(_svc, library="sklearn"), partial(_svc, library="sklearnex")
_lightgbm = partial(_boosting, library="lightgbm", name="LGBMClassifier", verbose=-1)
_xgboost = partial(_boosting, library="xgboost", name="XGBClassifier")
_TYPES = ("float32", "float64")
SYSTEMS = (
    *(System("nysplus", "nysplus", dtype, _uniform, _nysplus_bytes, expansion=_nysplus_expansion)
      for dtype in _TYPES),
    System("nysplus-defaults", "nysplus, defaults", "float32", _nysplus, _nysplus_bytes),
    *(System("sklearn-nystroem", "scikit-learn Nystroem + ridge", dtype, _nystroem,
             _nystroem_bytes, expansion=_sklearn_expansion) for dtype in _TYPES),
    System("sklearn-rbfsampler", "scikit-learn RBFSampler + ridge", "float64", _fourier,
           _fourier_bytes),
    System("sklearn-svc", "scikit-learn SVC", "float64", _sklearn_svc, _svc_bytes, sized=False),
    System("intelex-svc", "scikit-learn-intelex SVC", "float64", _intelex_svc, _svc_bytes,
           sized=False, requires="sklearnex", package="scikit-learn-intelex"),
    System("lightgbm", "LightGBM", "float32", _lightgbm, _lightgbm_bytes, sized=False, trees=True,
           requires="lightgbm", package="lightgbm"),
    System("xgboost", "XGBoost", "float32", _xgboost, _xgboost_bytes, sized=False, trees=True,
           requires="xgboost", package="xgboost-cpu"),
)  # fmt: skip

TITLES = {system.name: system.title for system in SYSTEMS}
