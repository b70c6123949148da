"""Rows behind a linear map: the fit is that of rows that were projected beforehand."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sampling import in_pairs
from sklearn import config_context

from nysplus import NystroemClassifier
from nysplus._ridge.feature_map import StandardMap
from nysplus._ridge.fit import fit_expansion
from nysplus._rows.blocks import Blocks
from nysplus._rows.on_disk import ChunkRules, using_chunk_rules
from nysplus._rows.opening import TargetSpec, open_rows
from nysplus._rows.projected import ProjectedBlocks, composed, project, projected
from nysplus._rows.targets import ClassTargets
from nysplus._runtime.checkpoint import Checkpoint, FileJournal, Journal
from nysplus._runtime.progress import Progress
from nysplus.expansion import KernelExpansion
from nysplus.kernels import RBF
from nysplus.landmarks import SELECTORS, Problem, make_selector, select_landmarks

N, D, R = 300, 6, 3
ALPHAS = (1e-4, 1e-2, 1.0)
KINDS = ["memory", "CSR", "stream", "dask"]
SHAPES = {"diagonal": (D,), "square": (D, D), "narrow": (D, R)}


def _data():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((N, D))
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 0.5)
    return X, y, rng.choice([0.0, 0.5, 1.0, 3.0], N)


X, Y, WEIGHT = _data()


@pytest.fixture(params=sorted(SHAPES))
def P(request):
    return np.random.RandomState(1).standard_normal(SHAPES[request.param])


@pytest.fixture(params=KINDS)
def blocks(request):
    """The same rows as blocks of every kind."""
    rows = (X, Y, WEIGHT)
    if request.param == "CSR":
        rows = (sp.csr_matrix(X), Y, WEIGHT)
    elif request.param == "stream":
        cut = [slice(i, i + 70) for i in range(0, N, 70)]
        rows = (lambda: ((X[part], Y[part], WEIGHT[part]) for part in cut), None, None)
    elif request.param == "dask":
        request.getfixturevalue("client")
        import dask.array as da

        rows = tuple(da.from_array(a, chunks=(70, *a.shape[1:])) for a in rows)
    with using_chunk_rules(ChunkRules(max_rows=61)):
        found = open_rows(NystroemClassifier(), *rows, TargetSpec("classes"))
        yield found.open(Progress(), Journal())[0]


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with distributed.Client(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        dashboard_address="127.0.0.1:0",
        protocol="inproc",
        set_as_default=True,
    ) as client:
        yield client


def _in_memory(P):
    return Blocks(project(X, P), ClassTargets(Y, 3), WEIGHT)


def _fitted(blocks, selection="uniform"):
    rng = np.random.RandomState(0)
    kernel = RBF().resolve(blocks, rng)
    problem = Problem(blocks, kernel, StandardMap(), ALPHAS)
    landmarks = select_landmarks(make_selector(selection), problem, 20, rng)
    return fit_expansion(blocks, landmarks.points, kernel, StandardMap(), ALPHAS, rng), landmarks


def _dense(A):
    return A.toarray() if sp.issparse(A) else A


# a client that stops leaves sockets to the garbage collector
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@in_pairs(
    ("blocks", "P", "selection"),
    KINDS,
    sorted(SHAPES),
    ["uniform", "kmeans", "negative-margin"],
    indirect=["blocks", "P"],
)
def test_fit_equals_that_of_projected_rows(blocks, P, selection):
    fit, landmarks = _fitted(ProjectedBlocks(blocks, P), selection)
    memory, expected = _fitted(_in_memory(P), selection)
    assert fit.alpha == memory.alpha
    np.testing.assert_allclose(fit.expansion.kernel.gamma, memory.expansion.kernel.gamma)
    np.testing.assert_allclose(_dense(landmarks.points), expected.points, rtol=1e-8, atol=1e-10)
    scores = replace(fit.expansion, projection=P)(X)
    np.testing.assert_allclose(scores, memory.expansion(project(X, P)), rtol=1e-8, atol=1e-8)


def test_rows_minus_a_centre(blocks, P):
    center = np.linspace(-2.0, 3.0, D)
    moved = ProjectedBlocks(blocks, P, center)
    expected = project(X - center, P)
    np.testing.assert_allclose(moved.gather(np.arange(20)).X, expected[:20], rtol=1e-12, atol=1e-12)
    spread = moved.feature_spread()
    mean = np.average(expected, axis=0, weights=WEIGHT)
    np.testing.assert_allclose(spread.mean, mean, atol=1e-12)
    variance = np.average((expected - mean) ** 2, axis=0, weights=WEIGHT)
    np.testing.assert_allclose(spread.variance, variance, rtol=1e-10)
    alone = projected(blocks, None, center)
    assert alone.n_features == D
    np.testing.assert_allclose(alone.gather(np.arange(5)).X, (X - center)[:5], atol=1e-12)
    assert moved.fingerprint() != ProjectedBlocks(blocks, P).fingerprint()


def test_every_verb_is_that_of_projected_rows(blocks, P):
    seen, expected = ProjectedBlocks(blocks, P), _in_memory(P)
    for name in ("n_rows", "n_features", "dtype", "n_outputs", "discrete", "n_candidates"):
        assert getattr(seen, name) == getattr(expected, name), name
    np.testing.assert_allclose(seen.variance(), expected.variance(), rtol=1e-10)
    np.testing.assert_allclose(seen.target_spread().mean, expected.target_spread().mean)
    drawn = seen.sample(12, np.random.RandomState(0))
    np.testing.assert_array_equal(drawn, expected.sample(12, np.random.RandomState(0)))
    some, known = seen.gather(drawn), expected.gather(drawn)
    np.testing.assert_allclose(_dense(some.X), known.X, rtol=1e-12)
    np.testing.assert_array_equal(some.Y, known.Y)
    np.testing.assert_array_equal(some.weight, known.weight)

    def first(block):
        return np.asarray(block.X[:, [0]].sum(axis=1)).ravel()

    def total(block):
        return np.asarray(block.X.sum(axis=0)).ravel()

    np.testing.assert_array_equal(seen.largest(first, 5, 8, "x"), expected.largest(first, 5, 8, ""))
    for mine, theirs in ((seen, expected), (seen.some(drawn), expected.some(drawn))):
        sums = [b.fold(total, lambda: np.zeros(seen.n_features), 8, "sum") for b in (mine, theirs)]
        np.testing.assert_allclose(*sums, rtol=1e-10, atol=1e-10)


def test_passes_are_counted_once_and_by_the_rows_below(blocks):
    seen = ProjectedBlocks(blocks, np.ones(D))
    before = blocks.progress.passes
    seen.variance()
    assert seen.progress is blocks.progress
    assert seen.journal is blocks.journal
    assert blocks.progress.passes == before + 1


def test_projections_of_projections(P):
    twice = ProjectedBlocks(ProjectedBlocks(Blocks(X), np.full(D, 2.0)), P)
    np.testing.assert_allclose(twice.gather(np.arange(5)).X, project(2 * X[:5], P))


def test_rows_in_memory_are_projected_once_where_that_fits(P):
    memory = Blocks(X, ClassTargets(Y, 3), WEIGHT)
    assert projected(memory, None) is memory
    image = projected(memory, P)
    assert isinstance(image, Blocks)
    assert image.progress is memory.progress
    np.testing.assert_array_equal(image.X, project(X, P))
    with config_context(working_memory=0.001):
        assert isinstance(projected(memory, P), ProjectedBlocks)
    assert isinstance(projected(ProjectedBlocks(memory, P), np.ones(P.shape[-1])), ProjectedBlocks)


def test_fingerprint_tells_rows_and_maps_apart():
    P = np.ones(D)
    prints = [
        ProjectedBlocks(Blocks(X), P).fingerprint(),
        ProjectedBlocks(Blocks(X), 2 * P).fingerprint(),
        ProjectedBlocks(Blocks(X + 1), P).fingerprint(),
        Blocks(X).fingerprint(),
    ]
    assert len(set(prints)) == 4
    assert ProjectedBlocks(Blocks(X.copy()), P.copy()).fingerprint() == prints[0]


def test_sums_go_through_the_journal(tmp_path, monkeypatch):
    """A fit that is killed takes its sums from the file; another map is another fit."""
    path = tmp_path / "fit.ckpt"

    def begun(P):
        journal = FileJournal(Checkpoint(path, seconds=0))
        seen = ProjectedBlocks(Blocks(X, journal=journal), P)
        journal.begin(lambda: {"the rows": seen.fingerprint()}, np.random.RandomState(0))
        return seen

    expected = begun(np.ones(D)).variance()
    monkeypatch.setattr(ProjectedBlocks, "_sum", None)
    again = begun(np.ones(D))
    assert again.variance() == expected
    assert again.progress.passes == 1  # that of the fit before
    with pytest.raises(ValueError, match="the rows differ"):
        begun(np.full(D, 2.0))


# ---- rows and their images ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8, np.int16])
@pytest.mark.parametrize("sparse", [False, True])
def test_project(dtype, sparse, P):
    rows = np.random.RandomState(0).randint(0, 200, (9, D)).astype(dtype)
    rows[:, 1] = 0
    image = project(sp.csr_matrix(rows) if sparse else rows, P)
    assert sp.issparse(image) == (sparse and P.ndim == 1)
    assert image.dtype == (np.float32 if dtype == np.float32 else np.float64)
    expected = rows.astype(np.float64) @ (np.diag(P) if P.ndim == 1 else P)
    rtol = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(_dense(image), expected, rtol=rtol, atol=1e-3 * (rtol > 1e-9))


def test_projecting_leaves_rows_as_they_are(P):
    rows = sp.csr_matrix(X)
    project(rows, P)
    np.testing.assert_array_equal(rows.toarray(), X)


# ---- expansions behind a map --------------------------------------------------------------------


def _expansion(P, dtype=np.float64, sparse=False):
    rng = np.random.RandomState(2)
    Z = project(X[:15], P).astype(dtype)
    A, b = rng.standard_normal((15, 2)).astype(dtype), np.array([1.0, -1.0], dtype)
    return KernelExpansion(RBF(0.1), sp.csr_matrix(Z) if sparse else Z, A, b, P)


@pytest.mark.parametrize("memory", [0.01, 1024])
@pytest.mark.parametrize("sparse_X", [False, True])
@pytest.mark.parametrize("sparse_Z", [False, True])
def test_expansion_projects_its_rows(memory, sparse_X, sparse_Z, P):
    expansion = _expansion(P, sparse=sparse_Z and P.ndim == 1)
    plain = replace(_expansion(P), projection=None)
    with config_context(working_memory=memory):
        scores = expansion(sp.csr_matrix(X) if sparse_X else X)
    np.testing.assert_allclose(scores, plain(project(X, P)), rtol=1e-10, atol=1e-12)


def test_expansion_counts_and_keeps_its_projection(P):
    expansion = _expansion(P)
    r = expansion.landmarks.shape[1]
    assert expansion.n_bytes == 8 * (15 * r + 15 * 2 + 2 + P.size)
    expansion(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(expansion))(X), expansion(X))


def test_float32_expansion_projects_in_float32(P):
    single = _expansion(P, np.float32)
    assert single(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single(X.astype(np.float32)), _expansion(P)(X), atol=1e-4)


@pytest.mark.parametrize("selection", sorted(SELECTORS))
def test_every_selection_works_behind_a_map(selection):
    P = np.random.RandomState(1).standard_normal((D, R))
    _, landmarks = _fitted(ProjectedBlocks(Blocks(X, ClassTargets(Y, 3)), P), selection)
    assert landmarks.points.shape == (20, R)


def test_maps_are_composed(rng):
    X, p, q = rng.rand(5, 3), rng.rand(3), rng.rand(3)
    P, Q = rng.rand(3, 3), rng.rand(3, 2)
    for first, second in [(p, q), (p, Q), (P, q), (P, Q)]:
        one, other = (np.diag(part) if part.ndim == 1 else part for part in (first, second))
        both = composed(first, second)
        whole = np.diag(both) if both.ndim == 1 else both
        np.testing.assert_allclose(X @ whole, X @ one @ other)
    assert composed(None, None) is None
    assert composed(None, p) is composed(p, None) is p
