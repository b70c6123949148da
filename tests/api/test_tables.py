"""Tables as they come: the estimators with an encoder, through public names."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from factories import mixed_table, sparse, weights
from sampling import sampled
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from nysplus import NystroemClassifier, NystroemRegressor, Refinement, landmark_curve
from nysplus.encoding import TableEncoder
from nysplus.kernels import RBF

SHORT = Refinement(n_epochs=2, search=False)


@pytest.fixture(scope="module")
def table():
    return mixed_table(400)


def classifier(**params):
    return NystroemClassifier(**{"n_components": 30, "encoder": "auto", "random_state": 0} | params)


def regressor(**params):
    return NystroemRegressor(**{"n_components": 30, "encoder": "auto", "random_state": 0} | params)


@pytest.fixture(scope="module")
def model(table):
    return classifier(n_components=80).fit(*table)


# ---- the model is the one of the encoded rows ---------------------------------------------------


@pytest.mark.parametrize("numbers", ["thermometer", "standard", "rank_gauss"])
def test_the_model_is_that_of_the_transformer_before_it(table, numbers):
    frame, y = table
    encoder = TableEncoder(numbers=numbers, n_bins=8)
    parameters = {"n_components": 30, "alpha": 0.1, "random_state": 0}
    inside = NystroemClassifier(encoder=encoder, **parameters).fit(frame, y)
    before = make_pipeline(clone(encoder), NystroemClassifier(**parameters)).fit(frame, y)
    np.testing.assert_allclose(
        inside.decision_function(frame), before.decision_function(frame), rtol=1e-4, atol=1e-5
    )
    assert inside.model_bytes_ == (before[-1].model_bytes_ + inside.expansion_.encoder.n_bytes)
    assert not hasattr(encoder, "code_")  # the user's object is not fitted


def test_statistics_of_targets_are_those_of_other_rows(table):
    frame, y = table
    parameters = {"n_components": 30, "alpha": 0.1, "kernel": RBF(0.05), "random_state": 0}
    encoder = TableEncoder(numbers="standard", target_statistics=True)
    inside = NystroemClassifier(encoder=encoder, **parameters).fit(frame, y)
    before = make_pipeline(clone(encoder), NystroemClassifier(**parameters)).fit(frame, y)
    np.testing.assert_allclose(
        inside.decision_function(frame), before.decision_function(frame), rtol=1e-3, atol=1e-4
    )


def test_statistics_of_noise_are_not_trusted():
    """Levels without any effect, of two rows each: in-sample means would tell every target."""
    rng = np.random.RandomState(0)
    frame = pd.DataFrame({"x": [f"level {i}" for i in rng.permutation(np.arange(400) // 2)]})
    y = rng.randn(400)
    encoder = TableEncoder(categories=["x"], target_statistics=True, min_level_rows=1)
    noisy = regressor(encoder=encoder, gamma=0.1, alpha=1.0)
    for fitted in (clone(noisy).fit(frame, y), clone(noisy).partial_fit(frame, y)):
        assert fitted.score(frame, y) < 0.1


def test_none_leaves_numbers_as_they_are(table):
    X = table[0][["income"]].to_numpy()
    plain = NystroemClassifier(20, random_state=0).fit(X, table[1])
    assert plain.expansion_.encoder is None
    explicit = NystroemClassifier(20, encoder=None, random_state=0).fit(X, table[1])
    np.testing.assert_array_equal(plain.decision_function(X), explicit.decision_function(X))


@pytest.mark.parametrize("params", [{}, {"budget": "2kB"}, {"metric": "diagonal"}])
def test_sparse_rows_are_used_as_they_are(params):
    X, y = sparse()
    given = NystroemClassifier(20, random_state=0, **params).fit(X, y)
    same = NystroemClassifier(20, encoder="auto", random_state=0, **params).fit(X, y)
    np.testing.assert_array_equal(given.decision_function(X), same.decision_function(X))
    assert same.expansion_.encoder is None


# ---- what predictions depend on -----------------------------------------------------------------


def test_learns_from_every_kind_of_column(model, table):
    assert model.score(*table) > 0.85
    for column in ("size", "colour"):  # the two that matter
        without = table[0].assign(**{column: None})
        assert (model.predict(without) != model.predict(table[0])).any()


def test_scales_do_not_matter(table):
    frame, y = table
    scaled = frame.assign(income=2.0**40 * frame["income"], size=2.0**-20 * frame["size"])
    first, second = classifier().fit(frame, y), classifier().fit(scaled, y)
    np.testing.assert_allclose(
        first.decision_function(frame), second.decision_function(scaled), atol=0.05
    )


def test_columns_in_any_order_and_more_of_them(model, table):
    frame = table[0]
    expected = model.decision_function(frame)
    for X in (
        frame[frame.columns[::-1]],
        frame.assign(more="x")[["more", *frame.columns]],
        pl.from_pandas(frame),
        pl.from_pandas(frame).lazy(),
        frame.astype({"colour": "category", "member": "boolean", "size": "Float32"})
        .astype({"size": "float64"})
        .assign(size=frame["size"]),
    ):
        np.testing.assert_array_equal(model.decision_function(X), expected)


def test_frames_of_other_libraries_give_the_same_model(model, table):
    frame, y = table
    other = classifier(n_components=80).fit(pl.from_pandas(frame), y)
    np.testing.assert_array_equal(other.decision_function(frame), model.decision_function(frame))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        by_position = model.decision_function(frame.to_numpy(dtype=object))
    np.testing.assert_array_equal(by_position, model.decision_function(frame))


def test_other_levels_and_gaps_have_a_meaning(model, table):
    frame = table[0].iloc[:20]
    new, gap = frame.assign(city="elsewhere"), frame.assign(city=None)
    # the city had no gaps in training: an unknown city in either case
    np.testing.assert_array_equal(model.decision_function(new), model.decision_function(gap))
    # incomes had none either, and are standardised: a gap is their mean
    filled = model.decision_function(frame.assign(income=table[0]["income"].mean()))
    missing = model.decision_function(frame.assign(income=np.nan))
    np.testing.assert_allclose(filled, missing, atol=0.02)


@pytest.mark.parametrize("numbers", ["thermometer", "rank_gauss"])
def test_numbers_beyond_the_range_of_training_are_at_its_end(table, numbers):
    frame, model = table[0].iloc[:20], classifier(encoder=TableEncoder(numbers=numbers)).fit(*table)
    largest = model.decision_function(frame.assign(income=table[0]["income"].max()))
    for income in (1e9, 1e300):
        far = model.decision_function(frame.assign(income=income))
        np.testing.assert_allclose(far, largest, atol=1e-3)


def test_names_of_columns(model, table):
    assert model.n_features_in_ == 6
    np.testing.assert_array_equal(model.feature_names_in_, table[0].columns)
    named = classifier().fit(table[0].assign(target=table[1], w=1.0), "target", sample_weight="w")
    assert named.n_features_in_ == 6
    assert named.score(table[0].assign(target=table[1]), "target") > 0.7


# ---- targets and weights ------------------------------------------------------------------------


def test_kinds_of_targets(table):
    frame, y = table
    text = np.where(y, "yes", "no")
    assert set(classifier().fit(frame, text).predict(frame)) == {"yes", "no"}
    labels = np.column_stack([y, 1 - y, frame["member"].astype(int)])
    found = classifier(n_components=80).fit(frame, labels)
    assert found.predict(frame).shape == (400, 3)
    assert found.predict_proba(frame).shape == (400, 3)
    values = np.column_stack([np.log(frame["income"]), y])
    assert regressor(n_components=80).fit(frame, values).score(frame, values) > 0.6
    several = pd.Series(["low", "mid", "high"]).iloc[np.arange(400) % 3].to_numpy()
    assert classifier().fit(frame, several).predict_proba(frame).shape == (400, 3)


def test_one_class(table):
    with pytest.raises(ValueError, match="y has one class only"):
        classifier().fit(table[0], np.zeros(400))


def test_class_weights(table):
    frame, y = table
    mean = classifier(class_weight={0: 1, 1: 20}).fit(frame, y).predict(frame).mean()
    assert mean > classifier().fit(frame, y).predict(frame).mean()
    assert classifier(class_weight="balanced").fit(frame, y).score(frame, y) > 0.7


def test_rows_of_weight_zero_are_ignored(table):
    frame, y = table
    weight = weights(400)
    strange = frame.copy()
    strange.loc[weight == 0, ["colour", "city"]] = "strange"
    strange.loc[weight == 0, "size"] = 1e6
    strange["member"] = strange["member"].astype(object).where(weight > 0, None)
    kept = weight > 0
    expected = classifier(gamma=0.05, alpha=0.1, selection="kmeans")
    expected.fit(frame[kept], y[kept], sample_weight=weight[kept])
    found = clone(expected).fit(strange, y, sample_weight=weight)
    assert found.expansion_.encoder.same(expected.expansion_.encoder)


# ---- parameters and methods ---------------------------------------------------------------------


PARAMETERS = [
    {"refine": SHORT},
    {"budget": "4kB"},
    {"budget": "4kB", "refine": SHORT},
    {"metric": "diagonal"},
    {"metric": "full"},
    {"metric": 3},
    {"gamma": "auto"},
    {"kernel": "linear"},
    {"kernel": "laplacian"},
    {"selection": "uniform"},
    {"approximation": "ensemble"},
    {"n_components": "auto"},
]


@sampled(("make", "params"), [classifier, regressor], PARAMETERS)
def test_parameters(table, make, params):
    frame, y = table
    fitted = make(**params).fit(frame, y)
    scores = fitted.predict(frame)
    assert np.isfinite(scores).all()
    assert fitted.score(frame, y) > (0.6 if make is classifier else 0.0)
    assert fitted.expansion_.encoder is not None
    if "budget" in params:
        assert fitted.model_bytes_ <= 4 * 1024
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(frame), scores)


def test_directions_beyond_the_code_columns(table):
    with pytest.raises(ValueError, match=r"metric=1000 directions exceed the .* of its code"):
        classifier(metric=1000).fit(*table)


def test_given_landmarks_have_no_code(table):
    with pytest.raises(ValueError, match="encoder chooses the columns that landmarks have"):
        classifier(selection=np.zeros((3, 6))).fit(*table)


@pytest.mark.parametrize("rows", ["none", "X", "X and y"])
def test_compress(model, table, rows):
    given = {"none": {}, "X": {"X": table[0]}, "X and y": {"X": table[0], "y": table[1]}}[rows]
    small = model.compress(10, **given)
    assert small.landmarks_.shape[0] <= 10
    assert small.score(*table) > 0.6
    # the encoder stays, or is the code that a learned map was trained with
    assert small.expansion_.encoder is not None
    smaller = model.compress(budget="2kB", **given)
    assert smaller.model_bytes_ <= 2 * 1024
    assert smaller.predict(table[0].iloc[:, ::-1]).shape == (400,)


def test_rows_in_several_calls_are_those_of_one(table):
    frame, y = table
    parts = [slice(0, 200), slice(200, 207), slice(207, 400)]
    fixed = {"gamma": 0.05, "alpha": 0.1}
    several = classifier(**fixed)
    for part in parts:
        several.partial_fit(frame[part], y[part], classes=[0, 1])
    one = classifier(**fixed).partial_fit(frame[parts[0]], y[parts[0]], classes=[0, 1])
    one.partial_fit(frame[200:], y[200:])
    np.testing.assert_allclose(
        several.decision_function(frame), one.decision_function(frame), atol=1e-6
    )
    # levels and knots are those of the first rows
    encoder = TableEncoder().fit(frame[parts[0]])
    assert several.expansion_.encoder.same(encoder.code_)
    assert several.retune().score(frame, y) > 0.7


def test_merge(table):
    frame, y = table
    first = classifier(alpha=0.1).partial_fit(frame[:200], y[:200], classes=[0, 1])
    second = copy.deepcopy(first)
    both = copy.deepcopy(first).partial_fit(frame[200:], y[200:])
    both.partial_fit(frame[:200], y[:200])
    first.merge(second.partial_fit(frame[200:], y[200:]))
    np.testing.assert_allclose(
        first.decision_function(frame), both.decision_function(frame), atol=1e-6
    )
    other = classifier().partial_fit(frame[200:], y[200:], classes=[0, 1])
    with pytest.raises(ValueError, match="The two models encode their rows differently"):
        first.merge(other)


def test_landmark_curve(table):
    frame, y = table
    curve = landmark_curve(frame, y, [5, 10, 40], estimator=classifier(), random_state=0)
    assert curve.scores[-1] > 0.65
    assert (np.diff(curve.bytes) > 0).all()
    encoded_columns = curve.landmarks[0].shape[1]
    assert encoded_columns > frame.shape[1]
    numbers = landmark_curve(frame, np.log(frame["income"]), [40], estimator=regressor())
    assert numbers.metric == "R²"
    assert numbers.scores[0] > 0.5


def test_estimated_cost(table):
    for rows in (None, table, (pl.from_pandas(table[0]), table[1])):
        cost = classifier(n_components=10).estimate_cost((2000, 6), rows=rows)
        assert cost.bytes > 0
        assert cost.reason or cost.seconds > 0  # a busy machine may be too slow to tell


def test_checkpoints(table, tmp_path):
    path = tmp_path / "fit.checkpoint"
    resumed = classifier().fit(*table, checkpoint=path)
    np.testing.assert_array_equal(
        resumed.decision_function(table[0]), classifier().fit(*table).decision_function(table[0])
    )


def test_fits_start_anew(table):
    frame, y = table
    again = classifier().fit(frame, y)
    X = np.column_stack([np.log(frame["income"]), frame["size"].fillna(0.0)])
    again.fit(X, y)
    assert again.n_features_in_ == 2
    assert not hasattr(again, "feature_names_in_")
    np.testing.assert_array_equal(
        again.decision_function(X), classifier().fit(X, y).decision_function(X)
    )
    again.set_params(encoder=None).fit(X, y)
    assert again.expansion_.encoder is None
    with pytest.raises(ValueError, match="Pass encoder='auto', which takes tables with gaps"):
        again.predict(np.full((1, 2), np.nan))


def test_in_searches(table):
    frame, y = table
    grid = {"encoder": [None, "auto", TableEncoder(numbers="standard")]}
    numbers = frame[["size"]].fillna(0.0)
    search = GridSearchCV(classifier(), grid, cv=3).fit(numbers, y)
    assert search.best_score_ > 0.4
    nested = GridSearchCV(
        classifier(encoder=TableEncoder()), {"encoder__n_bins": [2, 16]}, cv=3
    ).fit(frame, y)
    assert nested.best_params_["encoder__n_bins"] in (2, 16)
    assert cross_val_score(classifier(), frame, y, cv=3).mean() > 0.6


def test_copies(table, model):
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(table[0]), model.predict_proba(table[0]))
    assert clone(model).get_params() == model.get_params()
    assert clone(classifier(encoder=TableEncoder(n_bins=4))).encoder.n_bins == 4
