"""Pipelines of scikit-learn predict alike when their steps are folded into the model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sampling import in_pairs
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from nysplus import NystroemClassifier, NystroemRegressor, Refinement, from_pipeline
from nysplus.encoding.code import Curve, Linear, Lookup, Missing, OneHot, Power

# some pipelines leave numbers as they are
pytestmark = pytest.mark.filterwarnings("ignore:The columns of X differ in spread")
N_ROWS = 300


def table(seed=0, n_rows=N_ROWS):
    """Return a frame with skewed, tied and far numbers, texts, whole numbers and truth values."""
    rng = np.random.RandomState(seed)
    return pd.DataFrame(
        {
            "income": rng.lognormal(1.0, 1.0, n_rows),
            "offset": 1e6 + rng.randn(n_rows),
            "children": rng.poisson(1.5, n_rows),
            "colour": rng.choice(["red", "green", "blue", "ä b"], n_rows, p=[0.5, 0.3, 0.15, 0.05]),
            "grade": rng.choice([1, 2, 3], n_rows),
            "member": rng.rand(n_rows) < 0.4,
        }
    )


def gaps_in(frame, columns, share=0.15, seed=1):
    """Return a copy of a frame with gaps."""
    rng, made = np.random.RandomState(seed), frame.copy()
    for name in columns:
        gap = rng.rand(len(frame)) < share
        made[name] = made[name].astype(float if made[name].dtype.kind in "fi" else object)
        made.loc[gap, name] = np.nan
    return made


def target(frame):
    """Return values that depend on all columns."""
    rng = np.random.RandomState(2)
    return np.log(table()["income"]).to_numpy() + rng.randn(len(frame))


NUMBERS = ["income", "offset", "children"]
FRAME, TEST = table(), table(seed=3)
# beyond the range of the training rows, at its ends and within ties
TEST.loc[:3, "income"] = [
    1e-3,
    1e3,
    FRAME["income"].min(),
    FRAME["income"].max(),
]
GAPS, TEST_GAPS = gaps_in(FRAME, [*NUMBERS, "colour"]), gaps_in(TEST, [*NUMBERS, "colour"], seed=4)


def fitted(*steps, frame=FRAME, y=None):
    model = NystroemRegressor(40, alpha=1e-3, gamma=0.1, random_state=0)
    return make_pipeline(*steps, model).fit(frame, target(frame) if y is None else y)


def check(pipeline, test, atol=1e-6):
    """Compare the code and the predictions of a pipeline and of the model that it becomes."""
    model = from_pipeline(pipeline)
    expected = pipeline.predict(test)
    np.testing.assert_allclose(model.predict(test), expected, atol=atol, rtol=0)
    assert np.ptp(expected) > 0.1
    if pipeline[-1].expansion_.center is None:
        made = pipeline[:-1].transform(test)
        made = made.toarray() if hasattr(made, "toarray") else np.asarray(made, dtype=float)
        code = model.expansion_.encoder(model._model.columns.schema.read(test), np.float64)
        np.testing.assert_allclose(code, made, atol=1e-6, rtol=1e-6)
    return model


def terms(model):
    return [type(term) for term in model.expansion_.encoder.terms]


# -- scalers -------------------------------------------------------------------------------------

LINEAR = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    MinMaxScaler(),
    MinMaxScaler(feature_range=(-2, 3)),
    MaxAbsScaler(),
    RobustScaler(),
    RobustScaler(with_centering=False),
    RobustScaler(with_scaling=False, quantile_range=(10, 90)),
]


# of a feature far from zero, a scaler without a mean leaves a small spread
@pytest.mark.filterwarnings("ignore:The columns of X differ in spread")
@pytest.mark.parametrize("scaler", LINEAR, ids=str)
def test_linear_scalers(scaler):
    model = check(fitted(scaler, frame=FRAME[NUMBERS]), TEST[NUMBERS])
    assert terms(model) == [Linear] * 3
    assert model.n_features_in_ == 3
    # the names are read, not the order
    assert (model.predict(TEST) == model.predict(TEST[NUMBERS])).all()


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler()], ids=str)
def test_arrays(scaler):
    X, test = FRAME[NUMBERS].to_numpy(), TEST[NUMBERS].to_numpy()
    model = check(fitted(scaler, frame=X), test)
    assert not hasattr(model, "feature_names_in_")
    with pytest.raises(ValueError, match="X has 2 features, but NystroemRegressor is expecting 3"):
        model.predict(test[:, :2])


def test_limited_numbers():
    model = check(fitted(MinMaxScaler(clip=True), frame=FRAME[NUMBERS]), TEST[NUMBERS])
    assert terms(model) == [Curve] * 3


@in_pairs(
    ("n_quantiles", "distribution", "before", "after"),
    [10, 300],
    ["uniform", "normal"],
    [[], [StandardScaler()]],
    [[], [StandardScaler()]],
)
def test_quantiles(n_quantiles, distribution, before, after):
    """Ties of whole numbers are ties as well behind a scaler."""
    step = QuantileTransformer(n_quantiles=n_quantiles, output_distribution=distribution)
    pipeline = fitted(*before, step, *after, frame=FRAME[NUMBERS])
    # the scores change a few times as much as the code, whose values are up to 5
    error = 1e-5 if distribution == "normal" else 1e-6
    model = check(pipeline, TEST[NUMBERS], error)
    assert terms(model) == [Curve] * 3
    check(pipeline, FRAME[NUMBERS], error)


def test_quantiles_of_numbers_that_are_nearly_equal():
    """Numbers within 1e-7 of the ends count as the ends."""
    X = FRAME[["income"]] * 1e-7
    for distribution in ("uniform", "normal"):
        step = QuantileTransformer(n_quantiles=50, output_distribution=distribution)
        check(fitted(step, frame=X), TEST[["income"]] * 1e-7, atol=1e-5)


@pytest.mark.parametrize("method", ["yeo-johnson", "box-cox"])
@pytest.mark.parametrize("standardize", [False, True])
def test_powers(method, standardize):
    names = ["income", "children"]
    frame, test = FRAME[names] + 1.0, TEST[names] + 1.0
    step = PowerTransformer(method=method, standardize=standardize)
    scaler = MinMaxScaler(feature_range=(1, 2)) if method == "box-cox" else RobustScaler()
    test = test.clip(frame.min(), frame.max(), axis=1)  # the transform has no limit beyond
    for steps in ([step], [scaler, step], [step, scaler]):
        if not standardize and steps[0] is step:
            steps = [*steps, StandardScaler()]
        model = check(fitted(*steps, frame=frame), test)
        assert terms(model) == [Power] * 2


def test_negative_numbers_have_no_box_cox_transform():
    pipeline = fitted(PowerTransformer(method="box-cox"), frame=FRAME[["income"]])
    for model in (pipeline, from_pipeline(pipeline)):
        with pytest.raises(ValueError, match="positive"):
            model.predict(-TEST[["income"]])


# -- gaps ----------------------------------------------------------------------------------------


@in_pairs(
    ("imputer", "add_indicator", "order"),
    [
        {"strategy": "mean"},
        {"strategy": "median"},
        {"strategy": "most_frequent"},
        {"strategy": "constant", "fill_value": -3.0},
    ],
    [False, True],
    ["impute", "impute, scale", "scale, impute", "impute, quantile", "impute, power"],
)
def test_imputed_numbers(imputer, add_indicator, order):
    steps = {
        "impute": SimpleImputer(**imputer, add_indicator=add_indicator),
        "scale": StandardScaler(),
        "quantile": QuantileTransformer(n_quantiles=100),
        "power": PowerTransformer(),
    }
    names = ["income", "children"]
    pipeline = fitted(*(steps[name] for name in order.split(", ")), frame=GAPS[names])
    model = check(pipeline, TEST_GAPS[names])
    assert terms(model).count(Missing) == 2 * add_indicator


def test_gaps_without_an_imputer_are_refused():
    model = from_pipeline(fitted(StandardScaler(), frame=FRAME[NUMBERS]))
    with pytest.raises(ValueError, match="The column 'income' has gaps"):
        model.predict(TEST_GAPS[NUMBERS])


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.filterwarnings("ignore:Skipping features without any observed values")
def test_columns_without_entries(keep):
    imputer = SimpleImputer(keep_empty_features=keep, add_indicator=True)
    pipeline = fitted(imputer, StandardScaler(), frame=GAPS[NUMBERS].assign(children=np.nan))
    model = check(pipeline, TEST_GAPS[NUMBERS].assign(children=np.nan))
    assert terms(model).count(Linear) == 2 + keep


@pytest.mark.parametrize("step", [QuantileTransformer(n_quantiles=10), PowerTransformer()])
def test_an_imputer_after_a_curve(step):
    pipeline = fitted(step, SimpleImputer(), frame=GAPS[NUMBERS])
    with pytest.raises(ValueError, match=r"'simpleimputer' \(SimpleImputer\).* Impute first"):
        from_pipeline(pipeline)


def test_gaps_that_are_numbers():
    pipeline = fitted(SimpleImputer(missing_values=-1), frame=FRAME[NUMBERS])
    with pytest.raises(ValueError, match=r"imputes missing_values=-1\. Write NaN"):
        from_pipeline(pipeline)


# -- categories ----------------------------------------------------------------------------------

CATEGORIES = ["colour", "grade", "member"]
UNSEEN = TEST.assign(colour=np.where(np.arange(N_ROWS) % 3, TEST["colour"], "mauve"))


@in_pairs(
    ("sparse", "drop", "rare", "unknown"),
    [False, True],
    [None, "first", "if_binary"],
    [{}, {"min_frequency": 40}, {"max_categories": 2}],
    ["error", "ignore", "infrequent_if_exist", "warn"],
)
@pytest.mark.filterwarnings("ignore:Found unknown categories")
def test_one_hot(sparse, drop, rare, unknown):
    encoder = OneHotEncoder(sparse_output=sparse, drop=drop, handle_unknown=unknown, **rare)
    pipeline = fitted(encoder, frame=FRAME[CATEGORIES])
    model = check(pipeline, TEST[CATEGORIES])
    if not rare:
        assert terms(model) == [OneHot] * 3
    if unknown != "error":
        check(pipeline, UNSEEN[CATEGORIES])
        return
    for each in (pipeline, model):
        with pytest.raises(ValueError, match="mauve"):
            each.predict(UNSEEN[CATEGORIES])


@pytest.mark.parametrize("unknown", ["error", "ignore"])
@pytest.mark.parametrize("drop", [None, "first"])
def test_gaps_that_are_a_level(unknown, drop):
    encoder = OneHotEncoder(handle_unknown=unknown, drop=drop)
    check(fitted(encoder, frame=GAPS[["colour", "grade"]]), TEST_GAPS[["colour", "grade"]])


def test_gaps_that_are_no_level():
    encoder = OneHotEncoder(handle_unknown="ignore")
    check(fitted(encoder, frame=FRAME[["colour"]]), TEST_GAPS[["colour"]])
    model = from_pipeline(fitted(OneHotEncoder(), frame=FRAME[["colour"]]))
    with pytest.raises(ValueError, match="The column 'colour' has gaps"):
        model.predict(TEST_GAPS[["colour"]])


@pytest.mark.parametrize("strategy", ["most_frequent", "constant"])
@pytest.mark.parametrize("unknown", ["error", "ignore"])
def test_imputed_categories(strategy, unknown):
    imputer = SimpleImputer(
        strategy=strategy, fill_value="none" if strategy == "constant" else None
    )
    pipeline = fitted(imputer, OneHotEncoder(handle_unknown=unknown), frame=GAPS[["colour"]])
    model = check(pipeline, TEST_GAPS[["colour"]])
    if unknown == "error":
        with pytest.raises(ValueError, match="mauve"):
            model.predict(UNSEEN[["colour"]])
    else:
        check(pipeline, UNSEEN[["colour"]])


@pytest.mark.parametrize(
    "unknown",
    [
        {},
        {"handle_unknown": "use_encoded_value", "unknown_value": -1},
        {"handle_unknown": "use_encoded_value", "unknown_value": -1, "encoded_missing_value": -2},
        {"handle_unknown": "use_encoded_value", "unknown_value": 9, "min_frequency": 40},
    ],
    ids=str,
)
def test_ordinal(unknown):
    encoder = OrdinalEncoder(**unknown)
    pipeline = fitted(encoder, StandardScaler(), frame=FRAME[CATEGORIES])
    model = check(pipeline, TEST[CATEGORIES])
    assert terms(model) == [Lookup] * 3
    if unknown:
        check(pipeline, UNSEEN[CATEGORIES])
    imputed = fitted(encoder, SimpleImputer(add_indicator=True), frame=GAPS[["colour", "grade"]])
    check(imputed, TEST_GAPS[["colour", "grade"]])


def test_levels_in_a_given_order():
    encoder = OrdinalEncoder(categories=[["red", "ä b", "blue", "green"]])
    model = check(fitted(encoder, StandardScaler(), frame=FRAME[["colour"]]), TEST[["colour"]])
    assert model._model.columns.schema.columns[0].levels == ("red", "ä b", "blue", "green")


def test_levels_of_an_array():
    X, test = FRAME[["children", "grade"]].to_numpy(), TEST[["children", "grade"]].to_numpy()
    check(fitted(OneHotEncoder(handle_unknown="ignore"), frame=X), test)
    X, test = FRAME[["colour"]].to_numpy(), TEST[["colour"]].to_numpy()
    check(fitted(OneHotEncoder(), frame=X), test)


def test_levels_behind_a_scaler():
    """A function of a category is a table."""
    step = QuantileTransformer(n_quantiles=10, output_distribution="normal")
    model = check(
        fitted(OneHotEncoder(sparse_output=False), step, frame=FRAME[["colour"]]), TEST[["colour"]]
    )
    assert terms(model) == [Lookup]
    with pytest.raises(ValueError, match="comes after a step that has changed the levels"):
        from_pipeline(fitted(StandardScaler(), OneHotEncoder(), frame=FRAME[["grade"]]))


# -- columns -------------------------------------------------------------------------------------


def whole(**options):
    """Return the preprocessing of a table as it is often written."""
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    texts = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    )
    return ColumnTransformer(
        [("numbers", numbers, NUMBERS), ("texts", texts, ["colour", "grade"])], **options
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"remainder": "passthrough"},
        {"remainder": MinMaxScaler()},
        {"sparse_threshold": 1.0},
        {"transformer_weights": {"numbers": 0.5}},
        {"remainder": "passthrough", "verbose_feature_names_out": False},
    ],
    ids=str,
)
def test_column_transformer(options):
    pipeline = fitted(whole(**options), frame=GAPS)
    model = check(pipeline, TEST_GAPS)
    moved = TEST_GAPS[TEST_GAPS.columns[::-1]].assign(another=0)
    np.testing.assert_array_equal(model.predict(moved), model.predict(TEST_GAPS))


@pytest.mark.parametrize(
    "columns",
    [
        ["income", "offset"],
        [0, 1],
        [0, -5],
        slice(0, 2),
        slice("income", "offset"),
        slice(None, "offset"),
        np.array([True, True, False, False, False, False]),
        make_column_selector(pattern="income|offset"),
        lambda frame: ["income", "offset"],
    ],
    ids=[
        "names",
        "positions",
        "negative",
        "slice",
        "names-slice",
        "open-slice",
        "mask",
        "selector",
        "function",
    ],
)
def test_ways_to_select_columns(columns):
    made = ColumnTransformer(
        [
            ("scaled", StandardScaler(), columns),
            ("none", StandardScaler(), []),
            ("dropped", "drop", ["colour"]),
            ("kept", "passthrough", ["children"]),
        ]
    )
    check(fitted(made, frame=FRAME), TEST)


def test_a_column_of_an_array():
    made = make_column_transformer((StandardScaler(), [1]), (MinMaxScaler(), [0, 2]))
    X, test = FRAME[NUMBERS].to_numpy(), TEST[NUMBERS].to_numpy()
    check(fitted(made, frame=X), test)


def test_steps_that_do_nothing():
    steps = [("a", "passthrough"), ("b", None), ("c", FunctionTransformer())]
    model = NystroemRegressor(20, random_state=0)
    pipeline = Pipeline([*steps, ("scale", StandardScaler()), ("model", model)])
    check(pipeline.fit(FRAME[NUMBERS], target(FRAME)), TEST[NUMBERS])


def test_a_pipeline_of_the_model_alone():
    pipeline = make_pipeline(NystroemRegressor(20, random_state=0))
    pipeline.fit(FRAME[NUMBERS], target(FRAME))
    model = from_pipeline(pipeline)
    assert model is not pipeline[-1]
    np.testing.assert_array_equal(model.predict(TEST[NUMBERS]), pipeline.predict(TEST[NUMBERS]))


def test_frames_between_the_steps():
    pipeline = make_pipeline(
        whole(sparse_threshold=0.0, remainder="passthrough"), NystroemRegressor(40, random_state=0)
    )
    pipeline[0].set_params(texts__onehotencoder__sparse_output=False)
    pipeline.set_output(transform="pandas").fit(GAPS, target(GAPS))
    check(pipeline, TEST_GAPS)


# -- models --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"metric": "diagonal"},
        {"metric": 2},
        {"kernel": "laplacian"},
        {"kernel": "polynomial", "gamma": 0.01},
        {"budget": "4kB", "refine": Refinement(n_epochs=20, search=False)},
    ],
    ids=str,
)
def test_classifiers(options):
    y = np.array(["low", "high"])[(FRAME["income"] > 2.7).astype(int)]
    model = NystroemClassifier(30, random_state=0, **options)
    pipeline = make_pipeline(whole(remainder="passthrough"), model).fit(GAPS, y)
    folded = from_pipeline(pipeline)
    assert (folded.predict(TEST_GAPS) == pipeline.predict(TEST_GAPS)).all()
    expected = pipeline.predict_proba(TEST_GAPS)
    # packed models compute in float32
    np.testing.assert_allclose(folded.predict_proba(TEST_GAPS), expected, atol=1e-6)


def test_numbers_far_from_zero_keep_their_digits():
    """The centre of the model is subtracted in the code, before it is rounded to float32."""
    frame = FRAME[["offset"]] + 1e9
    model = NystroemRegressor(20, budget="1kB", random_state=0)
    pipeline = make_pipeline(FunctionTransformer(), model)
    y = np.sin(FRAME["offset"].to_numpy() - 1e6)
    pipeline.fit(frame, y)
    assert pipeline[-1].expansion_.center is not None
    folded = check(pipeline, TEST[["offset"]] + 1e9, atol=1e-5)
    assert folded.expansion_.center is None


# -- errors --------------------------------------------------------------------------------------


def test_steps_that_are_not_allowed():
    pipeline = fitted(StandardScaler(), PCA(2), frame=FRAME[NUMBERS])
    with pytest.raises(ValueError, match=r"'pca' \(PCA\) cannot.*StandardScaler, .*Leave|leave"):
        from_pipeline(pipeline)
    pipeline = fitted(FunctionTransformer(np.log), frame=FRAME[["income"]])
    with pytest.raises(ValueError, match="of which no formula is known"):
        from_pipeline(pipeline)

    class Doubled(StandardScaler):
        def transform(self, X):
            return 2 * super().transform(X)

    with pytest.raises(ValueError, match=r"\(Doubled\) cannot become part of the model"):
        from_pipeline(fitted(Doubled(), frame=FRAME[NUMBERS]))


def test_curves_of_curves():
    step = QuantileTransformer(n_quantiles=10)
    pipeline = fitted(PowerTransformer(), step, frame=FRAME[NUMBERS])
    with pytest.raises(ValueError, match=r"'quantiletransformer'.* after another step that is not"):
        from_pipeline(pipeline)
    pipeline = fitted(step, PowerTransformer(), frame=FRAME[NUMBERS])
    with pytest.raises(ValueError, match=r"'powertransformer'.* after another step that is not"):
        from_pipeline(pipeline)


def test_one_column_as_number_and_category():
    made = make_column_transformer(
        (OneHotEncoder(), ["grade"]), (StandardScaler(), ["income", "grade"])
    )
    with pytest.raises(ValueError, match="'grade' is used in several ways"):
        from_pipeline(fitted(made, frame=FRAME))


def test_what_is_no_pipeline_of_ours():
    with pytest.raises(TypeError, match="expects a Pipeline, got StandardScaler"):
        from_pipeline(StandardScaler())
    with pytest.raises(TypeError, match=r"'ridge' of the pipeline is a Ridge.*from_svc"):
        from_pipeline(make_pipeline(StandardScaler(), Ridge()).fit(FRAME[NUMBERS], target(FRAME)))
    with pytest.raises(NotFittedError):
        from_pipeline(make_pipeline(StandardScaler(), NystroemRegressor()))
    model = NystroemRegressor(10, encoder="auto")
    pipeline = make_pipeline(StandardScaler(), model).fit(FRAME[NUMBERS], target(FRAME))
    with pytest.raises(ValueError, match="has an encoder of its own"):
        from_pipeline(pipeline)
