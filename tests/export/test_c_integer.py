from __future__ import annotations

import re
import shutil
import subprocess
from copy import deepcopy

import numpy as np
import pytest
from exported import FLAGS, GCC, build_c, needs_gcc, run_c
from factories import alter
from sklearn.datasets import load_diabetes, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nysplus import Nystroem, NystroemClassifier, NystroemRegressor
from nysplus.encoding import ImageEncoder
from nysplus.expansion import KernelExpansion, PackedArray, PackedExpansion, pack_array
from nysplus.export import c_report, to_c
from nysplus.export.c_integer import integer_model
from nysplus.export.fixed_point import MAX_SUM, Factors, RangeError
from nysplus.export.integer_features import axis_cosines
from nysplus.export.integer_kernels import integer_kernels
from nysplus.kernels import RBF, Laplacian, Linear, Matern

AVR = shutil.which("avr-gcc")
SANITIZE = ["-fsanitize=undefined", "-fno-sanitize-recover=undefined"]
# reads rows, writes for each the scores and the prediction
MAIN = """
#include <stdio.h>
#include "model.h"
int main(void)
{
    ROW x[NYSPLUS_FEATURES];
    int32_t out[2 * NYSPLUS_SCORES + 1];
    while (fread(x, sizeof x, 1, stdin) == 1) {
        nysplus_scores(x, out);
        PREDICT
        fwrite(out, sizeof out, 1, stdout);
    }
    return 0;
}
"""
PREDICT = {
    "classes": "out[2 * NYSPLUS_SCORES] = nysplus_predict(x);",
    "values": "nysplus_predict(x, out + NYSPLUS_SCORES);",
    "labels": "int labels[NYSPLUS_SCORES]; nysplus_predict(x, labels);"
    "for (int c = 0; c < NYSPLUS_SCORES; c++) out[NYSPLUS_SCORES + c] = labels[c];",
}


def compiled(folder, header, kind, rows):
    """Return the scores and the predictions of rows of integers by a header."""
    source = MAIN.replace("ROW", f"{rows.dtype.name}_t").replace("PREDICT", PREDICT[kind])
    (folder / "model.h").write_text(header)
    (folder / "main.c").write_text(source)
    subprocess.run([GCC, *FLAGS, *SANITIZE, "main.c", "-o", "main"], cwd=folder, check=True)
    done = subprocess.run([folder / "main"], input=rows.tobytes(), capture_output=True, check=True)
    assert not done.stderr
    out = np.frombuffer(done.stdout, dtype=np.int32).reshape(len(rows), -1)
    n = out.shape[1] // 2
    return out[:, :n], out[:, -1] if kind == "classes" else out[:, n:-1]


def many_rows(model, X, rng, n=2000):
    """Return rows of integers: of X with small changes, of any numbers, and the extremes."""
    low, high = model.rows.limits
    near = model.rows.integers(X)[rng.randint(len(X), size=n)]
    step = max(int(np.abs(near).max()) // 20, 1)
    near = near + rng.randint(-step, step + 1, size=near.shape)
    anything = rng.randint(low, high + 1, size=(n // 4, X.shape[1]))
    ends = rng.choice([low, high], size=(n // 4, X.shape[1]))
    same = np.array([[low], [high], [0]]) * np.ones(X.shape[1], dtype=int)
    rows = np.vstack([near, anything, ends, same]).clip(low, high)
    return rows.astype(model.rows.type_name)


def check(folder, model, X, change=0.02, **options):
    """Compare the compiled header with its emulation, bit by bit, and with floating point."""
    options = {"X": X} | options
    header, integers = to_c(model, arithmetic="int", **options), integer_model(model, **options)
    kind = integers.content.kind
    rows = many_rows(integers, np.asarray(X, dtype=float), np.random.RandomState(0))
    scores, predicted = compiled(folder, header, kind, rows)
    expected = integers.scores(rows)
    np.testing.assert_array_equal(scores, expected)
    if kind == "classes" and expected.shape[1] == 1:
        np.testing.assert_array_equal(predicted, expected[:, 0] > 0)
    elif kind == "classes":
        np.testing.assert_array_equal(predicted, expected.argmax(axis=1))
    else:
        np.testing.assert_array_equal(predicted, expected > 0 if kind == "labels" else expected)
    exact = model.predict(X) if kind == "values" else model.decision_function(X)
    exact = exact.reshape(len(X), -1)
    error = np.sqrt(((integers.decision_function(X) - exact) ** 2).mean())
    assert error < change * exact.std()
    return header, integers


def packed(model, Z=8, A=8, P=8, offset=None):
    """Return a copy of a model in few bits, without solving for new coefficients."""
    model, old = deepcopy(model), model.expansion_
    landmarks = pack_array(old.landmarks, f"int{Z}", "float16")
    if offset is not None:
        scale = landmarks.scale.astype(np.float32)
        landmarks = PackedArray(landmarks.values, scale, Z, np.full_like(scale, offset))
    projection = old.projection
    if projection is not None:
        projection = pack_array(projection, "float32" if projection.ndim == 1 else f"int{P}")
    storage = PackedExpansion(
        landmarks,
        pack_array(old.dual_coef, f"int{A}"),
        pack_array(old.intercept, "float32"),
        projection,
    )
    return alter(model, expansion=KernelExpansion.unpacked(old.kernel, storage))


@pytest.fixture(scope="module")
def pixels(digits):
    """Digits in whole numbers, 0 to 16."""
    X, y = digits
    return np.rint(16 * X), y


@pytest.fixture(scope="module", params=[None, 6], ids=["without map", "with map"])
def unpacked(request, pixels):
    X, y = pixels
    model = NystroemClassifier(30, metric=request.param, alpha=0.1, random_state=0)
    return model.fit(X[:400], y[:400])


@needs_gcc
@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 7, 8])
def test_bits_of_landmarks_map_and_coefficients(unpacked, pixels, tmp_path, bits):
    X, _ = pixels
    offset = 0.25 if bits % 2 else None
    model = packed(unpacked, Z=bits, A=10 - bits, P=max(bits, 3), offset=offset)
    check(tmp_path, model, X[400:600], input_type=["int16", "uint8", "int8"][bits % 3])


@needs_gcc
def test_a_diagonal_map(pixels, tmp_path):
    X, y = pixels
    model = NystroemClassifier(30, metric="diagonal", alpha=0.1, random_state=0)
    check(tmp_path, packed(model.fit(X[:400], y[:400])), X[400:600])


@needs_gcc
@pytest.mark.parametrize(
    "kernel", [RBF(), Laplacian(), *(Matern(nu=nu) for nu in (0.5, 1.5, 2.5))], ids=repr
)
def test_kernels(pixels, tmp_path, kernel):
    X, y = pixels
    model = NystroemClassifier(30, kernel=kernel, alpha=0.1, random_state=0)
    check(tmp_path, packed(model.fit(X[:400], y[:400])), X[400:600])


@needs_gcc
def test_two_classes_of_real_features(moons, tmp_path):
    X, y = moons
    model = NystroemClassifier(20, alpha=0.1, random_state=0).fit(X, y)
    _, integers = check(tmp_path, packed(model), X)
    assert np.log2(integers.rows.common_scale) % 1 == 0
    assert np.abs(integers.rows.integers(X)).max() > 2**13


@needs_gcc
def test_labels(pixels, tmp_path):
    X, y = pixels
    Y = np.column_stack([y % 2, y > 4, y % 3 == 0])
    model = packed(NystroemClassifier(30, alpha=0.1, random_state=0).fit(X[:400], Y[:400]))
    _, integers = check(tmp_path, model, X[400:600])
    assert (integers.predict(X[400:600]) == model.predict(X[400:600])).mean() > 0.99


@needs_gcc
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e7])
def test_values(tmp_path, unit):
    X, y = load_diabetes(return_X_y=True)
    model = NystroemRegressor(20, random_state=0).fit(X, unit * np.column_stack([y, -y]))
    # the model has floating numbers, which X rounds to 8 bits
    _, integers = check(tmp_path, model, X)
    assert integers.content.stored.landmarks.type_name == "int8"


@needs_gcc
@pytest.mark.parametrize("metric", [None, 2])
def test_a_scaler_in_a_pipeline(tmp_path, metric):
    X, y = load_iris(return_X_y=True)
    X = X * [1.0, 100.0, 0.01, 5.0] + [0.0, 3e4, 0.0, -7.0]
    model = NystroemClassifier(20, metric=metric, alpha=0.1, random_state=0)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    header, integers = check(tmp_path, pipeline, X)
    assert integers.rows.common_scale is None
    assert f"x[3]: {integers.rows.scale[3]:.9g}" in header
    assert (integers.features.factors is None) == (metric is None)


@needs_gcc
def test_features_far_from_zero(tmp_path):
    X, y = load_iris(return_X_y=True)
    X = np.rint(10 * X) + 20_000
    model = NystroemClassifier(20, alpha=0.1, random_state=0).fit(X, y)
    _, integers = check(tmp_path, model, X)
    assert integers.features.offset.min() > 19_000


@needs_gcc
@pytest.mark.parametrize(
    ("channels", "metric", "kind"), [(1, None, "int16"), (2, None, "uint8"), (1, 8, "int8")]
)
def test_images(pixels, tmp_path, channels, metric, kind):
    X, y = pixels
    X = np.repeat(X[:600], channels, axis=1)
    shape = (8, 8) if channels == 1 else (8, 8, channels)
    encoder = ImageEncoder(shape, n_cosines=5)
    model = NystroemClassifier(30, metric=metric, encoder=encoder, alpha=0.1, random_state=0)
    header, _ = check(tmp_path, model.fit(X[:400], y[:400]), X[400:], input_type=kind)
    assert "cosines_8 int16" in header


def with_dense_map(X, rng):
    """Return a model with a dense map of 8 bits and random coefficients."""
    model = NystroemClassifier(10, alpha=1.0, random_state=0).fit(X, X[:, 0] > 0)
    P = rng.uniform(-1.0, 1.0, size=(X.shape[1], 4))
    Z = X[:10] @ P
    expansion = KernelExpansion(RBF(0.2 / Z.var()), Z, rng.randn(10, 1), np.zeros(1), P)
    return packed(alter(model, expansion=expansion))


@needs_gcc
def test_rows_are_clipped_where_sums_could_overflow(rng, tmp_path):
    X = rng.randint(-100, 100, size=(100, 1200)).astype(float)
    header, integers = check(tmp_path, with_dense_map(X, rng), X)
    assert integers.features.clip == (-100, 99)
    assert "Integers below -100 or above 99 are clipped." in header
    large = np.where(X > 0, 30_000, X).astype(np.int64)
    np.testing.assert_array_equal(integers.scores(large), integers.scores(large.clip(-100, 99)))


@needs_gcc
def test_sums_that_are_too_large_for_given_steps(rng, tmp_path):
    """Rows that fill 16 bits, times a map of 8 bits, need features in a coarser unit."""
    X = rng.uniform(-1.0, 1.0, size=(100, 1200))
    _, integers = check(tmp_path, with_dense_map(X, rng), X)
    assert integers.features.factors is not None
    assert integers.features.largest.max() < 2**15 - 1


@needs_gcc
def test_rows_far_from_all_landmarks_get_the_intercept(moons, tmp_path):
    X, y = moons
    model = packed(NystroemClassifier(20, alpha=0.1, random_state=0).fit(X, y))
    integers = integer_model(model, X, input_scale=0.001)
    far = np.array([[32767, 32767], [-32768, 0]])
    expected = model.intercept_[0] * 2.0**integers.score_bits
    np.testing.assert_allclose(integers.scores(far), expected, atol=1)


def test_no_floating_point_and_no_division(pixels):
    X, y = pixels
    for encoder, metric in ((None, None), (ImageEncoder((8, 8)), 8)):
        model = NystroemClassifier(20, encoder=encoder, metric=metric, alpha=1.0, random_state=0)
        model.fit(X[:300], y[:300])
        code = re.sub(r"/\*.*?\*/", "", to_c(model, arithmetic="int", X=X), flags=re.S)
        assert not re.search(r"\b(float|double|int64_t|uint64_t|long|math)\b", code)
        assert not re.search(r"\d\.\d|\de[+-]?\d|malloc", code)
        includes = "#include <stdint.h>", "#include <avr/pgmspace.h>"
        for include in includes:
            code = code.replace(include, "")
        assert "/" not in code
        assert "%" not in code
        assert "include" not in code


@pytest.mark.skipif(AVR is None, reason="avr-gcc is not installed")
def test_avr_keeps_tables_in_flash(pixels, tmp_path):
    X, y = pixels
    model = NystroemClassifier(budget="1kB", random_state=0).fit(X[:600], y[:600])
    header = to_c(model, arithmetic="int", X=X, input_type="uint8")
    (tmp_path / "model.h").write_text(header)
    (tmp_path / "main.c").write_text(
        '#include "model.h"\nuint8_t x[NYSPLUS_FEATURES];\nvolatile int label;\n'
        "int main(void)\n{\n    label = nysplus_predict(x);\n    return 0;\n}\n"
    )
    flags = [*FLAGS[:-1], "-Os", "-mmcu=atmega328p"]
    for define, in_ram in (("-DNDEBUG", False), ("-DNYSPLUS_IN_RAM", True)):
        subprocess.run([AVR, *flags, define, "main.c", "-o", "main"], cwd=tmp_path, check=True)
        sizes = subprocess.run(["avr-size", "main"], cwd=tmp_path, capture_output=True, check=True)
        data = int(sizes.stdout.split()[7])
        assert (data > 800) == in_ram


def test_the_report_counts_the_tables_of_the_header(pixels):
    X, y = pixels
    encoder = ImageEncoder((8, 8), n_cosines=5)
    model = NystroemClassifier(20, encoder=encoder, metric=4, random_state=0).fit(X[:300], y[:300])
    options = {"arithmetic": "int", "X": X, "input_type": "uint8"}
    header, report = to_c(model, **options), c_report(model, **options)
    tables = re.findall(r"static const u?int(\d+)_t NYSPLUS_FLASH \w+\[(\d+)\]", header)
    assert report.table_bytes == sum(int(bits) // 8 * int(size) for bits, size in tables)
    assert f"Tables: {report.table_bytes} bytes" in header
    assert (report.row_bytes, report.score_bytes, report.kernel_values) == (64, 40, 20)
    # two passes of cosines, the map, two products a coordinate, and the scores
    assert report.products == 5 * 8 * 8 + 5 * 5 * 8 + 25 * 4 + 20 * (2 * 4 + 10)
    assert report.ram_bytes == report.stack_bytes + 104
    assert report.stack_bytes == 4 * (4 + 10) + 2 * (5 * 8 + 8)
    assert report.cycles("Cortex-M0") < c_report(model).cycles("Cortex-M0")
    assert f"{report.table_bytes:,} bytes of tables" in str(report)
    assert "of the labels change" in header
    with pytest.raises(ValueError, match="processor='Z80' is not one of ATmega328P"):
        report.cycles("Z80")


def test_the_report_in_floating_point(pixels):
    X, y = pixels
    model = NystroemClassifier(20, random_state=0).fit(X[:300], y[:300])
    report = c_report(model)
    assert f"Tables: {report.table_bytes} bytes" in to_c(model)
    assert report.table_bytes == 4 * (20 * 64 + 20 * 10 + 10)
    assert report.products == 20 * (64 + 10)
    assert report.row_bytes == 256
    assert c_report(model, dtype="float64").row_bytes == 512
    assert "labels" not in str(report)


# -- parts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("largest", [3e-12, 1e-3, 0.9, 700.0, 3e4])
def test_products_of_factors(rng, largest):
    factors = largest * np.append(rng.uniform(-1.0, 1.0, size=20), 1.0)
    found = Factors.of(factors)
    v = rng.randint(-found.limit, found.limit, size=(100, 21))
    products = found.times(v)
    np.testing.assert_allclose(products, v * factors, atol=1 + 2.0**-14 * np.abs(v * largest).max())
    # both parts of the product in 32 bits, as in the header
    high, low = (v >> 15) * found.values, (v & 32767) * found.values
    assert max(np.abs(high).max(), np.abs(low).max()) < 2**31
    if found.shift < 15:
        parts = high * 2 ** (15 - found.shift)
        np.testing.assert_array_equal(parts + (low >> found.shift), products)
        assert np.abs(parts).max() <= MAX_SUM
    else:
        np.testing.assert_array_equal((high + (low >> 15)) >> (found.shift - 15), products)


@pytest.mark.parametrize(
    ("kernel", "error"),
    [(RBF(2.0), 6e-5), (Laplacian(2.0), 2e-3), (Matern(2.0, nu=0.5), 2e-3)]
    + [(Matern(2.0, nu=nu), 3e-4) for nu in (1.5, 2.5)],
    ids=repr,
)
def test_tables_of_kernels(kernel, error):
    for integers in (integer_kernels(kernel, 15)[0], integer_kernels(kernel, 15)[6]):
        u = np.linspace(0, integers.reach, 5000).astype(int)[:, None]
        found = integers.matrix(u, np.zeros((1, 1), dtype=int)) / 32767
        expected = kernel(u * integers.unit, np.zeros((1, 1)))
        np.testing.assert_allclose(found, expected, atol=max(error, 1.0 / integers.reach))
        assert found[-1] == 0
        assert found[0] == 1


def test_integer_cosines():
    for shape, k in (((8, 5, 1), 4), ((28, 28, 1), 12)):
        code = ImageEncoder(shape, n_cosines=k).fit(np.zeros((2, np.prod(shape)))).code_
        for M, own, n in zip(code.axes, axis_cosines(code, 12), shape, strict=False):
            np.testing.assert_allclose(own * 2.0**-12 * np.sqrt(2 / n), M, atol=2e-4)


def test_images_whose_sums_do_not_fit(rng):
    X = rng.randint(-32768, 32767, size=(40, 4096)).astype(float)
    model = NystroemRegressor(5, encoder=ImageEncoder((64, 64), n_cosines=3), random_state=0)
    assert integer_model(model.fit(X, X[:, 0] / 1e4), X).features.bits < 12
    with pytest.raises(ValueError, match="input_scale must be one number for images"):
        integer_model(model, X, input_scale=np.linspace(1, 2, 4096))


# -- what is refused -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(pixels):
    X, y = pixels
    return packed(NystroemClassifier(10, alpha=1.0, random_state=0).fit(X[:200], y[:200]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arithmetic": "fixed"}, r"arithmetic='fixed' is not allowed\. Pass 'float' or 'int'"),
        ({"dtype": "float32"}, "dtype='float32' is not an option of arithmetic='int'"),
        ({"input_type": "uint4"}, "input_type='uint4' is not allowed.*int16, int8, uint8"),
        ({"input_range": (1, 0)}, r"input_range=\(1, 0\) is not allowed"),
        ({"input_range": 3}, "input_range=3 is not allowed"),
        ({"input_scale": 0.0}, r"input_scale=0\.0 is not allowed"),
        ({"input_scale": "fine"}, "input_scale='fine' is not allowed"),
        ({"input_scale": [1.0, 2.0]}, r"input_scale=\[1\.0, 2\.0\] is not allowed"),
        ({"X": np.full((2, 64), np.nan)}, "NaN"),
        ({"arithmetic": "float", "input_scale": 1.0}, "input_scale: options of arithmetic='int'"),
    ],
    ids=str,
)
def test_options_that_are_not_allowed(small, options, message):
    with pytest.raises(ValueError, match=message):
        to_c(small, **{"arithmetic": "int"} | options)


def test_models_that_have_no_integers(pixels):
    X, y = pixels
    X, y = X[:200], y[:200]
    with pytest.raises(ValueError, match=r"kernel=Linear\(\) has no integer arithmetic.*RBF"):
        to_c(NystroemRegressor(5, kernel=Linear(), alpha=1.0).fit(X, y), arithmetic="int", X=X)
    model = NystroemRegressor(5, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"this one has floating numbers\. Pass X"):
        to_c(model, arithmetic="int")
    with pytest.raises(TypeError, match="needs a classifier or regressor"):
        to_c(Nystroem(n_components=5).fit(X), arithmetic="int")
    table = NystroemRegressor(5, encoder="auto", random_state=0).fit(X[:, 20:23], y)
    with pytest.raises(ValueError, match="takes tables whose columns are all numbers"):
        to_c(table, arithmetic="int")


def test_kernels_that_are_too_narrow_for_16_bits(rng):
    X = rng.uniform(0.0, 1.0, size=(100, 2))
    model = NystroemRegressor(50, gamma=1e9, alpha=1.0, random_state=0).fit(X, X[:, 0])
    with pytest.raises(RangeError, match="Fit with a smaller gamma"):
        to_c(packed(model), arithmetic="int", X=X)


def test_changes_are_reported_before_anything_is_written(small, pixels, tmp_path):
    X, _ = pixels
    path = tmp_path / "model.h"
    with pytest.raises(ValueError, match=r"would change .* % of the labels of 899 rows"):
        to_c(small, path, arithmetic="int", X=X[::2], input_scale=16.0)
    assert not path.exists()
    with pytest.warns(UserWarning, match="changes .* % of the labels of 899 rows"):
        to_c(small, path, arithmetic="int", X=X[::2], input_scale=2.0)
    assert path.exists()
    with pytest.warns(UserWarning, match="changes scores by .* % of their standard deviation"):
        to_c(small, arithmetic="int", input_scale=2.0)


def test_without_rows_the_landmarks_tell_the_range(small, pixels):
    X, _ = pixels
    integers = integer_model(small)
    assert integers.rows.common_scale == 2.0**-10
    assert (integers.predict(X) == small.predict(X)).mean() > 0.99
    ranged = integer_model(small, input_range=(0.0, 4.0))
    assert ranged.rows.common_scale == 2.0**-12


# -- transformers --------------------------------------------------------------------------------


@needs_gcc
def test_features_of_a_transformer(pixels, tmp_path):
    X, _ = pixels
    transformer = Nystroem(gamma=1e-3, n_components=30, random_state=0).fit(X)
    header = to_c(transformer)
    assert "30 components" in header.splitlines()[0]
    build_c(tmp_path, header, "nysplus_transform(x, scores);")
    expected = transformer.transform(X[:100])
    found = run_c(tmp_path, X[:100])
    assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()
    with pytest.raises(ValueError, match="not fitted"):
        to_c(Nystroem())
