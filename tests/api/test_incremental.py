"""Rows that come in portions give the model of all of them together."""

from __future__ import annotations

import copy
import pickle

import factories
import numpy as np
import pandas as pd
import pytest
import reference
import scipy.sparse as sp
from sampling import in_pairs
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus.kernels import RBF, FunctionKernel

N, D = 300, 3
GAMMA, ALPHA = 0.5, 0.1

ROWS = factories.table(N, D)
X, TARGETS, WEIGHT = ROWS.X, ROWS.targets, ROWS.weight
WEIGHTS = {"even": None, "weighted": WEIGHT}
Z = X[::15]
every_target = pytest.mark.parametrize("target", TARGETS)
BOTH = pytest.mark.parametrize("target", ["text", "values"])


def _model(target="binary", **params):
    kind = NystroemRegressor if "values" in target else NystroemClassifier
    return kind(20, **{"gamma": GAMMA, "alpha": ALPHA, "selection": Z, "random_state": 0} | params)


def _add(model, target, rows, weight=None, y=None, container=np.asarray):
    y = TARGETS[target] if y is None else y
    named = {} if "values" in target or target == "labels" else {"classes": np.unique(y)}
    weight = None if weight is None else weight[rows]
    return model.partial_fit(container(X[rows]), y[rows], sample_weight=weight, **named)


def _cuts(seed):
    """Return the rows of portions of random sizes in random order."""
    rng = np.random.RandomState(seed)
    inner = np.sort(rng.choice(np.arange(1, N), rng.randint(1, 12), replace=False))
    return [np.arange(a, b) for a, b in rng.permutation(np.c_[[0, *inner], [*inner, N]])]


def _running(target="binary", rows=slice(None), **params):
    return _add(_model(target, **params), target, rows)


def _assert_same(model, other, rtol=1e-8):
    assert model.alpha_ == other.alpha_
    for name in ("landmarks_", "dual_coef_", "intercept_"):
        got, expected = (np.asarray(getattr(one, name)) for one in (model, other))
        assert got.shape == expected.shape
        assert np.linalg.norm(got - expected) <= rtol * np.linalg.norm(expected)


def _from_sums(model):
    """Return what the stored sums give with two ridges, nothing where there are no sums."""
    try:
        models = [copy.deepcopy(model).retune(alpha) for alpha in (1e-3, 10.0)]
    except ValueError as error:
        if "needs sums" not in str(error):
            raise
        return []
    return [array for one in models for array in (one.dual_coef_, one.intercept_)]


class Unchanged:
    """Asserts that a block of code leaves a model as it is."""

    def __init__(self, model):
        self._model = model

    def __enter__(self):
        self._before = pickle.dumps(self._model)

    def __exit__(self, *_):
        before = pickle.loads(self._before)
        assert vars(before).keys() == vars(self._model).keys()
        np.testing.assert_array_equal(before.dual_coef_, self._model.dual_coef_)
        np.testing.assert_array_equal(before.landmarks_, self._model.landmarks_)
        assert before.n_features_in_ == self._model.n_features_in_
        np.testing.assert_array_equal(
            getattr(before, "classes_", 0), getattr(self._model, "classes_", 0)
        )
        for expected, got in zip(_from_sums(before), _from_sums(self._model), strict=True):
            np.testing.assert_array_equal(got, expected)


# ---- partial_fit --------------------------------------------------------------------------------


@in_pairs(("target", "seed", "weight"), TARGETS.keys(), range(4), WEIGHTS)
def test_portions_equal_the_whole(target, seed, weight):
    whole = _model(target).fit(X, TARGETS[target], sample_weight=weight)
    model = _model(target)
    for rows in _cuts(seed):
        _add(model, target, rows, weight)
    _assert_same(model, whole)
    assert model.predict(X).shape == whole.predict(X).shape
    assert model.score(X, TARGETS[target]) == pytest.approx(whole.score(X, TARGETS[target]))


@every_target
def test_rows_one_by_one(target):
    model = _model(target)
    for row in range(60):
        _add(model, target, slice(row, row + 1))
    y = TARGETS[target]
    if target in ("binary", "several", "text"):
        assert len(np.unique(y[:60])) == len(np.unique(y))
    _assert_same(model, _model(target).fit(X[:60], y[:60]))


@in_pairs(("target", "size", "weight"), TARGETS.keys(), [1, 7], WEIGHTS)
def test_small_portions_are_collected_until_there_are_landmarks(target, size, weight):
    """The rows of small calls are as good as a single first call with all of them."""
    params = {"selection": "auto", "gamma": "scale", "alpha": "auto"}
    model, n_rows = _model(target, **params), 56
    for row in range(0, n_rows, size):
        some = slice(row, row + size)
        if row or weight is None or weight[some].any():  # a first call without rows raises
            _add(model, target, some, weight)
        assert len(model.landmarks_) <= 20
        assert len(model.predict(X)) == N
    counted = np.ones(n_rows) if weight is None else weight[:n_rows]
    enough = np.searchsorted(np.cumsum(counted > 0), 20) + 1  # rows until there are 20 that count
    enough = -(-enough // size) * size
    whole = _model(target, **params)
    _add(whole, target, slice(0, enough), weight)
    _add(whole, target, slice(enough, n_rows), weight)
    assert len(model.landmarks_) == 20
    _assert_same(model, whole)


@BOTH
def test_a_first_portion_that_is_too_small_is_no_reason_for_a_warning(target):
    params = {"selection": "auto", "gamma": "scale"}
    model = _add(_model(target, **params), target, slice(0, 5))
    assert len(model.landmarks_) == 5
    _add(model, target, slice(5, 200))  # alone enough to choose landmarks from
    assert len(model.landmarks_) == 20
    alone = _add(_model(target, **params), target, slice(5, 200))
    np.testing.assert_array_equal(model.landmarks_, alone.landmarks_)
    _assert_same(model, _add(alone, target, slice(0, 5)))


@BOTH
def test_collected_rows_are_let_go(target, tmp_path):
    params = {"selection": "auto", "gamma": "scale"}
    model = _add(_model(target, **params), target, slice(0, 19))
    collecting = len(pickle.dumps(model))
    for start in range(19, 119):
        _add(model, target, slice(start, start + 1))
    full = len(pickle.dumps(model))
    for start in range(119, 219):
        _add(model, target, slice(start, start + 1))
    assert len(pickle.dumps(model)) <= full + 100
    assert collecting <= full + 20 * D * 16


@pytest.mark.parametrize("target", ["several", "labels", "values"])
def test_collected_rows_of_every_kind(target):
    """Sparse and dense rows, and rows outside memory, may follow each other."""
    params = {"selection": "auto", "gamma": "scale"}
    model = _add(_model(target, **params), target, slice(0, 4), container=sp.csr_matrix)
    _add(model, target, slice(4, 8))
    named = {} if target != "several" else {"classes": [0, 1, 2]}
    model.partial_fit([(X[8:12], TARGETS[target][8:12])], **named)
    _add(model, target, slice(12, 300))
    assert model.landmarks_.shape == (20, D)
    dense = _add(_model(target, **params), target, slice(0, 4))
    _add(dense, target, slice(4, 12))
    assert model.score(X, TARGETS[target]) > dense.score(X, TARGETS[target])


def test_merged_rows_are_not_forgotten_while_rows_are_collected():
    first = _running("values", slice(0, 10), selection="auto")
    second = _running("values", slice(10, 40), selection=first.landmarks_)
    first.merge(second)
    _add(first, "values", slice(40, 100))
    assert len(first.landmarks_) == 10
    whole = _model("values", selection=first.landmarks_).fit(X[:100], TARGETS["values"][:100])
    _assert_same(first, whole)


@every_target
def test_scores_equal_the_dense_solution(target):
    model = _model(target)
    for rows in _cuts(5):
        _add(model, target, rows, WEIGHT)
    y = TARGETS[target]
    if target in ("binary", "several", "text"):
        Y = reference.one_vs_rest(y)
    else:
        Y = (2.0 * y - 1 if target == "labels" else y).reshape(N, -1)
    T = reference.whitening(reference.rbf_matrix(Z, Z, GAMMA))
    features = reference.rbf_matrix(X, Z, GAMMA) @ T
    W, b = reference.ridge(features, Y, ALPHA, WEIGHT)
    np.testing.assert_allclose(model.expansion_(X), features @ W + b, atol=1e-8)


@pytest.mark.parametrize("container", [sp.csr_matrix, lambda X: X.astype(np.float32), pd.DataFrame])
@BOTH
def test_every_container(target, container):
    params = {"selection": container(Z)}
    whole = _model(target, **params).fit(container(X), TARGETS[target])
    model = _model(target, **params)
    for rows in _cuts(2):
        _add(model, target, rows, container=container)
    method = "decision_function" if target == "text" else "predict"
    got, expected = (getattr(one, method)(container(X)) for one in (model, whole))
    np.testing.assert_allclose(got, expected, atol=1e-8 if got.dtype == expected.dtype else 1e-4)


@BOTH
def test_one_call_is_a_fit(target):
    """Also where landmarks, width and ridge are to be chosen."""
    params = {"selection": "kmeans", "gamma": "scale", "alpha": [0.01, 0.1, 1.0]}
    _assert_same(_running(target, **params), _model(target, **params).fit(X, TARGETS[target]))


@pytest.mark.parametrize("approximation", ["randomized", "ensemble"])
def test_every_approximation(approximation):
    whole = _model(approximation=approximation).fit(X, TARGETS["binary"])
    model = _running(rows=slice(0, 100), approximation=approximation)
    _assert_same(_add(model, "binary", slice(100, N)), whole)


def test_landmarks_width_and_ridge_stay_those_of_the_first_rows():
    first = slice(0, 100)
    params = {"selection": "negative-margin", "gamma": "scale", "alpha": [0.01, 0.1, 1.0]}
    model = _running("several", first, **params)
    begun = _model("several", **params).fit(X[first], TARGETS["several"][first])
    _assert_same(model, begun)
    np.testing.assert_array_equal(model.landmark_indices_, begun.landmark_indices_)
    _add(model, "several", slice(100, N))
    fixed = {"selection": begun.landmarks_, "gamma": begun.gamma_, "alpha": begun.alpha_}
    _assert_same(model, _model("several", **fixed).fit(X, TARGETS["several"]))


@pytest.mark.parametrize("again", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@every_target
def test_copies_go_on(target, again):
    model = again(_running(target, slice(0, 120)))
    other = again(model)
    _add(model, target, slice(120, N))
    _assert_same(model, _model(target).fit(X, TARGETS[target]))
    _assert_same(other, _model(target).fit(X[:120], TARGETS[target][:120]))
    _assert_same(
        other.merge(again(_running(target, slice(120, N)))),
        model,
    )


def test_clones_begin_anew():
    model = clone(_running("values"))
    with pytest.raises(NotFittedError):
        model.predict(X)
    _assert_same(
        _add(model, "values", slice(0, 90)),
        _running("values", slice(0, 90)),
    )


@pytest.mark.parametrize("weight", [None, "w"])
@BOTH
def test_rows_on_disk(tmp_path, target, weight):
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=TARGETS[target], w=WEIGHT)
    frame = frame if weight else frame.drop(columns="w")
    model = _model(target)
    named = {"classes": np.unique(TARGETS["text"])} if target == "text" else {}
    for number, rows in enumerate([slice(0, 130), slice(130, N)]):
        frame[rows].to_parquet(tmp_path / f"{number}.parquet", row_group_size=40)
        model.partial_fit(tmp_path / f"{number}.parquet", "y", sample_weight=weight, **named)
    whole = _model(target).fit(X, TARGETS[target], sample_weight=WEIGHT if weight else None)
    _assert_same(model, whole)
    assert list(model.feature_names_in_) == list("abc")


def test_blocks_of_rows():
    model = _model("several")
    cut = [(X[i : i + 40], TARGETS["several"][i : i + 40]) for i in range(0, N, 40)]
    model.partial_fit(cut[:3], classes=[0, 1, 2]).partial_fit(cut[3:])
    _assert_same(model, _model("several").fit(X, TARGETS["several"]))


def test_several_labels_on_disk_and_in_blocks(tmp_path):
    names = ["l0", "l1", "l2"]
    frame = pd.DataFrame(X, columns=list("abc"))
    frame[names] = TARGETS["labels"]
    frame.to_parquet(tmp_path / "rows.parquet")
    whole = _model("labels").fit(X, TARGETS["labels"])
    _assert_same(_model("labels").partial_fit(tmp_path / "rows.parquet", names), whole)
    blocks = [(X[:100], TARGETS["labels"][:100]), (X[100:], TARGETS["labels"][100:])]
    _assert_same(_model("labels").partial_fit(blocks), whole)
    _assert_same(_model("labels").partial_fit(X, TARGETS["labels"].tolist()), whole)


@pytest.mark.filterwarnings("ignore:The model predicts 1 of the 3 classes")
def test_class_weights():
    factors = {"low": 0.3, "mid": 4.0}
    whole = _model(class_weight=factors).fit(X, TARGETS["text"])
    model = _model(class_weight=factors)
    for rows in _cuts(1):
        _add(model, "text", rows)
    _assert_same(model, whole)


def test_classes_that_come_later():
    """The first portion has one class only."""
    y = TARGETS["several"]
    model = _model("several")
    for value in range(3):
        model.partial_fit(X[y == value], y[y == value], classes=[0, 1, 2] if value == 0 else None)
    _assert_same(model, _model("several").fit(X, y))


def test_kernels_that_are_functions():
    kernel = FunctionKernel(RBF(GAMMA), vectorized=True)
    model = _running("values", slice(0, 100), kernel=kernel, gamma="scale")
    _add(model, "values", slice(100, N))
    _assert_same(model, _model("values").fit(X, TARGETS["values"]))


# ---- what goes wrong, and leaves the model as it was -------------------------------------------


def test_classes_are_needed_at_first():
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        _model().partial_fit(X, TARGETS["binary"])
    model = _running("text", slice(0, 50))
    model.partial_fit(X[50:], TARGETS["text"][50:])
    with pytest.raises(ValueError, match=r"classes=\['low', 'mid'\] is not the same"):
        model.partial_fit(X, TARGETS["text"], classes=["low", "mid"])


def test_balanced_classes_are_refused():
    with pytest.raises(ValueError, match=r"class_weight='balanced' needs to see all rows"):
        _model(class_weight="balanced").partial_fit(X, TARGETS["binary"], classes=[0, 1])


BAD = {
    "unseen class": ("text", X[:3], ["low", "odd", "mid"], r"y contains \['odd'\].*'uppermost'"),
    "too few columns": ("text", X[:3, :2], ["low"] * 3, "X has 2 features.*expecting 3"),
    "too few columns of values": ("values", X[:3, :2], [1.0] * 3, "X has 2 features.*expecting 3"),
    "missing number": ("values", np.full((3, D), np.nan), [1.0] * 3, "NaN"),
    "missing value": ("values", X[:3], [1.0, np.nan, 0.0], "NaN"),
    "rows without targets": ("text", X[:3], ["low"] * 2, "inconsistent numbers of samples"),
    "other number of values": ("values", X[:3], np.ones((3, 2)), r"y has \d columns?"),
    "fewer values": ("two-values", X[:3], np.ones(3), r"y has \d columns?"),
    "more values": ("two-values", X[:3], np.ones((3, 3)), r"y has \d columns?"),
    "other number of labels": ("labels", X[:3], np.eye(3, 2, dtype=int), r"y has \d columns?"),
    "more labels": ("labels", X[:3], np.eye(3, 4, dtype=int), r"y has \d columns?"),
    "classes for labels": ("labels", X[:3], np.array([0, 1, 1]), r"y has \d columns?"),
    "labels for classes": ("several", X[:3], np.eye(3, dtype=int), r"y has \d columns?"),
    "no target": ("values", X[:3], None, "requires y to be passed"),
}


@pytest.mark.parametrize("elsewhere", [False, True], ids=["array", "blocks"])
@pytest.mark.parametrize("case", BAD)
def test_rows_that_will_not_do_leave_the_model_alone(case, elsewhere):
    target, rows, y, message = BAD[case]
    model = _running(target, slice(0, 100))
    if elsewhere and case == "rows without targets":
        message = "one entry for each row"
    args = (rows, y)
    if elsewhere:
        args = ([(rows,) if y is None else (rows, np.asarray(y))],)
    with Unchanged(model), pytest.raises(ValueError, match=message):
        model.partial_fit(*args)
    _add(model, target, slice(100, N))
    _assert_same(model, _model(target).fit(X, TARGETS[target]))


@pytest.mark.parametrize("sample_weight", [[1.0, -1.0], [np.nan, 1.0]])
def test_weights_that_will_not_do_leave_the_model_alone(sample_weight):
    model = _running("values", slice(0, 100))
    with Unchanged(model), pytest.raises(ValueError, match="sample_weight"):
        model.partial_fit(X[:2], [0.0, 1.0], sample_weight=sample_weight)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["array", "blocks"])
def test_a_portion_that_weighs_nothing_is_ignored(elsewhere):
    model = _running("binary", slice(0, 100))
    y, weight = np.array([0, 1]), np.zeros(2)
    args = ([(X[:2], y, weight)],) if elsewhere else (X[:2], y, None, weight)
    with Unchanged(model):
        model.partial_fit(*args)
    with pytest.raises(ValueError, match="All sample weights are zero"):
        _model("binary").partial_fit(
            *args[:2], classes=[0, 1], **({} if elsewhere else {"sample_weight": weight})
        )


def test_a_portion_of_ignored_classes_is_ignored():
    model = _model("several", class_weight={0: 0.0, 1: 1.0, 2: 2.0})
    y = TARGETS["several"]
    _add(model, "several", slice(0, 100))
    ignored = np.flatnonzero(y == 0)
    with Unchanged(model):
        model.partial_fit(X[ignored], y[ignored])


def test_a_bad_first_portion_can_be_given_again():
    model = _model("text")
    with pytest.raises(ValueError, match="which is not among the classes"):
        model.partial_fit(X, TARGETS["text"], classes=["low", "mid"])
    _add(model, "text", slice(None))
    _assert_same(model, _model("text").fit(X, TARGETS["text"]))


def test_a_source_that_breaks_off_leaves_the_model_alone():
    model, reads = _running("values", slice(0, 100)), []

    def blocks():
        reads.append(1)
        yield X[100:150], TARGETS["values"][100:150]
        if len(reads) > 2:
            raise OSError("gone")
        yield X[150:], TARGETS["values"][150:]

    with Unchanged(model), pytest.raises(OSError, match="gone"):
        model.partial_fit(blocks)
    _add(model, "values", slice(100, N))
    _assert_same(model, _model("values").fit(X, TARGETS["values"]))


def test_renamed_columns():
    model = _model("values").partial_fit(pd.DataFrame(X, columns=list("abc")), TARGETS["values"])
    with Unchanged(model), pytest.raises(ValueError, match="feature names"):
        model.partial_fit(pd.DataFrame(X, columns=list("abd")), TARGETS["values"])


# ---- after fit ----------------------------------------------------------------------------------


@BOTH
def test_after_fit_landmarks_kernel_and_ridge_are_kept(target):
    params = {"selection": "kmeans", "gamma": "scale", "alpha": "auto"}
    model = _model(target, **params).fit(X[:150], TARGETS[target][:150])
    kept = {"selection": model.landmarks_, "gamma": model.gamma_, "alpha": model.alpha_}
    with pytest.warns(UserWarning, match="fit keeps no sums over its rows"):
        model.partial_fit(X[150:220], TARGETS[target][150:220])
    model.partial_fit(X[220:], TARGETS[target][220:])
    _assert_same(model, _model(target, **kept).fit(X[150:], TARGETS[target][150:]))


@pytest.mark.parametrize(
    ("target", "rows", "y", "message"),
    [
        ("values", X[:5, :2], np.ones(5), "X has 2"),
        ("values", X[:5], np.ones((5, 2)), r"y has \d columns?"),
        ("text", X[:5], np.array(["odd"] * 5), "odd"),
    ],
)
@pytest.mark.parametrize("elsewhere", [False, True], ids=["array", "blocks"])
def test_rows_unlike_those_of_fit(target, rows, y, message, elsewhere):
    model = _model(target).fit(X, TARGETS[target])
    expected = model.predict(X)
    args = ([(rows, y)],) if elsewhere else (rows, y)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(*args)
    np.testing.assert_array_equal(model.predict(X), expected)


def test_fit_after_partial_fit_forgets_the_rows_before():
    model = _running("values", slice(0, 100)).fit(X[100:], TARGETS["values"][100:])
    _assert_same(model, _model("values").fit(X[100:], TARGETS["values"][100:]))
    with pytest.raises(ValueError, match="which partial_fit keeps and fit does not"):
        model.retune()


# ---- merge --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_parts", [2, 3])
@every_target
def test_merged_models_equal_the_whole(target, n_parts):
    parts = np.array_split(np.random.RandomState(0).permutation(N), n_parts)
    first, *others = [_running(target, part) for part in parts]
    for other in others:
        with Unchanged(other):
            assert first.merge(other) is first
    _assert_same(first, _model(target).fit(X, TARGETS[target]))
    _add(first, target, slice(0, 10))  # and goes on
    stacked = np.r_[0:N, 0:10]
    _assert_same(first, _model(target).fit(X[stacked], TARGETS[target][stacked]))


def test_merging_a_model_with_itself_counts_its_rows_twice():
    model = _running("values")
    whole = _model("values").fit(np.r_[X, X], np.r_[TARGETS["values"], TARGETS["values"]])
    _assert_same(model.merge(model), whole)


def test_merged_models_keep_the_first_ridge():
    first = _running("values", slice(0, 100))
    first.merge(_running("values", slice(100, N), alpha=7.0))
    _assert_same(first, _model("values").fit(X, TARGETS["values"]))


UNLIKE = {
    "other landmarks": ({"selection": Z + 0.1}, "binary", "different landmarks or kernels"),
    "fewer landmarks": ({"selection": Z[:-1]}, "binary", "different landmarks or kernels"),
    "a landmark more that repeats another": (
        {"selection": np.r_[Z, Z[:1]]},
        "binary",
        "different landmarks or kernels",
    ),
    "one other landmark": (
        {"selection": np.r_[Z[:-1], X[1:2]]},
        "binary",
        "different landmarks or kernels",
    ),
    "other gamma": ({"gamma": 0.51}, "binary", "different landmarks or kernels"),
    "slightly other gamma": ({"gamma": GAMMA + 1e-9}, "binary", "different landmarks or kernels"),
    "other kernel": ({"kernel": "laplacian"}, "binary", "different landmarks or kernels"),
    "other map": ({"approximation": "ensemble"}, "binary", "different landmarks or kernels"),
    "other classes": ({}, "several", "different classes"),
    "labels": ({}, "labels", "different classes"),
}


@pytest.mark.parametrize("case", UNLIKE)
def test_models_that_do_not_merge(case):
    params, target, message = UNLIKE[case]
    model, other = _running("binary", slice(0, 100)), _running(target, slice(100, N), **params)
    for one, two in ((model, other), (other, model)):
        with Unchanged(one), Unchanged(two), pytest.raises(ValueError, match=message):
            one.merge(two)


def test_text_classes_do_not_merge_with_others_of_their_number():
    model, other = _running("several"), _running("text")
    with pytest.raises(ValueError, match="different classes"):
        model.merge(other)


def test_labels_do_not_merge_with_as_many_classes():
    model, other = _running("labels"), _running("several")
    for one, two in ((model, other), (other, model)):
        with pytest.raises(ValueError, match="different classes"):
            one.merge(two)


def test_values_do_not_merge_with_more_of_them():
    with pytest.raises(ValueError, match="numbers of outputs"):
        _running("values").merge(_running("two-values"))


def test_only_its_like_merges():
    model = _running("values")
    for other in (_running("binary"), 3, None):
        with pytest.raises(TypeError, match="merge expects another NystroemRegressor, got"):
            model.merge(other)
    for other in (_model("values"), _model("values").fit(X, TARGETS["values"])):
        for one, two in ((model, other), (other, model)):
            with pytest.raises(ValueError, match="merge needs sums over the rows"):
                one.merge(two)


# ---- retune -------------------------------------------------------------------------------------


@every_target
def test_another_ridge(target):
    model = _running(target).retune(2.5)
    _assert_same(model, _model(target, alpha=2.5).fit(X, TARGETS[target]))
    _add(model, target, slice(0, 10))
    assert model.alpha_ == 2.5


@pytest.mark.parametrize("target", ["values", "two-values"])
@pytest.mark.parametrize("alpha", ["auto", [0.01, 0.1, 1.0, 10.0]])
def test_the_ridge_of_least_cross_validation_error(target, alpha):
    chosen = _model(target, alpha=alpha).fit(X, TARGETS[target])
    model = _running(target, slice(0, 90), alpha=1e3)
    _add(model, target, slice(90, N))
    _assert_same(model.retune(alpha), chosen)


def test_retuned_classifiers_are_good():
    model = _running("binary", alpha=1e6)
    poor = model.score(X, TARGETS["binary"])
    assert model.retune().score(X, TARGETS["binary"]) > poor + 0.1
    assert model.alpha_ < 1e3


@pytest.mark.parametrize("alpha", [-1.0, "best", [], [np.nan]])
def test_ridges_that_will_not_do(alpha):
    model = _running("values")
    with Unchanged(model), pytest.raises(ValueError, match="alpha="):
        model.retune(alpha)


def test_retune_needs_sums():
    for model in (_model(), _model().fit(X, TARGETS["binary"])):
        with pytest.raises(ValueError, match="retune needs sums over the rows"):
            model.retune()
