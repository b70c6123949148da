"""What a first look finds out adds up, in any order and any sizes, to what NumPy says of all."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from nysplus._rows.accumulators import FEW_OF_A_CLASS, ClassRows, MeanAndScatter, TopRows
from nysplus._rows.survey import PartSummary, Survey
from nysplus._rows.target_codes import ClassCode, LabelCode, ValueCode

N, D = 97, 4


def _data(offset=0.0):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((N, D)) * (rng.rand(N, D) < 0.6) + offset
    y = rng.randint(0, 5, N) * 3 - 2
    return X, y, rng.choice([0.0, 0.5, 1.0, 3.0], N), rng.standard_normal((N, 2)) + 1e3


X, CLASSES, WEIGHT, VALUES = _data()
LABELS = (VALUES > 1e3).astype(int)


def _cuts(seed):
    """Return slices of random sizes; the first cut is into single rows."""
    rng = np.random.RandomState(seed)
    inner = range(1, N) if seed == 0 else np.sort(rng.choice(np.arange(1, N), 6, replace=False))
    return [slice(a, b) for a, b in pairwise([0, *inner, N])]


def _summed(seed, y, weight, kind, rows=X):
    """Return the survey of all rows from parts that were joined two by two."""
    surveys = [
        Survey.of(rows[s], None if y is None else y[s], None if weight is None else weight[s], kind)
        for s in _cuts(seed)
    ]
    while len(surveys) > 1:  # as a tree, or as a chain
        first, second, *rest = surveys
        first += second
        surveys = [*rest, first] if seed == 9 else [first, *rest]
    return surveys[0]


def _variance(values, weight):
    mean = np.average(values, axis=0, weights=weight)
    return mean, np.average((values - mean) ** 2, axis=0, weights=weight)


every_cut = pytest.mark.parametrize("seed", range(5))
weighted = pytest.mark.parametrize("weight", [None, WEIGHT], ids=["even", "weighted"])


# ---- MeanAndScatter -----------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csr_array])
@every_cut
@weighted
def test_spread_of_all_entries(container, seed, weight, offset):
    rows = X + offset
    counts = np.ones(N) if weight is None else weight
    spread = MeanAndScatter.zero()
    for s in np.random.RandomState(seed).permutation(_cuts(seed)):
        spread += MeanAndScatter.of_cells(container(rows[s]), counts[s])
    mean, variance = _variance(rows.ravel(), np.repeat(counts, D))
    assert spread.mass == pytest.approx(counts.sum() * D)
    assert spread.mean == pytest.approx(mean, rel=1e-13)
    assert spread.variance == pytest.approx(variance, rel=1e-9)


@every_cut
@weighted
def test_spread_of_columns(seed, weight):
    counts = np.ones(N) if weight is None else weight
    spread = MeanAndScatter.zero((2,))
    for s in _cuts(seed)[::-1]:
        spread += MeanAndScatter.of_columns(VALUES[s], counts[s])
    mean, variance = _variance(VALUES, counts)
    np.testing.assert_allclose(spread.mean, mean, rtol=1e-13)
    np.testing.assert_allclose(spread.variance, variance, rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.float32, bool])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_spread_of_small_numbers_does_not_overflow(dtype, container):
    rows = np.random.RandomState(0).randint(0, 100, (N, D)).astype(dtype)
    before = rows.copy()
    stored = container(rows)
    spread = MeanAndScatter.of_cells(stored, np.ones(N))
    assert spread.variance == pytest.approx(rows.astype(float).var(), rel=1e-12)
    np.testing.assert_array_equal(stored.toarray() if sp.issparse(stored) else stored, before)


def test_spread_leaves_the_rows_as_they_are():
    for rows in (X.copy(), sp.csr_matrix(X)):
        MeanAndScatter.of_cells(rows, np.ones(N))
        np.testing.assert_array_equal(rows.toarray() if sp.issparse(rows) else rows, X)


def test_spread_of_rows_that_weigh_nothing_is_neutral():
    spread = MeanAndScatter.zero()
    spread += MeanAndScatter.of_cells(X + 1e9, np.zeros(N))
    spread += MeanAndScatter.of_cells(X, np.ones(N))
    spread += MeanAndScatter.of_cells(X - 1e9, np.zeros(N))
    assert spread.variance == pytest.approx(X.var(), rel=1e-12)
    columns = MeanAndScatter.of_columns(VALUES, np.zeros(N))
    columns += MeanAndScatter.of_columns(VALUES, WEIGHT)
    np.testing.assert_allclose(columns.variance, _variance(VALUES, WEIGHT)[1], rtol=1e-12)


# ---- TopRows ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 10, N, 2 * N])
@every_cut
def test_largest_rows(seed, n):
    rng = np.random.RandomState(seed)
    scores = np.round(rng.standard_normal(N), 1)  # ties
    scores[rng.rand(N) < 0.2] = -np.inf
    largest = TopRows.zero(n)
    for s in rng.permutation(_cuts(seed)):
        largest += TopRows.of(n, scores[s], s if seed % 2 else np.arange(N)[s])
    ranked = sorted(np.flatnonzero(scores > -np.inf), key=lambda row: (-scores[row], row))
    np.testing.assert_array_equal(largest.best(), ranked[:n])


def test_largest_of_many_rows_stay_few():
    largest, rng = TopRows.zero(3), np.random.RandomState(0)
    scores = rng.standard_normal(200_000)
    for start in range(0, len(scores), 500):
        rows = slice(start, start + 500)
        largest += TopRows.of(3, scores[rows], rows)
        assert len(largest.rows) < 10_000
    np.testing.assert_array_equal(largest.best(), np.argsort(-scores)[:3])


def test_rounding_does_not_choose_rows():
    scores = np.array([0.3, 0.1 + 0.2, 0.3 - 1e-16, 0.2])
    largest = TopRows.of(3, scores, slice(0, 4))
    np.testing.assert_array_equal(largest.best(), [0, 1, 2])


# ---- PartSummary --------------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [1, 7, 8, 9, 64, 65])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_pieces_know_who_weighs(n_rows, share):
    weight = (np.random.RandomState(n_rows).rand(n_rows) < share) * 0.5
    piece = PartSummary.of(X[:n_rows], None, weight)
    np.testing.assert_array_equal(piece.candidates(), np.flatnonzero(weight))
    assert piece.n_candidates == np.count_nonzero(weight)
    assert PartSummary.of(X[:n_rows], None, None).n_candidates == n_rows


def test_pieces_take_a_bit_for_a_row_at_most():
    assert PartSummary.of(X, CLASSES, np.ones(N)).weighing is None
    many = np.arange(80_000) % 2.0
    assert PartSummary.of(many[:, None], None, many).weighing.nbytes == 10_000


@pytest.mark.parametrize("convert", [np.asarray, np.asfortranarray, sp.csr_matrix])
@pytest.mark.parametrize(
    "y", [CLASSES, LABELS, VALUES, CLASSES.astype(str), CLASSES.astype(str).astype(object)]
)
def test_pieces_tell_rows_apart(convert, y):
    def check(X=X, y=y, weight=WEIGHT):
        return PartSummary.of(convert(X), y, weight).checksum

    swapped = np.r_[1, 0, 2:N]
    assert check() == check(X.copy(), y.copy(), WEIGHT.copy())
    assert check() != check(X[swapped])
    assert check() != check(X * (1 + 1e-15))
    assert check() != check(y=y[np.argsort(CLASSES)])
    assert check() != check(weight=WEIGHT[::-1])
    assert check() != check(weight=None)
    assert check(X[::2], y[::2], None) == check(X[::2].copy(), y[::2].copy(), None)


# ---- Survey -------------------------------------------------------------------------------------


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("seed", [0, 1, 2, 9])
@weighted
def test_surveys_of_classes(container, seed, weight):
    counts = np.ones(N) if weight is None else weight
    survey = _summed(seed, CLASSES, weight, "classes", container(X))
    assert (survey.n_rows, survey.n_features, survey.y_shape) == (N, D, ())
    np.testing.assert_array_equal(survey.classes, np.unique(CLASSES))
    masses = [counts[value == CLASSES].sum() for value in np.unique(CLASSES)]
    np.testing.assert_allclose(survey.masses, masses)
    assert survey.cells.variance == pytest.approx(_variance(X.ravel(), np.repeat(counts, D))[1])
    assert survey.n_candidates == np.count_nonzero(counts)


@pytest.mark.parametrize("seed", [0, 1, 9])
@weighted
def test_surveys_of_values_and_labels(seed, weight):
    for y, kind, coded in (
        (VALUES, "values", VALUES),
        (VALUES[:, 0], "values", VALUES[:, :1]),
        (LABELS, "classes", 2.0 * LABELS - 1),
    ):
        survey = _summed(seed, y, weight, kind)
        mean, variance = _variance(coded, np.ones(N) if weight is None else weight)
        spread = survey.target_spread(survey.code(kind), None)
        np.testing.assert_allclose(spread.mean, mean, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(spread.variance, variance, rtol=1e-9)


@every_cut
def test_surveys_without_targets(seed):
    survey = _summed(seed, None, None, None)
    assert survey.y_shape is None
    assert survey.n_rows == N
    assert survey.cells.variance == pytest.approx(X.var())


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_candidates_are_found_by_their_positions(seed):
    survey = _summed(seed, CLASSES, WEIGHT, "classes")
    weighing = np.flatnonzero(WEIGHT)
    positions = np.random.RandomState(seed).permutation(len(weighing))[:30]
    np.testing.assert_array_equal(survey.candidate(positions), weighing[positions])
    np.testing.assert_array_equal(survey.candidate(np.arange(len(weighing))), weighing)
    even = _summed(seed, CLASSES, None, "classes")
    np.testing.assert_array_equal(even.candidate(positions), positions)


def test_candidates_skip_chunks_that_weigh_nothing():
    weight = np.r_[np.zeros(30), np.ones(5), np.zeros(40), np.ones(N - 75)]
    survey = Survey.of(X[:30], CLASSES[:30], weight[:30], "classes")
    for s in (slice(30, 35), slice(35, 75), slice(75, N)):
        survey += Survey.of(X[s], CLASSES[s], weight[s], "classes")
    np.testing.assert_array_equal(survey.candidate(np.array([26, 0, 4, 5])), [96, 30, 34, 75])


@pytest.mark.parametrize(
    ("y", "kind", "code", "flat"),
    [
        (CLASSES, "classes", ClassCode, None),
        (CLASSES[:, None], "classes", ClassCode, None),
        (LABELS, "classes", LabelCode, None),
        (VALUES, "values", ValueCode, False),
        (VALUES[:, 0], "values", ValueCode, True),
    ],
)
def test_codes(y, kind, code, flat):
    found = _summed(1, y, None, kind).code(kind)
    assert isinstance(found, code)
    assert found.n_outputs == {"classes": 5}.get(kind, 2) - 3 * (y is LABELS) - (flat is True)
    if flat is not None:
        assert found.flat is flat


@pytest.mark.parametrize(
    "labels",
    [["b", "a"], [True, False], [2.0, 7.0], [np.int8(3), np.int8(-1)], ["a long one", "b"]],
)
def test_classes_of_any_kind_that_come_one_by_one(labels):
    for dtype in {np.array(labels).dtype, np.dtype(object) if isinstance(labels[0], str) else None}:
        if dtype is None:
            continue
        surveys = [Survey.of(X[:1], np.array([v], dtype=dtype), None, "classes") for v in labels]
        surveys[0] += surveys[1]
        np.testing.assert_array_equal(surveys[0].classes, np.unique(labels))
        np.testing.assert_array_equal(surveys[0].masses, [1.0, 1.0])


def test_classes_that_weigh_nothing_are_known_with_no_mass():
    weight = np.where(CLASSES == 1, 0.0, 1.0)
    survey = _summed(3, CLASSES, weight, "classes")
    assert 1 in survey.classes
    assert survey.masses[survey.classes == 1] == 0


def test_masses_of_a_wider_code():
    survey = Survey.of(X[:3], np.array([1, 5, 5]), np.array([2.0, 1.0, 0.5]), "classes")
    np.testing.assert_array_equal(
        survey.masses_of(ClassCode(np.array([0, 1, 5, 9]))), [0, 2, 1.5, 0]
    )
    with pytest.raises(ValueError, match=r"y contains \[5\], which is not among the classes \[1"):
        survey.masses_of(ClassCode(np.array([1, 2])))


def test_targets_are_spread_as_their_classes_weigh():
    survey = _summed(2, CLASSES, WEIGHT, "classes")
    code, factors = survey.code("classes"), np.array([1.0, 2.0, 0.5, 0.0, 3.0])
    spread = survey.target_spread(code, factors)
    Y = np.where(CLASSES[:, None] == code.classes, 1.0, -1.0)
    mean, variance = _variance(Y, WEIGHT * factors[code.encode(CLASSES).codes])
    np.testing.assert_allclose(spread.mean, mean, atol=1e-13)
    np.testing.assert_allclose(spread.variance, variance, atol=1e-13)


def test_digests_tell_rows_apart():
    digest = _summed(1, CLASSES, WEIGHT, "classes").digest()
    assert _summed(1, CLASSES, WEIGHT, "classes").digest() == digest
    for rows, y, weight in (
        (X[np.r_[0:50, 51, 50, 52:N]], CLASSES, WEIGHT),
        (X, np.roll(CLASSES, 1), WEIGHT),
        (X, CLASSES, None),
    ):
        assert _summed(1, y, weight, "classes", rows).digest() != digest


def test_surveys_travel():
    survey = Survey.of(X[:40], CLASSES[:40], WEIGHT[:40], "classes")
    survey += pickle.loads(pickle.dumps(Survey.of(X[40:], CLASSES[40:], WEIGHT[40:], "classes")))
    np.testing.assert_array_equal(survey.candidate(np.arange(9)), np.flatnonzero(WEIGHT)[:9])
    np.testing.assert_array_equal(survey.classes, np.unique(CLASSES))
    assert survey.cells.mass == pytest.approx(WEIGHT.sum() * D)


# ---- what will not do ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "kind", "message"),
    [
        (
            VALUES[:, 0],
            "classes",
            r"Unknown label type: continuous.*y contains \d+\.\d+.*Regressor",
        ),
        (LABELS * 2, "classes", r"y has 2 columns, which must be a 0/1 indicator.*contains 2"),
        (VALUES, "classes", "must be a 0/1 indicator of labels, and contains 100"),
        (LABELS - 1, "classes", "0/1 indicator of labels, and contains -1"),
    ],
)
def test_targets_that_will_not_do(y, kind, message):
    with pytest.raises(ValueError, match=message):
        Survey.of(X, y, None, kind)


@pytest.mark.parametrize("dtype", [str, object])
def test_numbers_and_text(dtype):
    text = Survey.of(X[:2], np.array(["a", "b"], dtype=dtype), None, "classes")
    number = Survey.of(X[:2], np.array([1, 2]), None, "classes")
    for first, second in ((text, number), (number, text)):
        with pytest.raises(ValueError, match="text in some rows and numbers in others"):
            first += second


@pytest.mark.parametrize(
    "other",
    [
        (X[:, :3], CLASSES, "classes"),
        (X, LABELS, "classes"),
        (X, None, None),
    ],
)
def test_rows_that_do_not_agree(other):
    first, second = Survey.of(X, CLASSES, None, "classes"), Survey.of(*other[:2], None, other[2])
    with pytest.raises(ValueError, match=r"Rows must agree: some have 4 columns"):
        first += second


def test_values_of_several_widths_do_not_agree():
    first = Survey.of(X, VALUES, None, "values")
    with pytest.raises(ValueError, match="Rows must agree"):
        first += Survey.of(X, VALUES[:, 0], None, "values")


# ---- ClassRows ----------------------------------------------------------------------------------


def _first_rows(member):
    """Return the counts and first rows of classes, from a column of booleans for each."""
    rows = [np.flatnonzero(column) for column in member.T]
    first = np.full((len(rows), FEW_OF_A_CLASS), -1)
    for of_class, each in zip(first, rows, strict=True):
        few = each[:FEW_OF_A_CLASS]
        of_class[: len(few)] = few
    return [len(each) for each in rows], first


@every_cut
@weighted
@pytest.mark.parametrize("kind", ["classes", "labels"])
def test_the_first_rows_of_every_class(seed, weight, kind):
    y = CLASSES if kind == "classes" else LABELS
    member = y[:, None] == np.unique(y) if kind == "classes" else y > 0
    member = member & (np.ones(N, bool) if weight is None else weight > 0)[:, None]
    found = _summed(seed, y, weight, "classes").class_rows
    counts, first = _first_rows(member)
    np.testing.assert_array_equal(found.counts, counts)
    np.testing.assert_array_equal(found.first, first)


def test_first_rows_in_many_rows():
    """Classes that come late are found although the search looks at most rows in one go."""
    codes = np.zeros(200_000, dtype=np.intp)
    codes[[3, 150_000, 199_999]] = 1
    codes[100_000:] += 2 * (np.arange(100_000) % 3 == 1) * (codes[100_000:] == 0)
    found = ClassRows.of(np.arange(len(codes)), codes, 4)
    counts, first = _first_rows(codes[:, None] == np.arange(4))
    np.testing.assert_array_equal(found.counts, counts)
    np.testing.assert_array_equal(found.first, first)


def test_rows_of_rare_classes():
    rows = ClassRows.of(np.arange(10_000), np.r_[np.zeros(9990), np.ones(10)].astype(int), 2)
    np.testing.assert_array_equal(rows.rare(1000, 10_000)[:, :10], [np.arange(9990, 10_000)])
    assert rows.rare(1000, 10_000).shape == (1, FEW_OF_A_CLASS)
    assert len(rows.rare(10_000, 10_000)) == 1
    even = ClassRows.of(np.arange(10_000), np.arange(10_000) % 2, 2)
    assert len(even.rare(1000, 10_000)) == 0
    # of a thousand classes a sample of a thousand has one row each
    many = ClassRows.of(np.arange(10_000), np.arange(10_000) % 1000, 1000)
    assert len(many.rare(1000, 10_000)) == 0
