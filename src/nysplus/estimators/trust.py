"""How far a prediction can be trusted: calibration, novelty, and predictions that abstain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from nysplus._fit.model import FittedModel
from nysplus._fit.novelty import novelty_of, novelty_of_rows
from nysplus._rows.blocks import Block, RowBlocks
from nysplus._rows.dask_collections import is_dask
from nysplus._rows.opening import TargetSpec, open_rows
from nysplus._rows.target_codes import TargetCode
from nysplus._runtime.checkpoint import Journal
from nysplus._runtime.progress import Progress
from nysplus._typing import Float, Kind
from nysplus.conformal import NOT_CALIBRATED, Calibration, calibrated

# Calibration rows at most: the standard error of a coverage of 90 % is then .13 points.
MAX_ROWS = 50_000


class TrustMixin:
    """Base of the estimators that tell how far their predictions can be trusted."""

    # set by KernelMachine
    _kind: ClassVar[Kind]
    _model: FittedModel
    _adopt: Callable[[FittedModel], None]
    _apply: Callable[[Any, Callable[[FittedModel, Any], Any]], Any]

    def _calibrate(self, X: Any, y: Any, class_conditional: bool = False) -> None:
        """Take the bounds of sets or intervals, and the novelty, from rows of their own."""
        check_is_fitted(self)
        model = self._model
        check_one_target(model.code, "calibrate")
        rows = self._calibration_rows(X, y)
        _check_classes(rows, model.code, class_conditional)
        scored, expansion = rows.scored(model.expansion(rows.X)), model.expansion
        found = calibrated(scored, model.code, model.scaling, "calibration rows", class_conditional)
        known = None
        if expansion.measures_similarity:
            known = novelty_of_rows(expansion, rows, model.columns.numeric)
        self._adopt(replace(model, calibration=found, familiar=known))

    def _compare_with(self, X: Any, y: Any) -> None:
        """Take the novelty from the training rows, where the fit has not kept them in memory."""
        model = self._model
        if model.familiar is None and model.expansion.measures_similarity:
            rows, numeric = self._opened(X, y), model.columns.numeric
            known = novelty_of(model.expansion, rows, model.landmark_indices, rows, numeric)
            self._adopt(replace(model, familiar=known))

    def _opened(self, X: Any, y: Any) -> RowBlocks:
        spec = TargetSpec(self._kind, None, self._model.code, needs_two_classes=False)
        blocks, _ = open_rows(self, X, y, None, spec, reset=False).open(Progress(), Journal())
        return blocks

    def _calibration_rows(self, X: Any, y: Any) -> Block:
        """Return rows in memory, all of them or some drawn at random."""
        blocks = self._opened(X, y)
        drawn = blocks.sample(min(MAX_ROWS, blocks.n_candidates), np.random.RandomState(0))
        return blocks.gather(np.sort(drawn))

    def _bounds(self, confidence: Any, method: str) -> Float:
        """Return the bounds of nonconformity scores at a confidence."""
        check_is_fitted(self)
        code = self._model.code
        check_one_target(code, method)
        calibration: Calibration | None = self._model.calibration
        if calibration is None:
            raise ValueError(f"{method} has no scores to go by. {NOT_CALIBRATED}")
        return calibration.at(confidence, code.classes.tolist())

    def novelty(self, X: Any) -> Float:
        """Return how unlike the training rows each row is, between 0 and 1.

        The similarity of a row is its largest kernel value with a landmark, and its novelty the
        share of training rows that are more similar to a landmark: .99 for a row that is stranger
        than 99 % of them, and 1 for one that is stranger than all. After `calibrate`, rows are
        compared with the calibration rows. At most 1000 training rows are used, and 14 quantiles
        of their similarity are kept.

        A learned map (`refine` or `metric`) keeps the features that tell targets apart. With one,
        rows are also compared by their squared length along the four directions in which the
        columns of numbers of the training rows vary least, and the novelty is the larger rank.
        Rows of more than 256 columns of numbers, and sparse rows, have no directions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or rows outside memory

        Returns
        -------
        ndarray of shape (n_rows,)
            Lazy for Dask collections.
        """
        check_is_fitted(self)
        expansion = self._model.expansion
        if not expansion.measures_similarity:
            kernel = type(expansion.kernel).__name__
            n = expansion.landmarks.shape[0]
            raise ValueError(
                f"novelty compares rows with landmarks by a kernel with k(x, x) = 1. This model "
                f"has {n} landmarks and the kernel {kernel}. Fit with kernel='rbf', 'matern' or "
                "'laplacian'; a table within a small budget may get a linear function, which has "
                "no landmarks."
            )
        if self._model.familiar is None:
            raise ValueError(f"novelty has no rows to compare with. {NOT_CALIBRATED}")
        novelty: Float = self._apply(X, FittedModel.novelty)
        return novelty

    def _abstaining(self, X: Any, novelty: float | None) -> np.ma.MaskedArray[Any, Any]:
        """Return predictions, masked where the novelty is above a threshold."""
        if is_dask(X):
            raise TypeError(
                "predict_or_abstain returns a masked array, which is not lazy. Call predict, "
                "novelty and predict_set for Dask collections."
            )
        check_threshold(novelty)
        strange = None if novelty is None else self.novelty(X) > novelty
        predicted = self._apply(X, FittedModel.predict)
        mask = np.zeros(len(predicted), dtype=bool) if strange is None else strange
        return masked(predicted, mask)


def masked(predicted: npt.NDArray[Any], mask: npt.NDArray[np.bool_]) -> np.ma.MaskedArray[Any, Any]:
    """Return predictions whose rows are masked."""
    shape = mask.reshape(-1, *(1,) * (predicted.ndim - 1))
    return np.ma.MaskedArray(predicted, np.broadcast_to(shape, predicted.shape).copy())


def check_threshold(novelty: Any) -> None:
    """Raise unless a threshold of the novelty is None or between 0 and 1."""
    number = isinstance(novelty, (int, float, np.number)) and not isinstance(novelty, bool)
    if novelty is not None and not (number and 0 <= novelty <= 1):
        raise ValueError(
            f"novelty={novelty!r} is not allowed. Pass a number between 0 and 1, such as 0.99, or "
            "None for predictions of all rows."
        )


def check_one_target(code: TargetCode, method: str) -> None:
    """Raise for multilabel models, whose sets of labels have no single score."""
    if code.kind == "labels":
        raise ValueError(
            f"{method} is for models of one class per row or of values, and this model predicts "
            f"{code.n_outputs} labels per row. Fit one classifier for each label."
        )


def _check_classes(rows: Block, code: TargetCode, class_conditional: bool) -> None:
    """Raise if all calibration rows have one class, or a class that needs bounds has none."""
    if not isinstance(class_conditional, (bool, np.bool_)):
        raise ValueError(
            f"class_conditional={class_conditional!r} is not allowed. Pass True or False."
        )
    if not code.discrete:
        return
    counts = np.bincount(rows.targets.class_codes, minlength=len(code.classes))  # type: ignore
    if np.count_nonzero(counts) == 1:
        label = code.classes.tolist()[int(counts.argmax())]
        raise ValueError(
            f"All {len(rows)} calibration rows have the class {label!r}. Pass rows of all classes, "
            "as they are to be predicted."
        )
    missing = [code.classes.tolist()[c] for c in np.flatnonzero(counts == 0)]
    if class_conditional and missing:
        raise ValueError(
            f"class_conditional=True needs calibration rows of each class, and there are none of "
            f"{missing[:10]}. Pass more rows, or leave class_conditional=False."
        )
