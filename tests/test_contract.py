"""scikit-learn's own checks, for every estimator × selector × map, at 100 and at 5 landmarks."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from nysplus import EnsembleMap, Nystroem, NystroemClassifier, NystroemRegressor, RandomizedMap
from nysplus.landmarks import SELECTORS

# The checks use fewer rows than 100, so the warning about that is part of every run.
pytestmark = pytest.mark.filterwarnings("ignore:n_components=100 exceeds")

MAPS = ["standard", RandomizedMap(), EnsembleMap()]
UNSUPERVISED = [name for name in SELECTORS if not SELECTORS[name].needs_labels]


def variants(kind, selections):
    for n in (100, 5):
        yield kind(n_components=n)
        for selection in selections:
            yield kind(n_components=n, selection=selection)
        for approximation in MAPS[1:]:
            yield kind(n_components=n, approximation=approximation)


ESTIMATORS = [
    *variants(NystroemClassifier, SELECTORS),
    *variants(NystroemRegressor, UNSUPERVISED),
    *variants(Nystroem, UNSUPERVISED),
]

DRAWN = (
    "Landmarks are drawn among the rows by number, the randomized map draws its directions, the "
    "ensemble deals landmarks out to its experts in turn. Repeating or removing rows changes all "
    "three for the same seed: the two fits agree in distribution, not one by one (as with KMeans). "
    "With all rows as landmarks of the standard map nothing is drawn and the check passes."
)
TOO_FEW = (
    "The check asks for more than the span of at most 5 kernel functions can hold: R² > 0.5 on 10 "
    "independent features, 83 % of three classes. It passes with 100 landmarks."
)


def expected_failures(estimator):
    if isinstance(estimator, Nystroem):
        return {}
    few = estimator.n_components < 100
    failures = {}
    if few or estimator.approximation != "standard":
        failures["check_sample_weight_equivalence_on_dense_data"] = DRAWN
        failures["check_sample_weight_equivalence_on_sparse_data"] = DRAWN
    if few and isinstance(estimator, NystroemRegressor):
        failures["check_regressors_train"] = TOO_FEW
    if few and isinstance(estimator.approximation, RandomizedMap):
        failures["check_classifiers_train"] = TOO_FEW
    return failures


@pytest.mark.filterwarnings("ignore:fit keeps no sums")  # scikit-learn calls partial_fit after fit
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
