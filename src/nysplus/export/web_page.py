"""Write a fitted model as one HTML page that runs it, without requests to a network.

The page has the model as :func:`~nysplus.export.to_json` writes it, the evaluator
``web/evaluator.js``, and the fields, the canvas and the result of the other files in ``web``.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
from importlib import resources
from string import Template
from typing import Any

import numpy as np
import scipy.sparse as sp

from nysplus._runtime.atomic_file import write_whole
from nysplus._typing import Float
from nysplus.conformal import check_confidence
from nysplus.encoding.code import Curve, Ramps, TableCode
from nysplus.encoding.image_code import ImageCode
from nysplus.encoding.schema import TableColumn, TableSchema
from nysplus.expansion import KernelExpansion
from nysplus.export.contents import trust_of, without_linear_term
from nysplus.export.explanation import explanation_numbers, typical_row
from nysplus.export.json_text import novelty_numbers, to_json
from nysplus.pipelines import as_model

__all__ = ["to_html"]

# Files of the script, each after those that it imports.
SCRIPTS = ("evaluator", "shapley", "elements", "fields", "drawing", "trust", "page")
# Parts of a model that are computed with in its own type; the others always in double precision.
FLOAT32_PARTS = {"dual_coef", "intercept", "landmarks", "linear", "projection"}
# More features than this are pasted as text instead of having a field each.
MAX_FIELDS = 60
# Columns whose contributions a browser computes while a slider moves.
MAX_EXPLAINED = 1000
# Confidences of prediction sets and intervals that a page offers beside the given one.
CONFIDENCES = (0.8, 0.9, 0.95, 0.99)
# Steps of a slider from its first to its last number.
SLIDER_STEPS = 200
# Usual values of a white pixel, and the factor by which an estimate may differ from them.
WHITES, NEAR = (1.0, 16.0, 255.0), 2.5
# Images of fewer pixels along an axis have no room for a margin.
MIN_PIXELS_WITH_MARGIN = 16


def to_html(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    examples: Any = None,
    explain: Any = True,
    confidence: float | None = 0.9,
) -> str:
    """Return a page that runs a fitted model, and write it to a file if there is a `path`.

    The page is one file and makes no requests. A row of a table is entered in sliders, fields and
    lists of levels, an image is drawn, and other rows are entered in fields or, if there are more
    than 60 features, pasted as text. The page shows the prediction with probabilities, or scores
    where the model has none, the prediction set or interval, the contributions of columns, and the
    five landmarks that contribute most. It warns of rows with a novelty above .99.

    Parameters
    ----------
    model : NystroemClassifier, NystroemRegressor, Pipeline or KernelExpansion
        Fitted. A pipeline becomes one model, see :func:`~nysplus.from_pipeline`.
    path : str or path, optional
    title : str, optional
        By default the name of the class of the model.
    examples : array-like or data frame, optional
        Some rows, as `predict` takes them, to start from. Without them the page starts with a row
        in the middle of the training rows, or with an empty canvas.
    explain : bool or rows, as for `predict`, default=True
        Typical rows that a row is compared with to find the contributions of its columns, which are
        Shapley values: a few, because the browser computes with all of them whenever a field
        changes. True: one row, as for :func:`~nysplus.export.to_json`. False: no contributions.
        They are exact for product kernels and for few columns, otherwise estimated from random
        orders of the columns. Of images, they are shown as a picture.
    confidence : float or None, default=0.9
        The confidence of the prediction set or interval at the start; the page offers others. A
        model that has seen too few rows for it starts with the largest one that it has. None: no
        sets, and no warnings. A page of a model that is not calibrated says so.

    Returns
    -------
    str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nysplus import NystroemClassifier
    >>> from nysplus.export import to_html
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NystroemClassifier(10, random_state=0).fit(X, y)
    >>> page = to_html(model, title="Iris", examples=X[::50])
    >>> "<title>Iris</title>" in page
    True
    """
    model = as_model(model)
    content = _content(model, explain, confidence)
    settings = _settings(model, examples) | _trust(model, confidence)
    style, script = _file("page.css"), _script()
    text = Template(_file("page.html")).substitute(
        title=html.escape(type(model).__name__ if title is None else title),
        policy=_policy(style, script),
        style=style,
        model=_in_script(json.dumps(content, allow_nan=False, separators=(",", ":"))),
        page=_in_script(json.dumps(settings, allow_nan=False)),
        script=script,
    )
    if path is not None:
        write_whole(path, text.encode())
    return text


def _file(name: str) -> str:
    return (resources.files("nysplus.export") / "web" / name).read_text(encoding="utf-8")


def _script() -> str:
    """Return all scripts as one module."""
    text = "\n".join(_file(f"{name}.js") for name in SCRIPTS)
    return "\n" + re.sub(r"^import .*\n", "", text, flags=re.MULTILINE)


def _content(model: Any, explain: Any, confidence: float | None) -> dict[str, Any]:
    """Return the JSON of a model; that of one in float32 with the digits that float32 has."""
    content: dict[str, Any] = json.loads(to_json(model))
    if content["dtype"] == "float32":
        for name in FLOAT32_PARTS & content.keys():
            content[name] = _in_float32(content[name])
    images = "shape" in content.get("encoder", ())
    if explain is True:
        explain = images or content["n_features"] <= MAX_EXPLAINED
    if explain is not False:
        content["explanation"] = explanation_numbers(model, explain)
    if confidence is not None and hasattr(model, "_model"):
        content |= novelty_numbers(model)
    return content


def _in_float32(value: Any) -> Any:
    """Return numbers rounded to float32, each with as few digits as tell it from its neighbours."""
    if isinstance(value, float):
        return float(str(np.float32(value)))
    if isinstance(value, dict):
        return {key: _in_float32(part) for key, part in value.items()}
    return [_in_float32(part) for part in value] if isinstance(value, list) else value


def _in_script(text: str) -> str:
    """Return JSON that cannot end the element that it is in."""
    return text.replace("<", "\\u003c")


def _policy(style: str, script: str) -> str:
    """Return a policy that allows this style and this script, and nothing else."""
    digests = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    ]
    allowed = (f"style-src 'sha256-{digests[0]}'", f"script-src 'sha256-{digests[1]}'")
    return "; ".join(["default-src 'none'", *allowed, "img-src data:", "base-uri 'none'"])


def _trust(model: Any, confidence: float | None) -> dict[str, Any]:
    """Return the bounds of prediction sets or intervals by confidence, or why there are none."""
    fitted = getattr(model, "_model", None)
    if confidence is None or fitted is None:
        return {"sets": [], "no_sets": ""}
    chosen = check_confidence(confidence)
    what = "set" if fitted.code.discrete else "interval"
    reason = ""
    if fitted.code.kind == "labels":
        reason = "Models of several labels have no prediction sets."
    elif fitted.calibration is None:
        reason = (
            f"There is no prediction {what}, because the model has no scores of rows that it was "
            "not fitted to. Call model.calibrate(X, y) with such rows before the page is written."
        )
    elif fitted.code.discrete and fitted.scaling is None:
        reason = "There is no prediction set, because the model has no probabilities."
    if reason:
        return {"sets": [], "no_sets": reason}
    found = []
    for level in sorted({*CONFIDENCES, chosen}):
        try:
            bounds = trust_of(model, level).bounds
        except ValueError:  # the model has seen too few rows for this confidence
            break
        found.append({"confidence": level, "bounds": bounds.tolist(), "chosen": level == chosen})
    few = f"There is no prediction {what}, because the model has seen too few rows."
    return {"sets": found, "no_sets": "" if found else few}


def _settings(model: Any, examples: Any) -> dict[str, Any]:
    """Return the settings of the page: all that it shows and JSON does not have."""
    given = model if isinstance(model, KernelExpansion) else model.expansion_
    expansion = without_linear_term(given)
    fitted = getattr(model, "_model", None)  # a function alone has none
    schema = None if fitted is None else fitted.columns.schema
    rows = _rows(examples, expansion, schema)
    shared: dict[str, Any] = {
        "bytes": given.n_bytes,
        "landmarks": given.landmarks.shape[0],
        "outputs": _outputs(expansion, getattr(fitted, "code", None)),
        "examples": [[None if np.isnan(x) else x for x in row] for row in rows.tolist()],
    }
    code, more = expansion.encoder, dict[str, Any]()
    if isinstance(code, ImageCode):
        more = {"white": _white(expansion, code, rows), "fit": _fit(code), "start": None}
    elif isinstance(code, TableCode):
        typical = typical_row(expansion).tolist()
        columns = [_table_column(code, j, schema, x) for j, x in enumerate(typical)]
        more = {"columns": columns, "start": [column["start"] for column in columns]}
    else:
        more = _plain_columns(model, expansion, rows)
    if shared["examples"]:
        more["start"] = shared["examples"][0]
    return {**shared, **more}


def _rows(examples: Any, expansion: KernelExpansion, schema: TableSchema | None) -> Float:
    """Return the raw numbers of some rows, of shape (rows, d)."""
    if examples is None:
        return np.empty((0, 0))
    if schema is not None:
        return schema.read(examples if hasattr(examples, "shape") else np.asarray(examples))
    rows: Float = np.asarray(
        examples.toarray() if sp.issparse(examples) else examples, dtype=np.float64
    )
    code, P = expansion.encoder, expansion.projection
    n = expansion.landmarks.shape[1] if P is None else len(P)
    n = n if code is None else code.n_inputs
    if rows.ndim != 2 or rows.shape[1] != n:
        raise ValueError(
            f"examples has the shape {rows.shape}, and the model takes rows of {n} features. Pass "
            "rows as predict takes them."
        )
    if code is None and not np.isfinite(rows).all():
        raise ValueError("examples contains NaN or infinity. Pass rows of finite numbers.")
    return rows


def _outputs(expansion: KernelExpansion, code: Any) -> list[str]:
    """Return the names of classes, labels or values."""
    if code is None or not code.discrete:
        n = len(expansion.intercept)
        return ["value"] if n == 1 else [f"value {i}" for i in range(n)]
    labelled = "label " if code.kind == "labels" else ""
    return [f"{labelled}{label}" for label in code.classes.tolist()]


# -- columns -------------------------------------------------------------------------------------


def _slider(numbers: Float) -> list[float] | None:
    """Return first and last number and step of a slider for a range; None if it is empty."""
    low, high = float(numbers.min()), float(numbers.max())
    if not np.isfinite(high - low) or high == low:
        return None
    if (numbers == np.rint(numbers)).all():
        return [low, high, 1.0]
    # a power of ten, so that numbers have few digits
    step = 10.0 ** np.floor(np.log10((high - low) / SLIDER_STEPS))
    return [_short(np.floor(low / step) * step), _short(np.ceil(high / step) * step), _short(step)]


def _near(number: float, slider: list[float] | None) -> float:
    """Return a number with the digits of the step of its slider, or six."""
    if slider is None:
        return float(f"{number:.6g}")
    return _short(np.rint(number / slider[2]) * slider[2])


def _short(number: Any) -> float:
    """Return a number without the digits of rounding to binary."""
    return float(f"{float(number):.12g}")


def _table_column(
    code: TableCode, j: int, schema: TableSchema | None, start: float
) -> dict[str, Any]:
    """Return the field of a column of a table."""
    column = TableColumn(j, f"column {j}", "number") if schema is None else schema.columns[j]
    knots = [t.knots for t in code.terms if t.column == j and isinstance(t, (Curve, Ramps))]
    slider = None
    if column.kind == "number":
        if knots:
            slider = _slider(np.concatenate([each.astype(np.float64) for each in knots]))
        start = _near(start, slider)
    return {
        "name": column.name,
        "kind": column.kind,
        "levels": list(column.levels),
        "range": slider,
        "gaps": not column.refuses_gaps,
        "others": not column.refuses_others,
        "start": start,
    }


def _plain_columns(model: Any, expansion: KernelExpansion, rows: Float) -> dict[str, Any]:
    """Return the fields of features that are used as given, and a row to start with."""
    Z, c = expansion.origins(), expansion.center
    near = (Z.toarray() if sp.issparse(Z) else Z).astype(np.float64) + (0.0 if c is None else c)
    mapped = expansion.projection is not None and expansion.projection.ndim == 2
    # rows that a matrix brings to the landmarks do not tell a range
    known = rows if mapped else np.vstack([near, *([rows] if len(rows) else [])])
    sliders = [_slider(x) for x in known.T] if len(known) else [None] * near.shape[1]
    names = getattr(model, "feature_names_in_", [f"column {j}" for j in range(len(sliders))])
    columns = [
        {"name": str(name), "kind": "number", "range": slider, "gaps": False}
        for name, slider in zip(names, sliders, strict=True)
    ]
    middle = zip(np.median(near, axis=0).tolist(), sliders, strict=True)
    return {
        "columns": columns if len(columns) <= MAX_FIELDS else None,
        "start": [_near(number, slider) for number, slider in middle],
    }


# -- images --------------------------------------------------------------------------------------


def _fit(code: ImageCode) -> str:
    """Return the position of a drawing in the image: digits and letters are centred."""
    height, width, channels = code.shape
    if channels > 1:
        return "drawn"
    return "margin" if min(height, width) >= MIN_PIXELS_WITH_MARGIN else "filled"


def _white(expansion: KernelExpansion, code: ImageCode, rows: Float) -> float:
    """Return the value of a white pixel: the largest of the examples, or an estimate.

    The estimate is the brightest pixel of most landmarks, or a usual value that is near to it.
    """
    if len(rows):
        return float(rows.max()) if rows.max() > 0 else 1.0
    c = 0.0 if expansion.center is None else expansion.center
    images = code.images(np.asarray(expansion.origins()) + c)
    brightest = float(np.median(images.max(axis=1)))
    if not np.isfinite(brightest) or brightest <= 0:
        return 1.0
    usual = min(WHITES, key=lambda white: abs(np.log(white / brightest)))
    return usual if abs(np.log(usual / brightest)) < np.log(NEAR) else _short(brightest)
