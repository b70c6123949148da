"""Models of scikit-learn keep their scores when they are imported."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, NuSVR

from nysplus import NystroemClassifier, NystroemRegressor, load
from nysplus._compression.compress import compress_model
from nysplus.export import register_converters, to_c, to_json, to_onnx
from nysplus.from_sklearn import _neighbours, from_svc
from nysplus.kernels import RBF, Linear, Polynomial

X, CLASSES = make_classification(
    300, 8, n_informative=6, n_classes=3, class_sep=1.5, random_state=0
)
TWO = CLASSES > 0
VALUES = np.sin(X[:, 0]) + X[:, 1]
TEST = np.random.RandomState(1).randn(100, 8)

KERNELS = [
    {"kernel": "rbf"},
    {"kernel": "rbf", "gamma": "auto"},
    {"kernel": "rbf", "gamma": 0.3},
    {"kernel": "linear"},
    {"kernel": "poly", "coef0": 1.0, "degree": 2, "gamma": 0.1},
    {"kernel": "sigmoid", "gamma": 0.01, "coef0": 0.1},
]
POSITIVE = [params for params in KERNELS if params["kernel"] != "sigmoid"]


@pytest.mark.parametrize("kind", [SVC, NuSVC])
@pytest.mark.parametrize("params", KERNELS, ids=str)
def test_two_classes_exactly(kind, params):
    svc = kind(**params).fit(X, TWO)
    model = from_svc(svc)
    assert type(model) is NystroemClassifier
    np.testing.assert_allclose(
        model.decision_function(TEST), svc.decision_function(TEST), rtol=1e-6, atol=1e-6
    )
    np.testing.assert_array_equal(model.predict(TEST), svc.predict(TEST))
    np.testing.assert_array_equal(model.landmarks_, X[model.landmark_indices_])


@pytest.mark.parametrize("kind", [SVR, NuSVR])
@pytest.mark.parametrize("params", KERNELS, ids=str)
def test_support_vector_regression_exactly(kind, params):
    svr = kind(**params).fit(X, VALUES)
    model = from_svc(svr)
    assert type(model) is NystroemRegressor
    np.testing.assert_allclose(model.predict(TEST), svr.predict(TEST), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", [SVC, NuSVC])
@pytest.mark.parametrize("params", POSITIVE, ids=str)
def test_several_classes_nearly(kind, params):
    """Less so for a linear kernel: worst margins are no linear functions."""
    svc = kind(**params).fit(X, CLASSES)
    model = from_svc(svc)
    assert model.decision_function(TEST).shape == (100, 3)
    least = 0.92 if params["kernel"] == "linear" else 0.98
    assert np.mean(model.predict(X) == svc.predict(X)) > least


def test_several_classes_of_an_indefinite_kernel_have_mean_margins():
    svc = SVC(kernel="sigmoid", gamma=0.01, decision_function_shape="ovo").fit(X, CLASSES)
    f01, f02, f12 = svc.decision_function(TEST).T
    expected = np.stack([f01 + f02, f12 - f01, -f02 - f12], axis=1) / 2
    np.testing.assert_allclose(from_svc(svc).decision_function(TEST), expected, atol=1e-9)


@pytest.mark.slow
def test_digits_agree_with_the_votes(digits):
    X, y = digits
    svc = SVC(C=10).fit(X[::2], y[::2])
    model = from_svc(svc)
    assert np.mean(model.predict(X[1::2]) == svc.predict(X[1::2])) > 0.99
    small = compress_model(model, len(svc.support_) // 10, X=X[::2])
    assert small.score(X[1::2], y[1::2]) > svc.score(X[1::2], y[1::2]) - 0.015


@pytest.mark.parametrize("kernel", [RBF(0.1), Linear(), Polynomial(0.1, degree=2)])
def test_neighbours_are_nearest_in_the_kernels_distance(kernel):
    B = kernel(X[:50], X[:50])
    distance = np.diag(B)[:, None] + np.diag(B) - 2 * B
    np.fill_diagonal(distance, np.inf)
    np.testing.assert_array_equal(_neighbours(B), distance.argmin(axis=1))


def test_margins_far_from_all_support_vectors_decide_alike():
    svc = SVC().fit(X, CLASSES)
    far = np.full((1, 8), 1e3)
    assert from_svc(svc).predict(far) == svc.predict(far)


@pytest.mark.parametrize("y", [VALUES, np.stack([VALUES, X[:, 2]], axis=1)], ids=["one", "two"])
@pytest.mark.parametrize("params", [*POSITIVE[2:], {"kernel": "rbf"}, {"kernel": "laplacian"}])
def test_kernel_ridge_exactly(params, y):
    ridge = KernelRidge(**params).fit(X, y)
    model = from_svc(ridge)
    assert model.predict(TEST).shape == ridge.predict(TEST).shape
    np.testing.assert_allclose(model.predict(TEST), ridge.predict(TEST), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("y", [TWO, CLASSES], ids=["two", "three"])
@pytest.mark.parametrize(
    "linear", [RidgeClassifier(), LinearSVC(), LogisticRegression(), SGDClassifier(random_state=0)]
)
@pytest.mark.parametrize(
    "params", [{}, {"gamma": 0.05}, {"kernel": "poly", "degree": 2, "coef0": 2.0}], ids=str
)
def test_pipelines_of_classifiers_exactly(linear, params, y):
    pipeline = make_pipeline(Nystroem(n_components=30, random_state=0, **params), linear).fit(X, y)
    model = from_svc(pipeline)
    expected = pipeline.decision_function(TEST)
    tolerance = 1e-6 * np.abs(expected).max()
    np.testing.assert_allclose(model.decision_function(TEST), expected, atol=tolerance)
    np.testing.assert_array_equal(model.predict(TEST), pipeline.predict(TEST))
    np.testing.assert_array_equal(model.landmarks_, X[model.landmark_indices_])


@pytest.mark.parametrize("y", [TWO, CLASSES], ids=["two", "three"])
def test_logistic_regression_keeps_its_probabilities(y):
    pipeline = make_pipeline(Nystroem(n_components=30, random_state=0), LogisticRegression())
    pipeline.fit(X, y)
    expected = pipeline.predict_proba(TEST)
    np.testing.assert_allclose(from_svc(pipeline).predict_proba(TEST), expected, atol=1e-6)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("y", [VALUES, np.stack([VALUES, X[:, 2]], axis=1)], ids=["one", "two"])
def test_pipelines_of_regressors_exactly(y, intercept):
    ridge = Ridge(fit_intercept=intercept)
    pipeline = make_pipeline(Nystroem(n_components=30, random_state=0), ridge).fit(X, y)
    model = from_svc(pipeline)
    assert model.predict(TEST).shape == pipeline.predict(TEST).shape
    np.testing.assert_allclose(model.predict(TEST), pipeline.predict(TEST), rtol=1e-6, atol=1e-6)


def test_several_labels():
    Y = np.stack([TWO, X[:, 0] > 0, X[:, 1] > 0], axis=1).astype(int)
    pipeline = make_pipeline(Nystroem(n_components=30, random_state=0), RidgeClassifier())
    model = from_svc(pipeline.fit(X, Y))
    np.testing.assert_array_equal(model.predict(TEST), pipeline.predict(TEST))


def test_sparse_support_vectors():
    svc = SVC().fit(sp.csr_matrix(X), TWO)
    model = from_svc(svc)
    assert sp.issparse(model.landmarks_)
    expected = svc.decision_function(sp.csr_matrix(TEST))
    for rows in (TEST, sp.csr_matrix(TEST)):
        np.testing.assert_allclose(model.decision_function(rows), expected, atol=1e-6)


@pytest.mark.parametrize("y", [TWO, CLASSES], ids=["two", "three"])
def test_sparse_rows_make_the_same_model(y):
    dense, sparse = (from_svc(SVC(gamma=0.2).fit(rows, y)) for rows in (X, sp.csr_matrix(X)))
    expected = dense.decision_function(TEST)
    np.testing.assert_allclose(sparse.decision_function(TEST), expected, atol=1e-3)


def test_names_and_classes_are_taken_over():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    svc = SVC().fit(frame, np.array(["no", "yes"])[TWO.astype(int)])
    model = from_svc(svc)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.feature_names_in_.tolist() == list("abcdefgh")
    assert model.n_features_in_ == 8
    assert model.score(frame, svc.predict(frame)) == 1.0
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("hgfedcba")])


def test_probabilities_follow_the_labels_and_the_rows():
    svc = SVC().fit(X[:200], CLASSES[:200])
    model, classes = from_svc(svc, X[200:], CLASSES[200:]), CLASSES[200:]
    P = model.predict_proba(X[200:])
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X[200:]))
    assert -np.log(P[np.arange(len(P)), classes]).mean() < np.log(3)
    assert abs(P.max(axis=1).mean() - (P.argmax(axis=1) == classes).mean()) < 0.1


@pytest.mark.parametrize("y", [TWO, CLASSES], ids=["two", "three"])
@pytest.mark.parametrize(
    "model", [SVC(), NuSVC(nu=0.3), make_pipeline(Nystroem(n_components=20), LinearSVC())], ids=str
)
def test_no_probabilities_are_made_up(tmp_path, model, y):
    """Scores alone say nothing about probabilities, before and after every way out."""
    pytest.importorskip("onnx", reason="onnx is not installed")
    rows, y = X[:80], y[:80]
    fitted = clone(model).fit(rows, y)
    ours = from_svc(fitted)
    ours.save(tmp_path / "model")
    smaller = (ours.compress(10), ours.compress(10, rows), from_svc(fitted, n_components=9))
    for one in (ours, load(tmp_path / "model"), pickle.loads(pickle.dumps(ours)), *smaller):
        for name in ("predict_proba", "predict_log_proba"):
            assert not hasattr(one, name)
            with pytest.raises(AttributeError) as caught:
                getattr(one, name)
            assert "to calibrate probabilities: from_svc(model, X, y)" in str(
                caught.value.__cause__
            )
        assert json.loads(to_json(one))["slope"] is None
        assert "nysplus_probabilities" not in to_c(one)
        assert [output.name for output in to_onnx(one).graph.output] == ["label", "scores"]
    assert hasattr(clone(ours), "predict_proba")
    assert ours.compress(10, rows, y).predict_proba(X).shape == (len(X), len(np.unique(y)))


def test_scores_of_a_model_without_probabilities_reach_onnx():
    runtime = pytest.importorskip("onnxruntime")
    ours = from_svc(SVC().fit(X, CLASSES))
    session = runtime.InferenceSession(to_onnx(ours, dtype="float64").SerializeToString())
    label, scores = session.run(None, {"X": TEST})
    np.testing.assert_array_equal(label, ours.predict(TEST))
    np.testing.assert_allclose(scores, ours.decision_function(TEST), atol=1e-9)


def test_skl2onnx_is_told_that_there_are_no_probabilities():
    skl2onnx = pytest.importorskip("skl2onnx")
    register_converters()
    ours = from_svc(SVC().fit(X, CLASSES))
    with pytest.raises(ValueError, match=r"no probabilities.*from_svc\(model, X, y\).*raw_scores"):
        skl2onnx.to_onnx(ours, TEST[:1])
    made = skl2onnx.to_onnx(
        ours, TEST[:1], options={NystroemClassifier: {"raw_scores": True, "zipmap": False}}
    )
    assert len(made.graph.output) == 2


def test_imported_models_are_compressed(moons):
    rows, y = moons
    svc = SVC().fit(rows, y)
    small = compress_model(from_svc(svc), 12, X=rows)
    assert len(small.landmarks_) == 12 < len(svc.support_) / 5
    assert np.mean(small.predict(rows) == svc.predict(rows)) > 0.97


@pytest.mark.parametrize("given", [(), (X,), (X, CLASSES)], ids=["none", "rows", "classes"])
def test_a_number_of_landmarks(given):
    svc = SVC().fit(X, CLASSES)
    small = from_svc(svc, *given, n_components=20)
    assert len(small.landmarks_) == small.n_components == 20
    assert np.mean(small.predict(X) == svc.predict(X)) > 0.9


def test_support_vectors_stand_in_for_rows(monkeypatch):
    svc, given = SVC().fit(X, TWO), []
    monkeypatch.setattr("nysplus.from_sklearn.compress_model", lambda *args: given.extend(args))
    from_svc(svc, n_components=10, max_seconds=5.0)
    _, n_components, budget, rows, y, max_seconds = given
    assert (n_components, budget, y, max_seconds) == (10, None, None, 5.0)
    np.testing.assert_array_equal(rows, X[svc.support_])


def test_a_number_of_bytes():
    svc = SVC().fit(X, CLASSES)
    small = from_svc(svc, X, budget="1kB")
    assert small.model_bytes_ <= 1024
    assert np.mean(small.predict(X) == svc.predict(X)) > 0.9


@pytest.mark.parametrize("y", [TWO, CLASSES], ids=["two", "three"])
def test_a_machine_within_the_budget_stays_and_gets_probabilities(y):
    svc = SVC().fit(X, y)
    kept = from_svc(svc, X, y, budget="64kB")
    np.testing.assert_array_equal(kept.decision_function(X), from_svc(svc).decision_function(X))
    P = kept.predict_proba(X)
    assert -np.log(P[np.arange(len(P)), y.astype(int)]).mean() < np.log(P.shape[1])
    assert not hasattr(from_svc(svc, X, budget="64kB"), "predict_proba")


def test_rows_compress_a_regressor():
    svr = SVR(C=10).fit(X, VALUES)
    small = from_svc(svr, X, VALUES, n_components=60)
    assert len(small.landmarks_) == 60 < len(svr.support_)
    assert small.score(X, VALUES) > svr.score(X, VALUES) - 0.05


def test_a_number_or_a_budget():
    with pytest.raises(ValueError, match="Pass exactly one of them"):
        from_svc(SVC().fit(X, TWO), n_components=10, budget="1kB")


def test_parameters_fit_a_model_of_that_size():
    svc = SVC(gamma=0.2).fit(X, TWO)
    model = from_svc(svc).fit(X, TWO)
    assert len(model.landmarks_) == len(svc.support_)
    assert model.gamma_ == 0.2


# -- errors --------------------------------------------------------------------------------------


def test_kernels_without_rows():
    with pytest.raises(ValueError, match="kernel='precomputed' cannot be imported"):
        from_svc(SVC(kernel="precomputed").fit(X @ X.T, TWO))
    with pytest.raises(ValueError, match=r"kernel=<function .* cannot be imported"):
        from_svc(SVC(kernel=lambda X, Z: X @ Z.T).fit(X, TWO))


def test_other_models():
    with pytest.raises(TypeError, match="got Ridge"):
        from_svc(Ridge().fit(X, VALUES))


@pytest.mark.parametrize(
    "linear", [GaussianNB(), SVC(kernel="linear"), PoissonRegressor(), SVC()], ids=str
)
def test_steps_that_are_not_linear(linear):
    pipeline = make_pipeline(Nystroem(n_components=30, random_state=0), linear).fit(X, CLASSES)
    with pytest.raises(ValueError, match="after Nystroem cannot be imported"):
        from_svc(pipeline)


@pytest.mark.parametrize(
    ("last", "y"),
    [
        ([SVC()], TWO),
        ([SVR()], VALUES),
        ([KernelRidge(kernel="rbf")], VALUES),
        ([Nystroem(n_components=30, random_state=0), Ridge()], VALUES),
        ([Nystroem(n_components=30, random_state=0), LogisticRegression()], TWO),
    ],
    ids=str,
)
@pytest.mark.parametrize("scaler", [StandardScaler(), QuantileTransformer(n_quantiles=50)], ids=str)
def test_steps_before_the_model(last, y, scaler):
    pipeline = make_pipeline(scaler, *last).fit(100 * X, y)
    model = from_svc(pipeline)
    rows = 100 * TEST
    if y is TWO:
        expected = pipeline.decision_function(rows)
        np.testing.assert_allclose(model.decision_function(rows), expected, atol=1e-6)
    np.testing.assert_array_equal(model.predict(rows) > 0.5, pipeline.predict(rows) > 0.5)
    if y is VALUES:
        np.testing.assert_allclose(model.predict(rows), pipeline.predict(rows), atol=1e-6)


def test_steps_before_a_model_that_is_compressed():
    pipeline = make_pipeline(StandardScaler(), SVC()).fit(100 * X, TWO)
    for rows in ({}, {"X": 100 * X}, {"X": 100 * X, "y": TWO}):
        for how in ({"n_components": 20}, {"budget": "1kB"}):
            model = from_svc(pipeline, **how, **rows, random_state=0)
            assert model.model_bytes_ <= 1024 or "budget" not in how
            agree = model.predict(100 * X) == pipeline.predict(100 * X)
            assert agree.mean() > 0.9
    with pytest.raises(ValueError, match=r"budget='64B' is used up by the \d+ bytes"):
        from_svc(pipeline, budget="64B")


def test_probabilities_behind_steps():
    pipeline = make_pipeline(StandardScaler(), SVC()).fit(100 * X[::2], TWO[::2])
    model = from_svc(pipeline, 100 * X[1::2], TWO[1::2])
    alone = from_svc(
        pipeline[-1], StandardScaler().fit(100 * X[::2]).transform(100 * X[1::2]), TWO[1::2]
    )
    rows = pipeline[0].transform(100 * TEST)
    np.testing.assert_allclose(
        model.predict_proba(100 * TEST), alone.predict_proba(rows), atol=1e-9
    )


def test_a_pipeline_of_one_step():
    pipeline = make_pipeline(SVR()).fit(X, VALUES)
    np.testing.assert_allclose(from_svc(pipeline).predict(TEST), pipeline.predict(TEST), atol=1e-6)


def test_other_steps():
    with pytest.raises(ValueError, match=r"'pca' \(PCA\) cannot become part of the model"):
        from_svc(make_pipeline(PCA(2), SVR()).fit(X, VALUES))
    with pytest.raises(TypeError, match=r"from_svc takes .* got GaussianNB"):
        from_svc(make_pipeline(StandardScaler(), GaussianNB()).fit(X, TWO))


@pytest.mark.parametrize(
    "model", [SVC(), SVR(), KernelRidge(), make_pipeline(Nystroem(), Ridge())], ids=str
)
def test_before_a_fit(model):
    with pytest.raises(NotFittedError):
        from_svc(model)


def test_rows_that_scale_nothing():
    with pytest.raises(ValueError, match="a regressor has none"):
        from_svc(SVR().fit(X, VALUES), X, VALUES)
    with pytest.raises(ValueError, match="pass both X and y"):
        from_svc(SVC().fit(X, TWO), X)


@pytest.mark.parametrize("how", [{"n_components": 12}, {"budget": "1kB"}], ids=str)
def test_a_seed_makes_compression_reproducible(how):
    svc = SVC(C=10).fit(X, CLASSES)
    np.random.seed(1)
    first = from_svc(svc, random_state=0, **how)
    np.random.seed(2)
    state = np.random.get_state()[1].copy()
    second = from_svc(svc, random_state=0, **how)
    np.testing.assert_array_equal(np.random.get_state()[1], state)
    np.testing.assert_array_equal(first.decision_function(X), second.decision_function(X))


def test_progress_and_time_limit_of_compression(capfd):
    svc = SVC(C=10).fit(X, CLASSES)
    small = from_svc(svc, budget="1kB", max_seconds=1e-9, random_state=0, verbose=2)
    assert small.model_bytes_ <= 1024
    assert "[NystroemClassifier] compress: " in capfd.readouterr().err
