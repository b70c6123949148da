"""The classifier: parameters, documentation, predictions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if

from nysplus._fit.model import NO_PROBABILITIES, FittedModel
from nysplus._fit.parameters import (
    AlphaLike,
    ApproximationLike,
    CheckpointLike,
    EncoderLike,
    GammaLike,
    KernelLike,
    MetricLike,
    RandomStateLike,
    SelectionLike,
    advising,
)
from nysplus._learning.refinement import Refinement
from nysplus._rows.opening import TargetSpec
from nysplus._rows.target_codes import ClassCode, TargetCode
from nysplus._runtime.progress import with_callbacks
from nysplus._typing import Float
from nysplus.estimators.base import KernelMachine, sums_rows
from nysplus.estimators.trust import masked
from nysplus.persistence import loadable


def has_probabilities(estimator: NystroemClassifier) -> bool:
    """Return whether scores turn into probabilities; raise to say why not."""
    model = estimator._fitted()
    if model is not None and model.scaling is None:
        raise AttributeError(NO_PROBABILITIES)
    return True


@loadable
class NystroemClassifier(KernelMachine, ClassifierMixin, BaseEstimator):
    """Kernel classifier that compares an input with few landmarks.

    One-vs-rest kernel ridge regression restricted to the span of ``n_components`` landmarks,
    which are chosen with the labels. Follows Al, Chanyaswad and Kung (2018) [1]_.

    Parameters
    ----------
    n_components : int or "auto", default=100
        Number of landmarks, the paper's n_f. Model size and prediction time grow with it. "auto"
        doubles it from 50 on, and takes the number that no larger one exceeds by more than a
        standard error on held-out rows; it stops after two larger numbers that do not. The models
        that are compared are fitted to at most 20,000 rows. The largest number is half the rows up
        to 500, then an eighth of the rows up to 2000. With a `budget`, or with landmarks given as
        `selection`, "auto" has no effect. With an `encoder` and `refine`, a table has at least 250
        landmarks, or half its rows, because learned landmarks gain from more of them.
    kernel : str, Kernel or callable, default="rbf"
        A name ("additive_chi2", "chi2", "cosine", "laplacian", "linear", "matern", "poly",
        "polynomial", "rbf", "sigmoid"), an object of :mod:`nysplus.kernels`, or a function of
        two rows. An object has its own parameters; `gamma` must then keep its default. "auto"
        chooses by leave-one-out on a few thousand rows: for tables between standardised columns
        and the thermometer code, whose RBF kernel is one of the ℓ1 distance, and three widths of
        each; for other rows between "rbf" and "laplacian" and nine widths of each, or only the
        widths of "rbf" where landmarks are learned.
    gamma : "scale", "median", "auto", None or float, default="scale"
        Width of a named kernel. "scale": ``1 / (n_features * X.var())``. "median": from the
        median distance between rows. "auto": the best of nine widths around "scale" by
        leave-one-out accuracy on at most 2000 rows. None: scikit-learn's default for its kernel
        functions.
    selection : str, LandmarkSelector or array, default="auto"
        "auto", "class-centroids", "kmeans", "leverage", "negative-margin", "residual",
        "rpcholesky", "supervised-kmeans", "support-centroids", "uniform", an object of
        :mod:`nysplus.landmarks`, or an array with one landmark per row. "auto" uses centroids of
        each class and has nothing to tune; "negative-margin" is the paper's rule.
    approximation : str or map object, default="standard"
        "standard", "randomized", "ensemble", or a :class:`~nysplus.StandardMap`,
        :class:`~nysplus.RandomizedMap` or :class:`~nysplus.EnsembleMap` object.
    alpha : "auto", float or sequence of floats, default="auto"
        Ridge penalty, the paper's ρ, on the scale of scikit-learn's ``Ridge``. Given a sequence,
        or "auto" for 1e-7 to 1e3, the fit takes the largest value whose closed-form leave-one-out
        accuracy is within a quarter standard error of the best, on at most 10000 rows and up to
        20 rows more of each rare class. Values that give up a class which others within a standard
        error find are not compared.
    refine : bool or Refinement, default=False
        Learn the landmarks, the coefficients and a linear map of the features after the fit, by
        gradient descent on the cross-entropy (kernels RBF, and Matern with nu=1.5 or 2.5). The
        learned model is kept only if it is better on held-out rows, which `refined_` reports.
        `alpha_` and `solver_` are those of the unrefined model.
    budget : None, str or int, default=None
        Largest size of the model: "16kB", "1.5MB" (1 kB is 1024 bytes), or a number of bytes. The
        number of landmarks (at most 2000), the type of the stored numbers (float32, float16, or
        integers of 3 to 8 bits with a scale per column) and, with `refine`, the rank of the map
        follow from the bytes, the features and held-out rows; refined models are trained in the
        bits that they are stored in. `n_components` is ignored. With an encoder of tables a linear
        function of the code, which needs no landmarks, is compared as well, down to a few hundred
        bytes: columns that contribute least are left out. The size reached is in `model_bytes_`.
    metric : None, "diagonal", "full", int or LearnedMetric, default=None
        Learn a weight per feature ("diagonal"), a linear map of the features ("full"), or a map
        to the given number of directions (an integer) before the fit, from the gradients of a
        pilot model on a sample of the rows. The kernel's width is chosen with it, and `gamma` is
        ignored.
    encoder : None, "auto", TableEncoder or ImageEncoder, default=None
        None: X has numbers, which the kernel compares as they are. "auto", or a
        :class:`~nysplus.encoding.TableEncoder` with choices of its own: X is a table as it comes,
        with numbers on any scale, categories, gaps and dates, and its encoding is part of the
        model. Whether numbers are standardised or get a thermometer code is chosen by
        leave-one-out, and with `refine` on held-out rows. Sparse rows are used as they are. An
        :class:`~nysplus.encoding.ImageEncoder`: rows are images, of which the kernel compares the
        first cosines.
    class_weight : dict, "balanced" or None, default=None
        Weight of each class, as in scikit-learn.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1: a live progress line on a terminal. 2: also one line per pass if the output is a file
        or a pipe.

    Attributes
    ----------
    classes_ : ndarray
        The classes; the label numbers in multilabel problems.
    landmarks_ : ndarray or CSR matrix of shape (n, n_features)
        Of shape (n, r) behind a learned map.
    projection_ : ndarray of shape (n_features, r) or None
        The learned map.
    landmark_indices_ : ndarray of shape (n,) or None
        Row numbers of the landmarks; None if they are not rows of X.
    dual_coef_ : ndarray of shape (n, n_outputs)
        One output for two classes, one per class otherwise.
    intercept_ : ndarray of shape (n_outputs,)
    alpha_, gamma_ : float
        Ridge and kernel width of the fit.
    refined_ : bool
        Whether the learned model was kept. Not set by `partial_fit`.
    solver_ : str
        Solver of the ridge problem: "direct-float64", "direct-float32", "gram-float64",
        "iterative-float64" or "iterative-float32". All give the same model.
    expansion_ : KernelExpansion
        The fitted function.
    model_bytes_ : int
    n_kernel_evaluations_ : int
    n_passes_ : int
        Number of passes over all rows. Not set by `partial_fit`.
    report_ : FitReport
        What the fit has compared and chosen; see `fit_report`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    sklearn.kernel_approximation.Nystroem : With ``selection="uniform"`` and a numeric `alpha`
        this class equals it followed by ``RidgeClassifier``, for the same `random_state`.

    Notes
    -----
    O(N n (d + n)) time, one pass per stage and part of a second pass if α is chosen; O(n²) memory
    beside the blocks of rows, whose size follows scikit-learn's ``working_memory``. Computations
    are in float64, except that float32 rows are processed in float32 where the spectrum of the
    kernel matrix allows it. With thousands of landmarks and many more rows, an iterative solver
    avoids the cost of n² per row. Passes use as many threads as BLAS, limited by
    ``OMP_NUM_THREADS`` and ``threadpoolctl``.

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

    @advising
    def __init__(
        self,
        n_components: int | str = 100,
        *,
        kernel: KernelLike = "rbf",
        gamma: GammaLike = "scale",
        selection: SelectionLike = "auto",
        approximation: ApproximationLike = "standard",
        alpha: AlphaLike = "auto",
        refine: bool | Refinement = False,
        budget: int | str | None = None,
        metric: MetricLike = None,
        encoder: EncoderLike = None,
        class_weight: dict[Any, float] | str | None = None,
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
        self.encoder = encoder
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    def _target_spec(self) -> TargetSpec:
        return TargetSpec(self._kind, self.class_weight)

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

        A warning names the classes that the model predicts for none of their own rows. All rows
        are looked at if they are in memory and at least 200; of rows outside memory, those that
        were drawn to choose `alpha`, unless there is a `metric`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or rows outside memory
            Arrays include pandas and polars data frames; lazy frames of polars are collected. Rows
            outside memory are a memory map; a Parquet, Arrow, CSV or libsvm file or a folder of
            files; a ``pyarrow`` table or dataset; an iterable of blocks ``(X, y)`` or ``(X, y,
            sample_weight)`` that can be iterated repeatedly; a Dask array, data frame or list of
            delayed blocks.
        y : array-like of shape (n_rows,), or a 0/1 indicator of shape (n_rows, n_labels)
            For tables and data frames also the name of the column or columns. None for libsvm files
            and blocks.
        sample_weight : array-like of shape (n_rows,), optional
            A weight of two equals a repeated row; rows of weight zero are ignored. For tables
            and data frames also the name of the column.
        checkpoint : path or Checkpoint, optional
            File that records the progress of the fit. After a kill the same call resumes from
            it and ends with the same model.

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
        """Fit to more rows; the landmarks are those of the first rows.

        After all calls the model is the one that `fit` finds on all rows for the same landmarks
        and ridge. The kernel width, the landmarks and the ridge come from the first call with
        `n_components` rows or more. Rows of smaller calls before are collected, until they are
        `n_components` together: the model is then the one of a single call with all of them. If
        the first rows are not typical, set ``gamma``, ``selection`` (an array) and ``alpha``, or
        `fit` on a typical sample first: these three are kept, its rows are not. `retune` chooses
        the ridge again. Rows of weight zero are ignored. With an `encoder`, columns, knots and
        levels are those of the first call.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : array-like of shape (n_classes,)
            All classes that may ever occur. Required in the first call, except for label
            indicators.

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
        X : array-like or sparse matrix of shape (n_rows, n_features), or rows outside memory

        Returns
        -------
        ndarray of shape (n_rows,) for two classes, else (n_rows, n_outputs)
            Positive where the class (the second of two) is predicted. Lazy for Dask collections.
        """
        scores: Float = self._apply(X, FittedModel.decision)
        return scores

    @available_if(has_probabilities)
    def predict_proba(self, X: Any) -> Float:
        """Return the probability of each class, or of each label in multilabel problems.

        ``softmax(β f)`` of the scores f. β maximises the likelihood of the leave-one-out scores of
        the training rows, or of the scores of held-out rows after `refine`; no other model is
        fitted. The class of the highest probability is the one that `predict` returns.
        `partial_fit` sets β from the rows of the latest call; `retune` and `merge` do not change
        it. A model of `from_svc` has probabilities if it was given rows to calibrate them with,
        or if the imported model is a ``LogisticRegression``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or rows outside memory

        Returns
        -------
        ndarray of shape (n_rows, n_classes), or (n_rows, n_labels)
            Lazy for Dask collections.
        """
        probabilities: Float = self._apply(X, FittedModel.probabilities)
        return probabilities

    @available_if(has_probabilities)
    def predict_log_proba(self, X: Any) -> Float:
        """Return the logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or rows outside memory

        Returns
        -------
        ndarray of shape (n_rows, n_classes), or (n_rows, n_labels)
        """
        with np.errstate(divide="ignore"):
            logarithms: Float = np.log(self.predict_proba(X))
        return logarithms

    def predict_set(self, X: Any, confidence: float = 0.9) -> npt.NDArray[np.bool_]:
        """Return a set of classes for each row, which has the true one with a given probability.

        The set has the classes whose probability is at least a bound: one minus the conformal
        quantile of ``1 − p`` of the true class, over rows that the model was not fitted to (see
        :mod:`nysplus.conformal`). After `fit` these are leave-one-out scores, or scores of the
        rows that a search for the size or `refine` has held out. The coverage is then approximate;
        `calibrate` with rows of their own makes it exact for rows of the same distribution.

        A set may be empty: no class is as probable as true classes usually are. If the accuracy
        is above `confidence`, some sets have to be.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or rows outside memory
        confidence : float, default=0.9
            Share of rows whose set has the true class, between 0 and 1. Bounds are kept for
            multiples of .01 from .5 on, of .05 below, of .001 above .99, and for .9999; other
            numbers are raised to the next of these.

        Returns
        -------
        ndarray of bool of shape (n_rows, n_classes)
            Columns in the order of `classes_`. Lazy for Dask collections.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from nysplus import NystroemClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = NystroemClassifier(10, random_state=0).fit(X, y)
        >>> model.predict_set(X[:2], confidence=0.95).tolist()
        [[True, False, False], [True, False, False]]
        """
        bounds = self._bounds(confidence, "predict_set")
        sets: npt.NDArray[np.bool_] = self._apply(
            X, partial(FittedModel.prediction_sets, bounds=bounds)
        )
        return sets

    def calibrate(self, X: Any, y: Any = None, *, class_conditional: bool = False) -> Any:
        """Take prediction sets and novelty from rows of their own.

        If the rows come from the distribution of the rows to be predicted, and the model was not
        fitted to them, the sets of `predict_set` have the true class with at least the given
        probability, whatever the distribution and the model.

        Parameters
        ----------
        X, y
            As for `fit`; ``c / (1 − c)`` rows or more for a confidence c. At most 50,000 are used.
        class_conditional : bool, default=False
            Whether each class has a bound of its own, so that the probability holds for the rows
            of each class separately. Every class needs as many rows.

        Returns
        -------
        self
        """
        self._calibrate(X, y, class_conditional)
        return self

    def predict_or_abstain(
        self, X: Any, *, novelty: float | None = 0.99, confidence: float | None = None
    ) -> np.ma.MaskedArray[Any, Any]:
        """Return predictions, masked for rows that are too strange or too uncertain.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or rows outside memory
        novelty : float or None, default=0.99
            Rows above this novelty are masked: about 1 % of rows like those of the fit for .99.
        confidence : float, optional
            Rows whose prediction set at this confidence has not exactly one class are masked.

        Returns
        -------
        masked array of shape (n_rows,)
            Its ``mask`` is True where the model abstains.
        """
        predicted = self._abstaining(X, novelty)
        if confidence is not None:
            uncertain = self.predict_set(X, confidence).sum(axis=1) != 1
            predicted = masked(predicted.data, predicted.mask | uncertain)
        return predicted

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of the highest score, or the 0/1 indicator of the positive ones.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or rows outside memory
            As for `fit`. Targets among them are ignored.

        Returns
        -------
        ndarray of shape (n_rows,), or (n_rows, n_labels) in multilabel problems
            Lazy for Dask collections.
        """
        labels: npt.NDArray[Any] = self._apply(X, FittedModel.predict)
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
