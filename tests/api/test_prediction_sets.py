"""Prediction sets, intervals, novelty and abstention, with public names only."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from factories import classes, labels, mixed_table, values
from scipy.stats import binom
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC

from nysplus import NystroemClassifier, NystroemRegressor, from_svc, load
from nysplus.export import to_c, to_json


def noisy_classes(n, seed):
    """Rows of three overlapping classes."""
    rng = np.random.RandomState(seed)
    y = rng.randint(0, 3, n)
    return np.array([[0, 0], [2, 0], [0, 2]])[y] + rng.randn(n, 2), np.array(["a", "b", "c"])[y]


def noisy_values(n, seed):
    rng = np.random.RandomState(seed)
    X = rng.rand(n, 2) * 4
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.standard_t(4, n)


def classifier(n=600, **params):
    return NystroemClassifier(**{"n_components": 25, "random_state": 0, **params}).fit(
        *noisy_classes(n, 0)
    )


def regressor(n=600, **params):
    return NystroemRegressor(**{"n_components": 25, "random_state": 0, **params}).fit(
        *noisy_values(n, 0)
    )


def covered(model, X, y, confidence):
    """Return for each row whether its set or interval has the target."""
    if isinstance(model, NystroemRegressor):
        low, high = model.predict_interval(X, confidence).T
        return (low <= y) & (y <= high)
    return model.predict_set(X, confidence)[np.arange(len(y)), np.searchsorted(model.classes_, y)]


@pytest.fixture(scope="module")
def fitted_once():
    """Return a function that makes a model, which tests may not change, once."""
    return cache(lambda make: make())


CASES = [(classifier, noisy_classes), (regressor, noisy_values)]


@pytest.mark.parametrize(("make", "rows"), CASES)
@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95])
def test_calibrated_coverage_is_within_binomial_bounds(make, rows, confidence):
    """Over 40 sets of calibration rows, on 2000 test rows each."""
    model, counts = make(), []
    for seed in range(1, 41):
        model.calibrate(*rows(199, seed))
        counts.append(covered(model, *rows(2000, 1000 + seed), confidence).mean())
    # the coverage given the calibration rows is Beta(r, n + 1 − r): its mean over 40 draws
    rank = np.ceil(round(200 * confidence, 6))
    mean = rank / 200
    error = np.sqrt(mean * (1 - mean) * (1 / 201 + 1 / 2000) / 40)
    assert abs(np.mean(counts) - mean) < 4 * error


@pytest.mark.parametrize(("make", "rows"), CASES)
@pytest.mark.parametrize("params", [{"selection": "uniform"}, {}, {"budget": "2kB"}])
def test_coverage_right_after_a_fit(make, rows, params):
    inside = covered(make(1500, **params), *rows(4000, 7), 0.9)
    # calibration rows and test rows are drawn: 500 held-out rows at least
    low, high = binom.interval(0.9999, 450, 0.9)
    assert low / 450 <= inside.mean() <= high / 450


def test_coverage_of_classes_whose_landmarks_are_means_of_a_few_rows():
    """Thirty classes of a dozen rows, in sixty columns: every landmark is the mean of a class."""

    def rows(n, seed):
        y = np.arange(n) % 30
        means = np.random.RandomState(0).randn(30, 60)
        return means[y] + 2.0 * np.random.RandomState(seed).randn(n, 60), y

    models = [NystroemClassifier(30, random_state=0).fit(*rows(360, seed)) for seed in (1, 2)]
    found = [covered(model, *rows(1500, 9), 0.9) for model in models]
    assert 0.87 < np.mean(found) < 0.95  # .65 if rows stay in their landmarks


@pytest.mark.parametrize("kind", ["classes", "values"])
def test_closed_form_equals_literal_leave_one_out(kind):
    """With landmarks that do not depend on targets, the bound is that of n fits."""
    make, rows = CASES[kind == "values"]
    X, y = rows(60, 3)
    params = {"selection": X[:12], "alpha": 0.1, "gamma": 0.5}
    model = make(**params)
    model = clone(model).fit(X, y)
    scores = []
    for i in range(60):
        rest = np.arange(60) != i
        alone = clone(model).fit(X[rest], y[rest])
        if kind == "values":
            scores.append(abs(alone.predict(X[[i]])[0] - y[i]))
        else:  # the slope of the fit to all rows, as in the sets
            f = alone.decision_function(X[[i]])[0]
            slope = _slope(model, X)
            p = np.exp(slope * (f - f.max()))
            scores.append(1 - (p / p.sum())[np.searchsorted(model.classes_, y[i])])
    bound = np.sort(scores)[int(np.ceil(61 * 0.9)) - 1]
    if kind == "values":
        low, high = model.predict_interval(X[:1], 0.9)[0]
        assert (high - low) / 2 == pytest.approx(bound, rel=1e-5)
    else:
        grid = noisy_classes(500, 5)[0]
        expected = 1 - model.predict_proba(grid) <= bound * (1 + 1e-6)
        np.testing.assert_array_equal(model.predict_set(grid, 0.9), expected)


def _slope(model, X):
    """Return β of ``p = softmax(β f)``, from two classes of a row."""
    f, p = model.decision_function(X)[0], model.predict_proba(X)[0]
    return np.log(p[0] / p[1]) / (f[0] - f[1])


def test_sets_and_intervals_grow_with_the_confidence():
    X = noisy_classes(300, 1)[0]
    sets = [classifier().predict_set(X, c) for c in (0.5, 0.8, 0.9, 0.95, 0.99)]
    assert all((small <= large).all() for small, large in pairwise(sets))
    assert sets[0].sum() < sets[-1].sum()
    model, X = regressor(), noisy_values(10, 1)[0]
    widths = [np.ptp(model.predict_interval(X, c), axis=1) for c in (0.5, 0.8, 0.9, 0.99)]
    assert (np.diff(widths, axis=0) > 0).all()
    np.testing.assert_allclose(model.predict_interval(X).mean(axis=1), model.predict(X))


def test_class_conditional_sets_cover_every_class():
    """Of two classes with different shares, marginal sets cover the rare one less often."""

    def rows(n, seed):
        rng = np.random.RandomState(seed)
        y = (rng.rand(n) < 0.15).astype(int)
        return rng.randn(n, 1) + 1.2 * y[:, None], y

    model = NystroemClassifier(20, random_state=0).fit(*rows(1000, 0))
    X, y = rows(8000, 2)
    marginal = [covered(model.calibrate(*rows(2000, 1)), X, y, 0.9)[y == c].mean() for c in (0, 1)]
    model.calibrate(*rows(2000, 1), class_conditional=True)
    own = [covered(model, X, y, 0.9)[y == c].mean() for c in (0, 1)]
    assert marginal[1] < 0.75
    assert min(own) > 0.85
    assert max(own) < 0.95


def test_intervals_of_several_outputs():
    X, Y = values(400, 3, 2)
    model = NystroemRegressor(20, random_state=0).fit(X, Y)
    ends = model.predict_interval(X)
    assert ends.shape == (400, 2, 2)
    np.testing.assert_allclose(ends.mean(axis=1), model.predict(X))


def test_multilabel_models_refuse():
    X, Y = labels()
    model = NystroemClassifier(20, random_state=0).fit(X, Y)
    for call in (lambda: model.predict_set(X), lambda: model.calibrate(X, Y)):
        with pytest.raises(ValueError, match="predicts 3 labels per row"):
            call()
    assert model.novelty(X).shape == (300,)


# ---- calibrate --------------------------------------------------------------------------------


def test_bad_calibration_rows():
    model = classifier()
    X, y = noisy_classes(200, 1)
    with pytest.raises(ValueError, match="All 200 calibration rows have the class 'a'"):
        model.calibrate(X, np.full(200, "a"))
    with pytest.raises(ValueError, match=r"y contains \['z'\]"):
        model.calibrate(X, np.where(y == "a", "z", y))
    some = y != "c"
    with pytest.raises(ValueError, match=r"none of \['c'\]"):
        model.calibrate(X[some], y[some], class_conditional=True)
    with pytest.raises(ValueError, match=r"needs the scores of at least 99 rows, and .* has 30"):
        model.calibrate(X[:30], y[:30]).predict_set(X, 0.99)
    with pytest.raises(ValueError, match=r"class_conditional='yes' is not allowed\. Pass True"):
        model.calibrate(X, y, class_conditional="yes")
    with pytest.raises(ValueError, match="0 sample"):
        model.calibrate(X[:0], y[:0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.calibrate(X, y[:-1])
    with pytest.raises(ValueError, match="X has 1 features"):
        model.calibrate(X[:, :1], y)
    with pytest.raises(ValueError, match="y contains NaN"):
        regressor().calibrate(X, np.where(y == "a", np.nan, 1.0))


@pytest.mark.parametrize("confidence", [0, 1, 0.0, 1.0, -0.1, 90, "90%", None, True, np.nan])
@pytest.mark.parametrize("make", [classifier, regressor])
def test_confidences_that_are_no_shares_of_rows_are_refused(make, confidence, fitted_once):
    model, X = fitted_once(make), np.zeros((2, 2))
    name = "predict_set" if make is classifier else "predict_interval"
    calls = [lambda: getattr(model, name)(X, confidence)]
    if make is classifier and confidence is not None:
        calls.append(lambda: model.predict_or_abstain(X, confidence=confidence))
    if confidence is not None:
        calls += [lambda f=f: f(model, confidence=confidence) for f in (to_c, to_json)]
    for call in calls:
        with pytest.raises(
            ValueError, match=r"is not allowed\. Pass a number between 0 and 1, such"
        ):
            call()


@pytest.mark.parametrize("method", ["calibrate", "predict_set", "novelty", "predict_or_abstain"])
def test_models_must_be_fitted_first(method):
    X, y = noisy_classes(20, 0)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(NystroemClassifier(), method)(X, *([y] if method == "calibrate" else []))


def test_a_fit_replaces_the_calibration():
    model, X = classifier(), noisy_classes(500, 3)[0]
    before = model.predict_set(X)
    odd = np.random.RandomState(0).permutation(noisy_classes(500, 1)[1])
    model.calibrate(noisy_classes(500, 1)[0], odd)
    assert model.predict_set(X).sum() > before.sum()
    model.fit(*noisy_classes(600, 0))
    np.testing.assert_array_equal(model.predict_set(X), before)


def _compressed():
    return classifier().compress(10)


def _updated():
    model = NystroemClassifier(20, random_state=0)
    return model.partial_fit(*noisy_classes(300, 0), classes=["a", "b", "c"])


def _imported():
    return from_svc(SVC().fit(*noisy_classes(200, 0)))


@pytest.mark.parametrize("make", [_compressed, _updated, _imported])
def test_models_without_left_out_rows_say_how_to_get_them(make):
    model, X = make(), noisy_classes(400, 5)[0]
    for call in (model.predict_set, model.novelty):
        with pytest.raises(ValueError, match=r"Call calibrate\(X, y\)"):
            call(X)
    model.calibrate(*noisy_classes(1000, 4))
    assert abs(covered(model, *noisy_classes(2000, 6), 0.9).mean() - 0.9) < 0.05
    assert 0.3 < model.novelty(X).mean() < 0.7


def test_merge_and_retune_drop_a_calibration():
    model = _updated().calibrate(*noisy_classes(100, 1))
    model.retune()
    with pytest.raises(ValueError, match="Call calibrate"):
        model.predict_set(noisy_classes(5, 0)[0])


# ---- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("conditional", [False, True])
def test_files_keep_sets_and_novelty(tmp_path, conditional):
    X = noisy_classes(300, 2)[0]
    model = classifier()
    if conditional:
        model.calibrate(*noisy_classes(400, 1), class_conditional=True)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_set(X, 0.95), model.predict_set(X, 0.95))
    np.testing.assert_array_equal(again.novelty(X), model.novelty(X))


def test_files_keep_intervals(tmp_path):
    X, model = noisy_values(50, 2)[0], regressor()
    model.save(tmp_path / "model")
    again = load(tmp_path / "model").predict_interval(X)
    np.testing.assert_array_equal(again, model.predict_interval(X))


# ---- novelty ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params", [{}, {"selection": "uniform"}, {"budget": "2kB"}, {"kernel": "laplacian"}]
)
def test_novelty_of_familiar_and_foreign_rows(params):
    model = classifier(1500, **params)
    familiar = model.novelty(noisy_classes(1000, 1)[0])
    assert familiar.min() >= 0
    assert familiar.max() <= 1
    assert 0.4 < familiar.mean() < 0.6
    assert (familiar > 0.99).mean() < 0.04
    np.testing.assert_array_equal(model.novelty(np.full((3, 2), 100.0)), 1.0)


def related_columns(n, seed, broken=False):
    """Two columns follow each other; the class depends on a third one."""
    rng = np.random.RandomState(seed)
    X = rng.randn(n, 6)
    X[:, 1] = rng.randn(n) if broken else X[:, 0] + 0.05 * rng.randn(n)
    return X, (X[:, 2] > 0).astype(int)


def test_models_with_a_learned_map_notice_what_the_map_has_lost():
    model = NystroemClassifier(8, metric=1, random_state=0).fit(*related_columns(1200, 0))
    assert model.expansion_.projection.shape == (6, 1)
    familiar = model.novelty(related_columns(2000, 1)[0])
    strange = model.novelty(related_columns(2000, 2, broken=True)[0])
    assert 0.4 < familiar.mean() < 0.6
    assert (familiar > 0.99).mean() < 0.04
    assert strange.mean() > 0.9
    model.calibrate(*related_columns(600, 3))
    assert 0.4 < model.novelty(related_columns(2000, 1)[0]).mean() < 0.6
    assert model.novelty(related_columns(2000, 2, broken=True)[0]).mean() > 0.9


def test_novelty_of_tables():
    X, y = mixed_table(600)
    model = NystroemClassifier(30, encoder="auto", random_state=0).fit(X[:400], y[:400])
    assert 0.3 < model.novelty(X[400:]).mean() < 0.75


def test_kernels_that_do_not_measure_similarity_have_no_novelty():
    with pytest.raises(ValueError, match="25 landmarks and the kernel Linear"):
        classifier(kernel="linear").novelty(noisy_classes(5, 0)[0])


def test_predict_or_abstain_masks_strange_and_uncertain_rows():
    model, X = classifier(), noisy_classes(300, 1)[0]
    X[0] = 50.0
    found = model.predict_or_abstain(X)
    assert found.mask[0]
    np.testing.assert_array_equal(found.mask, model.novelty(X) > 0.99)
    np.testing.assert_array_equal(found.data, model.predict(X))
    sure = model.predict_or_abstain(X, novelty=None, confidence=0.95)
    np.testing.assert_array_equal(~sure.mask, model.predict_set(X, 0.95).sum(axis=1) == 1)
    values_ = regressor().predict_or_abstain(np.array([[1.0, 1.0], [99.0, 99.0]]), novelty=0.99)
    np.testing.assert_array_equal(values_.mask, [False, True])
    with pytest.raises(ValueError, match=r"between 0 and 1, such as 0\.99"):
        model.predict_or_abstain(X, novelty="all")


# ---- rows elsewhere ---------------------------------------------------------------------------


def test_rows_on_disk_and_in_memory_give_the_same_sets(tmp_path):
    X, y = classes(900, seed=1)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    here, there = (NystroemClassifier(30, random_state=0).fit(rows, y) for rows in (X, mapped))
    np.testing.assert_array_equal(here.predict_set(X), there.predict_set(mapped))
    assert abs(np.mean(here.novelty(X)) - np.mean(there.novelty(mapped))) < 0.02
    np.testing.assert_allclose(
        here.calibrate(X, y).novelty(X), there.calibrate(mapped, y).novelty(mapped), atol=1e-6
    )


def test_intervals_of_rows_on_disk_come_from_rows_that_the_selector_has_gathered(tmp_path):
    X, y = noisy_values(3000, 0)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    here, there = (NystroemRegressor(25, random_state=0).fit(rows, y) for rows in (X, mapped))
    np.testing.assert_allclose(there.predict_interval(X), here.predict_interval(X), rtol=1e-5)
    assert there.n_passes_ == 2  # to learn of the rows, and to fit
    assert 0.87 < covered(there, *noisy_values(4000, 7), 0.9).mean() < 0.93
    assert 0.45 < there.novelty(noisy_values(2000, 7)[0]).mean() < 0.55
    # rows that were drawn as landmarks say nothing of others, which would take another pass
    uniform = NystroemRegressor(25, selection="uniform", random_state=0).fit(mapped, y)
    for call in (uniform.predict_interval, uniform.novelty):
        with pytest.raises(ValueError, match="fitted to rows outside memory may not"):
            call(X)


def test_dask_collections_are_lazy():
    da = pytest.importorskip("dask.array")
    X, y = classes(600, seed=1)
    model = NystroemClassifier(20, random_state=0).fit(da.from_array(X, 200), da.from_array(y, 200))
    sets = model.predict_set(da.from_array(X, 200))
    np.testing.assert_array_equal(sets.compute(), model.predict_set(X))
    outputs = NystroemRegressor(20, random_state=0).fit(X, np.c_[y, X[:, 0]])
    ends = outputs.predict_interval(da.from_array(X, 200))
    assert ends.shape == (600, 2, 2)
    np.testing.assert_allclose(ends.compute(), outputs.predict_interval(X))
    with pytest.raises(TypeError, match="not lazy"):
        model.predict_or_abstain(da.from_array(X, 200))
