"""Models whose files are kept in the folder models_0_1, and the rows they are tested on.

``python tests/golden/golden_models.py FOLDER`` fits the models and writes their files with the
installed version of the package. Files of a released version are never written again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from golden_rows import rows_of, sparse

from nysplus import LearnedMetric, NystroemClassifier, NystroemRegressor, Refinement
from nysplus.kernels import Matern
from nysplus.landmarks import NegativeMargin

SUFFIX = ".safetensors"


@dataclass(frozen=True)
class Kept:
    """A model that is kept in a file.

    Attributes
    ----------
    fit : callable
        Returns the fitted model.
    rows : callable
        Returns the test rows.
    """

    fit: Callable[[], Any]
    rows: Callable[[], Any]


def _kept(
    model: Any,
    data: str,
    n: int,
    dtype: Any = np.float64,
    change_X: Callable[[Any], Any] = lambda X: X,
    change_y: Callable[[Any], Any] = lambda y: y,
) -> Kept:
    """Return a model of some rows, whose features and targets may be changed first."""

    def fit() -> Any:
        rows = rows_of(data, n, dtype=dtype)
        return model.fit(change_X(rows.X), change_y(rows.y))

    return Kept(fit, lambda: change_X(rows_of(data, n, dtype=dtype).T))


def _species(y: Any) -> Any:
    return np.array(["setosa", "versicolor", "virginica"])[y]


QUICK = Refinement(n_epochs=30, search=False)

MODELS: dict[str, Kept] = {
    "binary": _kept(NystroemClassifier(15, alpha=0.1, random_state=0), "cancer", 300),
    "multiclass": _kept(
        NystroemClassifier(30, selection="negative-margin", random_state=0),
        "digits",
        300,
        np.float32,
    ),
    "strings": _kept(
        NystroemClassifier(10, selection="kmeans", class_weight="balanced", random_state=0),
        "iris",
        100,
        change_y=_species,
    ),
    "multilabel": _kept(NystroemClassifier(25, gamma="auto", random_state=0), "labels", 300),
    "regressor": _kept(
        NystroemRegressor(15, selection="leverage", random_state=0), "diabetes", 300
    ),
    "outputs": _kept(NystroemRegressor(25, gamma="median", random_state=0), "waves", 300),
    "sparse": _kept(
        NystroemClassifier(20, selection="uniform", alpha=(0.1, 1.0), random_state=0),
        "digits",
        300,
        change_X=sparse,
    ),
    "metric": _kept(
        NystroemRegressor(20, metric=LearnedMetric("diagonal", n_rounds=1), random_state=0),
        "waves",
        400,
        change_y=lambda Y: Y[:, 0],
    ),
    "directions": _kept(NystroemClassifier(20, metric=2, random_state=0), "wine", 120),
    "refined-budget": _kept(
        NystroemClassifier(budget="300B", refine=QUICK, random_state=0), "quadrants", 1500
    ),
    "budget": _kept(NystroemRegressor(budget=1500, random_state=0), "diabetes", 300),
    "refined": _kept(
        NystroemClassifier(12, refine=QUICK, random_state=0), "quadrants", 1000, np.float32
    ),
    "ensemble": _kept(
        NystroemClassifier(24, approximation="ensemble", alpha=1.0, random_state=0), "wine", 120
    ),
    "randomized": _kept(
        NystroemClassifier(
            24,
            selection=NegativeMargin(picker="farthest", max_quantile=0.9),
            approximation="randomized",
            random_state=0,
        ),
        "cancer",
        300,
    ),
    "matern": _kept(
        NystroemRegressor(20, kernel=Matern(0.2, nu=2.5), alpha=0.1, random_state=0), "waves", 300
    ),
    "polynomial": _kept(
        NystroemClassifier(15, kernel="poly", gamma=0.2, alpha=1.0, random_state=0), "iris", 100
    ),
}


def main(folder: Path) -> None:
    """Fit all models, and write their files and expected scores to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    expected = {}
    for name, kept in MODELS.items():
        model = kept.fit()
        model.save(folder / f"{name}{SUFFIX}")
        expected[f"{name} labels"] = model.predict(kept.rows())
        expected[f"{name} scores"] = scores_of(model, kept.rows())
        if hasattr(model, "predict_proba"):
            expected[f"{name} probabilities"] = model.predict_proba(kept.rows())
    np.savez_compressed(folder / "expected.npz", **expected)


def scores_of(model: Any, rows: Any) -> Any:
    """Return the scores of a classifier, or the values that a regressor predicts."""
    return getattr(model, "decision_function", model.predict)(rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
