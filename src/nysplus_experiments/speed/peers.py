"""The systems that are compared: how each is constructed, and how many bytes its model takes.

All get the same rows, kernel width, ridge, seed and number of threads. All other parameters have
their defaults. Libraries are imported in the process that measures them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from nysplus_experiments.harness.measurement import n_threads

RHO = 1e-5  # the paper's ridge
SVC_C = 10.0
SEED = 0
FLOOR = "blas-floor"


class Expansion(NamedTuple):
    """A fitted function ``k(x, Z) A + b``."""

    landmarks: np.ndarray
    dual_coef: np.ndarray
    intercept: np.ndarray


@dataclass(frozen=True)
class System:
    """One line of the comparison.

    Attributes
    ----------
    name, title : str
        The name in the CSV files and on the page.
    dtype : str
        Type of the rows that the system is given.
    make : callable
        ``make(n, gamma)`` returns an unfitted estimator; ``n`` is None for systems without size.
    stored_bytes : callable
        Bytes of a fitted estimator that are needed for predictions.
    sized : bool
        Whether there is a number of landmarks or random features to choose.
    trees : bool
        Whether it is gradient boosting, whose many short parallel loops wait often.
    requires, package : str
        The module that must be installed, and the package that contains it.
    expansion : callable, optional
        Z, A, b of a fitted estimator, for systems that solve the same problem as nysplus.
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


def _sklearn_svc(n: None, gamma: float) -> Any:
    from sklearn.svm import SVC

    return SVC(C=SVC_C, gamma=gamma)


def _intelex_svc(n: None, gamma: float) -> Any:
    from daal4py import daalinit
    from sklearnex.svm import SVC

    daalinit(n_threads())  # it does not look at OMP_NUM_THREADS
    return SVC(C=SVC_C, gamma=gamma)


def _lightgbm(n: None, gamma: float) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=n_threads(), random_state=SEED, verbose=-1)


def _xgboost(n: None, gamma: float) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_jobs=n_threads(), random_state=SEED)


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


def _array_bytes(model: Any, *names: str) -> int:
    """Count the arrays of these names in an estimator or in the steps of a pipeline."""
    steps = [step for _, step in getattr(model, "steps", [("", model)])]
    arrays = (getattr(step, name) for step in steps for name in names if hasattr(step, name))
    return sum(np.asarray(array).nbytes for array in arrays)


def _svc_bytes(model: Any) -> int:
    return _array_bytes(model, "support_vectors_", "dual_coef_", "intercept_")


def _nystroem_bytes(model: Any) -> int:
    return _array_bytes(model, "components_", "normalization_", "coef_", "intercept_")


def _fourier_bytes(model: Any) -> int:
    return _array_bytes(model, "random_weights_", "random_offset_", "coef_", "intercept_")


_uniform = partial(_nysplus, alpha=RHO, selection="uniform")
_nystroem = partial(_sklearn_features, name="Nystroem")
_fourier = partial(_sklearn_features, name="RBFSampler")
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
