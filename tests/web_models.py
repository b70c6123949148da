"""Models of every kind that JSON has, with rows and what Python makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from factories import (
    alter,
    encoded_model,
    frame_of_all_kinds,
    raw_numbers,
    table,
    with_few_bits,
)
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from nysplus import NystroemClassifier, NystroemRegressor, from_svc
from nysplus.encoding import ImageEncoder
from nysplus.kernels import KERNELS, Matern

N_ROWS = 2000
TRAIN, ROWS = table(300), table(N_ROWS, seed=1).X
PARTS = ("landmarks", "dual_coef", "projection")


@dataclass(frozen=True)
class Case:
    """A fitted model, rows as JSON takes them, and rows as Python takes them.

    Attributes
    ----------
    model : estimator or KernelExpansion
    raw : ndarray of shape (N_ROWS, d)
        Levels are positions and dates seconds; NaN is a gap.
    """

    model: Any
    raw: Any

    @property
    def scores(self):
        """Scores of shape (N_ROWS, L)."""
        expansion = getattr(self.model, "expansion_", self.model)
        return expansion(self.raw)

    @property
    def tolerance(self):
        """Largest difference of scores, as a share of the largest score."""
        dtype = getattr(self.model, "expansion_", self.model).dual_coef.dtype
        return 1e-6 if dtype == np.float64 else 1e-4

    @property
    def labels(self):
        """Predictions of the rows, or None for a function alone."""
        fitted = getattr(self.model, "_model", None)
        return None if fitted is None else fitted.code.decode(self.scores)

    @property
    def probabilities(self):
        """Probabilities of the rows, or None."""
        scaling = getattr(getattr(self.model, "_model", None), "scaling", None)
        return None if scaling is None else scaling.probabilities(self.scores)


def _of_kernel(kernel):
    # kernels of histograms take rows that are not negative
    model = NystroemRegressor(15, kernel=kernel, selection="uniform", random_state=0)
    return Case(model.fit(np.abs(TRAIN.X), TRAIN.targets["values"]), np.abs(ROWS))


def _of_targets(kind):
    estimator = NystroemRegressor if "values" in kind else NystroemClassifier
    return Case(estimator(15, random_state=0).fit(TRAIN.X, TRAIN.targets[kind]), ROWS)


def _classifier(**options):
    return NystroemClassifier(15, alpha=1.0, random_state=0, **options)


def _of_metric(metric, dtype=np.float64, center=False):
    model = _classifier(metric=metric).fit(TRAIN.X.astype(dtype), TRAIN.targets["text"])
    if center:
        c = np.array([0.1, -0.2, 0.3], dtype=dtype)
        alter(model, expansion=model.expansion_.with_center(c))
    return Case(model, ROWS.astype(dtype))


def _of_bits(bits, encoder):
    y = TRAIN.targets["several"]
    model = _classifier(metric=3)
    model = encoded_model(model, y) if encoder else model.fit(TRAIN.X, y)
    small = with_few_bits(model.expansion_, dict.fromkeys(PARTS, bits), offset=bits % 2 == 0)
    raw = raw_numbers(N_ROWS, seed=1) if encoder else ROWS
    return Case(alter(model, expansion=small), raw)


def _of_code(metric=None, center=False, linear=False):
    model = encoded_model(_classifier(metric=metric), TRAIN.targets["binary"], np.float64)
    expansion = model.expansion_
    rng = np.random.RandomState(0)
    D = expansion.encoder.n_columns
    if linear:
        expansion = replace(expansion, linear=rng.standard_normal((D, 1)))
    if center:
        expansion = expansion.with_center(rng.standard_normal(D) / 10)
    return Case(alter(model, expansion=expansion), raw_numbers(N_ROWS, seed=1))


def _of_frame(**options):
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame, y = frame_of_all_kinds()
    model = NystroemClassifier(encoder="auto", random_state=0, **options)
    model.fit(frame.drop(columns=["id", "constant"]), y)
    more, _ = frame_of_all_kinds(N_ROWS, seed=1)
    return Case(model, model._model.columns.schema.read(more))


def _of_linear_function():
    X = ROWS[:600]
    model = NystroemRegressor(encoder="auto", budget=250, random_state=0).fit(X, X @ [1, 2, 3])
    assert model.expansion_.linear is not None
    return Case(model, ROWS)


def _of_images(**options):
    X, y = load_digits(return_X_y=True)
    encoder = ImageEncoder((8, 8), n_cosines=6)
    model = NystroemClassifier(encoder=encoder, random_state=0, **options).fit(X[:800], y[:800])
    more = np.vstack([X, 16 * np.random.RandomState(0).rand(N_ROWS - len(X), 64)])
    return Case(model, more)


def _of_colours():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((N_ROWS, 60))
    encoder = ImageEncoder((5, 4, 3), n_cosines=3)
    model = NystroemRegressor(30, encoder=encoder, metric="full", random_state=0)
    return Case(model.fit(X[:300], np.sin(X[:300, ::7].sum(axis=1))), X)


def _of_sparse_rows():
    X = np.where(TRAIN.X > 0.5, TRAIN.X, 0)
    model = NystroemClassifier(15, random_state=0).fit(sp.csr_matrix(X), TRAIN.targets["several"])
    assert sp.issparse(model.landmarks_)
    return Case(model, np.where(ROWS > 0.5, ROWS, 0))


KINDS: dict[str, Callable[[], Case]] = {
    **{f"kernel {name}": lambda name=name: _of_kernel(name) for name in sorted(KERNELS)},
    **{f"Matern {nu}": lambda nu=nu: _of_kernel(Matern(nu=nu)) for nu in (0.5, 2.5)},
    **{f"targets {kind}": lambda kind=kind: _of_targets(kind) for kind in TRAIN.targets},
    **{f"metric {m}": lambda m=m: _of_metric(m) for m in ("diagonal", "full", 2)},
    "float32": lambda: _of_metric("full", np.float32),
    "centre": lambda: _of_metric(None, center=True),
    "centre and metric": lambda: _of_metric(2, np.float32, center=True),
    **{f"{bits} bits": lambda bits=bits: _of_bits(bits, False) for bits in range(2, 9)},
    **{f"table, {bits} bits": lambda bits=bits: _of_bits(bits, True) for bits in (3, 4)},
    "table": _of_code,
    "table, diagonal": lambda: _of_code("diagonal"),
    "table, rank and centre": lambda: _of_code(3, center=True),
    "table, linear term": lambda: _of_code(3, center=True, linear=True),
    "frame": lambda: _of_frame(n_components=20),
    "frame in 2 kB": lambda: _of_frame(budget="2kB"),
    "linear function": _of_linear_function,
    "images": lambda: _of_images(n_components=30),
    "images, diagonal": lambda: _of_images(n_components=30, metric="diagonal"),
    "images in 4 kB": lambda: _of_images(budget="4kB"),
    "images in colour": _of_colours,
    "sparse": _of_sparse_rows,
    "no probabilities": lambda: Case(
        from_svc(SVC(gamma=0.5).fit(TRAIN.X, TRAIN.targets["binary"])), ROWS
    ),
    "function alone": lambda: Case(_of_targets("two-values").model.expansion_, ROWS),
}


@cache
def case(kind):
    """Return the model of a kind, fitted once."""
    return KINDS[kind]()
