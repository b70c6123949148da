"""How far single predictions can be trusted: coverage, novelty, and explained rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._typing import Float
from nysplus.conformal import class_scores
from nysplus.encoding.image_code import ImageCode
from nysplus.explain import ShapleyValues
from nysplus.explain.shapley import values_of_rows
from nysplus.plots.calibration import wilson_interval
from nysplus.report.columns import entry_text
from nysplus.report.evidence import Evidence, Sample
from nysplus.report.wording import as_texts, few, plain, signed

# Confidences of the table, and that of the sets of single rows.
CONFIDENCES, CONFIDENCE = (0.8, 0.9, 0.95, 0.99), 0.9
# Rows of a larger novelty are unlike the training rows, as on the page that runs a model.
STRANGE = 0.99
# Typical rows that the explained ones are compared with; of images, also permutations for each.
BACKGROUND_ROWS, IMAGES = 100, (16, 4)
# Columns or pixels above which there are no contributions, and columns with a bar each.
MAX_COLUMNS, MAX_PIXELS, SHOWN_COLUMNS = 200, 1024, 8

CALIBRATION = "calibration rows"
SOURCES = {
    "leave-one-out": "Their bounds come from leave-one-out scores of the training rows",
    "held-out rows": "Their bounds come from training rows that were held out in the fit",
    CALIBRATION: "Their bounds come from calibration rows, which guarantee the coverage",
}


class Trust:
    """The test rows of a report, their sets or intervals, and their novelty.

    Parameters
    ----------
    evidence : Evidence
        With test rows.
    """

    def __init__(self, evidence: Evidence) -> None:
        assert evidence.test is not None
        self.evidence, self.test = evidence, evidence.test
        self.fitted = evidence.model._model
        self.discrete = evidence.task == "classify"

    def bounds(self, confidence: float) -> Float | None:
        """Return the bounds at a confidence; None where the model does not have them."""
        if self.fitted.calibration is None:
            return None
        try:
            found: Float = self.fitted.calibration.at(confidence)
        except ValueError:  # too few rows for this confidence
            return None
        return found

    def sets(self, bounds: Float) -> npt.NDArray[np.bool_]:
        """Return the prediction sets of the test rows."""
        found: npt.NDArray[np.bool_] = self.fitted.sets_of_scores(self.evidence.outputs, bounds)
        return found

    def intervals(self, bounds: Float) -> Float:
        """Return the lower and the upper end of each test row, of shape (rows, 2)."""
        ends: Float = self.fitted.intervals_of_scores(self.evidence.outputs, bounds)
        return ends.reshape(-1, 2)

    @cached_property
    def novelty(self) -> Float | None:
        """Novelty of the test rows; None where the model has none."""
        if self.fitted.familiar is None:
            return None
        found: Float = self.fitted.novelty(self.test.X)
        return found

    @cached_property
    def probabilities(self) -> Float:
        """Probabilities of classes; of models that have none, an increasing function of scores."""
        return 1.0 - class_scores(self.evidence.outputs, self.fitted.scaling)


def trust(evidence: Evidence) -> dict[str, Any] | None:
    """Return the variables of the section on single predictions; None without test rows."""
    if evidence.test is None:
        return None
    found = Trust(evidence)
    chosen = _examples(found)
    explanation, reason = _explanation(found, [row for _, row in chosen])
    is_image = isinstance(evidence.model.expansion_.encoder, ImageCode)
    shown = [
        _example(found, title, row, None if is_image else explanation, k)
        for k, (title, row) in enumerate(chosen)
    ]
    return {
        **_coverage(found),
        **_novelty(found),
        "examples": shown,
        "how": "" if explanation is None else _how(found, explanation),
        "no_contributions": reason,
        "pixels": _pixels(found, chosen, explanation) if is_image and explanation else None,
    }


# -- all test rows ---------------------------------------------------------------------------------


def _coverage(found: Trust) -> dict[str, Any]:
    """Return coverage and size of sets or intervals by confidence, or why there are none."""
    what = "sets" if found.discrete else "intervals"
    levels = [
        (level, bounds) for level in CONFIDENCES if (bounds := found.bounds(level)) is not None
    ]
    parts = [(level, *_covered(found, bounds)) for level, bounds in levels]
    reason = ""
    if not parts:
        reason = (
            f"The model has no prediction {what}, because it has no scores of rows that it was not "
            "fitted to, or of too few. Call calibrate(X, y) with rows of its own."
        )
    low = [level for level, covered, _ in parts if _interval(covered)[1] < level]
    too_low = (
        f"Coverage is below the confidence at {few(f'{100 * level:g} %' for level in low)}. Call "
        "calibrate(X, y) with rows that the model was not fitted to, which corrects it."
    )
    calibration = found.fitted.calibration
    return {
        "coverage": [
            (
                f"{100 * level:g} %",
                f"{100 * covered.mean():.1f} %",
                " to ".join(f"{100 * end:.1f} %" for end in _interval(covered)),
                *size,
            )
            for level, covered, size in parts
        ],
        "too_low": too_low if low else "",
        "no_coverage": reason,
        "source": "" if calibration is None else SOURCES[calibration.source],
        "what": what,
    }


def _interval(covered: npt.NDArray[np.bool_]) -> tuple[float, float]:
    low, high = wilson_interval(covered.mean(), len(covered))
    return float(low), float(high)


def _covered(found: Trust, bounds: Float) -> tuple[npt.NDArray[np.bool_], list[str]]:
    """Return which sets or intervals have the true target, and their mean size as texts."""
    if found.discrete:
        sets, codes = found.sets(bounds), found.evidence.codes
        # the set of a class that the model does not know cannot have it
        covered = sets[np.arange(len(codes)), codes] & (codes >= 0)
        sizes = sets.sum(axis=1)
        return covered, [f"{sizes.mean():.2f}", f"{100 * (sizes == 0).mean():.1f} %"]
    low, high = found.intervals(bounds).T
    inside = (low <= found.test.y) & (found.test.y <= high)
    return inside, [f"{(high - low).mean():.4g}"]


def _novelty(found: Trust) -> dict[str, str]:
    """Return the share of test rows that are unlike the training rows, or why it is not known."""
    if found.novelty is not None:
        n = int((found.novelty > STRANGE).sum())
        share = 100 * n / len(found.novelty)
        own = found.fitted.calibration
        rows = "calibration" if own is not None and own.source == CALIBRATION else "training"
        text = (
            f"{n:,} of {len(found.novelty):,} test rows ({share:.1f} %) are more unusual than 99 % "
            f"of the {rows} rows. About 1 % is expected if all rows have the same source."
        )
        return {"novelty": text, "no_novelty": ""}
    reason = (
        "it has no rows to compare with. Call calibrate(X, y) with rows of its own."
        if found.evidence.model.expansion_.measures_similarity
        else "its kernel does not measure similarity to landmarks."
    )
    return {"novelty": "", "no_novelty": f"The model cannot tell unusual rows, because {reason}"}


# -- single rows -----------------------------------------------------------------------------------


def _examples(found: Trust) -> list[tuple[str, int]]:
    """Return titles and numbers of test rows that show how predictions differ."""
    if found.discrete:
        P = np.sort(found.probabilities, axis=1)
        orders = [
            ("A certain prediction", np.argsort(-P[:, -1], kind="stable")),
            ("The least certain prediction", np.argsort(P[:, -1] - P[:, -2], kind="stable")),
        ]
    else:
        errors = np.abs(found.test.y - found.evidence.predicted)
        middle = np.abs(errors - np.median(errors))
        orders = [
            ("A row with a typical error", np.argsort(middle, kind="stable")),
            ("The row with the largest error", np.argsort(-errors, kind="stable")),
        ]
    if found.novelty is not None:
        orders.append(("The most unusual row", np.argsort(-found.novelty, kind="stable")))
    chosen: list[tuple[str, int]] = []
    for title, order in orders:
        taken = {row for _, row in chosen}
        row = next((int(i) for i in order if int(i) not in taken), None)
        if row is not None:
            chosen.append((title, row))
    return chosen


def _explanation(found: Trust, rows: list[int]) -> tuple[ShapleyValues | None, str]:
    """Return the Shapley values of some test rows, or the reason why there are none."""
    evidence = found.evidence
    code, n = evidence.model.expansion_.encoder, len(evidence.columns)
    per_row: int | str
    n_background, per_row, most, what = BACKGROUND_ROWS, "auto", MAX_COLUMNS, "columns"
    if isinstance(code, ImageCode):
        n_background, per_row, most, what = *IMAGES, MAX_PIXELS, "pixels"
        if code.shape[2] != 1:
            return None, "Contributions of pixels are shown for images of one channel only."
    if n > most:
        return None, f"Contributions of {n:,} {what} are not computed; at most of {most:,}."
    X = found.test.X[rows]
    dense = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    sample: Sample = evidence.train or found.test
    others = sample.some(n_background, evidence.rng)[0].astype(np.float64)
    return values_of_rows(evidence.model, dense, others, per_row, evidence.rng), ""


def _how(found: Trust, explanation: ShapleyValues) -> str:
    """Return the meaning of contributions."""
    is_image = isinstance(found.evidence.model.expansion_.encoder, ImageCode)
    n, what = (IMAGES[0], "pixel") if is_image else (BACKGROUND_ROWS, "column")
    rows = "training rows" if found.evidence.train else "test rows"
    score = "the score of the predicted class" if found.discrete else "the predicted value"
    text = (
        f"Contributions are Shapley values: what each {what} adds to {score}, from the mean of up "
        f"to {n} {rows} to the row itself."
    )
    if explanation.standard_error is None:
        return f"{text} They are exact."
    error = float(explanation.standard_error.max())
    return f"{text} They are means over random orders, with standard errors of up to {error:.1g}."


def _example(
    found: Trust, title: str, row: int, explanation: ShapleyValues | None, place: int
) -> dict[str, Any]:
    """Return the variables of a test row: facts, a warning, and bars."""
    novelty = None if found.novelty is None else float(found.novelty[row])
    bars = None if explanation is None else _bars(found, row, explanation, place)
    return {
        "title": title,
        "row": f"{row + 1:,}",
        "facts": _facts(found, row, novelty),
        "warning": "" if novelty is None else warning(novelty),
        "bars": bars,
    }


def warning(novelty: float) -> str:
    """Return the warning of a row that is unlike the training rows; an empty text for others."""
    if novelty <= STRANGE:
        return ""
    share = "all" if novelty == 1.0 else f"{np.floor(1000 * novelty) / 10:g} %"
    return (
        f"This row is unlike the training rows (more unusual than {share} of them). Do not trust "
        "the prediction."
    )


def _facts(found: Trust, row: int, novelty: float | None) -> list[tuple[str, str]]:
    evidence, bounds = found.evidence, found.bounds(CONFIDENCE)
    name = f"{100 * CONFIDENCE:g} % {'set' if found.discrete else 'interval'}"
    facts = []
    if found.discrete:
        predicted, true = (str(as_texts(y[row : row + 1])[0]) for y in _both(found))
        if found.fitted.scaling is not None:
            predicted += f" ({100 * found.probabilities[row].max():.1f} %)"
        facts += [("predicted", predicted), ("true", true)]
        if bounds is not None:
            names = evidence.classes[found.sets(bounds)[row]]
            empty = "empty: no class is as probable as true classes usually are"
            facts.append((name, few(names) if len(names) else empty))
    else:
        predicted, true = (plain(y[row]) for y in _both(found))
        facts += [("predicted", predicted), ("true", true)]
        if bounds is not None:
            low, high = found.intervals(bounds)[row]
            facts.append((name, f"{plain(low)} to {plain(high)}"))
    if novelty is not None:
        facts.append(("novelty", f"{novelty:.3f}"))
    return facts


def _both(found: Trust) -> tuple[Any, Any]:
    return found.evidence.predicted, found.test.y


def _of_prediction(
    found: Trust, row: int, explanation: ShapleyValues, place: int
) -> tuple[Float, float]:
    """Return the contributions to the predicted output of a test row, and their base."""
    values, base = explanation.values[place], explanation.base_values[place]
    if values.ndim == 2:
        k = 0
        if found.discrete:
            k = found.evidence.model.classes_.tolist().index(found.evidence.predicted[row])
        return values[:, k], float(base[k])
    first = found.discrete and found.evidence.predicted[row] == found.evidence.model.classes_[0]
    sign = -1.0 if first else 1.0
    return sign * values, sign * float(base)


def _pixels(
    found: Trust, chosen: list[tuple[str, int]], explanation: ShapleyValues
) -> tuple[Float, Float]:
    """Return images, and the contributions of their pixels to the predicted output."""
    shape = found.evidence.model.expansion_.encoder.shape[:2]
    values = [_of_prediction(found, row, explanation, k)[0] for k, (_, row) in enumerate(chosen)]
    return explanation.data.reshape(-1, *shape), np.reshape(values, (-1, *shape, 1))


def _bars(found: Trust, row: int, explanation: ShapleyValues, place: int) -> dict[str, Any]:
    """Return the largest contributions of a row as bars from the middle, and their ends."""
    values, base = _of_prediction(found, row, explanation, place)
    order = np.argsort(-np.abs(values), kind="stable")
    several = len(order) > SHOWN_COLUMNS + 1
    shown, rest = (order[:SHOWN_COLUMNS], order[SHOWN_COLUMNS:]) if several else (order, order[:0])
    columns = found.evidence.columns
    named = [
        (f"{columns[j].name} = {entry_text(columns[j], explanation.data[place, j])}", values[j])
        for j in shown
    ]
    if len(rest):
        named.append((f"{len(rest):,} other columns", values[rest].sum()))
    largest = max((abs(value) for _, value in named), default=0.0) or 1.0

    def bar(name: str, value: float) -> dict[str, Any]:
        width = round(50 * abs(value) / largest, 2)
        left = 50 - width if value < 0 else 50
        return {
            "name": name,
            "value": signed(value),
            "left": left,
            "width": width,
            "less": value < 0,
        }

    return {
        "base": signed(base),
        "rows": [bar(name, float(value)) for name, value in named],
        "total": signed(base + float(values.sum())),
    }
