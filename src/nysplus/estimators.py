"""Kernel machines with few landmarks: a classifier and a regressor."""

from __future__ import annotations

import os
import warnings
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from nysplus._compression.compress import compress_model
from nysplus._fit.cost import Cost, estimate, invented_rows
from nysplus._fit.plan import Plan, make_alphas, make_plan
from nysplus._fit.score import evaluate
from nysplus._ridge.leave_one_out import LeaveOneOut
from nysplus._ridge.probability import Scaling, fit_scaling
from nysplus._ridge.running import RunningFit
from nysplus._rows.applying import apply_to_rows
from nysplus._rows.blocks import RowBlocks
from nysplus._rows.opening import RowsToOpen, TargetSpec, is_elsewhere, open_rows
from nysplus._rows.slicing import float_dtype
from nysplus._rows.target_codes import ClassCode
from nysplus._rows.target_codes import TargetCode as Code
from nysplus._runtime.checkpoint import FileJournal, Journal, fit_fingerprint
from nysplus._runtime.progress import CallbackSupportMixin, Progress, progress_of, with_callbacks
from nysplus._typing import Float, Kind
from nysplus._validation import check_count
from nysplus.expansion import KernelExpansion
from nysplus.kernels import make_kernel
from nysplus.persistence import loadable, save

# Rows whose leave-one-out scores probabilities are scaled by: enough for a single number.
SCALING_ROWS = 1000


def _sums_rows(estimator: Any) -> bool:
    """Return whether a model can be fitted to rows that come bit by bit; raise to say why not."""
    for name, left in (("refine", False), ("budget", None)):
        value = getattr(estimator, name)
        if value is not left and value is not None:
            raise AttributeError(
                f"{name}={value!r} goes by all rows at once, which partial_fit does not see. "
                f"Leave {name}={left}, or fit."
            )
    return True


class _KernelMachine(CallbackSupportMixin):
    """What the classifier and the regressor share: fitting and evaluating the expansion."""

    _kind: ClassVar[Kind]
    # what the classes below have as parameters, and what fits set
    kernel: Any
    gamma: Any
    random_state: Any
    expansion_: KernelExpansion
    _code: Code
    _running: RunningFit

    def _wanted(self, code: Code | None = None, needs_two_classes: bool = True) -> TargetSpec:
        """Return what a fit makes of the targets."""
        return TargetSpec(self._kind, code=code, needs_two_classes=needs_two_classes)

    def _plan(self, intake: RowsToOpen) -> Plan:
        """Check all parameters, before any work."""
        kernel = make_kernel(self.kernel, gamma=self.gamma)
        return make_plan(self, kernel, intake.n_features, intake.dtype, intake.kind)

    def _fit(self, X: Any, y: Any, sample_weight: Any, checkpoint: Any) -> None:
        """Choose landmarks and fit; sets every fitted attribute."""
        journal = Journal() if checkpoint is None else FileJournal(checkpoint)
        intake = open_rows(self, X, y, sample_weight, self._wanted())
        plan = self._plan(intake)
        self.__dict__.pop("_running", None)
        with progress_of(self, X, y) as progress:
            blocks, code = intake.open(progress, journal)
            rng = check_random_state(self.random_state)
            name, params = type(self).__name__, self.get_params(deep=False)
            rng = journal.begin(lambda: fit_fingerprint(name, params, blocks.fingerprint()), rng)
            chosen = plan.choose(blocks, rng)
            fit = chosen.fit(rng)
            refined = chosen.finish(fit, rng)
            self._set_code(code)
            self._set_scaling(refined.scaling or fit.left_out)
            self.expansion_ = refined.expansion
            self.refined_ = refined.kept
            self.alpha_ = fit.alpha
            self.solver_ = fit.solver
            self.landmark_indices_ = None if refined.kept else chosen.landmarks.indices
            spent = chosen.landmarks.n_kernel_evaluations
            self.n_kernel_evaluations_ = spent + fit.n_kernel_evaluations
            self.n_passes_ = progress.passes
            passes = "1 pass" if progress.passes == 1 else f"{progress.passes} passes"
            progress.note(f"{passes} over {blocks.n_rows:,} rows")
        journal.remove()

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, code: Code | None) -> None:
        """Add rows to the sums, with landmarks chosen from the first ones; solve again."""
        reset = not hasattr(self, "expansion_")
        # the other classes may come in later calls
        intake = open_rows(
            self, X, y, sample_weight, self._wanted(code, needs_two_classes=False), reset
        )
        plan = self._plan(intake)
        rng = check_random_state(self.random_state)
        with progress_of(self, X, y) as progress:
            blocks, found = intake.open(progress, Journal())
            if code is None and found is not None and found.kind == "classes":
                raise ValueError("classes must be passed on the first call to partial_fit.")
            running = getattr(self, "_running", None) or self._begun(plan, blocks, rng)
            task = running.add(blocks, plan.alphas, rng)
            if not hasattr(self, "alpha_"):
                self.alpha_ = running.choose_on(task)
            self.n_kernel_evaluations_ += blocks.n_rows * running.feature_map.n_landmarks
            self._set_code(found)
            self._set_scaling(running.left_out(task, self.alpha_))
            self._running = running
            self._solve_running()

    def _begun(self, plan: Plan, blocks: RowBlocks, rng: np.random.RandomState) -> RunningFit:
        """Choose the landmarks on the first rows, unless `fit` has done so on others."""
        if hasattr(self, "expansion_"):
            warnings.warn(
                "fit keeps no sums over its rows. From now on the model is that of the rows given "
                "to partial_fit, with the landmarks, the kernel and the ridge that fit has chosen.",
                stacklevel=4,
            )
            kernel, points = self.expansion_.kernel, self.expansion_.landmarks
            projection = self.expansion_.projection
        else:
            chosen = plan.choose(blocks, rng)
            kernel, points = chosen.problem.kernel, chosen.landmarks.points
            projection = chosen.projection
            self.landmark_indices_ = chosen.landmarks.indices
            self.n_kernel_evaluations_ = chosen.landmarks.n_kernel_evaluations
        feature_map = plan.approximation.build(kernel, points, rng)
        self.n_kernel_evaluations_ += feature_map.n_kernel_evaluations
        return RunningFit.empty(feature_map, projection, blocks.n_outputs)

    def _solve_running(self) -> None:
        self.expansion_ = self._running.expansion(self.alpha_)
        self.solver_ = "direct-float64"

    def _check_running(self, what: str) -> None:
        if not hasattr(self, "_running"):
            raise ValueError(
                f"{what} needs sums over the rows, which partial_fit keeps and fit does not. Fit "
                "with partial_fit; selection=model.landmarks_ keeps the landmarks of a model."
            )

    def retune(self, alpha: Any = "auto") -> Any:
        """Choose the ridge again from the sums that `partial_fit` and `merge` have made.

        Parameters
        ----------
        alpha : "auto", float or sequence of floats, default="auto"
            From several, the one of smallest generalized cross-validation error is taken, which
            needs no rows.

        Returns
        -------
        self
        """
        self._check_running("retune")
        self.alpha_ = self._running.choose(make_alphas(alpha))
        self._solve_running()
        return self

    def merge(self, other: Any) -> Any:
        """Add the rows of another model that `partial_fit` has fitted with the same landmarks.

        The result is the model of all rows together, with the ridge of this one; `other` stays
        as it is.

        Parameters
        ----------
        other : estimator of the same class

        Returns
        -------
        self
        """
        if type(other) is not type(self):
            raise TypeError(
                f"A {type(self).__name__} merges with its like, not with {type(other).__name__}."
            )
        for model in (self, other):
            model._check_running("merge")
        self._check_code(other)
        self._running.join(other._running)
        self.n_kernel_evaluations_ += other.n_kernel_evaluations_
        self._solve_running()
        return self

    def _check_code(self, other: Any) -> None:
        if not self._code.same(other._code):
            raise ValueError(
                "The two models have different classes or numbers of outputs. Name the same "
                "classes in the first call of partial_fit of both."
            )

    def estimate_cost(
        self,
        shape: tuple[int, int],
        n_outputs: int | None = None,
        dtype: npt.DTypeLike = "float64",
        rows: tuple[Any, Any] | None = None,
    ) -> Cost:
        """Return what a fit with these parameters will take on this machine, before it starts.

        Two small fits, some seconds in all, and the line through their times.

        Parameters
        ----------
        shape : tuple of int
            Rows and features: ``X.shape``.
        n_outputs : int, optional
            Number of classes, 2 by default, or of regression outputs, 1 by default.
        dtype : type, default="float64"
            Of the rows.
        rows : tuple of arrays, optional
            Typical ``(X, y)``, some thousands or more, instead of invented ones: how much work
            the spectrum of the kernel matrix asks for depends on the data.

        Returns
        -------
        Cost
            With `seconds`, `bytes` (beside the rows themselves) and `passes`.
        """
        n_rows, n_features = shape
        check_count("shape[0]", n_rows)
        check_count("shape[1]", n_features)
        check_count("n_outputs", n_outputs, optional=True)
        if rows is None:
            rows = invented_rows(n_features, dtype, self._kind, n_outputs)
        return estimate(self, (n_rows, n_features), rows)

    def _set_code(self, code: Code | None) -> None:
        assert code is not None
        self._code = code

    def _set_scaling(self, found: Scaling | LeaveOneOut) -> None:
        """Set, or fit, what turns scores into probabilities; values have none."""

    def _predict(self, X: Any) -> Any:
        """Return the predictions of rows, wherever they are."""
        check_is_fitted(self)
        return apply_to_rows(self, X, self._decoded)

    def _decoded(self, X: Any) -> npt.NDArray[Any]:
        """Return the predictions of checked rows."""
        return self._code.decode(self.expansion_(X), float_dtype(X.dtype))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy (classifier) or R² (regressor) on the given rows.

        Parameters
        ----------
        X : anything that `fit` accepts
        y : array-like, or as for `fit`
        sample_weight : array-like, or as for `fit`

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if not is_elsewhere(X):
            result: float = super().score(X, y, sample_weight)
            return result
        # rows may have classes that the model does not know, and never gets right
        code = None if self._code.kind == "classes" else self._code
        wanted = TargetSpec(self._kind, code=code, needs_two_classes=False)
        intake = open_rows(self, X, y, sample_weight, wanted, reset=False)
        blocks, found = intake.open(Progress(), Journal())
        assert found is not None
        return evaluate(self._decoded, blocks, found)

    def compress(
        self, n_components: int | None = None, X: Any = None, y: Any = None, *, budget: Any = None
    ) -> Any:
        """Return a smaller model, without a fit from scratch.

        Landmarks that cost least are left out, the others take over their part, and are moved
        where the kernel has gradients. With rows, a ridge on these or on new landmarks and, for
        RBF classifiers, a learned map are tried too; rows that were set aside choose.

        Parameters
        ----------
        n_components : int, optional
            Landmarks to keep.
        X : rows, as for `fit`, optional
            Typical rows; those of the fit will do. At most 25,000 are used.
        y : targets, as for `fit`, optional
            Of the rows; by default what this model predicts.
        budget : int or str, optional
            Bytes that the model may take, such as "16kB", instead of `n_components`.

        Returns
        -------
        estimator of the same class
            Fitted; this one stays as it is.
        """
        return compress_model(self, n_components, budget, X, y)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that :func:`nysplus.load` reads; never pickle.

        Parameters
        ----------
        path : str or path
            Replaced in one step if it exists. Sums of `partial_fit` are not kept.
        """
        save(self, path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "expansion_")

    @property
    def landmarks_(self) -> Any:
        """Landmarks Z of shape (n, d), or (n, r) behind a learned map."""
        return self.expansion_.landmarks

    @property
    def projection_(self) -> Float | None:
        """The learned map P of shape (d, r), or None."""
        P: Float | None = self.expansion_.projection
        return P if P is None or P.ndim == 2 else np.diag(P)

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
        """Bytes of the landmarks, coefficients, intercepts and learned map."""
        n_bytes: int = self.expansion_.n_bytes
        return n_bytes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@loadable
class NystroemClassifier(_KernelMachine, ClassifierMixin, BaseEstimator):
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
    _scaling: Scaling

    def __init__(
        self,
        n_components: int = 100,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        selection: Any = "auto",
        approximation: Any = "standard",
        alpha: Any = "auto",
        refine: Any = False,
        budget: Any = None,
        metric: Any = None,
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
        self.refine = refine
        self.budget = budget
        self.metric = metric
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    def _wanted(self, code: Code | None = None, needs_two_classes: bool = True) -> TargetSpec:
        return TargetSpec(self._kind, self.class_weight, code, needs_two_classes=needs_two_classes)

    def _set_code(self, code: Code | None) -> None:
        super()._set_code(code)
        self.classes_ = self._code.classes

    @with_callbacks
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, checkpoint: Any = None
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

    @available_if(_sums_rows)
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

    def _code_so_far(self, classes: Any) -> Code | None:
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs to see all rows first, which partial_fit does not. "
                "Pass the weights as a dict."
            )
        known: Code | None = getattr(self, "_code", None)
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
        check_is_fitted(self)
        scores: Float = apply_to_rows(self, X, self._decisions)
        return scores

    def _decisions(self, X: Any) -> Float:
        """Return the scores of checked rows."""
        return self._code.decision(self.expansion_(X))

    def _set_scaling(self, found: Scaling | LeaveOneOut) -> None:
        if isinstance(found, LeaveOneOut):
            some = found.scores(SCALING_ROWS)
            found = fit_scaling(some.scores, self._code.as_targets(some.Y).labels, some.weight)
        self._scaling = found

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
        check_is_fitted(self)
        probabilities: Float = apply_to_rows(self, X, self._probabilities)
        return probabilities

    def _probabilities(self, X: Any) -> Float:
        """Return the probabilities of checked rows."""
        return self._scaling.probabilities(self.expansion_(X))

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
        labels: npt.NDArray[Any] = self._predict(X)
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


@loadable
class NystroemRegressor(_KernelMachine, RegressorMixin, MultiOutputMixin, BaseEstimator):
    """Kernel ridge regression restricted to the span of few landmarks.

    Parameters
    ----------
    n_components : int, default=100
        Number of landmarks. Model size and prediction time grow with it.
    kernel : str, Kernel or callable, default="rbf"
        As for :class:`NystroemClassifier`.
    gamma : "scale", "median", "auto", None or float, default="scale"
        As for :class:`NystroemClassifier`; "auto" goes by the leave-one-out squared error.
    selection : str, LandmarkSelector or array, default="auto"
        "auto", "kmeans", "leverage", "residual", "rpcholesky", "uniform", an object of
        :mod:`nysplus.landmarks`, or the landmarks themselves.
    approximation : str or map object, default="standard"
        As for :class:`NystroemClassifier`.
    alpha : "auto", float or sequence of floats, default="auto"
        Ridge, on the scale of scikit-learn's ``Ridge``. From a sequence, or from 1e-7 to 1e3
        with "auto", the one of smallest generalized cross-validation error is taken.
    refine : bool or Refinement, default=False
        Learn the landmarks, the coefficients and a linear map of the features after the fit, by
        gradient steps on the squared error. As for :class:`NystroemClassifier`, the unrefined model
        stays where that does not help.
    budget : None, str or int, default=None
        As for :class:`NystroemClassifier`.
    metric : None, "diagonal", "full", int or LearnedMetric, default=None
        As for :class:`NystroemClassifier`.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1: a live line on a terminal; 2: also a line per pass where output is a file or a pipe.

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
        Whether what `refine` has learned was kept.
    expansion_ : KernelExpansion
    model_bytes_ : int
    n_kernel_evaluations_ : int
    n_passes_ : int
        How often all rows were read; not after `partial_fit`.
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

    def __init__(
        self,
        n_components: int = 100,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        selection: Any = "auto",
        approximation: Any = "standard",
        alpha: Any = "auto",
        refine: Any = False,
        budget: Any = None,
        metric: Any = None,
        random_state: Any = None,
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
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, checkpoint: Any = None
    ) -> NystroemRegressor:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or rows from elsewhere
            As for :meth:`NystroemClassifier.fit`.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
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

    @available_if(_sums_rows)
    @with_callbacks
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> NystroemRegressor:
        """Fit to more rows; the landmarks are those of the first call.

        As :meth:`NystroemClassifier.partial_fit`.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        self
        """
        self._partial_fit(X, y, sample_weight, getattr(self, "_code", None))
        return self

    def predict(self, X: Any) -> Float:
        """Return the predicted values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or rows from elsewhere

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs), as `y` was
            For Dask collections a lazy one.
        """
        values: Float = self._predict(X)
        return values
