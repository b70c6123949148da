"""scikit-learn's own checks of the estimators with their default parameters."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from nysplus import Nystroem, NystroemClassifier, NystroemRegressor


@pytest.mark.filterwarnings("ignore:n_components=100 exceeds")  # the checks use fewer rows
@pytest.mark.filterwarnings("ignore:fit keeps no sums")  # and call partial_fit after fit
@parametrize_with_checks(
    [NystroemClassifier(), NystroemRegressor(), Nystroem(), Nystroem(kernel="precomputed")]
)
def test_contract(estimator, check):
    check(estimator)
