"""Write the page to draw on: a digit recogniser of at most 16 kB that runs in the browser.

It is trained on scikit-learn's digits whenever the site is built.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from nysplus import NystroemClassifier
from nysplus.encoding import ImageEncoder
from nysplus.export import to_html

NAME = "draw_a_digit.html"


def setup(app: Any) -> dict[str, bool]:
    """Write the page after all others."""
    app.connect("build-finished", _build)
    return {"parallel_read_safe": True}


def _build(app: Any, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        write(Path(app.outdir) / NAME)


def write(path: Path) -> NystroemClassifier:
    """Train the model, write its page, and return it."""
    X, y = load_digits(return_X_y=True)
    model = NystroemClassifier(budget="16kB", encoder=ImageEncoder((8, 8)), random_state=0)
    model.fit(X, y)
    first = [np.flatnonzero(y == digit)[0] for digit in (3, 7, 8)]
    to_html(model, path, title="Draw a digit", examples=X[first])
    return model
