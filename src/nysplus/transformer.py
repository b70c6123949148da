"""The feature map alone, for pipelines with any linear model."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from nysplus._fit.model import Columns, adopt
from nysplus._fit.parameters import (
    AlphaLike,
    ApproximationLike,
    GammaLike,
    KernelLike,
    RandomStateLike,
    SelectionLike,
)
from nysplus._fit.pipeline import ModelSize, choose_landmarks, resolve_kernel
from nysplus._fit.plan import make_plan
from nysplus._ridge.feature_map import FeatureMap
from nysplus._rows.applying import apply_to_rows
from nysplus._rows.opening import TargetSpec, open_rows
from nysplus._rows.slicing import float_dtype, row_slices
from nysplus._runtime.checkpoint import Journal
from nysplus._runtime.progress import CallbackSupportMixin, progress_of, with_callbacks
from nysplus._runtime.threads import in_threads, one_blas_thread
from nysplus._typing import Float
from nysplus.kernels import make_kernel
from nysplus.landmarks import make_selector


class Nystroem(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupportMixin, BaseEstimator
):
    """Approximate a kernel feature map with few landmarks, chosen with or without labels.

    Replaces :class:`sklearn.kernel_approximation.Nystroem`: with the defaults and the same seed it
    draws the same landmarks and spans the same features. In addition it has every selector and
    every map of this library, accepts CSR input, and limits its memory by ``working_memory``.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        As for :class:`~nysplus.NystroemClassifier`.
    gamma : "scale", "median", "auto", None or float, default=None
        Width of a named kernel; None, as in scikit-learn, is ``1 / n_features`` (1 for "chi2").
        "auto" chooses it by `y`.
    coef0, degree : float, optional
        Of the polynomial and sigmoid kernels.
    kernel_params : dict, optional
        Keyword arguments of a kernel that is a function.
    n_components : int, default=100
        Number of landmarks.
    selection : str, LandmarkSelector or array, default="uniform"
        As for :class:`~nysplus.NystroemClassifier`. Supervised rules take the targets from `y`.
    approximation : str or map object, default="standard"
        As for :class:`~nysplus.NystroemClassifier`.
    alpha : "auto", float or sequence of floats, default="auto"
        Ridge of the pilot model of supervised selections; ignored by the others.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0

    Attributes
    ----------
    components_ : ndarray or CSR matrix of shape (n, n_features)
        The landmarks.
    component_indices_ : ndarray of shape (n,) or None
        Row numbers of the landmarks; None if they are not rows of X.
    feature_map_ : FeatureMap
    gamma_ : float or None
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    Features are the whitened kernel principal components ``Σ^{-1/2} Uᵀ k(Z, x)``, strongest
    first. Their number is the rank of the landmarks' kernel matrix, which is less than
    `n_components` if landmarks repeat each other.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import SGDClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from nysplus import Nystroem
    >>> X, y = load_digits(return_X_y=True)
    >>> features = Nystroem(gamma=0.001, selection="negative-margin", random_state=0)
    >>> model = make_pipeline(features, SGDClassifier(random_state=0)).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        kernel: KernelLike = "rbf",
        *,
        gamma: GammaLike = None,
        coef0: float | None = None,
        degree: float | None = None,
        kernel_params: dict[str, Any] | None = None,
        n_components: int = 100,
        selection: SelectionLike = "uniform",
        approximation: ApproximationLike = "standard",
        alpha: AlphaLike = "auto",
        random_state: RandomStateLike = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.kernel_params = kernel_params
        self.n_components = n_components
        self.selection = selection
        self.approximation = approximation
        self.alpha = alpha
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Nystroem:
        """Choose the landmarks and build the map.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or rows outside memory
            As for :meth:`NystroemClassifier.fit`.
        y : array-like, optional
            Targets, for supervised selections. For tables, the name of their column.

        Returns
        -------
        self
        """
        kernel = make_kernel(
            self.kernel, self.kernel_params, gamma=self.gamma, coef0=self.coef0, degree=self.degree
        )
        selector = make_selector(self.selection)
        looks = selector.targets != "ignored" or kernel.is_tuned
        spec = TargetSpec("classes" if looks else None, required=False)
        columns = copy(self)  # which scikit-learn's validation writes to
        rows = open_rows(columns, X, y, None, spec)
        plan = make_plan(self, kernel, rows.n_features, rows.dtype, rows.kind)
        rng = check_random_state(self.random_state)
        with progress_of(self, X, y) as progress:
            blocks, _ = rows.open(progress, Journal())
            resolved = resolve_kernel(plan, blocks, rng)
            landmarks = choose_landmarks(resolved, ModelSize(plan.n_landmarks), rng)
            feature_map = plan.approximation.build(
                resolved.problem.kernel, landmarks.points, rng, principal=True
            )
            found = {"feature_map_": feature_map, "component_indices_": landmarks.indices}
            adopt(self, Columns.of(columns), **found)  # callbacks see the fitted estimator
        return self

    def transform(self, X: Any) -> Float:
        """Return the features of some rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_features_out), float32 for float32 rows, else float64
        """
        check_is_fitted(self)
        features: Float = apply_to_rows(self, X, partial(features_of, self.feature_map_))
        return features

    @property
    def components_(self) -> Any:
        """Landmarks of shape (n, d)."""
        return self.feature_map_.landmarks

    @property
    def gamma_(self) -> float | None:
        """The kernel's gamma as a number; None for kernels without one."""
        gamma: float | None = getattr(self.feature_map_.kernel, "gamma", None)
        return gamma

    @property
    def _n_features_out(self) -> int:
        rank: int = self.feature_map_.rank
        return rank

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def features_of(feature_map: FeatureMap, X: Any) -> Float:
    """Return the features of checked rows, block by block."""
    dtype = float_dtype(X.dtype)
    working = dtype if feature_map.allows_float32 else np.dtype(np.float64)
    features = np.empty((X.shape[0], feature_map.rank), dtype=dtype)
    evaluate = feature_map.features(working)
    slices = row_slices(X.shape[0], 8 * (2 * X.shape[1] + feature_map.n_landmarks))
    parts = in_threads(lambda rows: evaluate(X[rows]), slices)
    with one_blas_thread():  # a single block too: rows have the same features in every thread
        for rows, part in zip(slices, parts, strict=True):
            features[rows] = part
    return features
