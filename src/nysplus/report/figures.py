"""Figures of a report as SVG whose colours follow the theme of the page."""

from __future__ import annotations

import importlib.util
import io
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from nysplus._typing import Float
from nysplus.curve import landmark_curve
from nysplus.encoding.frames import take_rows
from nysplus.encoding.image_code import ImageCode
from nysplus.explain import FeatureImportance
from nysplus.plots import (
    ConfusionSharesDisplay,
    ImportanceDisplay,
    LandmarkCurveDisplay,
    LandmarkImagesDisplay,
    MarginDisplay,
    RefinementDisplay,
    ReliabilityDisplay,
    ResidualDisplay,
    ShapleyImagesDisplay,
)
from nysplus.plots.style import BLUE, GREY, TICK_SIZE, VERMILION
from nysplus.report.evidence import Evidence
from nysplus.report.scores import Score

# Stand for the colours of text and of cards, which the page has for both themes.
INK, CARD = "#010203", "#040506"
COLORS = {
    INK: "currentColor",
    CARD: "var(--card)",
    BLUE.lower(): "var(--blue)",
    VERMILION.lower(): "var(--vermilion)",
    GREY.lower(): "var(--grey)",
}
STYLE: dict[Any, Any] = {
    **dict.fromkeys(
        ["text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"], INK
    ),
    **{"grid.color": INK, "legend.facecolor": CARD, "legend.framealpha": 0.85},
    **{"legend.edgecolor": "none", "svg.fonttype": "path", "svg.hashsalt": "nysplus"},
    **{"axes.facecolor": "none", "figure.facecolor": "none"},
}
# Classes above which a confusion matrix is not legible.
MAX_CLASSES = 26
# Rows that the landmark curve is computed from, and its sizes: some seconds.
CURVE_ROWS, CURVE_SIZES = 6000, (10, 20, 40, 80, 160, 320)
# Rows that tell the images of landmarks behind a learned map.
IMAGE_ROWS = 2000


@dataclass(frozen=True)
class Figure:
    """A figure of a report.

    Attributes
    ----------
    name, title, caption : str
        The name is that of the element in the page.
    svg : str
    """

    name: str
    title: str
    caption: str
    svg: str


def has_matplotlib() -> bool:
    """Return whether figures can be drawn."""
    return importlib.util.find_spec("matplotlib") is not None


def draw(name: str, title: str, caption: str, display: Callable[[], Any]) -> Figure:
    """Return the figure of a display, which is made with the colours of the page."""
    from matplotlib import pyplot, rc_context

    with rc_context(STYLE), pyplot.ioff():
        figure = display().figure_
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
        pyplot.close(figure)
    return Figure(name, title, caption, inline(text.getvalue(), name, title))


def inline(text: str, name: str, title: str) -> str:
    """Return SVG to be put in a page: its own names of elements, and colours of the page."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    text = re.sub(r'^<svg [^>]*?(viewBox="[^"]*")[^>]*>', rf"<svg \1{_named(title)}>", text)
    for color, variable in COLORS.items():
        text = text.replace(color, variable)
    return text


def _named(title: str) -> str:
    return f' role="img" aria-label="{title}" xmlns:xlink="http://www.w3.org/1999/xlink"'


# -- the figures of a report -----------------------------------------------------------------------


def result_figures(evidence: Evidence) -> Iterator[Figure]:
    """Yield figures of the predictions of the test rows."""
    assert evidence.test is not None
    truth = evidence.test.y
    if evidence.task == "regress":
        yield draw(
            "residuals",
            "Errors of the predictions",
            "A median away from zero is a bias; a band that widens shows where errors are large.",
            lambda: ResidualDisplay.from_predictions(truth, evidence.predicted),
        )
        return
    known, classes = evidence.codes >= 0, evidence.classes
    codes, outputs = evidence.codes[known], evidence.outputs[known]
    if not len(codes):
        return
    if len(classes) <= MAX_CLASSES:
        counts = confusion_counts(evidence)
        yield draw(
            "confusion",
            "Confusion of classes",
            "Rows of the matrix are true classes, columns predicted ones. Darker cells are "
            "a larger share of the true class.",
            lambda: ConfusionSharesDisplay(counts, display_labels=_short(classes)).plot(
                xticks_rotation="vertical" if max(map(len, classes)) > 4 else "horizontal",
                colorbar=False,
            ),
        )
    fitted = evidence.model._model
    if fitted.scaling is not None:
        P = fitted.scaling.probabilities(outputs)
        yield draw(
            "calibration",
            "Calibration of probabilities",
            "Points on the dashed line: a probability of 90 % is right in 90 % of cases.",
            lambda: ReliabilityDisplay.from_predictions(codes, P, classes=np.arange(len(classes))),
        )
    scores = fitted.code.decision(outputs)
    yield draw(
        "margins",
        "Margins of the test rows",
        "Rows near 0 are close calls; rows far below 0 are wrong with confidence.",
        lambda: MarginDisplay.from_predictions(codes, scores, classes=np.arange(len(classes))),
    )


def confusion_counts(evidence: Evidence) -> Any:
    """Return the confusion matrix of the test rows whose class the model knows."""
    known, k = evidence.codes >= 0, len(evidence.classes)
    place = {name: i for i, name in enumerate(evidence.model.classes_.tolist())}
    said = np.array([place[label] for label in evidence.predicted[known].tolist()])
    counts = np.zeros((k, k), dtype=np.intp)
    np.add.at(counts, (evidence.codes[known], said), 1)
    return counts


def _short(names: Any) -> list[str]:
    return [name if len(name) <= 14 else f"{name[:13]}…" for name in names.tolist()]


def importance_figure(importance: FeatureImportance, score: Score) -> Figure:
    """Return the figure of the importance of columns."""
    names, losses = importance.feature_names, importance.permutation
    intervals = importance.permutation_interval
    return draw(
        "importance",
        "Importance of columns",
        "Loss of the score on test rows where the entries of one column are permuted. Columns that "
        "say the same share their importance.",
        lambda: ImportanceDisplay(names, losses, intervals, score.metric).plot(),
    )


def curve_figure(evidence: Evidence) -> tuple[Figure | None, str]:
    """Return the landmark curve of the training rows, or the reason why there is none."""
    if evidence.train is None or evidence.table is None:
        return None, "A landmark curve needs the training rows."
    rows = np.sort(evidence.rng.permutation(len(evidence.train.y))[:CURVE_ROWS])
    sizes = [size for size in CURVE_SIZES if 4 * size <= len(rows)]
    if not sizes:
        return None, "There are too few training rows for a landmark curve."
    model = clone(evidence.model).set_params(budget=None, refine=False, verbose=0)
    table, y = _in_memory(take_rows(evidence.table, rows)), evidence.train.y[rows]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the fit has given the same ones
            curve = landmark_curve(table, y, sizes, estimator=model, random_state=evidence.seed)
    except ValueError as error:  # such as an approximation without nested features
        return None, f"There is no landmark curve: {error}"

    def display() -> Any:
        drawn = LandmarkCurveDisplay(curve).plot()
        n = evidence.model.report_.n_landmarks
        if evidence.test is not None and n and curve.metric == evidence.score.metric:
            _mark_model(drawn.ax_, n, evidence.score.value, curve.metric)
        return drawn

    caption = (
        f"Models with selected landmarks, not refined, fitted to {len(rows):,} training rows and "
        "scored on a fifth of them. The star is the model of this report, on the test rows."
    )
    return draw("curve", "Score by the number of landmarks", caption, display), ""


def _in_memory(rows: Any) -> Any:
    """Return rows as `landmark_curve` takes them: a table of pyarrow as an array of objects."""
    if not hasattr(rows, "column_names"):
        return rows
    columns = np.empty((rows.num_rows, rows.num_columns), dtype=object)
    for j, column in enumerate(rows.columns):
        columns[:, j] = column.to_pylist()
    return columns


def _mark_model(ax: Any, n: int, score: float, metric: str) -> None:
    percent = 100.0 if metric == "accuracy" else 1.0
    ax.plot(
        *(n, percent * score),
        color=VERMILION,
        marker="*",
        markersize=17,
        linestyle="none",
        label="this model",
    )
    ax.legend(loc="best", fontsize=TICK_SIZE)


def refinement_figure(evidence: Evidence) -> Figure | None:
    """Return the figure of the candidates of a refinement, if there are some."""
    trials = [t for t in evidence.model.report_.trials if t.stage == "refinement"]
    if len(trials) < 2:
        return None
    return draw(
        "refinement",
        "Candidates of the refinement",
        "Scores on rows that were held out of the training rows. The test rows are not among them.",
        lambda: RefinementDisplay(trials).plot(),
    )


def image_figure(evidence: Evidence) -> Figure | None:
    """Return the landmarks of a model of grey images as images."""
    expansion = evidence.model.expansion_
    code, sample = expansion.encoder, evidence.train or evidence.test
    if not isinstance(code, ImageCode) or code.shape[2] != 1 or not expansion.landmarks.shape[0]:
        return None
    X: Float | None = None if sample is None else sample.some(IMAGE_ROWS, evidence.rng)[0]
    return draw(
        "images",
        "Landmarks",
        "Landmarks of the largest coefficients, with the class that the model predicts for them.",
        lambda: LandmarkImagesDisplay.from_estimator(evidence.model, X=X),
    )


def pixels_figure(pixels: tuple[Float, Float]) -> Figure:
    """Return the figure of images and of the contributions of their pixels."""
    return draw(
        "pixels",
        "Contributions of pixels",
        "The images of the rows below, one above the other, and what each pixel adds to the "
        "score of the predicted class or to the predicted value.",
        lambda: ShapleyImagesDisplay(*pixels, ["values"]).plot(),
    )
