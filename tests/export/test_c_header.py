from __future__ import annotations

import os
import re
import subprocess
import warnings
from dataclasses import replace

import numpy as np
import pytest
from exported import FLAGS, GCC, build_c, needs_gcc, row_type, run_c
from factories import alter
from sampling import sampled
from sklearn.datasets import load_diabetes, load_iris
from sklearn.preprocessing import StandardScaler

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._bytes.quantise import pack_expansion
from nysplus.expansion import KernelExpansion, PackedExpansion, pack_array
from nysplus.export import to_c
from nysplus.export.c_model import c_model
from nysplus.export.contents import contents_of
from nysplus.export.rounding import compared_rows, exact_scores, largest_change
from nysplus.kernels import (
    RBF,
    AdditiveChi2,
    Chi2,
    Cosine,
    FunctionKernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Sigmoid,
)
from nysplus_experiments.harness.datasets import DatasetNotFound, load

CLASSES = """
        float probabilities[NYSPLUS_CLASSES];
        float label = (float)nysplus_predict(x);
        nysplus_probabilities(x, probabilities);
        fwrite(probabilities, sizeof probabilities, 1, stdout);
        fwrite(&label, sizeof label, 1, stdout);
"""
LABELS = """
        float probabilities[NYSPLUS_SCORES];
        int labels[NYSPLUS_SCORES];
        nysplus_predict(x, labels);
        nysplus_probabilities(x, probabilities);
        fwrite(probabilities, sizeof probabilities, 1, stdout);
        for (int c = 0; c < NYSPLUS_SCORES; c++) {
            float label = (float)labels[c];
            fwrite(&label, sizeof label, 1, stdout);
        }
"""
VALUES = """
        float y[NYSPLUS_SCORES];
        nysplus_predict(x, y);
        fwrite(y, sizeof y, 1, stdout);
"""


def compiled(folder, model, X, calls=CLASSES, **options):
    """Return what C makes of the rows: scores and the rest, side by side."""
    build_c(folder, to_c(model, **options), calls)
    return run_c(folder, X)


def check_classifier(folder, model, X, **options):
    scores = model.decision_function(X).reshape(len(X), -1)
    found = compiled(folder, model, X, **options)
    n, n_classes = scores.shape[1], len(model.classes_)
    np.testing.assert_allclose(found[:, :n], scores, atol=1e-4, rtol=0)
    np.testing.assert_allclose(found[:, n:-1], model.predict_proba(X), atol=1e-3, rtol=0)
    np.testing.assert_allclose(found[:, n:-1].sum(axis=1), 1.0, atol=1e-6)
    ordered = np.sort(np.hstack([-scores, scores]) if n == 1 else scores, axis=1)
    decided = ordered[:, -1] - ordered[:, -2] > 2e-4
    labels = found[:, -1].astype(int)
    assert labels.max() < n_classes
    assert decided.mean() > 0.95
    assert (model.classes_[labels] == model.predict(X))[decided].all()


def quantised(model, dtype):
    """Store the numbers of a model in fewer bytes."""
    old = model.expansion_
    P = None if old.projection is None else pack_array(old.projection, dtype)
    storage = PackedExpansion(
        pack_array(old.landmarks, dtype),
        pack_array(old.dual_coef, dtype),
        pack_array(old.intercept, "float32"),
        P,
    )
    alter(model, expansion=KernelExpansion.unpacked(old.kernel, storage))
    return model


@needs_gcc
def test_digits(digits, tmp_path):
    X, y = digits
    model = NystroemClassifier(100, random_state=0).fit(X[:1000], y[:1000])
    check_classifier(tmp_path, model, X[1000:])


@needs_gcc
@pytest.mark.skipif("NYSPLUS_DATA" not in os.environ, reason="NYSPLUS_DATA names no folder")
@pytest.mark.parametrize("name", ["usps", "letter"])
def test_real_data(name, tmp_path):
    try:
        data = load(name, download=False, dtype=np.float32)
    except DatasetNotFound as error:
        pytest.skip(str(error))
    model = NystroemClassifier(200, random_state=0)
    model.fit(data.X_train[:3000], data.y_train[:3000])
    for dtype in ("float32", "int8"):
        expansion = pack_expansion(model.expansion_, dtype, data.X_train[:3000])
        # the same numbers, but float64 arithmetic: numpy's float32 sums are off by 1e-4 on Letter
        A = expansion.dual_coef.astype(np.float64)
        alter(model, expansion=replace(expansion, dual_coef=A))
        check_classifier(tmp_path, model, data.X_test[:1000].astype(np.float64))


@pytest.mark.slow
@needs_gcc
@sampled(("dtype", "metric"), ["float16", "int8"], [None, "diagonal", 12])
def test_fewer_bytes(digits, tmp_path, dtype, metric):
    X, y = digits
    model = NystroemClassifier(60, metric=metric, alpha=0.1, random_state=0)
    quantised(model.fit(X[:600], y[:600]), dtype)
    check_classifier(tmp_path, model, X[600:])
    assert f"Tables: {model.model_bytes_} bytes" in to_c(model)
    small, large = len(to_c(model)), len(to_c(model, dtype="float32"))
    assert small < large
    check_classifier(tmp_path, model, X[600:], dtype="float32")


@pytest.mark.slow
@needs_gcc
@pytest.mark.parametrize(
    "kernel",
    [
        RBF(),
        *(Matern(nu=nu) for nu in (0.5, 1.5, 2.5)),
        Laplacian(),
        Polynomial(degree=2),
        Polynomial(gamma=0.02, coef0=0.5, degree=3),
        Sigmoid(gamma=0.01, coef0=0.1),
        Linear(),
        Cosine(),
        Chi2(),
        AdditiveChi2(),
    ],
    ids=repr,
)
def test_kernels(digits, tmp_path, kernel):
    X, y = digits
    rows = y < 3
    X, y = X[rows], y[rows]
    model = NystroemClassifier(20, kernel=kernel, alpha=1.0, random_state=0).fit(X[:200], y[:200])
    X_test = np.vstack([X[200:], np.zeros(X.shape[1])])
    check_classifier(tmp_path, model, X_test)


@needs_gcc
def test_two_classes(moons, tmp_path):
    X, y = moons
    model = NystroemClassifier(20, random_state=0).fit(X[:200], y[:200])
    check_classifier(tmp_path, model, X[200:])


@needs_gcc
def test_labels(digits, tmp_path):
    X, y = digits
    Y = np.column_stack([y % 2, y > 4, y % 3 == 0])
    model = NystroemClassifier(40, random_state=0).fit(X[:500], Y[:500])
    found = compiled(tmp_path, model, X[500:], LABELS)
    scores = model.decision_function(X[500:])
    np.testing.assert_allclose(found[:, :3], scores, atol=1e-4, rtol=0)
    np.testing.assert_allclose(found[:, 3:6], model.predict_proba(X[500:]), atol=1e-3, rtol=0)
    decided = np.abs(scores) > 1e-4
    assert (found[:, 6:] == model.predict(X[500:]))[decided].all()


@needs_gcc
@pytest.mark.parametrize("several", [False, True])
def test_values(tmp_path, several):
    X, y = load_diabetes(return_X_y=True)
    y = (y - y.mean()) / y.std()
    y = np.column_stack([y, X[:, 2]]) if several else y
    model = NystroemRegressor(30, random_state=0).fit(X, y)
    found = compiled(tmp_path, model, X, VALUES)
    expected = model.predict(X).reshape(len(X), -1)
    n = expected.shape[1]
    np.testing.assert_allclose(found[:, :n], expected, atol=1e-4, rtol=0)
    np.testing.assert_array_equal(found[:, n:], found[:, :n])


@needs_gcc
def test_sparse_landmarks(digits, tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    X, y = digits
    model = NystroemClassifier(30, selection="uniform", random_state=0)
    model.fit(sparse.csr_matrix(X[:300]), y[:300])
    check_classifier(tmp_path, model, X[300:])


@needs_gcc
@pytest.mark.parametrize("kernel", [RBF(), Matern(), Laplacian()], ids=repr)
def test_rows_out_of_range_get_the_intercept(digits, tmp_path, kernel):
    X, y = digits
    model = NystroemClassifier(20, kernel=kernel, random_state=0).fit(X[:300], y[:300])
    far = np.ones((4, 64)) * [[1e6], [-1e30], [np.inf], [-np.inf]]
    found = compiled(tmp_path, model, far)
    np.testing.assert_array_equal(found[:, :10], np.tile(np.float32(model.intercept_), (4, 1)))
    assert (found[:, -1] == model.intercept_.argmax()).all()
    label = run_c(tmp_path, np.full((1, 64), np.nan))[0, -1]
    assert 0 <= label < 10


@needs_gcc
def test_a_second_model_beside_it(digits, moons, tmp_path):
    """Two headers in one program, each included twice, and functions that nobody calls."""
    (X, y), (X2, y2) = digits, moons
    model = NystroemClassifier(10, random_state=0)
    (tmp_path / "a.h").write_text(to_c(model.fit(X[:100], y[:100]), name="digits"))
    (tmp_path / "b.h").write_text(to_c(model.fit(X2, y2), name="2 moons"))
    source = "".join(f'#include "{name}.h"\n' for name in "abab")
    source += "int main(void)\n{\n    float x[DIGITS_FEATURES] = {0};\n"
    source += "    return digits_classes[digits_predict(x)] + model_2_moons_predict(x);\n}\n"
    (tmp_path / "main.c").write_text(source)
    subprocess.run([GCC, *FLAGS, "main.c", "-lm", "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], check=False)
    predicted = model.predict(np.zeros((1, 2)))[0]
    assert done.returncode == model.fit(X[:100], y[:100]).predict(np.zeros((1, 64)))[0] + predicted


@needs_gcc
def test_names_of_classes(tmp_path):
    X, codes = load_iris(return_X_y=True)
    labels = np.array(['a "quoted" ??/ one', "käse\n", "at@sign 50%"])
    model = NystroemClassifier(10, random_state=0).fit(X, labels[codes])
    (tmp_path / "model.h").write_text(to_c(model), encoding="ascii")
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "model.h"\nint main(void)\n{\n'
        "    for (int c = 0; c < NYSPLUS_CLASSES; c++) puts(nysplus_classes[c]);\n"
        "    return 0;\n}\n"
    )
    subprocess.run([GCC, *FLAGS, "main.c", "-lm", "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, check=True)
    assert done.stdout.decode() == "".join(f"{label}\n" for label in model.classes_)


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ([-3, 7], "static const int nysplus_classes[2] = {\n    -3, 7\n};"),
        ([False, True], "static const int nysplus_classes[2] = {\n    0, 1\n};"),
        ([1.0, 2.0], "static const int nysplus_classes[2] = {\n    1, 2\n};"),
        ([0, 2**40], "static const long long nysplus_classes[2] = {\n    0LL, 1099511627776LL\n};"),
    ],
    ids=["int", "bool", "float", "long"],
)
def test_numbers_of_classes(moons, classes, expected):
    X, y = moons
    model = NystroemClassifier(10, random_state=0).fit(X, np.array(classes)[y])
    assert expected in to_c(model)


@pytest.mark.filterwarnings("ignore:The model predicts")
def test_only_expf_is_called(digits):
    X, y = digits
    for kernel in (RBF(), Matern(), Cosine(), Polynomial(), Sigmoid(gamma=0.01)):
        model = NystroemClassifier(10, kernel=kernel, alpha=10.0, random_state=0)
        text = to_c(model.fit(X[:100], y[:100]))
        code = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        called = set(re.findall(r"\b([a-z]\w*)\(", code))
        own = {name for name in called if name.startswith("nysplus_")}
        assert called - own <= {"expf", "memcpy", "for", "if"}


def test_the_text_is_the_same_each_time_and_written_whole(digits, tmp_path):
    X, y = digits
    model = NystroemClassifier(10, random_state=0).fit(X[:100], y[:100])
    text = to_c(model, tmp_path / "model.h")
    assert text == to_c(model) == (tmp_path / "model.h").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["model.h"]
    with pytest.raises(FileNotFoundError):
        to_c(model, tmp_path / "nowhere" / "model.h")


def test_numbers_are_read_back_exactly(digits):
    X, y = digits
    model = NystroemClassifier(15, random_state=0).fit(X[:100].astype(np.float32), y[:100])
    text = to_c(model)
    for name, array in (("landmarks", model.landmarks_), ("dual_coef", model.dual_coef_)):
        body = re.search(rf"nysplus_{name}\[\d+\] = {{(.*?)}};", text, re.S).group(1)
        numbers = [np.float32(number.strip().rstrip("f")) for number in body.split(",")]
        np.testing.assert_array_equal(numbers, array.astype(np.float32).ravel())


@pytest.mark.filterwarnings("ignore:The model predicts")
def test_what_cannot_be_exported(digits):
    X, y = digits
    X, y = X[:100], y[:100]

    def fitted(kernel):
        return NystroemClassifier(5, kernel=kernel, alpha=1.0, random_state=0).fit(X, y)

    with pytest.raises(ValueError, match=r"FunctionKernel.* has no C export.*RBF"):
        to_c(fitted(FunctionKernel(np.dot)))
    with pytest.raises(ValueError, match=r"degree=2\.5 has no C export"):
        to_c(fitted(Polynomial(degree=2.5)))
    with pytest.raises(ValueError, match="dtype='int4' is not allowed"):
        to_c(fitted(RBF()), dtype="int4")
    with pytest.raises(ValueError, match="name='' is not allowed"):
        to_c(fitted(RBF()), name="")
    with pytest.raises(TypeError, match="StandardScaler has no kernel expansion"):
        to_c(StandardScaler().fit(X))
    with pytest.raises(ValueError, match="not fitted"):
        to_c(NystroemClassifier())


def test_coefficients_that_float32_cannot_hold(rng):
    X = rng.rand(200, 1)
    y = np.sin(9 * X[:, 0])
    model = NystroemRegressor(60, gamma=1.0, selection="uniform", random_state=0)
    with pytest.warns(UserWarning, match="changes scores of this model by up to"):
        to_c(model.set_params(alpha=1e-3).fit(X, y))
    with pytest.raises(ValueError, match="would change scores of this model by up to"):
        to_c(model.set_params(alpha=1e-13).fit(X, y))


KERNELS = {
    "rbf": (RBF(), 0.1),
    "matern": (Matern(nu=2.5), 1e-3),
    "laplacian": (Laplacian(), 1e-3),
    "polynomial": (Polynomial(degree=2), 10.0),
    "sigmoid": (Sigmoid(coef0=-1.0), 1.0),
    "cosine": (Cosine(), 1e-3),
    "chi2": (Chi2(), 1e-3),
}


@needs_gcc
@sampled(("kernel", "scale"), KERNELS.keys(), [1e-100, 1e-30, 1.0, 1e15])
def test_features_in_any_unit(kernel, scale, tmp_path):
    X, y = load_iris(return_X_y=True)
    kernel, alpha = KERNELS[kernel]
    model = NystroemClassifier(20, kernel=kernel, alpha=alpha, random_state=0).fit(X * scale, y)
    header = to_c(model)
    assert row_type(header) is (np.float64 if scale == 1e-100 else np.float32)
    build_c(tmp_path, header)
    found = run_c(tmp_path, X * scale, row_type(header))
    expected = model.decision_function(X * scale)
    assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()


@needs_gcc
@pytest.mark.parametrize("kernel", ["rbf", "polynomial", "additive_chi2"])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_the_measured_change_is_that_of_the_compiled_header(kernel, offset, tmp_path):
    X, y = load_iris(return_X_y=True)
    X = X + offset
    alpha = {"rbf": 1e-5, "polynomial": 1e-2, "additive_chi2": 1e-3}[kernel]
    model = NystroemClassifier(15, kernel=kernel, alpha=alpha, random_state=0).fit(X, y)
    written = c_model(contents_of(model), "auto")
    if written.change > 0.1:
        with pytest.raises(ValueError, match=re.escape(f"by up to {written.change:.1g} of")):
            to_c(model)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        header = to_c(model)
    build_c(tmp_path, header)
    rows = compared_rows(contents_of(model))
    found = run_c(tmp_path, rows, row_type(header))
    change = largest_change(exact_scores(contents_of(model), rows), found)
    assert 0.3 * written.change < change < 3.0 * written.change


@needs_gcc
def test_double_arithmetic(tmp_path):
    X, y = load_iris(return_X_y=True)
    for kernel in (Polynomial(), Sigmoid(), Matern(), Cosine()):
        model = NystroemClassifier(20, kernel=kernel, random_state=0).fit(X, y)
        header = to_c(model, dtype="float64")
        assert "float " not in header.split("#ifndef")[1]
        build_c(tmp_path, header, CLASSES, "double")
        found = run_c(tmp_path, X, np.float64, np.float64)
        np.testing.assert_allclose(found[:, :3], model.decision_function(X), atol=1e-7)
        np.testing.assert_allclose(found[:, 3:6], model.predict_proba(X), atol=1e-7)
        assert (model.classes_[found[:, 6].astype(int)] == model.predict(X)).all()
