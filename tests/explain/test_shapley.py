"""Shapley values: exact ones against enumeration, sampled ones within their errors."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import factories
import numpy as np
import pytest
import reference
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nysplus import Nystroem, NystroemClassifier, NystroemRegressor, load
from nysplus._fit.model import Columns
from nysplus.encoding import ImageEncoder
from nysplus.expansion import KernelExpansion
from nysplus.explain import ShapleyValues, shapley_values
from nysplus.explain.function import ExplainedFunction, raw_rows
from nysplus.explain.product import _gauss_legendre, node_count, product_values, quadrature
from nysplus.explain.sampling import Sampler, draw
from nysplus.explain.shapley import _values
from nysplus.kernels import RBF, Matern

IRIS, SPECIES = load_iris(return_X_y=True)


def explained(expansion, d):
    """Return the function of an expansion of plain rows."""

    class Fitted:
        columns = Columns(d)

    Fitted.expansion = expansion
    return ExplainedFunction.of(Fitted)


def by_enumeration(model, X, background):
    """Return the values of all rows, from all coalitions, in float64."""
    score = ExplainedFunction.of(model._model).expansion
    rows, others = raw_rows(model, X), raw_rows(model, background)
    return np.stack([reference.shapley_values(score, row, others) for row in rows])


def three_axes(values):
    return values if values.ndim == 3 else values[:, :, None]


# ---- exact values --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(0, 200, 5))
def test_values_are_those_of_all_coalitions(seed):
    model, X, background = factories.separable_model(seed)
    found = shapley_values(model, X, background)
    assert found.exact
    assert found.standard_error is None
    expected = by_enumeration(model, X, background)
    np.testing.assert_allclose(three_axes(found.values), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", ["two", "three", "labels", "value", "values"])
def test_values_and_base_add_up_to_the_score(kind):
    X = IRIS
    y = {
        "two": SPECIES > 0,
        "three": SPECIES,
        "labels": np.stack([SPECIES > 0, SPECIES > 1], axis=1).astype(int),
        "value": IRIS[:, 0],
        "values": IRIS[:, :2],
    }[kind]
    estimator = NystroemRegressor if kind.startswith("value") else NystroemClassifier
    model = estimator(12, random_state=0).fit(X, y)
    found = shapley_values(model, X[::30], X[5::20])
    score = model.predict if kind.startswith("value") else model.decision_function
    expected = score(X[::30])
    assert found.values.shape == (5, 4, *expected.shape[1:])
    assert found.base_values.shape == expected.shape
    np.testing.assert_allclose(found.base_values[0], score(X[5::20]).mean(axis=0), atol=1e-10)
    total = found.base_values + found.values.sum(axis=1)
    np.testing.assert_allclose(total, expected, atol=1e-8)
    names = {"three": ["0", "1", "2"], "labels": ["label 0", "label 1"]}
    assert found.output_names == names.get(kind, ["output 0", "output 1"] if y.ndim > 1 else None)


def test_blocks_do_not_change_values(rng, monkeypatch):
    """Neither the rows nor the background nor the landmarks that are worked on at once."""
    Z, A = rng.rand(7, 9), rng.randn(7, 2)
    function = explained(KernelExpansion(RBF(2.0), Z, A, np.zeros(2)), 9)
    X, background = rng.rand(11, 9), rng.rand(5, 9)
    expected = product_values(function, X, background)
    for values in (1, 40, 300):
        monkeypatch.setattr("nysplus.explain.product.VALUES", values)
        monkeypatch.setattr("nysplus.explain.product.PAIRS", values // 4)
        monkeypatch.setattr("nysplus.explain.product.PRODUCTS", 100 * values)
        monkeypatch.setattr("nysplus.explain.product.ROWS", 3)
        monkeypatch.setattr("nysplus.explain.product.SHARE", 4)
        np.testing.assert_allclose(product_values(function, X, background), expected, atol=1e-13)


def test_factors_of_zero_are_no_problem():
    """A landmark far from the background and close to the row: division would fail."""
    Z, A = np.zeros((1, 3)), np.ones((1, 1))
    function = explained(KernelExpansion(RBF(1e3), Z, A, np.zeros(1)), 3)
    found = product_values(function, np.zeros((1, 3)), np.full((1, 3), 10.0))
    np.testing.assert_allclose(found[0, :, 0], 1 / 3, rtol=1e-14)


@pytest.mark.parametrize("d", [1, 2, 7, 30, 79, 200, 784])
def test_nodes_integrate_the_steepest_products(d):
    """All factors rise from 0 to 1, which makes t^(d − 1), and the other way round."""
    t, w = quadrature(d)
    assert len(t) == node_count(d) <= -(-d // 2)
    assert w @ t ** (d - 1) == pytest.approx(1 / d, abs=1e-14)
    half = (d - 1) // 2
    both = np.exp(np.log(t) * half + np.log1p(-t) * (d - 1 - half))
    exact = np.prod([k / (d - half + k - 1) for k in range(1, half + 1)]) / d
    assert w @ both == pytest.approx(exact, abs=1e-14)


def test_hundreds_of_columns_need_fewer_nodes():
    assert node_count(30) == 15
    assert node_count(784) < 150


@pytest.mark.parametrize(("d", "spread"), [(30, 1), (30, 7), (30, 20), (100, 5), (20, 2)])
def test_factors_close_to_each_other_need_fewer_nodes(rng, d, spread):
    """Bounds are kept by random factors, and by those that all rise by the same amount."""
    p, q = 1.0 - spread / (d - 1) * rng.rand(2, d - 1)
    p[: d // 2], q[: d // 2] = 1.0, 1.0 - spread / (d - 1)
    assert np.abs(p - q).sum() <= spread
    n = node_count(d, spread)
    assert n < node_count(d)
    found, exact = (
        w @ np.prod(t[:, None] * p + (1.0 - t[:, None]) * q, axis=1)
        for t, w in (_gauss_legendre(n), _gauss_legendre(d))
    )
    assert found == pytest.approx(exact, abs=1e-15)


@pytest.mark.parametrize(("d", "gamma"), [(30, 0.02), (30, 0.3), (31, 2.0), (17, 0.1), (6, 0.0)])
def test_values_are_the_integrals(rng, d, gamma):
    """Each value by its formula, one landmark, row, background row and column after the other."""
    Z, A = rng.rand(4, d), rng.randn(4, 2)
    function = explained(KernelExpansion(RBF(gamma), Z, A, np.zeros(2)), d)
    X, background = rng.rand(3, d), rng.rand(5, d)
    t, w = _gauss_legendre(d)
    expected = np.zeros((3, d, 2))
    for (i, x), r, (j, z) in product(enumerate(X), background, enumerate(Z)):
        p, q = np.exp(-gamma * (x - z) ** 2), np.exp(-gamma * (r - z) ** 2)
        factors = t[:, None] * p + (1.0 - t[:, None]) * q
        for k in range(d):
            integral = w @ np.delete(factors, k, axis=1).prod(axis=1)
            expected[i, k] += (p[k] - q[k]) * integral * A[j] / len(background)
    np.testing.assert_allclose(product_values(function, X, background), expected, atol=1e-15)


def test_factors_above_one_take_all_nodes(rng):
    """A kernel of a user may exceed 1; the bound for fewer nodes does not hold then."""

    class Scaled(RBF):
        def per_feature(self, X, Z):
            return 1.5 * super().per_feature(X, Z)

    Z, A, X = rng.rand(3, 8), rng.randn(3, 1), rng.rand(6, 8)
    function, plain = (
        explained(KernelExpansion(kernel(0.1), Z, A, np.zeros(1)), 8) for kernel in (Scaled, RBF)
    )
    expected = 1.5**8 * product_values(plain, X[:2], X[2:])
    np.testing.assert_allclose(product_values(function, X[:2], X[2:]), expected, atol=1e-13)


def test_many_columns_add_up(rng):
    """More columns than enumeration can take, and fewer nodes than degree / 2."""
    Z, A = rng.rand(5, 200), rng.randn(5, 1)
    function = explained(KernelExpansion(RBF(0.1), Z, A, np.zeros(1)), 200)
    X, background = rng.rand(2, 200), rng.rand(3, 200)
    values = product_values(function, X, background)
    h = function.expansion
    expected = h(X) - h(background).mean(axis=0)
    np.testing.assert_allclose(values.sum(axis=1), expected, atol=1e-12)


@pytest.mark.parametrize("projection", [None, np.array([0.5, 2.0, 0.0])])
def test_centre_and_linear_term(rng, projection):
    expansion = KernelExpansion(
        RBF(0.7), rng.randn(4, 3), rng.randn(4, 2), rng.randn(2), projection,
        center=np.array([1e3, 0.0, -5.0]), linear=rng.randn(3, 2),
    )  # fmt: skip
    X = rng.randn(6, 3) + expansion.center
    function = explained(expansion, 3)
    found, error = _values(function, X[:2], X[2:], 2, 0)
    assert error is None
    expected = [reference.shapley_values(expansion, x, X[2:]) for x in X[:2]]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_linear_models_have_no_landmarks(rng):
    expansion = KernelExpansion(
        RBF(1.0), np.empty((0, 3)), np.empty((0, 1)), np.zeros(1), linear=rng.randn(3, 1)
    )
    found, _ = _values(explained(expansion, 3), rng.randn(2, 3), np.zeros((1, 3)), 2, 0)
    assert found.shape == (2, 3, 1)


def test_sparse_landmarks_and_few_bits():
    """The stored numbers are explained, in whatever form they are stored."""
    X = IRIS - IRIS.min(axis=0)
    model = NystroemClassifier(8, random_state=0).fit(sp.csr_matrix(X), SPECIES)
    total = shapley_values(model, X[:3], X[::9])
    scores = model.decision_function(X[:3])
    np.testing.assert_allclose(total.base_values + total.values.sum(axis=1), scores, atol=1e-8)
    small = NystroemClassifier(budget="400B", random_state=0).fit(X, SPECIES)
    found = shapley_values(small, X[:3], X[::9])
    scores = small.decision_function(X[:3])
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), scores, atol=1e-5)


# ---- tables --------------------------------------------------------------------------------------


def table():
    pandas = pytest.importorskip("pandas", reason="tables need pandas")
    rng = np.random.RandomState(0)
    frame = pandas.DataFrame(
        {
            "size": rng.rand(200),
            "city": rng.choice(["Rome", "Oslo", "Lima"], 200),
            "when": pandas.Timestamp("2024-01-01")
            + pandas.to_timedelta(rng.randint(0, 900, 200), "D"),
            "constant": 1.0,
        }
    )
    y = frame["size"] + (frame["city"] == "Rome")
    frame.loc[::7, "size"] = np.nan
    return frame, y.to_numpy()


def test_the_columns_of_a_table_are_the_players():
    frame, y = table()
    model = NystroemRegressor(15, encoder="auto", random_state=0).fit(frame, y)
    assert model.expansion_.encoder.n_columns > 3
    found = shapley_values(model, frame[:4], frame[10:40])
    assert found.feature_names == ["size", "city", "when"]
    assert found.exact
    expected = by_enumeration(model, frame[:4], frame[10:40])[:, :, 0]
    np.testing.assert_allclose(found.values, expected, atol=1e-10)
    assert found.display_data[0].tolist()[:2] == ["missing", frame["city"][0]]
    assert str(found.display_data[0, 2]) == frame["when"][0].isoformat()
    assert np.isnan(found.data[0, 0])
    other = frame[:1].assign(city="Paris")
    assert shapley_values(model, other, frame[10:12]).display_data[0, 1] == "other level"


def test_pipelines_are_explained_by_their_own_columns():
    pipeline = make_pipeline(StandardScaler(), NystroemClassifier(10, random_state=0))
    pipeline.fit(IRIS, SPECIES)
    found = shapley_values(pipeline, IRIS[::40], IRIS[3::30])
    np.testing.assert_array_equal(found.data, IRIS[::40])
    total = found.base_values + found.values.sum(axis=1)
    np.testing.assert_allclose(total, pipeline.decision_function(IRIS[::40]), atol=1e-5)
    assert found.feature_names[0] == "column 0"


# ---- sampled values ------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "matern"])
def test_sampled_values_are_within_their_errors(kernel, rng):
    X = rng.randn(300, 5)
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2])
    metric = 2 if kernel == "rbf" else None
    model = NystroemRegressor(20, kernel=kernel, metric=metric, random_state=0).fit(X, y)
    found = shapley_values(model, X[:8], X[50:60], n_permutations=20, random_state=0)
    assert not found.exact
    expected = by_enumeration(model, X[:8], X[50:60])[:, :, 0]
    ratio = (found.values - expected) / found.standard_error
    assert np.abs(ratio).max() < 5
    assert 0.6 < np.sqrt((ratio**2).mean()) < 1.4  # the errors are of the right size
    total = found.base_values + found.values.sum(axis=1)
    np.testing.assert_allclose(total, model.predict(X[:8]), atol=1e-8)


def test_sampling_is_exact_for_products_of_two_columns(rng):
    """With two columns, a permutation and its reverse are all there are."""
    expansion = KernelExpansion(Matern(0.5), rng.randn(4, 2), rng.randn(4, 3), np.zeros(3))
    function = explained(expansion, 2)
    X, background = rng.randn(3, 2), rng.randn(4, 2)
    found, error = Sampler(function, background, draw(2, 4, 2, rng)).values(X)
    expected = [reference.shapley_values(expansion, x, background) for x in X]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(error, 0.0, atol=1e-12)


def test_blocks_do_not_change_samples(rng, monkeypatch):
    expansion = KernelExpansion(
        RBF(0.5), rng.randn(4, 2), rng.randn(4, 1), np.zeros(1), rng.randn(6, 2)
    )
    sampler = Sampler(explained(expansion, 6), rng.randn(7, 6), draw(3, 7, 6, rng))
    X = rng.randn(2, 6)
    expected = sampler.values(X)
    monkeypatch.setattr("nysplus.explain.sampling.VALUES", 500)
    for one, other in zip(sampler.values(X), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-13)


def test_pixels_are_the_players_of_images(digits):
    X, y = digits
    encoder = ImageEncoder((8, 8), n_cosines=3)
    model = NystroemClassifier(15, encoder=encoder, random_state=0).fit(X[:300], y[:300])
    found = shapley_values(model, X[300:302], X[:5], n_permutations=2, random_state=0)
    assert found.values.shape == (2, 64, 10)
    assert not found.exact
    total = found.base_values + found.values.sum(axis=1)
    np.testing.assert_allclose(total, model.decision_function(X[300:302]), atol=1e-5)


def test_the_same_seed_draws_the_same_permutations(rng):
    X = rng.randn(100, 4)
    model = NystroemRegressor(9, kernel="matern", random_state=0).fit(X, X[:, 0] * X[:, 1])
    one, same, other = (
        shapley_values(model, X[:2], X[9:14], random_state=seed).values for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 0


# ---- the record ----------------------------------------------------------------------------------


def test_outputs_are_chosen_by_position_or_name():
    model = NystroemClassifier(10, random_state=0).fit(IRIS, np.array(["a", "b", "c"])[SPECIES])
    found = shapley_values(model, IRIS[:2], IRIS[::15])
    assert found.shape == (len(found), 4, 3)
    np.testing.assert_array_equal(found.output("b").values, found.values[:, :, 1])
    np.testing.assert_array_equal(found.output(2).base_values, found.base_values[:, 2])
    for wrong, message in ((None, "3 outputs"), ("d", "not known"), (3, "not known")):
        with pytest.raises(ValueError, match=message):
            found.output(wrong)
    one = found.output(0)
    assert one.output() is one
    with pytest.raises(ValueError, match="one output only"):
        one.output(1)


@pytest.mark.slow
def test_shap_takes_the_values():
    shap = pytest.importorskip("shap", reason="plots of shap need shap")
    model = NystroemClassifier(10, random_state=0).fit(IRIS, SPECIES)
    found = shapley_values(model, IRIS[:6], IRIS[::15])
    explanation = found.to_shap()
    assert isinstance(explanation, shap.Explanation)
    assert explanation[0, :, 1].values.shape == (4,)
    np.testing.assert_array_equal(explanation.values, found.values)


@pytest.mark.slow
@pytest.mark.parametrize("plot", ["waterfall", "bar", "beeswarm"])
def test_shap_draws_the_values(plot):
    shap = pytest.importorskip("shap", reason="plots of shap need shap")
    plt = pytest.importorskip("matplotlib.pyplot", reason="plots need matplotlib")
    frame, y = table()
    model = NystroemRegressor(15, encoder="auto", random_state=0).fit(frame, y)
    explanation = shapley_values(model, frame[:6], frame[10:40]).to_shap()
    plt.figure()
    getattr(shap.plots, plot)(explanation[1] if plot == "waterfall" else explanation, show=False)
    drawn = [text.get_text() for ax in plt.gcf().axes for text in ax.get_yticklabels()]
    for name in ("size", "city", "when"):
        assert any(name in text for text in drawn)


def test_shap_is_not_needed(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "shap", None)
    values = ShapleyValues(np.ones((1, 2)), np.ones(1), np.ones((1, 2)), ["a", "b"], True)
    with pytest.raises(ImportError, match="pip install shap"):
        values.to_shap()


# ---- input that is refused -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def iris_model():
    return NystroemClassifier(8, random_state=0).fit(IRIS, SPECIES)


@pytest.mark.parametrize(
    ("X", "background", "error", "message"),
    [
        (IRIS[:, :3], IRIS, ValueError, "3 features"),
        (IRIS, IRIS[:, :3], ValueError, "background must have the columns"),
        (IRIS[0], IRIS, ValueError, "2D array"),
        (IRIS, IRIS[:0], ValueError, "background must have"),
        (sp.csr_matrix(IRIS), IRIS, TypeError, "X is a sparse matrix"),
        (IRIS, sp.csr_matrix(IRIS), TypeError, "background is a sparse matrix"),
        (np.full((1, 4), np.nan), IRIS, ValueError, "NaN"),
    ],
)
def test_rows_that_cannot_be_explained(iris_model, X, background, error, message):
    with pytest.raises(error, match=message):
        shapley_values(iris_model, X, background)


def test_models_that_cannot_be_explained(iris_model):
    with pytest.raises(NotFittedError):
        shapley_values(NystroemClassifier(), IRIS, IRIS)
    for other in (
        Nystroem(n_components=5).fit(IRIS),
        RandomForestClassifier(),
        3,
        make_pipeline(Nystroem(n_components=5)),
    ):
        with pytest.raises(TypeError, match="cannot explain a"):
            shapley_values(other, IRIS, IRIS)
    for wrong in (1, "many", 2.5):
        with pytest.raises(ValueError, match="n_permutations"):
            shapley_values(iris_model, IRIS, IRIS, n_permutations=wrong)


def test_loaded_models_are_explained(iris_model, tmp_path):
    iris_model.save(tmp_path / "iris.nys")
    loaded = load(tmp_path / "iris.nys")
    found, expected = (shapley_values(m, IRIS[:2], IRIS[::20]) for m in (loaded, iris_model))
    np.testing.assert_array_equal(found.values, expected.values)


def test_kernels_of_users_can_be_products(rng):
    class Product(RBF):
        pass

    expansion = KernelExpansion(Product(0.4), rng.randn(3, 4), rng.randn(3, 1), np.zeros(1))
    assert explained(expansion, 4).form == "product"
    dense = replace(expansion, projection=rng.randn(6, 4))
    assert explained(dense, 6).form is None
