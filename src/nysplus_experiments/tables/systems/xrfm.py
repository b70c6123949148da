"""xRFM with its defaults, for the sizes that have room for its training rows.

It needs PyTorch, which asks for other versions of packages than the other systems: install it into
an environment of its own, ``pip install ".[cli,experiments,table]" xrfm``, and measure it there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from nysplus_experiments.tables.dense import NUMBER_BYTES, DenseCode
from nysplus_experiments.tables.system import Model, NoModel, Rows, System

#: Seconds after which a fit ends with the iterations that it has.
TIME_LIMIT = 100.0


def _estimator(seed: int) -> Any:
    """Return an unfitted model of one thread that prints nothing."""
    import xrfm

    limits = {"device": "cpu", "n_threads": 1, "time_limit_s": TIME_LIMIT}
    return xrfm.xRFM(random_state=seed, verbose=False, **limits)


def _stored(model: Any) -> int:
    """Return the numbers that a fitted model needs: rows, weights and the matrix of the metric."""
    leaves = [leaf["model"] for tree in model.trees for leaf in model._collect_leaf_nodes(tree)]
    arrays = [(leaf.centers, leaf.weights, leaf.M) for leaf in leaves]
    return sum(array.numel() for leaf in arrays for array in leaf if array is not None)


def _fit(rows: Rows, n_bytes: int | None, prepared: None) -> Model:
    code, (fit, choose) = DenseCode.of(rows), rows.held_out()
    least = code.n_bytes + NUMBER_BYTES * len(fit.y) * (code.n_columns + rows.n_outputs)
    if n_bytes is not None and least > n_bytes:
        raise NoModel(f"xRFM keeps its training rows, which take {least} bytes.")
    offset, unit = (rows.y.mean(), rows.y.std()) if rows.regression else (0, 1)
    targets = [(own.y - offset) / unit if rows.regression else own.y for own in (fit, choose)]
    model = _estimator(rows.seed)
    model.fit(code(fit.X), targets[0], code(choose.X), targets[1])
    size = code.n_bytes + NUMBER_BYTES * _stored(model)
    if n_bytes is not None and size > n_bytes:
        raise NoModel(f"xRFM with its metric takes {size} bytes.")

    def predict(frame: pd.DataFrame) -> np.ndarray:
        if rows.regression:
            return np.ravel(model.predict(code(frame))) * unit + offset
        return np.asarray(model.predict_proba(code(frame)))

    return Model(predict, size, f"{len(fit.y)} training rows")


SYSTEMS = [System("xrfm", "xRFM", "xrfm", _fit)]
