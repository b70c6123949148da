"""The regressor: parameters, documentation, predictions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from nysplus._fit.model import FittedModel
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
from nysplus._runtime.progress import with_callbacks
from nysplus._typing import Float
from nysplus.estimators.base import KernelMachine, sums_rows
from nysplus.persistence import loadable


@loadable
class NystroemRegressor(KernelMachine, RegressorMixin, MultiOutputMixin, BaseEstimator):
    """Kernel ridge regression restricted to the span of few landmarks.

    Parameters
    ----------
    n_components : int or "auto", default=100
        Number of landmarks. Model size and prediction time grow with it. "auto": as for
        :class:`NystroemClassifier`, by the squared error.
    kernel : str, Kernel or callable, default="rbf"
        As for :class:`NystroemClassifier`.
    gamma : "scale", "median", "auto", None or float, default="scale"
        As for :class:`NystroemClassifier`; "auto" minimises the leave-one-out squared error.
    selection : str, LandmarkSelector or array, default="auto"
        "auto", "kmeans", "leverage", "residual", "rpcholesky", "uniform", an object of
        :mod:`nysplus.landmarks`, or an array with one landmark per row.
    approximation : str or map object, default="standard"
        As for :class:`NystroemClassifier`.
    alpha : "auto", float or sequence of floats, default="auto"
        Ridge penalty, on the scale of scikit-learn's ``Ridge``. Given a sequence, or "auto" for
        1e-7 to 1e3, the fit takes the value of smallest generalized cross-validation error.
    refine : bool or Refinement, default=False
        Learn the landmarks, the coefficients and a linear map of the features after the fit, by
        gradient descent on the squared error. As for :class:`NystroemClassifier`, the learned
        model is kept only if it is better on held-out rows.
    budget : None, str or int, default=None
        As for :class:`NystroemClassifier`.
    metric : None, "diagonal", "full", int or LearnedMetric, default=None
        As for :class:`NystroemClassifier`.
    encoder : None, "auto", TableEncoder or ImageEncoder, default=None
        None: X has numbers, which the kernel compares as they are. "auto", or a
        :class:`~nysplus.encoding.TableEncoder` with choices of its own: X is a table as it comes,
        with numbers on any scale, categories, gaps and dates, and its encoding is part of the
        model. Whether numbers are standardised or get a thermometer code is chosen by
        leave-one-out, and with `refine` on held-out rows. Sparse rows are used as they are. An
        :class:`~nysplus.encoding.ImageEncoder`: rows are images, of which the kernel compares the
        first cosines.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1: a live progress line on a terminal. 2: also one line per pass if the output is a file
        or a pipe.

    Attributes
    ----------
    landmarks_ : ndarray or CSR matrix of shape (n, n_features)
    projection_ : ndarray of shape (n_features, r) or None
    landmark_indices_ : ndarray of shape (n,) or None
    dual_coef_ : ndarray of shape (n, n_outputs)
    intercept_ : ndarray of shape (n_outputs,)
    alpha_, gamma_ : float
    solver_ : str
    refined_ : bool
        Whether the learned model was kept. Not set by `partial_fit`.
    expansion_ : KernelExpansion
    model_bytes_ : int
    n_kernel_evaluations_ : int
    n_passes_ : int
        Number of passes over all rows. Not set by `partial_fit`.
    report_ : FitReport
        What the fit has compared and chosen; see `fit_report`.
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

    _kind = "values"

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
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        checkpoint: CheckpointLike | None = None,
    ) -> NystroemRegressor:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or rows outside memory
            As for :meth:`NystroemClassifier.fit`.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
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
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> NystroemRegressor:
        """Fit to more rows; the landmarks are those of the first rows.

        As :meth:`NystroemClassifier.partial_fit`.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        self
        """
        self._partial_fit(X, y, sample_weight, known.code if (known := self._fitted()) else None)
        return self

    def predict(self, X: Any) -> Float:
        """Return the predicted values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or rows outside memory

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs), as `y` was
            Lazy for Dask collections.
        """
        values: Float = self._apply(X, FittedModel.predict)
        return values

    def predict_interval(self, X: Any, confidence: float = 0.9) -> Float:
        """Return an interval for each row, which has the true value with a given probability.

        The prediction plus and minus the conformal quantile of absolute residuals of rows that
        the model was not fitted to (see :mod:`nysplus.conformal`). After `fit` these are
        leave-one-out residuals, or those of rows that a search for the size or `refine` has held
        out, and the coverage is approximate; `calibrate` with rows of their own makes it exact for
        rows of the same distribution. All intervals of an output have the same width.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or rows outside memory
        confidence : float, default=0.9
            As for :meth:`NystroemClassifier.predict_set`.

        Returns
        -------
        ndarray of shape (n_rows, 2), or (n_rows, 2, n_outputs) if `y` had two dimensions
            Lower and upper ends. The probability holds for each output separately. Lazy for Dask
            collections.

        Examples
        --------
        >>> import numpy as np
        >>> from nysplus import NystroemRegressor
        >>> X = np.linspace(0, 6, 300)[:, None]
        >>> y = np.sin(X[:, 0]) + np.random.RandomState(0).uniform(-0.5, 0.5, 300)
        >>> model = NystroemRegressor(n_components=20, random_state=0).fit(X, y)
        >>> low, high = model.predict_interval([[np.pi / 2]])[0]
        >>> bool(low < 1 < high)
        True
        """
        bounds = self._bounds(confidence, "predict_interval")
        ends: Float = self._apply(X, partial(FittedModel.intervals, bounds=bounds))
        return ends

    def calibrate(self, X: Any, y: Any = None) -> Any:
        """Take prediction intervals and novelty from rows of their own.

        If the rows come from the distribution of the rows to be predicted, and the model was not
        fitted to them, the intervals of `predict_interval` have the true value with at least the
        given probability, whatever the distribution and the model.

        Parameters
        ----------
        X, y
            As for `fit`; ``c / (1 − c)`` rows or more for a confidence c. At most 50,000 are used.

        Returns
        -------
        self
        """
        self._calibrate(X, y)
        return self

    def predict_or_abstain(
        self, X: Any, *, novelty: float | None = 0.99
    ) -> np.ma.MaskedArray[Any, Any]:
        """Return predictions, masked for rows that are too strange.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or rows outside memory
        novelty : float or None, default=0.99
            Rows above this novelty are masked: about 1 % of rows like those of the fit for .99.

        Returns
        -------
        masked array of shape (n_rows,) or (n_rows, n_outputs)
            Its ``mask`` is True where the model abstains.
        """
        return self._abstaining(X, novelty)
