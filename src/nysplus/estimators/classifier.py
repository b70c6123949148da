"""The classifier: parameters, documentation, predictions."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if

from nysplus._fit.model import FittedModel
from nysplus._learning.refine import Refinement
from nysplus._rows.opening import TargetSpec
from nysplus._rows.target_codes import ClassCode, TargetCode
from nysplus._runtime.progress import with_callbacks
from nysplus._typing import Float
from nysplus.estimators.base import (
    AlphaLike,
    ApproximationLike,
    CheckpointLike,
    GammaLike,
    KernelLike,
    KernelMachine,
    MetricLike,
    RandomStateLike,
    SelectionLike,
    sums_rows,
)
from nysplus.persistence import loadable


@loadable
class NystroemClassifier(KernelMachine, ClassifierMixin, BaseEstimator):
    """Kernel classifier that compares an input with few landmarks.

    One-vs-rest kernel ridge regression restricted to the span of ``n_components`` landmarks,
    which are chosen with the labels, after Al, Chanyaswad and Kung (2018) [1]_.

    Parameters
    ----------
    n_components : int, default=100
        Number of landmarks, the paper's n_f. Model size and prediction time grow with it.
    kernel : str, Kernel or callable, default="rbf"
        A name ("additive_chi2", "chi2", "cosine", "laplacian", "linear", "matern", "poly",
        "polynomial", "rbf", "sigmoid"), an object of :mod:`nysplus.kernels`, or a function of
        two rows. An object has its own parameters; leave `gamma` alone then.
    gamma : "scale", "median", "auto", None or float, default="scale"
        Width of a named kernel. "scale": ``1 / (n_features * X.var())``; "median": from the
        median distance of rows; "auto": of nine widths about "scale" the one of highest
        leave-one-out accuracy, on at most 2000 rows with landmarks made from others; None:
        scikit-learn's default for its kernel functions.
    selection : str, LandmarkSelector or array, default="auto"
        "auto", "class-centroids", "kmeans", "leverage", "negative-margin", "residual",
        "rpcholesky", "supervised-kmeans", "support-centroids", "uniform", an object of
        :mod:`nysplus.landmarks`, or the landmarks themselves, a row each. "auto" makes centroids
        of each class and needs no knobs; "negative-margin" is the paper's rule.
    approximation : str or map object, default="standard"
        "standard", "randomized", "ensemble", or a :class:`~nysplus.StandardMap`,
        :class:`~nysplus.RandomizedMap` or :class:`~nysplus.EnsembleMap` with its own knobs.
    alpha : "auto", float or sequence of floats, default="auto"
        Ridge, the paper's ρ, on the scale of scikit-learn's ``Ridge``. From a sequence, or from
        1e-7 to 1e3 with "auto", the largest one is taken whose closed-form leave-one-out
        accuracy, on at most 10000 rows, is within a quarter standard error of the best.
    refine : bool or Refinement, default=False
        Learn the landmarks, the coefficients and a linear map of the features after the fit, by
        gradient steps on cross-entropy (RBF, or Matern with nu=1.5 or 2.5). Everything is chosen
        on held-out rows, and the unrefined model stays where learning does not help: `refined_`
        tells. `alpha_` and `solver_` are those of the unrefined model.
    budget : None, str or int, default=None
        Bytes that the model may take: "16kB", "1.5MB" (1 kB is 1024 bytes), or a number. The
        number of landmarks, at most 2000, the type of the stored numbers (float32, float16, or
        int8 with a scale for each column) and with `refine` the columns of the map are chosen on
        held-out rows; `n_components` does not count. `model_bytes_` tells what is taken.
    metric : None, "diagonal", "full", int or LearnedMetric, default=None
        Learn before the fit how much each feature counts ("diagonal"), any linear map of the
        features ("full"), or a map to so many directions, from the gradients of a first model on
        a sample of the rows. The width is then chosen with it, and `gamma` does not count.
    class_weight : dict, "balanced" or None, default=None
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1: a live line on a terminal; 2: also a line per pass where output is a file or a pipe.

    Attributes
    ----------
    classes_ : ndarray
        The classes; the label numbers in multilabel problems.
    landmarks_ : ndarray or CSR matrix of shape (n, n_features)
        Of shape (n, r) behind a learned map.
    projection_ : ndarray of shape (n_features, r) or None
        The learned map.
    landmark_indices_ : ndarray of shape (n,) or None
        Row numbers of the landmarks, where they are rows.
    dual_coef_ : ndarray of shape (n, n_outputs)
        One output for two classes, one per class otherwise.
    intercept_ : ndarray of shape (n_outputs,)
    alpha_, gamma_ : float
        The ridge and the width that were used.
    refined_ : bool
        Whether learning has made the model better; not after `partial_fit`.
    solver_ : str
        How the ridge problem was solved: "direct-float64", "direct-float32", "gram-float64",
        "iterative-float64" or "iterative-float32". All give the same model.
    expansion_ : KernelExpansion
        The fitted function.
    model_bytes_ : int
    n_kernel_evaluations_ : int
    n_passes_ : int
        How often all rows were read; not after `partial_fit`.
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

    _kind = "classes"

    def __init__(
        self,
        n_components: int = 100,
        *,
        kernel: KernelLike = "rbf",
        gamma: GammaLike = "scale",
        selection: SelectionLike = "auto",
        approximation: ApproximationLike = "standard",
        alpha: AlphaLike = "auto",
        refine: bool | Refinement = False,
        budget: int | str | None = None,
        metric: MetricLike = None,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        random_state: RandomStateLike = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.selection = selection
        self.approximation = approximation
        self.alpha = alpha
        self.refine = refine
        self.budget = budget
        self.metric = metric
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    def _target_spec(self, code: TargetCode | None = None, several: bool = True) -> TargetSpec:
        return TargetSpec(self._kind, self.class_weight, code, several=several)

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes; the label numbers in multilabel problems."""
        return self._model.code.classes

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        checkpoint: CheckpointLike | None = None,
    ) -> NystroemClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or rows from elsewhere
            A memory map; a Parquet, Arrow, CSV or libsvm file or a folder of them; a
            ``pyarrow`` table or dataset; an iterable of blocks ``(X, y)`` or ``(X, y,
            sample_weight)`` that can be iterated again; a Dask array, data frame or list of
            delayed blocks.
        y : array-like of shape (n_rows,), or a 0/1 indicator of shape (n_rows, n_labels)
            The name of the column (or columns) in tables; None for libsvm files and blocks.
        sample_weight : array-like of shape (n_rows,), optional
            A weight of two equals a repeated row; rows of weight zero are left out. The name of
            the column in tables.
        checkpoint : path or Checkpoint, optional
            A file that keeps what the fit has summed up so far. If the fit is killed, the same
            call goes on from there and ends with the same model.

        Returns
        -------
        self
        """
        self._fit(X, y, sample_weight, checkpoint)
        return self

    @available_if(sums_rows)
    @with_callbacks
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> NystroemClassifier:
        """Fit to more rows; the landmarks are those of the first call.

        Ends with the model that `fit` finds on all rows together for the same landmarks and
        ridge. The kernel width, the landmarks and the ridge come from the first block: give them
        (``gamma``, ``selection`` as an array, ``alpha``) where that is not typical, or `fit` on a
        typical sample first, which the model then forgets but for these three. `retune` chooses
        the ridge again.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : array-like of shape (n_classes,)
            All classes that may ever occur; needed in the first call, not with label indicators.

        Returns
        -------
        self
        """
        self._partial_fit(X, y, sample_weight, self._code_so_far(classes))
        return self

    def _code_so_far(self, classes: Any) -> TargetCode | None:
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs to see all rows first, which partial_fit does not. "
                "Pass the weights as a dict."
            )
        model = self._fitted()
        known = None if model is None else model.code
        if classes is None:
            return known
        code = ClassCode(np.unique(classes))
        if known is not None and known.kind == "classes" and not known.same(code):
            raise ValueError(
                f"classes={code.classes.tolist()[:10]} is not the same as in the first call to "
                f"partial_fit, {known.classes.tolist()[:10]}."
            )
        return code

    def decision_function(self, X: Any) -> Float:
        """Return the scores ``k(X, Z) A + b``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or rows from elsewhere

        Returns
        -------
        ndarray of shape (n_rows,) for two classes, else (n_rows, n_outputs)
            Positive where the class (the second of two) is predicted against the rest. For Dask
            collections a lazy one.
        """
        scores: Float = self._apply(X, FittedModel.decision)
        return scores

    def predict_proba(self, X: Any) -> Float:
        """Return the probability of each class, or of each label in multilabel problems.

        ``softmax(β f)`` of the scores f, with the β that suits the leave-one-out scores of the
        training rows best, or those of held-out rows after `refine`; no model is fitted for it.
        The class of the highest probability is the one that `predict` returns. After `partial_fit`
        β suits the rows of the latest call, and `retune` and `merge`, which see no rows, leave it
        as it is.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or rows from elsewhere

        Returns
        -------
        ndarray of shape (n_rows, n_classes), or (n_rows, n_labels)
            For Dask collections a lazy one.
        """
        probabilities: Float = self._apply(X, FittedModel.probabilities)
        return probabilities

    def predict_log_proba(self, X: Any) -> Float:
        """Return the logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or rows from elsewhere

        Returns
        -------
        ndarray of shape (n_rows, n_classes), or (n_rows, n_labels)
        """
        with np.errstate(divide="ignore"):
            logarithms: Float = np.log(self.predict_proba(X))
        return logarithms

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of the highest score, or the 0/1 indicator of the positive ones.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or rows from elsewhere
            As for `fit`; targets that come along are not looked at.

        Returns
        -------
        ndarray of shape (n_rows,), or (n_rows, n_labels) in multilabel problems
            For Dask collections a lazy one.
        """
        labels: npt.NDArray[Any] = self._apply(X, FittedModel.predict)
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
