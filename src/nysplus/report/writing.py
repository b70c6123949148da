"""Write the report of a model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from nysplus._runtime.atomic_file import write_whole
from nysplus.estimators import NystroemClassifier, NystroemRegressor
from nysplus.report.content import content
from nysplus.report.evidence import Evidence, Sample
from nysplus.report.page import check_jinja2, environment


def write_report(
    model: NystroemClassifier | NystroemRegressor,
    X_test: Any,
    y_test: Any,
    path: str | os.PathLike[str],
    *,
    X_train: Any = None,
    y_train: Any = None,
    title: str | None = None,
    target: str = "the target",
    model_file: str | os.PathLike[str] | None = None,
    notes: Sequence[str] = (),
    random_state: int = 0,
) -> Path:
    """Write a report on a fitted model as one HTML page, which needs no other files.

    The page has the score on the test rows with its 95 % interval, confusion, calibration and
    margins or residuals, the coverage of prediction sets or intervals, single rows with their
    novelty and contributions of columns, the importance of columns, landmarks, the comparisons and
    choices of the fit, and a model card. With the training rows it also has the scores of simple
    models and a landmark curve, which take some seconds. Without matplotlib there are no figures,
    and the page says so.

    Parameters
    ----------
    model : NystroemClassifier or NystroemRegressor
        Fitted, with one target.
    X_test : rows, as `predict` takes them
        That the model was not fitted to.
    y_test : array-like of shape (n_rows,)
    path : str or path
        Replaced if it exists.
    X_train, y_train : rows in memory and their targets, optional
        That the model was fitted to.
    title : str, optional
        By default with the name of the target.
    target : str, default="the target"
        Name of the column that is predicted.
    model_file : str or path, optional
        File of the saved model, for the model card.
    notes : sequence of str, default=()
        Remarks on the data.
    random_state : int, default=0
        Of samples and permutations.

    Returns
    -------
    Path

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nysplus import NystroemClassifier
    >>> from nysplus.report import write_report
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NystroemClassifier(10, random_state=0).fit(X[::2], y[::2])
    >>> path = write_report(model, X[1::2], y[1::2], "report.html")  # doctest: +SKIP
    """
    check_is_fitted(model)
    check_jinja2()
    if (X_train is None) != (y_train is None):
        raise ValueError("X_train and y_train belong together. Pass both or none.")
    evidence = Evidence(
        model,
        Sample.of(model, X_test, y_test),
        None if X_train is None else Sample.of(model, X_train, y_train),
        X_train,
        title or f"Model of {target}",
        target,
        None if model_file is None else Path(model_file),
        tuple(notes),
        random_state,
    )
    return write_page(evidence, Path(path))


def write_page(evidence: Evidence, path: Path) -> Path:
    """Write the report of known rows."""
    text = environment().get_template("report.html").render(content(evidence))
    write_whole(path, text.encode())
    return path
