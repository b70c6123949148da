"""Rules that choose landmarks by the margins of a pilot, and rules without margins.

Every rule is a function of the pilot, the number of landmarks and the agreement of the training
rows with their neighbours.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from nysplus._typing import Float
from nysplus.landmarks import (
    ClassCentroids,
    KMeans,
    Landmarks,
    LandmarkSelector,
    NegativeMargin,
    SupportCentroids,
)
from nysplus_experiments.mechanism.trials import Pilot

# A row is an outlier if less than this share of its ten nearest neighbours has its class.
MIN_AGREEMENT = 0.5
UNIFORM, MARGIN = "uniform", "negative margin"

RowNumbers = npt.NDArray[np.intp]
Rule = Callable[[Pilot, int, Float], Landmarks]


def hardest(pilot: Pilot) -> RowNumbers:
    """Return the numbers of all training rows, those of the largest negative margin first."""
    return np.argsort(-pilot.margins, kind="stable")


def drawn_from_hardest(pilot: Pilot, n: int, size: int) -> RowNumbers:
    """Draw `n` of the `size` rows of largest negative margin; all rows are a pool as well."""
    rng = copy.deepcopy(pilot.rng)
    return rng.permutation(hardest(pilot)[:size])[:n]


def class_quotas(codes: npt.NDArray[np.intp], n: int) -> npt.NDArray[np.intp]:
    """Return `n` split in proportion to the classes, by the largest remainders."""
    exact = n * np.bincount(codes) / len(codes)
    quotas = np.floor(exact).astype(np.intp)
    quotas[np.argsort(quotas - exact, kind="stable")[: n - quotas.sum()]] += 1
    return quotas


def hardest_of_each_class(pilot: Pilot, quotas: npt.NDArray[np.intp]) -> RowNumbers:
    """Return the rows of largest negative margin of each class, as many as its quota."""
    order = hardest(pilot)
    codes = pilot.codes[order]
    return np.concatenate([order[codes == k][:quota] for k, quota in enumerate(quotas)])


def _half_uniform(pilot: Pilot, n: int) -> RowNumbers:
    """Return half of the pilot's landmarks, and the hardest rows that are not among them."""
    uniform = pilot.rows[: n // 2]
    order = hardest(pilot)
    return np.concatenate([uniform, order[~np.isin(order, uniform)][: n - len(uniform)]])


def _without_outliers(pilot: Pilot, n: int, agreement: Float) -> RowNumbers:
    order = hardest(pilot)
    return order[agreement[order] >= MIN_AGREEMENT][:n]


def _rows(rule: Callable[[Pilot, int], RowNumbers]) -> Rule:
    def choose(pilot: Pilot, n: int, agreement: Float) -> Landmarks:
        rows = rule(pilot, n)
        return Landmarks(pilot.trial.split.X_train[rows], rows)

    return choose


def _agreeing_rows(pilot: Pilot, n: int, agreement: Float) -> Landmarks:
    return _rows(lambda pilot, n: _without_outliers(pilot, n, agreement))(pilot, n, agreement)


def _second_stage(selector: NegativeMargin) -> Rule:
    """Return the rule of a selector that uses the pilot."""

    def choose(pilot: Pilot, n: int, agreement: Float) -> Landmarks:
        return selector.choose(pilot.problem, pilot.fit, n, copy.deepcopy(pilot.rng))

    return choose


def _own_stages(make: Callable[[], LandmarkSelector]) -> Rule:
    """Return the rule of a selector that does not use the pilot."""

    def choose(pilot: Pilot, n: int, agreement: Float) -> Landmarks:
        return make().select(pilot.problem, n, np.random.RandomState(pilot.trial.seed(n)))

    return choose


RULES: dict[str, Rule] = {
    UNIFORM: _rows(lambda pilot, n: pilot.rows),
    MARGIN: _second_stage(NegativeMargin()),
    "margin, class quotas": _rows(
        lambda pilot, n: hardest_of_each_class(pilot, class_quotas(pilot.codes, n))
    ),
    "margin, no outliers": _agreeing_rows,
    "margin, diverse": _second_stage(NegativeMargin(picker="cholesky")),
    "half margin, half uniform": _rows(_half_uniform),
    "k-means": _own_stages(KMeans),
    "class centroids": _own_stages(ClassCentroids),
    "support centroids": _own_stages(SupportCentroids),
}
