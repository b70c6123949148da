"""Classes with the constructors of scikit-learn's estimators and the fits of nysplus.

A constructor stores the parameters of the peer. The parameters of nysplus are attributes of the
class, derived from those of the peer where they correspond; parameters of the peer's solver are
ignored.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import linear_model, svm
from sklearn.base import is_regressor
from sklearn.kernel_ridge import KernelRidge as PeerKernelRidge

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._fit.plan import make_plan
from nysplus.kernels import FunctionKernel, make_kernel

# Enough for the linear kernel of all features, and for most rows of the small datasets.
N_LANDMARKS = 300

DEFAULTS = {
    "n_components": N_LANDMARKS,
    "selection": "uniform",
    "approximation": "standard",
    "refine": False,
    "budget": None,
    "metric": None,
    "class_weight": None,
    "random_state": 0,
    "verbose": 0,
}


# The peers draw nothing with random_state=None, or nothing that matters.
SEED = (
    lambda estimator: 0 if estimator._seed is None else estimator._seed,
    lambda estimator, seed: setattr(estimator, "_seed", seed),
)


def stand_in(peer: type, ours: type, **more: Any) -> type:
    """Return a subclass of `ours` that is constructed as `peer` is."""
    signature = inspect.signature(peer.__init__)
    parameters = list(signature.parameters)[1:]

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        for name in parameters:
            setattr(self, name, bound.arguments[name])

    def _fit(self: Any, *args: Any) -> None:
        with warnings.catch_warnings():  # the number of landmarks is ours, not the test's
            warnings.filterwarnings("ignore", message="n_components=")
            ours._fit(self, *args)

    __init__.__signature__ = signature
    attributes = {name: value for name, value in DEFAULTS.items() if name not in parameters}
    if "random_state" in parameters:
        attributes["random_state"] = property(*SEED)
    methods = {"__init__": __init__, "_fit": _fit}
    body = {**attributes, **more, **methods, "__module__": __name__}
    return type(peer.__name__, (ours,), body)


def from_C(estimator: Any) -> float:
    """Return the ridge of the penalty C, as scikit-learn's guide relates them."""
    return 1.0 / (2.0 * estimator.C)


def coefficients(estimator: Any) -> Any:
    """Return the coefficients of the features, which a model with a linear kernel has."""
    if estimator.kernel != "linear":
        raise AttributeError("coef_ is only available when using a linear kernel")
    coef = np.asarray((estimator.landmarks_.T @ estimator.expansion_.dual_coef).T)
    return coef[0] if is_regressor(estimator) and len(coef) == 1 else coef


def as_landmarks(estimator: Any, values: Any) -> Any:
    """Return a matrix that is sparse if the landmarks are, as the attributes of libsvm's models."""
    return sp.csr_matrix(values) if sp.issparse(estimator.landmarks_) else values


def plan(estimator: Any, rows: Any) -> Any:
    """Return the plan of a fit with the kernel of a peer's parameters."""
    kernel, params = estimator.kernel, estimator.get_params()
    if callable(kernel):  # the peers' functions get two matrices
        kernel = FunctionKernel(kernel, vectorized=True)
    else:
        gamma = None if estimator.gamma == "auto" else estimator.gamma
        kernel = make_kernel(
            kernel, gamma=gamma, coef0=params.get("coef0"), degree=params.get("degree")
        )
    return make_plan(estimator, kernel, rows.n_features, rows.dtype, rows.kind)


LINEAR = {"kernel": "linear", "gamma": None, "coef_": property(coefficients)}
BY_C = {"alpha": property(from_C), "coef_": property(coefficients)}
LIBSVM = {
    "support_": property(lambda estimator: estimator.landmark_indices_),
    "support_vectors_": property(lambda estimator: estimator.landmarks_),
    "dual_coef_": property(lambda e: as_landmarks(e, e.expansion_.dual_coef)),
    "coef_": property(lambda e: as_landmarks(e, coefficients(e))),
}
SVC = stand_in(svm.SVC, NystroemClassifier, _plan=plan, **BY_C | LIBSVM)
SVR = stand_in(svm.SVR, NystroemRegressor, _plan=plan, **BY_C)
LinearSVC = stand_in(svm.LinearSVC, NystroemClassifier, **LINEAR | BY_C)
LogisticRegression = stand_in(linear_model.LogisticRegression, NystroemClassifier, **LINEAR | BY_C)
RidgeClassifier = stand_in(linear_model.RidgeClassifier, NystroemClassifier, **LINEAR)
Ridge = stand_in(linear_model.Ridge, NystroemRegressor, **LINEAR)
LinearRegression = stand_in(linear_model.LinearRegression, NystroemRegressor, alpha=0.0, **LINEAR)
KernelRidge = stand_in(PeerKernelRidge, NystroemRegressor, _plan=plan)


def RidgeWithIntercept(alpha: Any = 1.0, *, fit_intercept: bool = False, **params: Any) -> Any:
    """Return scikit-learn's Ridge with an intercept, which our kernel ridge always has."""
    return linear_model.Ridge(alpha, tol=1e-12)
