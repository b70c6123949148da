"""scikit-learn's own checks of the estimators with their default parameters."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from nysplus import Nystroem, NystroemClassifier, NystroemRegressor
from nysplus.encoding import TableEncoder

COUNTED_ONCE = (
    "The code describes the columns of a table: knots are quantiles of the rows of positive "
    "weight, each of which counts once, and a repeated row counts twice. The code of repeated rows "
    "is another one, as with a QuantileTransformer before a weighted model."
)


def expected_failures(estimator):
    if getattr(estimator, "encoder", None) is None:
        return {}
    return {"check_sample_weight_equivalence_on_dense_data": COUNTED_ONCE}


@pytest.mark.filterwarnings("ignore:n_components=100 exceeds")  # the checks use fewer rows
@pytest.mark.filterwarnings("ignore:fit keeps no sums")  # and call partial_fit after fit
@parametrize_with_checks(
    [
        NystroemClassifier(),
        NystroemRegressor(),
        Nystroem(),
        Nystroem(kernel="precomputed"),
        NystroemClassifier(encoder="auto"),
        NystroemRegressor(encoder="auto"),
        NystroemRegressor(encoder=TableEncoder(numbers="standard")),
    ],
    expected_failed_checks=expected_failures,
)
def test_contract(estimator, check):
    check(estimator)
