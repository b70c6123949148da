"""Kernel machines with few landmarks: a classifier and a regressor."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from nysplus._blocks import Blocks
from nysplus._expansion import KernelExpansion, fit_expansion
from nysplus._progress import CallbackSupportMixin, progress_of, with_callbacks
from nysplus._targets import Float, IndicatorTargets, Targets, ValueTargets
from nysplus._validation import (
    check_rows,
    check_sample_weight,
    class_weights,
    encode_labels,
    make_plan,
)
from nysplus.kernels import make_kernel


class _KernelMachine(CallbackSupportMixin, BaseEstimator):
    """What the classifier and the regressor share: fitting and evaluating the expansion."""

    def _fit_expansion(
        self,
        X: Any,
        y: Any,
        targets: Targets,
        sample_weight: Float | None,
        class_weight: Float | None = None,
    ) -> None:
        """Choose landmarks and fit; sets every fitted attribute that comes from the engine."""
        plan = make_plan(self, make_kernel(self.kernel, gamma=self.gamma), X, targets.discrete)
        rng = check_random_state(self.random_state)
        with progress_of(self, X, y) as progress:
            blocks = Blocks(X, targets, sample_weight, class_weight, progress)
            problem, landmarks = plan.choose(blocks, rng)
            fit = fit_expansion(
                blocks, landmarks.points, problem.kernel, plan.approximation, plan.alphas, rng
            )
            self.expansion_ = fit.expansion
            self.alpha_ = fit.alpha
            self.solver_ = fit.solver
            self.landmark_indices_ = landmarks.indices
            self.n_kernel_evaluations_ = landmarks.n_kernel_evaluations + fit.n_kernel_evaluations

    def _scores(self, X: Any) -> Float:
        """Return ``k(X, Z) A + b`` of shape (rows, L)."""
        check_is_fitted(self)
        expansion: KernelExpansion = self.expansion_
        return expansion(check_rows(self, X, reset=False))

    @property
    def landmarks_(self) -> Any:
        """Landmarks Z of shape (n, d)."""
        return self.expansion_.landmarks

    @property
    def dual_coef_(self) -> Float:
        """Coefficients A of shape (n, n_outputs)."""
        coefficients: Float = self.expansion_.dual_coef
        return coefficients

    @property
    def intercept_(self) -> Float:
        """Intercepts b of shape (n_outputs,)."""
        intercepts: Float = self.expansion_.intercept
        return intercepts

    @property
    def gamma_(self) -> float | None:
        """The kernel's gamma as a number; None for kernels without one."""
        gamma: float | None = getattr(self.expansion_.kernel, "gamma", None)
        return gamma

    @property
    def model_bytes_(self) -> int:
        """Bytes of the landmarks, coefficients and intercepts."""
        n_bytes: int = self.expansion_.n_bytes
        return n_bytes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class NystroemClassifier(ClassifierMixin, _KernelMachine):
    """Kernel classifier that compares an input with few landmarks.

    One-vs-rest kernel ridge regression restricted to the span of ``n_components`` landmarks,
    which are chosen with the labels: Algorithm 1 of Al, Chanyaswad and Kung (2018) [1]_.

    Parameters
    ----------
    n_components : int, default=100
        Number of landmarks, the paper's n_f. Model size and prediction time grow with it.
    kernel : str, Kernel or callable, default="rbf"
        A name ("additive_chi2", "chi2", "cosine", "laplacian", "linear", "matern", "poly",
        "polynomial", "rbf", "sigmoid"), an object of :mod:`nysplus.kernels`, or a function of
        two rows. An object has its own parameters; leave `gamma` alone then.
    gamma : "scale", "median", None or float, default="scale"
        Width of a named kernel. "scale": ``1 / (n_features * X.var())``; "median": from the
        median distance of rows; None: scikit-learn's default for its kernel functions.
    selection : str, LandmarkSelector or array, default="auto"
        "uniform", "kmeans", "negative-margin", "supervised-kmeans", "support-centroids", an
        object of :mod:`nysplus.landmarks`, or the landmarks themselves, a row each. "auto" is
        "negative-margin".
    approximation : str or map object, default="standard"
        "standard", "randomized", "ensemble", or a :class:`~nysplus.StandardMap`,
        :class:`~nysplus.RandomizedMap` or :class:`~nysplus.EnsembleMap` with its own knobs.
    alpha : "auto", float or sequence of floats, default="auto"
        Ridge, the paper's ρ, on the scale of scikit-learn's ``Ridge``. From a sequence, or from
        1e-7 to 1e3 with "auto", the largest one is taken whose closed-form leave-one-out
        accuracy, on at most 10000 rows, is within a quarter standard error of the best.
    class_weight : dict, "balanced" or None, default=None
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1: a live line on a terminal; 2: also a line per pass where output is a file or a pipe.

    Attributes
    ----------
    classes_ : ndarray
        The classes; the label numbers in multilabel problems.
    landmarks_ : ndarray or CSR matrix of shape (n, n_features)
    landmark_indices_ : ndarray of shape (n,) or None
        Row numbers of the landmarks, where they are rows.
    dual_coef_ : ndarray of shape (n, n_outputs)
        One output for two classes, one per class otherwise.
    intercept_ : ndarray of shape (n_outputs,)
    alpha_, gamma_ : float
        The ridge and the width that were used.
    solver_ : str
        How the ridge problem was solved: "direct-float64", "direct-float32", "gram-float64",
        "iterative-float64" or "iterative-float32". All give the same model.
    expansion_ : KernelExpansion
        The fitted function.
    model_bytes_ : int
    n_kernel_evaluations_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    sklearn.kernel_approximation.Nystroem : With ``selection="uniform"`` and a numeric `alpha`
        this class equals it followed by ``RidgeClassifier``, for the same `random_state`.

    Notes
    -----
    O(N n (d + n)) time in one pass per stage (and part of a second one where α is chosen), O(n²)
    memory beside the blocks, whose size follows scikit-learn's ``working_memory``. float64
    throughout, except that float32 rows are processed in float32 where the spectrum of the kernel
    matrix allows it. With thousands of landmarks and many more rows, an iterative solver avoids
    the n² for every row. Passes use as many threads as BLAS may: ``OMP_NUM_THREADS`` and
    ``threadpoolctl`` limits hold.

    References
    ----------
    .. [1] M. Al, T. Chanyaswad, S.-Y. Kung, "Supervising Nyström Methods via Negative Margin
       Support Vector Selection", arXiv:1805.04018, 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from nysplus import NystroemClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = NystroemClassifier(n_components=200, random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.97
    True
    """

    def __init__(
        self,
        n_components: int = 100,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        selection: Any = "auto",
        approximation: Any = "standard",
        alpha: Any = "auto",
        class_weight: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.selection = selection
        self.approximation = approximation
        self.alpha = alpha
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NystroemClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), or a 0/1 indicator of shape (n_rows, n_labels)
        sample_weight : array-like of shape (n_rows,), optional
            A weight of two equals a repeated row; rows of weight zero are left out.

        Returns
        -------
        self
        """
        X, y = check_rows(self, X, y, multi_output=True)
        sample_weight = check_sample_weight(sample_weight, X)
        self.classes_, targets = encode_labels(y, sample_weight)
        factors = class_weights(self.class_weight, self.classes_, targets, sample_weight)
        self._multilabel = isinstance(targets, IndicatorTargets)
        self._fit_expansion(X, y, targets, sample_weight, factors)
        return self

    def decision_function(self, X: Any) -> Float:
        """Return the scores ``k(X, Z) A + b``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,) for two classes, else (n_rows, n_outputs)
            Positive where the class (the second of two) is predicted against the rest.
        """
        scores = self._scores(X)
        return scores.ravel() if len(self.classes_) == 2 and not self._multilabel else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of the highest score, or the 0/1 indicator of the positive ones.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,), or (n_rows, n_labels) in multilabel problems
        """
        scores = self._scores(X)
        if self._multilabel:
            return (scores > 0).astype(int)
        codes = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
        predicted: npt.NDArray[Any] = self.classes_[codes]
        return predicted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class NystroemRegressor(RegressorMixin, MultiOutputMixin, _KernelMachine):
    """Kernel ridge regression restricted to the span of few landmarks.

    Parameters
    ----------
    n_components : int, default=100
        Number of landmarks. Model size and prediction time grow with it.
    kernel : str, Kernel or callable, default="rbf"
        As for :class:`NystroemClassifier`.
    gamma : "scale", "median", None or float, default="scale"
        As for :class:`NystroemClassifier`.
    selection : str, LandmarkSelector or array, default="auto"
        "uniform", "kmeans", an object of :mod:`nysplus.landmarks`, or the landmarks themselves.
        "auto" is "uniform".
    approximation : str or map object, default="standard"
        As for :class:`NystroemClassifier`.
    alpha : "auto", float or sequence of floats, default="auto"
        Ridge, on the scale of scikit-learn's ``Ridge``. From a sequence, or from 1e-7 to 1e3
        with "auto", the one of smallest generalized cross-validation error is taken.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1: a live line on a terminal; 2: also a line per pass where output is a file or a pipe.

    Attributes
    ----------
    landmarks_ : ndarray or CSR matrix of shape (n, n_features)
    landmark_indices_ : ndarray of shape (n,) or None
    dual_coef_ : ndarray of shape (n, n_outputs)
    intercept_ : ndarray of shape (n_outputs,)
    alpha_, gamma_ : float
    solver_ : str
    expansion_ : KernelExpansion
    model_bytes_ : int
    n_kernel_evaluations_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    With all rows as landmarks this is exact kernel ridge regression with an unpenalised
    intercept; with a linear kernel and enough landmarks it is scikit-learn's ``Ridge``.

    Examples
    --------
    >>> import numpy as np
    >>> from nysplus import NystroemRegressor
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> model = NystroemRegressor(n_components=20, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> round(float(model.predict([[np.pi / 2]])[0]), 2)
    1.0
    """

    def __init__(
        self,
        n_components: int = 100,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        selection: Any = "auto",
        approximation: Any = "standard",
        alpha: Any = "auto",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.selection = selection
        self.approximation = approximation
        self.alpha = alpha
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NystroemRegressor:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        sample_weight : array-like of shape (n_rows,), optional
            A weight of two equals a repeated row; rows of weight zero are left out.

        Returns
        -------
        self
        """
        X, y = check_rows(self, X, y, multi_output=True, y_numeric=True)
        sample_weight = check_sample_weight(sample_weight, X)
        Y = np.asarray(y, dtype=np.float64)
        self._single_output = Y.ndim == 1
        self._fit_expansion(X, y, ValueTargets(Y.reshape(len(Y), -1)), sample_weight)
        return self

    def predict(self, X: Any) -> Float:
        """Return the predicted values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs), as `y` was
        """
        scores = self._scores(X)
        return scores.ravel() if self._single_output else scores
