"""Compress a fitted model to a number of landmarks or of bytes.

Without rows the smaller model reproduces the scores of the larger one. With rows there are several
candidates (:mod:`nysplus._compression.candidates`), and held-out rows choose among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from nysplus._bytes.budget import Budget, Size, make_budget
from nysplus._bytes.center import centered
from nysplus._bytes.quantise import out_of_range
from nysplus._compression.candidates import Candidates, SmallerModel, model_shape, pruned_models
from nysplus._compression.pruning import DEFAULT_PRUNING, PruningRules, check_number
from nysplus._fit.model import FittedModel
from nysplus._holdout import best_of, mean_score, split_positions
from nysplus._learning.candidates import Deadline
from nysplus._learning.refinement import MIN_ROWS
from nysplus._ridge.probability import Scaling, fit_scaling
from nysplus._rows.blocks import Block, RowBlocks
from nysplus._rows.opening import TargetSpec, open_rows
from nysplus._rows.projected import project
from nysplus._rows.targets import (
    ClassTargets,
    DiscreteTargets,
    IndicatorTargets,
    ValueTargets,
)
from nysplus._runtime.checkpoint import Journal
from nysplus._runtime.progress import Progress, progress_lines
from nysplus._typing import Float
from nysplus._validation import check_positive
from nysplus.encoding.code import Code
from nysplus.expansion import KernelExpansion, stored_bytes

# Sizes that are tried: few bits, int8 and float16. Float32 would leave fewer landmarks, and scores
# to reproduce are the same to float16.
MAX_SIZES = 3


@dataclass(frozen=True)
class CompressionRules:
    """The numbers that steer a compression, and the reason for each."""

    # Rows that are drawn: more cost time and change little.
    max_rows: int = 25_000
    # A fifth of the rows is held out, but not more than this: more are better used to fit.
    held_out_share: float = 0.2
    max_held_out: int = 5000
    # From this many rows on, predictions of the larger model teach a smaller one as much as
    # targets do. With fewer, models that reproduce its scores get no penalty for optimism.
    min_taught_rows: int = 5000
    pruning: PruningRules = DEFAULT_PRUNING

    def count_held_out(self, n_rows: int) -> int:
        """Return the number of rows to hold out."""
        return min(self.max_held_out, int(self.held_out_share * n_rows))


DEFAULT_RULES = CompressionRules()


def compress_model(
    model: Any,
    n_components: int | None = None,
    budget: Any = None,
    X: Any = None,
    y: Any = None,
    max_seconds: float | None = None,
    rules: CompressionRules = DEFAULT_RULES,
) -> Any:
    """Return a copy of a fitted model with fewer landmarks, or in fewer bytes.

    Parameters
    ----------
    model : NystroemClassifier or NystroemRegressor
        Not changed.
    n_components : int, optional
        Number of landmarks of the copy.
    budget : int or str, optional
        Bytes of the copy at most, such as 16384 or "16kB", instead of `n_components`. Numbers are
        stored in float32, float16, or integers of 4 to 8 bits, and the number of landmarks follows
        from the budget.
    X : rows, as for `fit`, optional
        Rows like those to be predicted, of which at most 25,000 are drawn: held-out rows among
        them choose the best of several smaller models. Without rows the smaller model is fitted to
        the scores at the landmarks.
    y : targets, as for `fit`, optional
        Targets of the rows; by default the predictions of `model`.
    max_seconds : float, optional
        Approximate time limit: after it the best model so far is returned. One model is always
        made.
    rules : CompressionRules, optional

    Returns
    -------
    estimator of the same class
        Its `n_components` is its number of landmarks. `landmark_indices_` is None where landmarks
        have moved. It has no sums over rows for `partial_fit` to continue from.
    """
    check_is_fitted(model)
    if (n_components is None) == (budget is None):
        raise ValueError(
            f"Got n_components={n_components!r} and budget={budget!r}. Pass exactly one of them: "
            "landmarks to keep, or the bytes that the model may take."
        )
    if X is None and y is not None:
        raise ValueError("Got y without X. Pass the rows that the targets belong to.")
    if max_seconds is not None:
        check_positive("max_seconds", max_seconds)
    deadline = Deadline(max_seconds)
    expansion, limit = model.expansion_, make_budget(budget)
    n = expansion.landmarks.shape[0]
    if n_components is not None:
        check_number(n_components, n)
    if n_components == n or (limit is not None and expansion.n_bytes <= limit.n_bytes):
        scaling = _first_scaling(model, X, y, rules)
        return _copy(model, SmallerModel(expansion, np.arange(n)), Outer(), scaling)
    if expansion.linear is not None:
        raise ValueError(
            "compress removes landmarks, and this model has a linear term beside them. Fit again "
            "with a smaller budget."
        )
    # everything below sees code columns, and rows and functions about the centre
    encoder, expansion = expansion.encoder, replace(expansion, encoder=None)
    expansion = expansion if encoder is not None else centered(expansion)
    center, expansion = expansion.center, expansion.without_center()
    outer = Outer(encoder, center)
    if limit is not None:
        limit = limit.reserving(outer.n_bytes)
    sizes = [Size(int(n_components or n))] if limit is None else _sizes(expansion, limit)
    if X is not None:
        return _compressed_by_rows(model, expansion, outer, X, y, sizes, limit, deadline, rules)
    points = expansion.origins()
    rows = Block(points, np.arange(n), ValueTargets(expansion(points)))
    models = pruned_models(expansion, sizes, limit, None, rules.pruning, deadline)
    search = Search(rows, rows.blocks(), limit, deadline, progress_lines(model))
    return _copy(model, search.best(models), outer)


@dataclass(frozen=True)
class Outer:
    """The outer part of a function, which compression leaves as it is.

    Attributes
    ----------
    encoder : Code or None
    center : ndarray or None
    """

    encoder: Code | None = None
    center: Float | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes of the encoder and the centre."""
        return stored_bytes(self.center) + (0 if self.encoder is None else self.encoder.n_bytes)

    def seen(self, rows: Block) -> Block:
        """Return rows as the inner part sees them."""
        if self.encoder is not None:
            rows = replace(rows, X=self.encoder(rows.X))
        return rows if self.center is None else replace(rows, X=project(rows.X, None, self.center))

    def around(self, expansion: KernelExpansion) -> KernelExpansion:
        """Return the whole function; an inner part that has an encoder is whole already."""
        expansion = expansion.with_center(self.center)
        return expansion if self.encoder is None else replace(expansion, encoder=self.encoder)


def _compressed_by_rows(
    model: Any,
    expansion: KernelExpansion,
    outer: Outer,
    X: Any,
    y: Any,
    sizes: list[Size],
    budget: Budget | None,
    deadline: Deadline,
    rules: CompressionRules,
) -> Any:
    """Return the smaller model that is best on held-out rows; the other rows make it."""
    rng = check_random_state(model.random_state)
    rows = outer.seen(_rows(model, X, y, rules.max_rows, rng))
    if len(rows) < MIN_ROWS:
        held_out, others = rows, rows.blocks()
        models = pruned_models(expansion, sizes, budget, rows, rules.pruning, deadline)
    else:
        positions, used = split_positions(len(rows), rules.count_held_out(len(rows)), rng)
        held_out, others = rows.take(positions), rows.take(used).blocks()
        candidates = Candidates(
            expansion, rows, used, held_out, budget, rng, rules.pruning, deadline
        )
        taught = y is not None or len(rows) >= rules.min_taught_rows
        models = candidates.models(sizes, candidates.optimism() if taught else 0.0)
    small = Search(held_out, others, budget, deadline, progress_lines(model)).best(models)
    scaling = model._model.scaling
    labels = held_out.labels if others.discrete and y is not None else None
    if y is None and scaling is not None and not small.reproduces:
        # predicted labels are more certain than the model is
        labels = _drawn_labels(scaling, expansion(held_out.X), rng)
    if labels is not None:
        scaling = fit_scaling(small.expansion(held_out.X), labels, held_out.weight)
    return _copy(model, small.finished(others), outer, scaling)


@dataclass(frozen=True)
class Search:
    """The choice among smaller models.

    Attributes
    ----------
    held_out : Block
        Rows that decide.
    others : RowBlocks
        Rows on which the coefficients of quantised models are solved again.
    budget : Budget or None
    deadline : Deadline
    progress : Progress
    """

    held_out: Block
    others: RowBlocks
    budget: Budget | None
    deadline: Deadline
    progress: Progress

    def best(self, models: Iterable[SmallerModel]) -> SmallerModel:
        """Return the model within the budget that is best on held-out rows; of equals the first."""
        versions = self._versions(models)
        with self.progress.stage("compress", None, None) as advance:
            first = next(versions, None)
            if first is None:
                raise out_of_range()

            def score(version: SmallerModel) -> float:
                advance(len(self.held_out))
                return mean_score(version.expansion, self.held_out) - version.optimism

            return best_of(chain([first], versions), score)

    def _versions(self, models: Iterable[SmallerModel]) -> Iterator[SmallerModel]:
        """Yield the models in each storage type, until the time is over."""
        found = False
        for model in models:
            for version in model.versions(self.others):
                if self.budget is None or version.expansion.n_bytes <= self.budget.available:
                    found = True
                    yield version
            if found and self.deadline.over:
                return


def _copy(model: Any, small: SmallerModel, outer: Outer, scaling: Scaling | None = None) -> Any:
    """Return a fitted copy of the estimator with another expansion inside the outer part."""
    fitted: FittedModel = model._model
    indices = fitted.landmark_indices
    n = max(1, int(small.expansion.landmarks.shape[0]))  # a linear function has none
    copy = clone(model).set_params(n_components=n)
    copy._adopt(
        replace(
            fitted if small.expansion is fitted.expansion else fitted.without_calibration(),
            expansion=outer.around(small.expansion),
            scaling=scaling or fitted.scaling,
            landmark_indices=(
                None if small.kept is None or indices is None else indices[small.kept]
            ),
            refined=fitted.refined if small.continued is None else True,
            running=None,
            collected=None,
            report=None,
        )
    )
    return copy


def _sizes(expansion: KernelExpansion, budget: Budget) -> list[Size]:
    """Return the sizes within a budget, or raise if there are none."""
    n = expansion.landmarks.shape[0]
    if sp.issparse(expansion.landmarks):
        # their bytes differ: they are removed until the others are within the budget
        return [Size(n, None, ("float32",))]
    return budget.checked_sizes(model_shape(expansion), n)[-MAX_SIZES:]


def _first_scaling(model: Any, X: Any, y: Any, rules: CompressionRules) -> Scaling | None:
    """Return the scaling of probabilities by targets, for a classifier that has none yet."""
    if y is None or not model._model.code.discrete or model._model.scaling is not None:
        return None
    rows = _rows(model, X, y, rules.max_rows, check_random_state(model.random_state))
    return fit_scaling(model.expansion_(rows.X), rows.labels, rows.weight)


def _rows(model: Any, X: Any, y: Any, max_rows: int, rng: np.random.RandomState) -> Block:
    """Return some rows, wherever they are stored, with targets coded as those of the model."""
    spec = TargetSpec(None)
    if y is not None:
        weights = getattr(model, "class_weight", None)
        spec = TargetSpec(model._kind, weights, model._model.code, needs_two_classes=False)
    blocks, _ = open_rows(model, X, y, None, spec, reset=False).open(Progress(), Journal())
    rows = blocks.gather(np.sort(blocks.sample(min(max_rows, blocks.n_candidates), rng)))
    if rows.targets is None:
        rows = replace(rows, targets=model._model.code.as_targets(model.expansion_(rows.X)))
    return rows


def _drawn_labels(scaling: Scaling, F: Float, rng: np.random.RandomState) -> DiscreteTargets:
    """Draw labels with the probabilities of a model."""
    P = scaling.probabilities(F)
    if scaling.multilabel:
        return IndicatorTargets(np.where(rng.uniform(size=P.shape) < P, 1.0, -1.0))
    above = P.cumsum(axis=1) < rng.uniform(size=(len(P), 1))
    return ClassTargets(above.sum(axis=1).clip(max=P.shape[1] - 1), P.shape[1])
