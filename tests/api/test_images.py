"""Models of images: fits, rows in all places, smaller models, files and curves."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

from nysplus import NystroemClassifier, NystroemRegressor, Refinement, load
from nysplus.curve import landmark_curve
from nysplus.encoding import ImageEncoder

ENCODER = ImageEncoder((8, 8), n_cosines=6)
SHORT = {"n_epochs": 6, "search": False}
MODELS = {
    "plain": {"n_components": 40},
    "budget": {"budget": "4kB"},
    "refined": {"budget": "4kB", "refine": Refinement(**SHORT)},
    "learned": {"n_components": 30, "refine": Refinement(**SHORT)},
    "metric": {"n_components": 40, "metric": "diagonal"},
    "automatic": {"n_components": "auto", "kernel": "auto"},
    "laplacian": {"n_components": 40, "kernel": "laplacian"},
}


def fitted(digits, name="plain", encoder=ENCODER, n_rows=900, **more):
    X, y = digits
    model = NystroemClassifier(encoder=encoder, random_state=0, **{**MODELS[name], **more})
    return model.fit(X[:n_rows], y[:n_rows])


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_images_is_the_model_of_their_cosines(digits, name):
    """The encoder inside the model, and the transformer before it: images learn half as fast."""
    X, y = digits
    params = MODELS[name] if name == "automatic" else {**MODELS[name], "gamma": 0.1}
    model = NystroemClassifier(encoder=ENCODER, random_state=0, **params).fit(X[:900], y[:900])
    rows = ENCODER.fit_transform(X)
    if "refine" in params:
        params = {**params, "refine": Refinement(**SHORT, learning_rate=0.02)}
    other = NystroemClassifier(random_state=0, **params).fit(rows[:900], y[:900])
    np.testing.assert_allclose(
        model.decision_function(X), other.decision_function(rows), rtol=1e-4, atol=1e-4
    )
    assert model.model_bytes_ == other.model_bytes_
    assert model.n_features_in_ == 64
    assert model.landmarks_.shape == other.landmarks_.shape
    assert model.score(X[900:], y[900:]) > 0.9


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_all_cosines_make_the_model_of_the_pixels(digits, kernel):
    """They keep distances and products; gamma="scale" is that of the pixels."""
    X, y = digits
    encoder = ImageEncoder((8, 8), n_cosines=8)
    params = {"n_components": 40, "kernel": kernel, "alpha": 0.1, "selection": "uniform"}
    model, other = (
        NystroemClassifier(encoder=each, random_state=0, **params).fit(X[:900], y[:900])
        for each in (encoder, None)
    )
    assert model.gamma_ == other.gamma_
    np.testing.assert_allclose(
        model.decision_function(X), other.decision_function(X), rtol=1e-3, atol=1e-3
    )


def test_values(digits):
    X, y = digits
    model = NystroemRegressor(100, encoder=ENCODER, random_state=0).fit(X[:900], y[:900])
    assert model.score(X[900:], y[900:]) > 0.7


@pytest.mark.parametrize(("budget", "n_columns"), [("2kB", 64), (None, 256)])
def test_the_budget_sets_the_number_of_cosines(budget, n_columns):
    rng = np.random.RandomState(0)
    X, y = rng.rand(200, 400), rng.randint(0, 2, 200)
    encoder = ImageEncoder((20, 20))
    model = NystroemClassifier(10, encoder=encoder, budget=budget, random_state=0).fit(X, y)
    assert model.landmarks_.shape[1] == n_columns
    assert budget is None or model.model_bytes_ <= 2048


def test_pixels_far_from_zero(digits):
    """Cosines of rows far from zero have a centre; the first of them is far from zero itself."""
    X, y = digits
    near, far = fitted(digits, "budget"), fitted((X + 1000.0, y), "budget")
    assert far.expansion_.center is not None
    agreement = (near.predict(X) == far.predict(X + 1000.0)).mean()
    assert agreement > 0.95


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array, np.asfortranarray, np.float32])
def test_kinds_of_rows(digits, make):
    X, y = digits
    model = fitted(digits)
    np.testing.assert_allclose(
        model.decision_function(make(X)), model.decision_function(X), rtol=1e-4, atol=1e-5
    )
    other = fitted((make(X), y))
    np.testing.assert_allclose(
        other.decision_function(X), model.decision_function(X), rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize("kind", ["parquet", "dask"])
def test_rows_elsewhere(digits, kind, tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = digits
    frame = pd.DataFrame(X, columns=[f"p{i}" for i in range(64)]).assign(label=y)
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(tmp_path / "digits.parquet")
        rows = tmp_path / "digits.parquet"
        model = NystroemClassifier(40, encoder=ENCODER, random_state=0).fit(rows, "label")
        found = model.predict(rows)
    else:
        dd = pytest.importorskip("dask.dataframe")
        rows, pixels = dd.from_pandas(frame, npartitions=3), list(frame.columns[:-1])
        model = NystroemClassifier(40, encoder=ENCODER, random_state=0)
        model.fit(rows[pixels], rows["label"])
        found = np.asarray(model.predict(rows[pixels]))
    assert (found == y).mean() > 0.9
    assert model.score(frame[frame.columns[:-1]], y) == pytest.approx((found == y).mean())


def test_partial_fit_continues_with_the_same_cosines(digits):
    X, y = digits
    model = NystroemClassifier(30, encoder=ENCODER, random_state=0)
    model.partial_fit(X[:300], y[:300], classes=np.arange(10))
    same = NystroemClassifier(30, encoder=ENCODER, random_state=0).fit(X[:300], y[:300])
    assert model.gamma_ == same.gamma_
    first = model.score(X[900:], y[900:])
    model.partial_fit(X[300:900], y[300:900])
    assert model.score(X[900:], y[900:]) > first > 0.8


def test_partial_fit_collects_few_rows(digits):
    """The same model as if they had come in one call."""
    X, y = digits
    parts, whole = (NystroemClassifier(30, encoder=ENCODER, random_state=0) for _ in range(2))
    for start in range(0, 30, 10):
        parts.partial_fit(X[start : start + 10], y[start : start + 10], classes=np.arange(10))
    whole.partial_fit(X[:30], y[:30], classes=np.arange(10))
    assert parts.gamma_ == whole.gamma_
    np.testing.assert_allclose(
        parts.decision_function(X), whole.decision_function(X), rtol=1e-4, atol=1e-4
    )


def test_merge(digits):
    X, y = digits
    model = NystroemClassifier(30, encoder=ENCODER, random_state=0)
    model.partial_fit(X[:300], y[:300], classes=np.arange(10))
    one, other = deepcopy(model), deepcopy(model)
    one.partial_fit(X[300:600], y[300:600])
    other.partial_fit(X[600:900], y[600:900])
    assert one.merge(other).score(X[900:], y[900:]) > 0.85
    fewer = NystroemClassifier(30, encoder=ImageEncoder((8, 8), n_cosines=5), random_state=0)
    fewer.partial_fit(X[:300], y[:300], classes=np.arange(10))
    with pytest.raises(ValueError, match="encode their rows differently"):
        one.merge(fewer)


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("name", ["plain", "metric"])
def test_compress(digits, name, given):
    X, y = digits
    model = fitted(digits, name)
    small = model.compress(20, *((X[:900], y[:900]) if given else ()))
    assert len(small.dual_coef_) == 20
    assert small.score(X[900:], y[900:]) > 0.75
    assert small.expansion_.encoder is model.expansion_.encoder


@pytest.mark.parametrize("name", MODELS)
def test_saved_models_predict_the_same_numbers(digits, name, tmp_path):
    X, _ = digits
    model = fitted(digits, name)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.get_params()["encoder__shape"] == (8, 8)


def test_curve(digits):
    X, y = digits
    estimator = NystroemClassifier(encoder=ENCODER, random_state=0)
    curve = landmark_curve(X, y, [10, 40, 80], estimator=estimator)
    assert curve.scores[-1] > 0.93
    assert curve.landmarks[0].shape == (10, 36)


def test_estimated_cost():
    model = NystroemClassifier(20, encoder=ENCODER, random_state=0)
    assert model.estimate_cost((1000, 64)).bytes > 0


def test_a_wrong_number_of_columns_is_one_clear_error(digits):
    X, y = digits
    model = NystroemClassifier(encoder=ImageEncoder((8, 9)))
    with pytest.raises(ValueError, match=r"X has 64 features, and images of the shape \(8, 9\)"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="is expecting 64 features"):
        fitted(digits).predict(X[:, :60])


def test_landmarks_cannot_be_given(digits):
    X, y = digits
    with pytest.raises(ValueError, match="encoder chooses the columns that landmarks have"):
        NystroemClassifier(encoder=ENCODER, selection=X[:5]).fit(X, y)


def test_gaps_are_refused(digits):
    X, y = digits
    X = X.copy()
    X[0, 0] = np.nan
    for refused in (
        lambda: NystroemClassifier(encoder=ENCODER).fit(X, y),
        lambda: fitted(digits).predict(X),
        lambda: ENCODER.fit(X),
    ):
        with pytest.raises(ValueError, match=r"takes no missing values\. Replace them") as error:
            refused()
        assert "encoder" not in str(error.value)


def test_the_rank_of_a_metric_is_at_most_the_number_of_cosines(digits):
    with pytest.raises(ValueError, match="36 features"):
        fitted(digits, metric=37)


def test_scikit_learn_is_told_that_gaps_are_refused():
    tags = NystroemClassifier(encoder=ENCODER).__sklearn_tags__()
    assert not tags.input_tags.allow_nan


def test_as_a_step_of_a_pipeline(digits):
    X, y = digits
    model = make_pipeline(ENCODER, NystroemClassifier(40, gamma=0.1, random_state=0))
    model.fit(X[:900], y[:900])
    inside = fitted(digits, gamma=0.1)
    np.testing.assert_allclose(
        model.decision_function(X), inside.decision_function(X), rtol=1e-5, atol=1e-6
    )


# -- augmentation ----------------------------------------------------------------------------------


def learned(digits, augment, **more):
    X, y = digits
    encoder = ImageEncoder((8, 8), n_cosines=6, augment=augment)
    refine = Refinement(search=False)
    model = NystroemClassifier(10, encoder=encoder, refine=refine, random_state=0, **more)
    return model.fit(X[:1200], y[:1200])


def moved(X):
    """Move each image of digits by up to a pixel to the left or to the right."""
    steps = np.random.RandomState(5).randint(-1, 2, len(X))
    images = zip(X.reshape(-1, 8, 8), steps, strict=True)
    return np.reshape([np.roll(image, step, axis=1) for image, step in images], X.shape)


def test_a_function_that_changes_nothing_makes_no_difference(digits):
    X, _ = digits
    plain, same = learned(digits, None), learned(digits, lambda images, rng: images)
    assert plain.refined_
    assert same.refined_
    np.testing.assert_allclose(
        same.decision_function(X), plain.decision_function(X), rtol=0.01, atol=0.01
    )


@pytest.mark.parametrize(
    "more",
    [
        {},
        pytest.param({"budget": 500}, marks=pytest.mark.all_combinations),
        pytest.param({"metric": "diagonal"}, marks=pytest.mark.all_combinations),
    ],
    ids=str,
)
def test_augmented_models_know_moved_digits(digits, more):
    X, y = digits[0][1200:], digits[1][1200:]
    plain, model = learned(digits, None, **more), learned(digits, "affine", **more)
    assert model.refined_
    assert model.score(X, y) > 0.9
    assert model.score(moved(X), y) > plain.score(moved(X), y) + 0.05
    if not more:
        again = learned(digits, "affine")
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_augmented_rows_elsewhere(digits, tmp_path):
    pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    X, y = digits
    frame = pd.DataFrame(X, columns=[f"p{i}" for i in range(64)])
    frame.assign(label=y)[:1200].to_parquet(tmp_path / "digits.parquet")
    encoder = ImageEncoder((8, 8), n_cosines=6, augment="affine")
    refine = Refinement(search=False)
    model = NystroemClassifier(10, encoder=encoder, refine=refine, random_state=0)
    model.fit(tmp_path / "digits.parquet", "label")
    assert model.refined_
    assert model.score(frame[1200:], y[1200:]) > 0.85


def test_augmentation_needs_refinement(digits):
    X, y = digits
    model = NystroemClassifier(encoder=ImageEncoder((8, 8), augment="affine"))
    with pytest.raises(ValueError, match=r"augment='affine'.*refine is off\. Pass refine=True"):
        model.fit(X, y)


def test_models_of_functions_are_saved_without_them(digits, tmp_path):
    X, _ = digits
    model = learned(digits, lambda images, rng: images)
    with pytest.raises(ValueError, match="cannot be saved"):
        model.save(tmp_path / "model")
    model.set_params(encoder__augment=None).save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
