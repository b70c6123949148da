"""The feature map alone, for pipelines with any linear model."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from nysplus._fit.model import Columns, adopt
from nysplus._fit.parameters import (
    AdvisingMixin,
    AlphaLike,
    ApproximationLike,
    GammaLike,
    KernelLike,
    RandomStateLike,
    SelectionLike,
    advising,
)
from nysplus._fit.pipeline import ModelSize, choose_landmarks, resolve_kernel
from nysplus._fit.plan import make_plan
from nysplus._ridge.feature_map import FeatureMap
from nysplus._rows.applying import apply_to_rows
from nysplus._rows.opening import TargetSpec, open_rows
from nysplus._rows.slicing import float_dtype, row_slices
from nysplus._runtime.checkpoint import Journal
from nysplus._runtime.progress import CallbackSupportMixin, progress_of, with_callbacks
from nysplus._runtime.threads import in_threads, one_blas_thread, using_threads
from nysplus._typing import Float
from nysplus._validation import check_rows, is_count
from nysplus.kernels import Kernel, make_kernel
from nysplus.kernels.precomputed import GramColumns, GramMatrix
from nysplus.landmarks import Landmarks, LandmarkSelector, make_selector

# Largest difference between a kernel matrix and its transpose, as a share of its largest entry:
# above the rounding errors of float32.
SYMMETRY = 1e-4


class Nystroem(
    AdvisingMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    CallbackSupportMixin,
    BaseEstimator,
):
    """Approximate a kernel feature map with few landmarks, chosen with or without labels.

    Replaces :class:`sklearn.kernel_approximation.Nystroem`: with the defaults and the same seed it
    draws the same landmarks and spans the same features. In addition it has every selector and
    every map of this library, and limits its memory by ``working_memory``.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        As for :class:`~nysplus.NystroemClassifier`. With "precomputed", X are kernel values: those
        between all N training rows, of shape (N, N), in `fit`; those between some rows and the
        training rows, of shape (n_rows, N), in `transform`. The selection is then "uniform",
        "leverage", "rpcholesky", "negative-margin" or "residual".
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
    n_jobs : int, optional
        Number of threads; -1 for all processors. By default as many as BLAS uses.
    verbose : int, default=0

    Attributes
    ----------
    components_ : ndarray or CSR matrix of shape (n, n_features)
        The landmarks.
    component_indices_ : ndarray of shape (n,) or None
        Row numbers of the landmarks; None if they are not rows of X.
    normalization_ : ndarray of shape (n_features_out, n)
        The features of X are ``k(X, components_) @ normalization_.T``. ``normalization_.T @
        normalization_`` is the pseudoinverse of the landmarks' kernel matrix, as in scikit-learn,
        whose own `normalization_` is the symmetric root of it.
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

    @advising
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
        n_jobs: int | None = None,
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
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Nystroem:
        """Choose the landmarks and build the map.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or rows outside memory
            As for :meth:`NystroemClassifier.fit`.
        y : array-like, optional
            Targets, for supervised selections. For tables and data frames also the name
            of their column.

        Returns
        -------
        self
        """
        columns = copy(self)  # which scikit-learn's validation writes to
        gram = checked_gram(columns, X) if self._is_precomputed else None
        kernel = self._make_kernel() if gram is None else GramMatrix(gram)
        selector = make_selector(self.selection)
        looks = selector.targets != "ignored" or kernel.is_tuned
        spec = TargetSpec("classes" if looks else None, required=False)
        if gram is None:
            rows = open_rows(columns, X, y, None, spec)
        else:  # the kernel finds rows by their numbers
            _check_precomputed(self, selector)
            rows = open_rows(copy(self), np.arange(gram.shape[0])[:, None], y, None, spec)
        n: Any = self.n_components
        if isinstance(n, str):
            raise ValueError(
                f"n_components={n!r} must be an integer of at least 1: Nystroem "
                "fits no model whose score could choose it. Pass a number, or use "
                "NystroemClassifier or NystroemRegressor with n_components='auto'."
            )
        plan = make_plan(self, kernel, rows.n_features, rows.dtype, rows.kind)
        rng = check_random_state(self.random_state)
        with self._threads(), progress_of(self, X, y) as progress:
            blocks, _ = rows.open(progress, Journal())
            resolved = resolve_kernel(plan, blocks, rng)
            landmarks = choose_landmarks(resolved, ModelSize(plan.n_landmarks), rng)
            feature_map = plan.approximation.build(
                resolved.problem.kernel, landmarks.points, rng, principal=True
            )
            if gram is not None:
                feature_map = _of_columns(feature_map, gram, landmarks)
            found = {"feature_map_": feature_map, "component_indices_": landmarks.indices}
            adopt(self, Columns.of(columns), **found)  # callbacks see the fitted estimator
        return self

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _make_kernel(self) -> Kernel:
        params = {"gamma": self.gamma, "coef0": self.coef0, "degree": self.degree}
        if callable(self.kernel) and not isinstance(self.kernel, Kernel):
            _refuse_parameters(params, "a kernel that is a function. Put them into kernel_params")
        return make_kernel(self.kernel, self.kernel_params, **params)

    def _threads(self) -> AbstractContextManager[None]:
        """Return a context with the number of threads that `n_jobs` asks for."""
        if self.n_jobs is None:
            return nullcontext()
        if not is_count(self.n_jobs) or self.n_jobs == 0:
            raise ValueError(
                f"n_jobs={self.n_jobs!r} must be None, a number of threads, or -1 for all "
                "processors."
            )
        return using_threads(effective_n_jobs(self.n_jobs))

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
        with self._threads():
            features: Float = apply_to_rows(self, X, partial(features_of, self.feature_map_))
        return features

    @property
    def components_(self) -> Any:
        """Landmarks of shape (n, d)."""
        return self.feature_map_.landmarks

    @property
    def normalization_(self) -> Float:
        """Matrix of shape (n_features_out, n) between kernel values and features."""
        whitening: Float = self.feature_map_.collapse(np.eye(self.feature_map_.rank))
        return whitening.T

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
        tags.input_tags.pairwise = self._is_precomputed
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


def checked_gram(estimator: Any, X: Any) -> Any:
    """Return the kernel values between all training rows, of shape (N, N), or raise."""
    gram = check_rows(estimator, X)
    if gram.shape[0] != gram.shape[1]:
        raise ValueError(
            f"kernel='precomputed' needs a square X in fit, the kernel values between all training "
            f"rows, got shape {gram.shape}."
        )
    slices = row_slices(gram.shape[0], 2 * 8 * gram.shape[0])
    difference = max(abs(gram[rows] - gram[:, rows].T).max() for rows in slices)
    if difference > SYMMETRY * abs(gram).max():
        raise ValueError(
            "kernel='precomputed' needs a symmetric X in fit, the kernel values between all "
            f"training rows; X and its transpose differ by {difference:g}."
        )
    return gram


def _refuse_parameters(params: dict[str, Any], where: str) -> None:
    given = [f"{name}={value!r}" for name, value in params.items() if value is not None]
    if given:
        raise ValueError(
            f"Don't pass gamma, coef0 or degree to Nystroem with {where}: got {', '.join(given)}."
        )


def _check_precomputed(estimator: Nystroem, selector: LandmarkSelector) -> None:
    """Raise if parameters need more than kernel values."""
    params = {name: getattr(estimator, name) for name in ("gamma", "coef0", "degree")}
    _refuse_parameters(params, "kernel='precomputed'")
    if not selector.by_kernel:
        raise ValueError(
            f"The selection {type(selector).__name__} needs the features of rows, and "
            "kernel='precomputed' has kernel values only. Use 'uniform', 'leverage', 'rpcholesky', "
            "'negative-margin' or 'residual'."
        )


def _of_columns(feature_map: FeatureMap, gram: Any, landmarks: Landmarks) -> FeatureMap:
    """Return a map of numbered rows as a map of kernel values with all training rows."""
    chosen = landmarks.indices
    assert chosen is not None
    return replace(feature_map, kernel=GramColumns(chosen), landmarks=gram[chosen])
