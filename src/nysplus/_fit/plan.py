"""Check an estimator's parameters and turn them into objects, before any work starts."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_array

from nysplus._bytes.budget import MAX_LANDMARKS, Budget, make_budget
from nysplus._fit.growth import Growth
from nysplus._learning.refinement import Refinement, make_refinement
from nysplus._ridge.feature_map import Approximation, make_approximation
from nysplus._ridge.solvers import DIRECT_MATRICES, direct_bytes
from nysplus._runtime.memory import working_bytes
from nysplus._tuning.metric import LearnedMetric, make_metric
from nysplus._typing import Kind
from nysplus._validation import check_count
from nysplus.encoding import ImageEncoder, TableEncoder
from nysplus.encoding.image_code import ImageCode
from nysplus.encoding.image_encoder import Augment
from nysplus.encoding.parameter import make_encoder
from nysplus.kernels import Kernel, Laplacian
from nysplus.landmarks import (
    GivenLandmarks,
    LandmarkSelector,
    make_selector,
)

# From a ridge without effect to one that leaves little but the mean: wide enough for noisy labels.
AUTO_ALPHAS = tuple(10.0**power for power in range(-7, 4))


@dataclass(frozen=True)
class Plan:
    """The parameters of an estimator, checked and turned into objects.

    With `growth` or a budget the rows decide on the number of landmarks. It is then at most
    `n_landmarks`, or within the budget. With `automatic` the rows decide on the kernel: `kernel`
    with any width, or one of `other_kernels`. `encoder` is that of a table, whose code the rows
    decide on; the code of images follows from the budget. With `linear` a linear function of a
    table may replace a model with landmarks.
    """

    n_landmarks: int
    kernel: Kernel
    selector: LandmarkSelector
    approximation: Approximation
    alphas: tuple[float, ...]
    metric: LearnedMetric | None = None
    refinement: Refinement | None = None
    budget: Budget | None = None
    encoder: TableEncoder | None = None
    growth: Growth | None = None
    automatic: bool = False
    other_kernels: tuple[Kernel, ...] = ()
    image: ImageCode | None = None
    augment: Augment | None = None
    linear: bool = True

    def with_any_kernel(self) -> Plan:
        """Return the plan of ``kernel="auto"``.

        The ℓ1 distance of numbers is that of the thermometer code, and has no gradient to learn
        with.
        """
        learning = self.metric is not None or self.refinement is not None
        others = () if learning or self.encoder is not None else (Laplacian("auto"),)
        return replace(self, automatic=True, other_kernels=others)


def make_plan(
    estimator: Any, kernel: Kernel, n_features: int, dtype: np.dtype[Any], kind: Kind | None
) -> Plan:
    """Check the parameters that all estimators share, against each other and against the rows.

    Parameters
    ----------
    estimator : estimator
    kernel : Kernel
    n_features : int
    dtype : dtype
        Floating type of the rows.
    kind : "classes", "values" or None
        Kind of the targets; None without targets.
    """
    n, growth = _n_landmarks(estimator.n_components)
    # the transformer has no encoder, budget, metric or refinement
    encoder = make_encoder(getattr(estimator, "encoder", None))
    budget = make_budget(getattr(estimator, "budget", None))
    metric = make_metric(getattr(estimator, "metric", None))
    refinement = make_refinement(getattr(estimator, "refine", False))
    image, augment = None, None
    if isinstance(encoder, ImageEncoder):
        image = encoder.code(n_features, None if budget is None else budget.n_bytes)
        augment = encoder.augment
        if augment is not None and refinement is None:
            raise ValueError(
                f"augment={augment!r} changes images while landmarks are learned from them, and "
                "refine is off. Pass refine=True, or leave augment=None."
            )
    selector = make_selector(estimator.selection)
    if isinstance(selector, GivenLandmarks):
        if encoder is not None:
            raise ValueError(
                "encoder chooses the columns that landmarks have, and selection is an array of "
                "landmarks. Pass one of the two."
            )
        if budget is not None:
            raise ValueError(
                "budget chooses the number of landmarks, and selection is an array of them. Pass "
                "one of the two."
            )
        selector = GivenLandmarks(_check_landmarks(selector.points, n_features, dtype))
        n, growth = selector.points.shape[0], None
    _check_targets(selector, kernel, kind)
    approximation = make_approximation(estimator.approximation)
    approximation.check(n)
    selector.check(n, approximation)
    for optional in (metric, refinement):
        if optional is not None:
            optional.check(kernel, _n_columns(encoder, image, n_features))
    return Plan(
        n,
        kernel,
        selector,
        approximation,
        make_alphas(estimator.alpha),
        metric,
        refinement,
        budget,
        encoder if isinstance(encoder, TableEncoder) else None,
        growth,
        image=image,
        augment=augment,
    )


def _n_columns(encoder: Any, image: ImageCode | None, n_features: int) -> int | None:
    """Return the number of columns that the kernel compares; None for tables before a fit."""
    if image is not None:
        return image.n_columns
    return n_features if encoder is None else None


def _n_landmarks(n_components: Any) -> tuple[int, Growth | None]:
    """Return the number of landmarks, or the largest number and the rules of "auto"."""
    if isinstance(n_components, str) and n_components == "auto":
        return MAX_LANDMARKS, Growth()
    if isinstance(n_components, str):
        raise ValueError(
            f"n_components={n_components!r} is not known. Allowed are an integer of at least 1, or "
            "'auto'."
        )
    check_count("n_components", n_components)
    return int(n_components), None


def _check_targets(selector: LandmarkSelector, kernel: Kernel, kind: Kind | None) -> None:
    """Raise if the selector or the kernel needs targets of another kind than there are."""
    if selector.targets == "classes" and kind != "classes":
        raise ValueError(
            f"{type(selector).__name__} chooses landmarks by class labels, and y has none. Pass "
            "y with classes, or a selection that needs no labels such as 'uniform' or 'kmeans'."
        )
    if kind is None and (selector.targets == "needed" or kernel.is_tuned):
        needing = "gamma='auto'" if kernel.is_tuned else type(selector).__name__
        raise ValueError(
            f"{needing} needs targets, and y is None. Pass y, or choose without targets: a "
            "selection such as 'uniform' or 'kmeans', gamma='scale' or a number."
        )


def warn_of_memory(plan: Plan, n_candidates: int) -> None:
    """Warn if the matrices of n × n numbers exceed scikit-learn's working memory.

    Parameters
    ----------
    plan : Plan
        Its budget or its growth, if there is one, bounds the number of landmarks instead.
    n_candidates : int
        Number of rows that may become landmarks.
    """
    if plan.budget is not None or plan.growth is not None:
        return
    given = isinstance(plan.selector, GivenLandmarks)
    n = plan.n_landmarks if given else min(plan.n_landmarks, n_candidates)
    need, allowed = direct_bytes(n), working_bytes()
    if need > allowed:
        fitting = int(np.sqrt(allowed / direct_bytes(1)))
        warnings.warn(
            f"{n} landmarks need about {need / 2**20:,.0f} MiB for {DIRECT_MATRICES} matrices of "
            f"{n} × {n} numbers, whatever the number of rows; scikit-learn's working_memory is "
            f"{allowed / 2**20:,.0f} MiB. The fit goes on and exceeds it. To stay within it, use "
            f"{fitting} landmarks at most, or raise sklearn.set_config(working_memory=…).",
            stacklevel=5,
        )


def _check_landmarks(points: Any, n_features: int, dtype: np.dtype[Any]) -> Any:
    points = check_array(points, accept_sparse="csr", dtype=dtype, copy=True)
    if points.shape[1] != n_features:
        raise ValueError(
            f"The landmarks given as selection have {points.shape[1]} features, X has "
            f"{n_features}. Pass landmarks with the columns of X."
        )
    return points


def make_alphas(alpha: Any) -> tuple[float, ...]:
    """Return the ridges to choose from for the parameter `alpha`; a single one is not a choice."""
    if isinstance(alpha, str):
        if alpha != "auto":
            raise ValueError(
                f"alpha={alpha!r} is not known. Allowed are 'auto', a number or a sequence of them."
            )
        return AUTO_ALPHAS
    values: list[Any] = [alpha] if not np.iterable(alpha) else list(alpha)
    valid = [isinstance(v, Real) and np.isfinite(float(v)) and float(v) >= 0 for v in values]
    if not values or not all(valid):
        raise ValueError(
            f"alpha={alpha!r} must be 'auto', a finite number of at least 0, or a non-empty "
            "sequence of such numbers."
        )
    return tuple(sorted({float(v) for v in values}))
