"""Models whose rows come block by block: sums that grow, are merged, and are solved again."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._fit.calibration import scaling_of
from nysplus._fit.model import Columns, FittedModel
from nysplus._fit.pipeline import ModelSize, choose_landmarks, resolve_kernel
from nysplus._fit.plan import Plan
from nysplus._fit.table import table_of
from nysplus._ridge.running import RunningFit
from nysplus._rows.blocks import Block, RowBlocks
from nysplus._rows.encoded import Encoding, encoded
from nysplus._rows.target_codes import TargetCode
from nysplus.encoding.code import Code
from nysplus.encoding.image_code import ImageCode
from nysplus.landmarks import GivenLandmarks

SOLVER = "direct-float64"


def add_rows(
    model: FittedModel | None,
    plan: Plan,
    blocks: RowBlocks,
    code: TargetCode,
    columns: Columns,
    rng: np.random.RandomState,
) -> FittedModel:
    """Return the model of more rows.

    Rows are collected as long as there are fewer than landmarks to choose: kernel, landmarks and
    ridge are chosen anew from all of them in every call. A call with as many rows as landmarks is
    chosen from alone, so that no more than twice as many rows are collected.

    Parameters
    ----------
    model : FittedModel or None
        The model so far; None in the first call. It is not changed.
    plan : Plan
        Checked parameters.
    blocks : RowBlocks
        The rows to add.
    code : TargetCode
        Of the targets in `blocks`.
    columns : Columns
    rng : RandomState
    """
    encoding = _encoding(model, plan, blocks, columns)
    late = None
    if encoding is not None and isinstance(encoding.code, ImageCode):
        # the kernel's width is defined by images as given, which are encoded after it is known
        late, plan = encoding, replace(plan, image=encoding.code)
    elif encoding is not None:
        blocks = encoded(blocks, encoding)
    before, collected = None, None
    if model is not None and model.collected is not None:
        before, model = model.collected, None
        if _too_few(plan, blocks):
            rows = _joined(before, _weighing_rows(blocks))
            before, blocks = None, rows.blocks(blocks.progress)
    if model is None and _too_few(plan, blocks):
        collected = _weighing_rows(blocks)
    if model is not None and model.running is not None:
        running, indices = model.running, model.landmark_indices
        evaluations = model.n_kernel_evaluations
    else:
        running, indices, evaluations = _begin(model, plan, blocks, rng)
    if before is not None:
        running, _ = running.plus(_seen(before.blocks(), late), plan.alphas, rng)
    running, problem = running.plus(_seen(blocks, late), plan.alphas, rng)
    alpha = None if model is None else model.alpha
    if alpha is None:
        alpha = running.choose_on(problem)
    return FittedModel(
        expansion=replace(
            running.expansion(alpha), encoder=None if encoding is None else encoding.code
        ),
        code=code,
        columns=columns,
        scaling=scaling_of(running.left_out(problem, alpha), code),
        alpha=alpha,
        solver=SOLVER,
        landmark_indices=indices,
        refined=None if model is None else model.refined,
        n_kernel_evaluations=evaluations + blocks.n_rows * running.feature_map.n_landmarks,
        n_passes=None if model is None else model.n_passes,
        running=running,
        collected=collected,
    )


def _encoding(
    model: FittedModel | None, plan: Plan, blocks: RowBlocks, columns: Columns
) -> Encoding[Code] | None:
    """Return how rows are encoded: by the first rows, which have a part in statistics of targets.

    None where rows are numbers as given.
    """
    if model is not None:
        code = model.expansion.encoder
        return None if code is None else Encoding(code)
    if plan.image is not None:
        return Encoding(plan.image)
    table = table_of(plan, columns.schema, blocks)
    return None if table is None else table.unrefined(None)


def _seen(blocks: RowBlocks, encoding: Encoding[Code] | None) -> RowBlocks:
    """Return rows as the centre, the map and the kernel see them."""
    return blocks if encoding is None else encoded(blocks, encoding)


def _too_few(plan: Plan, blocks: RowBlocks) -> bool:
    """Return whether there are fewer rows than landmarks to choose among them."""
    return not isinstance(plan.selector, GivenLandmarks) and blocks.n_candidates < plan.n_landmarks


def _weighing_rows(blocks: RowBlocks) -> Block:
    """Return all rows of positive weight, which are few."""
    return blocks.gather(blocks.sample(blocks.n_candidates, np.random.RandomState(0)))


def _joined(first: Block, second: Block) -> Block:
    """Return the rows of two calls as those of one."""
    X: Any
    if sp.issparse(first.X):
        X = sp.vstack([first.X, sp.csr_matrix(second.X)], format="csr")
    else:
        X = np.vstack([first.X, second.X.toarray() if sp.issparse(second.X) else second.X])
    assert first.targets is not None
    assert second.targets is not None
    return Block(
        X,
        slice(0, X.shape[0]),
        first.targets.joined(second.targets),
        np.concatenate([first.counts, second.counts]),
        np.concatenate([first.factors, second.factors]),
    )


def _begin(
    model: FittedModel | None, plan: Plan, blocks: RowBlocks, rng: np.random.RandomState
) -> tuple[RunningFit, npt.NDArray[np.intp] | None, int]:
    """Return empty sums, the row numbers of the landmarks and the kernel evaluations so far.

    Landmarks are chosen among the given rows, unless `fit` has chosen them among others.
    """
    points: Any
    if model is None:
        resolved = resolve_kernel(plan, blocks, rng)
        n = blocks.n_candidates if _too_few(plan, blocks) else plan.n_landmarks
        landmarks = choose_landmarks(resolved, ModelSize(n), rng)
        kernel, points, projection = resolved.problem.kernel, landmarks.points, resolved.projection
        center = resolved.center
        indices, evaluations = landmarks.indices, landmarks.n_kernel_evaluations
    else:
        warnings.warn(
            "fit keeps no sums over its rows. From now on the model is that of the rows given to "
            "partial_fit, with the landmarks, the kernel and the ridge that fit has chosen.",
            stacklevel=5,
        )
        expansion = model.expansion
        kernel, points, projection = expansion.kernel, expansion.landmarks, expansion.projection
        center = expansion.center
        indices, evaluations = model.landmark_indices, model.n_kernel_evaluations
    feature_map = plan.approximation.build(kernel, points, rng)
    running = RunningFit.empty(feature_map, projection, center, blocks.n_outputs)
    return running, indices, evaluations + feature_map.n_kernel_evaluations


def retuned(model: FittedModel | None, alphas: tuple[float, ...]) -> FittedModel:
    """Return the model with the ridge of smallest generalized cross-validation error."""
    model, running = _with_sums(model, "retune")
    return _solved(model, running, running.choose(alphas))


def merged(model: FittedModel | None, other: FittedModel | None) -> FittedModel:
    """Return the model of the rows of both, with the ridge of the first."""
    (model, sums), (other, others) = _with_sums(model, "merge"), _with_sums(other, "merge")
    if not model.code.same(other.code):
        raise ValueError(
            "The two models have different classes or numbers of outputs. Name the same classes "
            "in the first call of partial_fit of both."
        )
    if not _same_code(model.expansion.encoder, other.expansion.encoder):
        raise ValueError(
            "The two models encode their rows differently. Fit both with the same encoder from one "
            "common call of partial_fit, and copy the model after it."
        )
    assert model.alpha is not None
    evaluations = model.n_kernel_evaluations + other.n_kernel_evaluations
    found = _solved(model, sums.merged(others), model.alpha)
    return replace(found, n_kernel_evaluations=evaluations, collected=None)


def _same_code(first: Code | None, second: Code | None) -> bool:
    if first is None or second is None:
        return first is second
    return first.same(second)


def _solved(model: FittedModel, running: RunningFit, alpha: float) -> FittedModel:
    """Return the model that follows from sums for one ridge."""
    expansion = replace(running.expansion(alpha), encoder=model.expansion.encoder)
    model = model.without_calibration()
    return replace(model, expansion=expansion, alpha=alpha, solver=SOLVER, running=running)


def _with_sums(model: FittedModel | None, method: str) -> tuple[FittedModel, RunningFit]:
    """Return a model and its sums, or raise if it has none."""
    if model is None or model.running is None:
        raise ValueError(
            f"{method} needs sums over the rows, which partial_fit keeps and fit does not. Fit "
            "with partial_fit; selection=model.landmarks_ keeps the landmarks of a model."
        )
    return model, model.running
