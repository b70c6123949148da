"""Import fitted kernel machines of scikit-learn as expansions ``k(x, Z) A + b``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, SVR, NuSVC, NuSVR
from sklearn.utils.validation import check_is_fitted

from nysplus._bytes.budget import make_budget
from nysplus._compression.compress import compress_model
from nysplus._fit.model import Columns, FittedModel
from nysplus._fit.parameters import RandomStateLike
from nysplus._ridge.path import cholesky
from nysplus._ridge.probability import Scaling, fit_scaling
from nysplus._rows.blocks import Blocks
from nysplus._rows.frames import split_frame
from nysplus._rows.opening import TargetSpec, open_rows
from nysplus._rows.target_codes import TargetCode, ValueCode, code_of
from nysplus._runtime.checkpoint import Journal
from nysplus._runtime.progress import Progress
from nysplus._typing import Float
from nysplus.estimators import NystroemClassifier, NystroemRegressor
from nysplus.expansion import KernelExpansion
from nysplus.kernels import KERNELS, Kernel, make_kernel
from nysplus.pipelines import fold_steps

# Ridge of worst margins at the support vectors, in units of k(x, x).
RIDGE = 1e-2
# Rows whose pairwise margins are looked at together.
MARGIN_ROWS = 256
# Rows on which a pipeline is tried, and the error that is rounding, relative to its scores.
TRIED_ROWS, ROUNDING = 32, 1e-4


@dataclass(frozen=True)
class _Imported:
    """A fitted model of scikit-learn as an expansion.

    Attributes
    ----------
    expansion : KernelExpansion
    code : TargetCode
        Between scores and predictions.
    indices : ndarray of shape (n,)
        The landmarks among the rows that the model was fitted to.
    slope : float or None
        Of the log-odds of a classifier that gives probabilities.
    """

    expansion: KernelExpansion
    code: TargetCode
    indices: npt.NDArray[np.intp]
    slope: float | None = None


def from_svc(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    n_components: int | None = None,
    budget: int | str | None = None,
    max_seconds: float | None = 12.0,
    random_state: RandomStateLike = None,
    verbose: int = 0,
) -> NystroemClassifier | NystroemRegressor:
    """Import a fitted kernel machine of scikit-learn, and optionally compress it.

    The scores are those of `model`, except for ``SVC`` and ``NuSVC`` with three or more classes.
    These classify by votes among all pairs of classes, which no single function k(x, Z) A + b can
    reproduce. The score of a class is then its worst margin against another class, regressed on
    the kernel at the support vectors, or its mean margin, which is an exact sum: whichever agrees
    more often with the votes half way between neighbouring support vectors. Labels may differ
    where votes are close, and differ more often with a linear kernel. O(n³) for n support vectors
    in this case.

    Parameters
    ----------
    model : SVC, NuSVC, SVR, NuSVR, KernelRidge or Pipeline
        Fitted. A pipeline ends in one of these, or in scikit-learn's ``Nystroem`` and a linear
        model; steps before them become part of the result, as in
        :func:`~nysplus.from_pipeline`. The kernel is one that has a name in both packages.
    X, y : rows and targets, as for `fit`, optional
        With `n_components` or `budget`: typical rows and, if known, their targets, as for
        `compress`; by default the support vectors. Otherwise: rows that `model` was not fitted
        to, with which the probabilities of a classifier are calibrated. Without rows the
        probabilities of ``LogisticRegression`` are kept; other classifiers give scores alone,
        and the result has no `predict_proba`.
    n_components : int, optional
        Number of landmarks to compress the model to; by default all support vectors stay.
    budget : int or str, optional
        Largest size of the model in bytes, such as 16384 or "16kB", instead of `n_components`.
    max_seconds : float or None, default=12
        Approximate time limit of the compression: after it the best model so far is returned,
        which depends on the speed of the machine if there are thousands of support vectors. None
        tries all candidates.
    random_state : int, RandomState or None, default=None
        Seed of the rows that are held out to choose among smaller models.
    verbose : int, default=0
        1 shows the progress of the compression on a terminal, 2 also in pipes and log files.

    Returns
    -------
    NystroemClassifier or NystroemRegressor
        Fitted, with the support vectors (rows, components) as landmarks, or fewer landmarks
        after compression. It has no `alpha_`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.svm import SVC
    >>> from nysplus import from_svc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> svc = SVC().fit(X, y)
    >>> bool((from_svc(svc).predict(X) == svc.predict(X)).all())
    True
    >>> len(svc.support_), len(from_svc(svc, n_components=5).landmarks_)
    (148, 5)
    """
    if isinstance(model, Pipeline) and len(model.steps) > _n_last(model):
        options = {"max_seconds": max_seconds, "random_state": random_state, "verbose": verbose}
        return _behind_steps(model, X, y, budget, n_components=n_components, **options)
    imported = _imported(model)
    compressed = n_components is not None or budget is not None
    if not imported.code.discrete and not compressed and (X is not None or y is not None):
        raise ValueError(
            "X and y scale the probabilities of a classifier, and a regressor has none. Leave them "
            "out, or compress the model by them with n_components or budget."
        )
    result = _as_estimator(imported, model)
    result.set_params(random_state=random_state, verbose=verbose)
    if imported.code.discrete and not compressed:
        result._adopt(replace(result._model, scaling=_scaling(result, imported, X, y)))
    if not compressed:
        return result
    # support vectors are rows, and those that matter
    rows = imported.expansion.landmarks if X is None and y is None else X
    small: NystroemClassifier | NystroemRegressor
    small = compress_model(result, n_components, budget, rows, y, max_seconds)
    return small


def _n_last(model: Pipeline) -> int:
    """Return the number of steps that are imported as one model: two after a Nystroem map."""
    return 1 + any(isinstance(step, Nystroem) for _, step in model.steps[-2:-1])


def _behind_steps(
    model: Pipeline, X: Any, y: Any, budget: int | str | None, **options: Any
) -> NystroemClassifier | NystroemRegressor:
    """Return the model at the end of a pipeline, with the other steps inside."""
    n_last = _n_last(model)
    folded = fold_steps(model, n_last)
    limit, left = make_budget(budget), None
    if limit is not None:
        left = limit.n_bytes - folded.n_bytes
        if left <= 0:
            raise ValueError(
                f"budget={budget!r} is used up by the {folded.n_bytes:,} bytes of the pipeline's "
                "other steps. Raise it."
            )
    if X is not None:
        X, y, _ = split_frame(X, y, None, getattr(model, "feature_names_in_", None))
        X = model[:-n_last].transform(X)
    last = model.steps[-1][1] if n_last == 1 else Pipeline(model.steps[-2:])
    result = from_svc(last, X, y, budget=left, **options)
    expansion, columns = folded.around(result.expansion_)
    result._adopt(replace(result._model, expansion=expansion, columns=columns))
    return result


def _as_estimator(imported: _Imported, model: Any) -> NystroemClassifier | NystroemRegressor:
    """Return a fitted estimator whose scores are those of the imported model."""
    expansion, code, scaling = imported.expansion, imported.code, None
    names = getattr(model, "feature_names_in_", None)
    if imported.slope is not None:
        scaling = Scaling(imported.slope, code.kind == "labels")
    fitted = FittedModel(
        expansion,
        code,
        Columns(model.n_features_in_, names),
        scaling,
        solver=type(model).__name__,
        landmark_indices=imported.indices,
    )
    kind = NystroemClassifier if code.discrete else NystroemRegressor
    result = kind(expansion.landmarks.shape[0], kernel=expansion.kernel)
    result._adopt(fitted)
    return result


def _scaling(result: Any, imported: _Imported, X: Any, y: Any) -> Scaling | None:
    """Return the scaling of probabilities by rows, or the imported model's own without rows."""
    if (X is None) != (y is None):
        raise ValueError("Probabilities are scaled by rows and their classes: pass both X and y.")
    if X is None:
        own: Scaling | None = result._model.scaling
        return own
    spec = TargetSpec("classes", code=imported.code, needs_two_classes=False)
    blocks, _ = open_rows(result, X, y, None, spec, reset=False).open(Progress(), Journal())
    rows = blocks.gather(np.arange(blocks.n_rows))
    return fit_scaling(result.expansion_(rows.X), rows.labels, rows.weight)


def _imported(model: Any) -> _Imported:
    if isinstance(model, Pipeline):
        return _of_pipeline(model)
    if isinstance(model, (SVC, NuSVC, SVR, NuSVR)):
        check_is_fitted(model)
        return _of_support_vectors(model)
    if isinstance(model, KernelRidge):
        check_is_fitted(model)
        return _of_kernel_ridge(model)
    raise TypeError(
        f"from_svc takes a fitted SVC, NuSVC, SVR, NuSVR, KernelRidge, or a Pipeline that ends in "
        f"one of these or in Nystroem and a linear model, got {type(model).__name__}."
    )


def _kernel(name: Any, Z: Any, **params: Any) -> Kernel:
    """Return the kernel of this package with the same formula; None leaves a default."""
    if not isinstance(name, str) or name not in KERNELS:
        raise ValueError(
            f"kernel={name!r} cannot be imported: its values do not follow from the rows that the "
            f"model keeps. Fit the model with one of {sorted(KERNELS)}."
        )
    # a gamma of None becomes a number by the number of features
    return make_kernel(name, **params).resolve(Blocks(Z), np.random.RandomState(0))


def _dense(array: Any) -> Float:
    """Return coefficients as float64; those of sparse rows are sparse."""
    dense: Float = np.asarray(array.toarray() if sp.issparse(array) else array, dtype=np.float64)
    return dense


def _of_support_vectors(model: Any) -> _Imported:
    Z, gamma = model.support_vectors_, model.gamma
    if isinstance(gamma, str):
        # "scale" depends on rows that are gone; the number is kept under this name only
        gamma = None if gamma == "auto" else model._gamma
    params = {"gamma": gamma, "coef0": model.coef0, "degree": model.degree}
    kernel = _kernel(model.kernel, Z, **params)
    coefficients, b = _dense(model.dual_coef_), _dense(model.intercept_)
    code = code_of(
        "classes" if is_classifier(model) else "values", (), getattr(model, "classes_", None)
    )
    if code.n_outputs > 1:
        pairs = _pairs(coefficients, b, model.n_support_)
        expansion = _of_votes(kernel, Z, pairs, model)
    else:
        expansion = KernelExpansion(
            kernel=kernel, landmarks=Z, dual_coef=coefficients.T, intercept=b
        )
    return _Imported(expansion, code, model.support_)


@dataclass(frozen=True)
class _Pairs:
    """The margins of every pair of classes: ``k(x, Z) A + b``, positive for the first of the two.

    Attributes
    ----------
    A : CSC matrix of shape (n, pairs)
        A support vector counts only where its class is one of the two.
    b : ndarray of shape (pairs,)
    first, second : ndarray of shape (pairs,)
        Class numbers.
    """

    A: Any
    b: Float
    first: npt.NDArray[np.intp]
    second: npt.NDArray[np.intp]

    @property
    def n_classes(self) -> int:
        """Number of classes L."""
        return int(self.second[-1]) + 1

    def worst(self, margins: Float) -> Float:
        """Return each class's smallest margin against another one, of shape (rows, L)."""
        L = self.n_classes
        against = np.full((len(margins), L, L), np.inf)
        against[:, self.first, self.second] = margins
        against[:, self.second, self.first] = -margins
        worst: Float = against.min(axis=2)
        return worst

    def mean(self, margins: Any) -> Float:
        """Return each class's mean margin against the others, of shape (rows, L)."""
        pairs, L = np.arange(len(self.first)), self.n_classes
        signs = np.zeros((len(pairs), L))
        signs[pairs, self.first] = 1.0 / (L - 1)
        signs[pairs, self.second] = -1.0 / (L - 1)
        mean: Float = margins @ signs
        return mean


def _pairs(coefficients: Float, b: Float, n_support: npt.NDArray[np.intp]) -> _Pairs:
    """Take apart the coefficients of libsvm, in which support vectors are ordered by class.

    Those of class i have one coefficient for each other class, in the order of the classes.
    """
    L, stops = len(n_support), np.cumsum(n_support)
    own = [slice(stop - count, stop) for stop, count in zip(stops, n_support, strict=True)]
    first, second = np.triu_indices(L, 1)
    columns = []
    for i, j in zip(first, second, strict=True):
        column = sp.lil_matrix((1, coefficients.shape[1]))
        column[0, own[i]] = coefficients[j - 1, own[i]]
        column[0, own[j]] = coefficients[i, own[j]]
        columns.append(column.tocsr())
    return _Pairs(sp.vstack(columns).T.tocsc(), b, first, second)


def _of_votes(kernel: Kernel, Z: Any, pairs: _Pairs, model: Any) -> KernelExpansion:
    """Return one function per class that orders classes nearly as the votes of all pairs do."""
    mean = KernelExpansion(
        kernel=kernel,
        landmarks=Z,
        dual_coef=pairs.mean(pairs.A),
        intercept=pairs.mean(pairs.b[None])[0],
    )
    if not kernel.positive_semidefinite:
        return mean
    B = kernel(Z, Z)
    slices = [slice(start, start + MARGIN_ROWS) for start in range(0, len(B), MARGIN_ROWS)]
    F = np.concatenate([pairs.worst(B[rows] @ pairs.A + pairs.b) for rows in slices])
    # far from all support vectors margins are intercepts
    b = pairs.worst(pairs.b[None])[0]
    found = cholesky(B, RIDGE * float(np.trace(B)) / len(B))
    if found is None:  # a kernel matrix of zeros
        return mean
    worst = replace(mean, dual_coef=found[0](F - b), intercept=b)
    # judged between neighbours, where rows may be: at support vectors themselves the worst margins
    # are nearly exact, and half way between any two of them neither function is
    between = 0.5 * (Z + Z[_neighbours(B)])
    votes = model.predict(between)
    right = [
        np.mean(model.classes_[each(between).argmax(axis=1)] == votes) for each in (mean, worst)
    ]
    return mean if right[0] > right[1] else worst


def _neighbours(B: Float) -> npt.NDArray[np.intp]:
    """Return the nearest other landmark of each, in the kernel's own distance."""
    nearest, diagonal = np.empty(len(B), dtype=np.intp), B.diagonal()
    for i, row in enumerate(B):
        # k(z, z) − 2 k(z, z') + k(z', z'), of which the first is the same for all z'
        distance = diagonal - 2.0 * row
        distance[i] = np.inf
        nearest[i] = distance.argmin()
    return nearest


def _of_kernel_ridge(model: KernelRidge) -> _Imported:
    Z, A = model.X_fit_, _dense(model.dual_coef_)
    kernel = _kernel(model.kernel, Z, gamma=model.gamma, coef0=model.coef0, degree=model.degree)
    flat = A.ndim == 1
    A = A.reshape(Z.shape[0], -1)
    expansion = KernelExpansion(
        kernel=kernel, landmarks=Z, dual_coef=A, intercept=np.zeros(A.shape[1])
    )
    return _Imported(expansion, ValueCode(A.shape[1], flat), np.arange(Z.shape[0]))


def _of_pipeline(model: Pipeline) -> _Imported:
    steps = [step for _, step in model.steps]
    if len(steps) == 1:
        return _imported(steps[0])
    feature_map, linear = steps
    for step in steps:
        check_is_fitted(step)
    Z = feature_map.components_
    params = {name: getattr(feature_map, name) for name in ("gamma", "coef0", "degree")}
    given = {name: value for name, value in params.items() if value is not None}
    kernel = _kernel(
        feature_map.kernel, Z, **{"gamma": None, **(feature_map.kernel_params or {}), **given}
    )
    W = np.atleast_2d(_dense(getattr(linear, "coef_", np.zeros((1, 0))))).T
    if W.shape[0] != Z.shape[0]:
        raise _not_linear(linear)
    A = _dense(feature_map.normalization_).T @ W
    b = np.broadcast_to(_dense(linear.intercept_), W.shape[1]).copy()
    expansion = KernelExpansion(kernel=kernel, landmarks=Z, dual_coef=A, intercept=b)
    code = _code_of(model, expansion)
    slope = None
    if isinstance(linear, LogisticRegression):
        slope = 0.5 if code.n_outputs == 1 else 1.0  # one score f stands for −f and f
    return _Imported(expansion, code, feature_map.component_indices_, slope)


def _code_of(model: Pipeline, expansion: KernelExpansion) -> TargetCode:
    """Return how scores become predictions, or raise if these are not those of the pipeline.

    Models with coefficients may be linear in something else, such as a logarithm, or a vote.
    """
    linear = model.steps[-1][1]
    rows = expansion.landmarks[:TRIED_ROWS]
    scores, predicted = expansion(rows), np.asarray(model.predict(rows))
    expected = predicted
    code: TargetCode | None = None
    if not is_classifier(linear):
        code = code_of("values", predicted.shape[1:], None)
    elif hasattr(linear, "decision_function"):
        code = code_of("classes", predicted.shape[1:], linear.classes_)
        expected = np.asarray(model.decision_function(rows))
    size = np.abs(scores).max(initial=np.finfo(np.float64).tiny)
    if code is None or expected.size != scores.size:
        raise _not_linear(linear)
    if np.abs(scores - expected.reshape(scores.shape)).max() > ROUNDING * size:
        raise _not_linear(linear)
    return code


def _not_linear(linear: Any) -> ValueError:
    return ValueError(
        f"{type(linear).__name__} after Nystroem cannot be imported: its predictions are not those "
        "of scores φW + b. Linear models such as Ridge, RidgeClassifier, LinearSVC and "
        "LogisticRegression can."
    )
