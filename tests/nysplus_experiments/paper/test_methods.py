from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from nysplus import EnsembleMap, NystroemClassifier, RandomizedMap
from nysplus.landmarks import KMeans, NegativeMargin, SupervisedKMeans, SupportCentroids
from nysplus_experiments.harness import datasets
from nysplus_experiments.harness.datasets import Split
from nysplus_experiments.paper import methods
from nysplus_experiments.paper.methods import METHODS, Trial, fit_method
from nysplus_experiments.paper.trial import seed_of

MAPS = {"Nys": "standard", "ENys": EnsembleMap(n_experts=5), "RNys": RandomizedMap()}


@pytest.fixture(scope="module")
def split() -> Split:
    return datasets.load("digits", 1)


@pytest.fixture
def trial(split: Split) -> Trial:
    return Trial(split, 1)


def classifier(split: Split, n: int, first_size: int, **parameters: object) -> NystroemClassifier:
    seed = seed_of("digits", 1, first_size)
    model = NystroemClassifier(
        n, gamma=split.gamma, alpha=methods.ALPHA, random_state=seed, **parameters
    )
    return model.fit(split.X_train, split.y_train)


def assert_same(fitted: methods.Fitted, model: NystroemClassifier, split: Split) -> None:
    predicted = model.classes_[fitted.predict(split.X_test)]
    np.testing.assert_array_equal(predicted, model.predict(split.X_test))
    assert fitted.kernel_evaluations == model.n_kernel_evaluations_
    assert fitted.stored_bytes == model.model_bytes_


@pytest.mark.parametrize("name", ["Nys", "ENys", "RNys"])
def test_one_stage_methods_are_the_classifier(name: str, trial: Trial, split: Split) -> None:
    model = classifier(split, 60, 60, selection="uniform", approximation=MAPS[name])
    fitted = fit_method(name, trial, 60)
    assert_same(fitted, model, split)
    np.testing.assert_array_equal(
        methods.first_stage(name, trial, 60).fit.expansion.landmarks, model.landmarks_
    )
    assert fitted.first_stage_seconds is None


@pytest.mark.parametrize("name", ["Nys", "ENys", "RNys"])
def test_a_shared_first_stage_gives_the_classifier_s_landmarks(
    name: str, trial: Trial, split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = []
    choose = NegativeMargin.choose

    def spy(*arguments: object) -> object:
        chosen.append(choose(*arguments))
        return chosen[-1]

    fit_method(name, trial, 40)
    stage = methods.first_stage(name, trial, 40)
    for n in (30, 90):
        model = classifier(
            split, n, 40, selection=NegativeMargin(n_initial=40), approximation=MAPS[name]
        )
        with monkeypatch.context() as patch:
            patch.setattr(NegativeMargin, "choose", spy)
            fitted = fit_method(f"{name}+", trial, n, 40)
        np.testing.assert_array_equal(chosen[-1].indices, model.landmark_indices_)
        assert_same(fitted, model, split)
        assert fitted.first_stage_seconds == stage.seconds
        assert methods.first_stage(name, trial, 40) is stage, "the first stage was fitted again"


@pytest.mark.parametrize(
    ("name", "selection"),
    [
        ("KNys", KMeans()),
        ("KNys+", SupervisedKMeans(n_initial=50)),
        ("SC", SupportCentroids(n_initial=50)),
    ],
)
def test_clustering_methods_are_the_classifier(
    name: str, selection: object, trial: Trial, split: Split
) -> None:
    fitted = fit_method(name, trial, 50)
    assert_same(fitted, classifier(split, 50, 50, selection=selection), split)


def test_covtype_clusters_50000_rows_and_har_5000_candidates() -> None:
    assert methods.VARIANTS["KNys"].selector("covtype").max_rows == 50_000
    assert methods.VARIANTS["KNys"].selector("mnist").max_rows == 20_000
    assert methods._supervised_kmeans("har", 10).n_candidates == 5_000
    assert methods._supervised_kmeans("mnist", 10).n_candidates is None


def test_rows_do_not_depend_on_what_ran_before(split: Split, trial: Trial) -> None:
    for name in ("Nys", "RNys", "Nys+"):
        fit_method(name, trial, 30)
    after_others = fit_method("RNys+", trial, 60, 30).predict(split.X_test)
    alone = fit_method("RNys+", Trial(split, 1), 60, 30).predict(split.X_test)
    np.testing.assert_array_equal(after_others, alone)


def test_kernel_ridge_is_dense_kernel_ridge_with_a_free_intercept(split: Split) -> None:
    small = Split(
        "digits", split.X_train[:300], split.y_train[:300], split.X_test, split.y_test, 0.02
    )
    trial = Trial(small, 1)
    X, X_test = small.X_train, small.X_test

    def kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.exp(-0.02 * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))

    Y = np.where(small.y_train[:, None] == trial.classes, 1.0, -1.0)
    centre = np.eye(300) - 1 / 300
    # The centred dual: b absorbs the means, A = (HKH + ρI)⁻¹ HY.
    A = np.linalg.solve(centre @ kernel(X, X) @ centre + 1e-5 * np.eye(300), centre @ Y)
    A = centre @ A
    b = (Y - kernel(X, X) @ A).mean(axis=0)
    fitted = fit_method("KRR", trial, 300)
    expected = (kernel(X_test, X) @ A + b).argmax(axis=1)
    np.testing.assert_array_equal(fitted.predict(X_test), expected)
    expansion = methods.kernel_ridge(trial.kernel, X, Y, methods.ALPHA)
    np.testing.assert_allclose(expansion.intercept, b, rtol=1e-6)
    np.testing.assert_allclose(expansion(X_test), kernel(X_test, X) @ A + b, atol=1e-6)
    assert fitted.paper_bytes == 8 * 300 * (64 + 10)


def test_fourier_is_scikit_learn_s_pipeline(trial: Trial, split: Split) -> None:
    fitted = fit_method("Fourier", trial, 150)
    sampler = RBFSampler(gamma=split.gamma, n_components=150, random_state=trial.seed(150))
    pipeline = make_pipeline(sampler, RidgeClassifier(alpha=methods.ALPHA))
    expected = pipeline.fit(split.X_train, split.y_train).predict(split.X_test)
    agreement = np.mean(trial.classes[fitted.predict(split.X_test)] == expected)
    assert agreement >= 0.998
    assert fitted.paper_bytes == fitted.stored_bytes == 8 * (64 * 150 + 150 + 150 * 10 + 10)


def test_kernel_svm_is_scikit_learn_s(trial: Trial, split: Split) -> None:
    fitted = fit_method("KSVM", trial, 1297)
    model = SVC(C=10, gamma=split.gamma).fit(split.X_train, split.y_train)
    predicted = trial.classes[fitted.predict(split.X_test)]
    np.testing.assert_array_equal(predicted, model.predict(split.X_test))
    assert fitted.paper_bytes == 8 * (len(model.support_) * (64 + 9) + 45)
    assert fitted.kernel_evaluations is None


@pytest.mark.parametrize(("name", "limit"), [("KRR", 20_000), ("KSVM", 150_000)])
def test_full_machines_refuse_too_many_rows(name: str, limit: int, trial: Trial) -> None:
    message = f"{name} takes at most {limit} training rows, got {limit + 1}. Leave it out"
    with pytest.raises(ValueError, match=message):
        fit_method(name, trial, limit + 1)


def test_two_classes_have_one_output() -> None:
    X, y = np.random.RandomState(0).rand(200, 3), np.arange(200) % 2 * 2 - 1
    trial = Trial(Split("pair", X, y, X[:50], y[:50], 1.0), 0)
    for name in ("Nys", "KRR", "Fourier"):
        n = 200 if METHODS[name].full else 20
        fitted = fit_method(name, trial, n)
        assert set(fitted.predict(X)) <= {0, 1}
        if name != "Fourier":
            assert fitted.paper_bytes == 8 * n * (3 + 1)


def test_seeds_are_stable_and_differ() -> None:
    assert seed_of("usps", 0, 100) == 137226029
    seeds = {seed_of(d, t, n) for d in ("usps", "har") for t in (0, 1) for n in (10, 20)}
    assert len(seeds) == 8
    assert all(0 <= seed < 2**32 for seed in seeds)


def test_the_table_has_every_method_of_the_paper() -> None:
    two_stage = {"Nys+", "ENys+", "RNys+", "KNys+", "SC"}
    assert {name for name, row in METHODS.items() if row.two_stage} == two_stage
    assert {name for name, row in METHODS.items() if row.full} == {"KRR", "KSVM"}
    assert set(METHODS) - two_stage == {"Nys", "ENys", "RNys", "KNys", "Fourier", "KRR", "KSVM"}
    for name, row in METHODS.items():
        assert row.name == name
        assert row.first in METHODS
