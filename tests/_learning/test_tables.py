"""Learning on tables: codes, weights of columns, sizes within a budget, and the choice."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import factories
import numpy as np
import pytest
from table_views import SmallViews

from nysplus._bytes.budget import Budget, ModelShape, PartBits, Size
from nysplus._learning.candidates import Deadline
from nysplus._learning.evaluation import Evaluation
from nysplus._learning.refine import refine
from nysplus._learning.refinement import Refinement
from nysplus._learning.table_search import TableSearch
from nysplus._learning.table_setup import TableSetup, column_weights, importances
from nysplus._learning.tables import (
    CLASS_STYLES,
    LONG,
    LONGEST,
    MID,
    SMOOTH,
    TABLE_RULES,
    UNWEIGHTED,
    CodeChoice,
    endless,
    options_of,
    scale_types,
    size_of_view,
)
from nysplus._learning.validation import ValidationScores
from nysplus._rows.targets import ClassTargets, ValueTargets
from nysplus._runtime.progress import Progress
from nysplus.kernels import RBF
from nysplus.landmarks import ClassCentroids, Uniform

FEW_BINS = CodeChoice(n_bins=8)


def _steps(n_rows, seed=0):
    """Raw numbers on odd scales, and classes that jump in two of five columns."""
    X = np.random.RandomState(seed).uniform(-1, 1, (n_rows, 5))
    codes = ((np.abs(X[:, 0]) > 0.5) ^ (X[:, 1] > 0.3)).astype(np.intp)
    return np.exp(3.0 * X) * [1.0, 1e3, 1e-3, 1.0, 10.0], ClassTargets(codes, 2)


def _values(n_rows, seed=0):
    X = np.random.RandomState(seed).uniform(-1, 1, (n_rows, 5))
    y = 7.0 + np.sign(X[:, 0] - 0.2) * np.abs(X[:, 1]) + 0.3 * X[:, 2]
    return np.exp(3.0 * X), ValueTargets(y[:, None])


def _fitted(raw, targets, n=30, **more):
    """Return views of a table, a problem on its code, and the unrefined model."""
    views = SmallViews(raw)
    code = views.code("thermometer", 8)
    problem = factories.problem(
        code(raw).astype(np.float64), targets, RBF(0.5), alphas=(1e-3, 1e-1), **more
    )
    rng = np.random.RandomState(0)
    start = problem.fit(ClassCentroids().select(problem, n, rng).points, rng).expansion
    return views, problem, replace(start, encoder=code)


def _refined(raw, targets, refinement=None, budget=None, rules=TABLE_RULES, **more):
    views, problem, start = _fitted(raw, targets, **more)
    refinement = refinement or Refinement(n_epochs=15)
    plain = replace(start, encoder=None)
    rng = np.random.RandomState(0)
    refined = refine(
        problem,
        problem.blocks,
        ClassCentroids(),
        plain,
        refinement,
        rng,
        budget,
        tables=views.at,
        table_rules=rules,
    )
    return views, start, refined


@pytest.fixture(scope="module")
def learned():
    return _refined(*_steps(800))


@pytest.fixture(scope="module")
def learned_in_few_bytes():
    return _refined(*_steps(800), Refinement(n_epochs=15, search=False), Budget(1024))


# ---- the learned model ---------------------------------------------------------------------------


def test_the_learned_model_is_a_function_of_raw_numbers(learned):
    _, start, refined = learned
    raw, targets = _steps(2000, seed=1)
    assert refined.kept
    assert refined.expansion.encoder.n_inputs == 5
    before, after = (targets.hits(model(raw)).mean() for model in (start, refined.expansion))
    assert after > max(before, 0.93)
    shape = (refined.expansion.encoder.n_columns, refined.expansion.landmarks.shape[1])
    assert refined.expansion.projection.shape == shape


def test_probabilities_are_honest(learned):
    raw, targets = _steps(2000, seed=1)
    scores = learned[2].expansion(raw)
    P = learned[2].scaling.probabilities(scores)
    assert abs(P.max(axis=1).mean() - targets.hits(scores).mean()) < 0.05


def test_the_best_styles_are_compared_on_held_out_rows(learned):
    refined = learned[2]
    assert len(refined.candidate_scores) == TABLE_RULES.n_finalists
    # three folds of five, because the rows are few
    assert refined.comparison.n_rows == 480
    assert refined.comparison.after == pytest.approx(max(refined.candidate_scores), abs=0.03)


def test_values_are_learned():
    _, start, refined = _refined(*_values(600), Refinement(n_epochs=40))
    raw, targets = _values(2000, seed=1)
    errors = [-targets.row_scores(model(raw)).mean() for model in (start, refined.expansion)]
    assert refined.kept
    assert refined.scaling is None
    assert errors[1] < 0.6 * errors[0]
    assert len(refined.candidate_scores) == TABLE_RULES.n_finalists


def test_the_unrefined_model_stays_where_it_is_best():
    raw, targets = _steps(300)
    _, start, refined = _refined(raw, targets, Refinement(n_epochs=1, widths=(1e-9,)))
    assert not refined.kept
    assert refined.comparison.errors < 0.0
    assert refined.expansion.encoder is None
    np.testing.assert_array_equal(refined.expansion.landmarks, start.landmarks)


def test_without_a_search_one_style_is_trained():
    raw, targets = _steps(400)
    views, _, refined = _refined(raw, targets, Refinement(search=False, n_epochs=5))
    assert len(refined.candidate_scores) == 1
    assert refined.comparison.n_rows == 80
    assert {call[1] for call in views.calls} == {"thermometer"}


@pytest.mark.parametrize("kind", ["classes", "labels", "values"])
def test_all_kinds_of_targets_are_learned(kind, targets_of, rng):
    raw, targets = rng.standard_normal((200, 3)), targets_of(kind, 200)
    refined = _refined(raw, targets, Refinement(n_epochs=1))[2]
    assert refined.expansion.dual_coef.shape[1] == targets.n_outputs
    assert np.isfinite(refined.candidate_scores).all()


def _evaluated(outputs, unrefined, targets):
    n = len(outputs)
    scores = ValidationScores(targets, np.ones(n), outputs, unrefined, np.arange(n), np.ones(n))
    return Evaluation(None, (), (), scores)


@pytest.mark.parametrize(
    ("n_start", "may_grow", "expected"),
    [(30, False, (30, 30)), (30, True, (250, 300)), (270, True, (270, 300))],
)
def test_learned_landmarks_are_more_where_their_number_is_free(n_start, may_grow, expected):
    raw, targets = _steps(600)
    views, problem, start = _fitted(raw, targets, n_start)
    search = TableSearch(
        problem, Uniform(), start, problem.blocks.gather(np.arange(600)), 0, Deadline(None),
        views=views, may_grow=may_grow,
    )  # fmt: skip
    # LONGEST has 800 landmarks, but not more than half the rows
    found = [search._fitting(style, None)[1].n for style in (MID, LONGEST)]
    assert tuple(found) == expected


@pytest.mark.parametrize(("few_rows", "kept"), [(100, True), (1000, False)])
def test_in_doubt_the_unrefined_model_is_kept_with_few_rows(few_rows, kept):
    """The trained model is right more often, but surer of itself where it is wrong."""
    raw, targets = _steps(200)
    views, problem, start = _fitted(raw, targets)
    rules = replace(TABLE_RULES, few_rows=few_rows)
    search = TableSearch(
        problem, Uniform(), start, problem.blocks.gather(np.arange(200)), 0, Deadline(None), None,
        rules, views=views,
    )  # fmt: skip
    right = np.where(targets.codes == 1, 1.0, -1.0)[:, None]
    trained, unrefined = right.copy(), right.copy()
    trained[:10] *= -1.0
    unrefined[:20] *= -0.01
    evaluation = _evaluated(trained, unrefined, targets)
    assert evaluation.scores.accuracy > evaluation.scores.unrefined.accuracy
    assert evaluation.scores.log_loss > evaluation.scores.unrefined.log_loss
    assert (search._best([evaluation]) is evaluation) == kept
    assert search._best([_evaluated(unrefined, right, targets)]) is None
    perfect = _evaluated(right, unrefined, targets)
    assert search._best([perfect]) is perfect


def test_values_keep_the_first_style_unless_another_is_clearly_better():
    raw, targets = _values(200)
    views, problem, start = _fitted(raw, targets)
    search = TableSearch(
        problem, Uniform(), start, problem.blocks.gather(np.arange(200)), 0, Deadline(None), None,
        TABLE_RULES, views=views,
    )  # fmt: skip
    noise = np.random.RandomState(0).standard_normal((200, 1))
    first, like_it, better = (
        _evaluated(targets.Y + errors, targets.Y + 9.0, targets)
        for errors in (noise, 0.99 * noise[::-1], 0.5 * noise)
    )
    assert search._best([first, like_it]) is first
    assert search._best([like_it, first]) is like_it
    assert search._best([first, like_it, better]) is better
    assert search._best([_evaluated(targets.Y + 9.0, targets.Y, targets)]) is None


@pytest.mark.parametrize(
    ("rules", "n_tried"),
    [
        ({"few_rows": 1000}, 1),  # neither longer nor endless runs
        ({"few_rows": 100, "endless_gain": np.inf}, 3),
        ({"few_rows": 100, "endless_gain": -np.inf, "endless_errors": 1.0}, 3),
        ({"few_rows": 100, "endless_gain": -np.inf, "endless_errors": 0.0}, 4),
    ],
)
def test_longer_runs_follow_where_they_promise_to_help(rules, n_tried):
    raw, targets = _steps(300)
    views, problem, start = _fitted(raw, targets)
    search = TableSearch(
        problem, Uniform(), start, problem.blocks.gather(np.arange(300)), 0, Deadline(None),
        Budget(16_384), replace(TABLE_RULES, least_steps=1, **rules), views=views,
    )  # fmt: skip
    long, longest, unweighted = (
        replace(style, epochs=2.0, code=FEW_BINS) for style in (LONG, LONGEST, UNWEIGHTED)
    )
    found = search.run([long], [longest, unweighted])
    assert len(found.candidate_scores) == n_tried


def test_short_runs_of_small_models_tell_which_styles_are_worth_a_whole_run(monkeypatch):
    raw, targets = _steps(300)
    views, problem, start = _fitted(raw, targets)
    search = TableSearch(
        problem, Uniform(), start, problem.blocks.gather(np.arange(300)), 0, Deadline(None),
        Budget(16_384), replace(TABLE_RULES, look_landmarks=7), views=views,
    )  # fmt: skip
    candidates = search._candidates(CLASS_STYLES[0], [None])
    folds = [search.hold_out(search.folds()[0])]
    looks = []

    def evaluate(self, looked_at, folds, time_share, step):
        looks.extend(looked_at)
        values = [np.full((len(folds[0].held_out), 1), float(i)) for i in range(len(looked_at))]
        codes = np.ones(len(folds[0].held_out), dtype=int)
        return [_evaluated(each, each, ClassTargets(codes, 2)) for each in values]

    monkeypatch.setattr(TableSearch, "_evaluate", evaluate)
    scores = {"smooth": 3.0, "standard": 2.0}
    monkeypatch.setattr(
        ValidationScores,
        "mean",
        property(lambda self: scores.get(names[int(self.outputs[0, 0])], 0.0)),
    )
    names = [candidate.recipe.style.name for candidate in candidates]
    found = search._finalists(candidates, folds)
    assert [candidate.recipe.style.name for candidate in found] == ["smooth", "standard"]
    assert {look.size.n for look in looks} == {7}
    assert {look.length for look in looks} == {TABLE_RULES.look_length}
    assert all(candidate in candidates for candidate in found)
    assert search._finalists(candidates[:2], folds) == candidates[:2]


def test_endless_runs_have_more_steps_and_landmarks():
    style = endless(LONGEST)
    assert style.epochs > 3 * LONGEST.epochs
    assert style.n_landmarks > LONGEST.n_landmarks
    assert replace(style, name="", epochs=0.0, n_landmarks=0) == replace(
        LONGEST, name="", epochs=0.0, n_landmarks=0
    )


def test_many_rows_are_compared_in_part_and_learned_from_in_full():
    rules = replace(TABLE_RULES, compared_rows=400, held_out_rows=80)
    views, _, refined = _refined(*_steps(700), rules=rules)
    assert refined.comparison.n_rows == 80
    assert {call[0] for call in views.calls[:-1]} == {400}
    assert views.calls[-1][0] == 700


def test_equal_seeds_give_equal_models(monkeypatch):
    raw, targets = _steps(300)
    first = _refined(raw, targets, Refinement(n_epochs=2))[2]
    monkeypatch.setattr("nysplus._runtime.threads.thread_count", lambda: 2)
    second = _refined(raw, targets, Refinement(n_epochs=2))[2]
    assert first.candidate_scores == second.candidate_scores
    np.testing.assert_array_equal(first.expansion.dual_coef, second.expansion.dual_coef)


def test_time_is_limited():
    raw, targets = _steps(300)
    refined = _refined(raw, targets, Refinement(n_epochs=10**6, max_seconds=0.5))[2]
    assert refined.comparison.n_rows % 60 == 0  # as many folds as time allows


class _Listener:
    def __init__(self, lines):
        self.lines = lines

    def note(self, text):
        self.lines.append(text)

    def stage(self, name, n_rows, n_blocks):
        self.lines.append(name)
        return nullcontext(lambda rows: None)


# ---- budgets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_bytes", [600, 1024, 4096, 16_384, 65_536])
def test_the_stored_model_is_within_the_budget(n_bytes):
    raw, targets = _steps(500)
    budget = Budget(n_bytes)
    refined = _refined(raw, targets, Refinement(n_epochs=2), budget)[2]
    if refined.kept:
        assert refined.expansion.packed is not None
        assert refined.expansion.n_bytes <= n_bytes


def test_a_budget_without_room_for_a_map_leaves_the_model_as_it_was():
    lines = []
    budget = Budget(60)
    refined = _refined(*_steps(300), budget=budget, progress=Progress(_Listener(lines)))[2]
    assert not refined.kept
    assert "no map fits in the budget" in lines[-1]


@pytest.mark.parametrize("n_columns", [20, 200, 800])
@pytest.mark.parametrize("L", [1, 10])
def test_sizes_grow_with_the_budget_up_to_the_largest(n_columns, L):
    views = SmallViews(np.random.RandomState(0).rand(1000, n_columns // 10))
    code = views.code("thermometer", 10)
    sizes = []
    for n_bytes in (1024, 4096, 16_384, 65_536, 2**20):
        scales = scale_types(discrete=L > 1)
        size = size_of_view(code, L, 1000, Budget(n_bytes), MID, TABLE_RULES, scales)
        if size is None:
            assert code.n_bytes + n_columns > n_bytes / 2
            continue
        shape = ModelShape(size.rank, L, (code.n_columns, size.rank), scales=scales)
        assert shape.bytes_in(size.bits, size.n) + code.n_bytes <= n_bytes
        sizes.append((size.rank, size.n * size.rank))
    assert sizes == sorted(sizes)
    assert sizes[-1] == (min(32, code.n_columns), 250 * min(32, code.n_columns))
    large = size_of_view(code, L, 1000, Budget(2**20), LONGEST, TABLE_RULES)
    assert large.n > 250
    assert large.bits == (8, 8, 8)


def test_bins_are_fewer_where_columns_are_many_or_bytes_are_few():
    raw = np.random.RandomState(0).rand(300, 50)
    views, problem, start = _fitted(raw, ClassTargets((raw[:, 0] > 0.5).astype(np.intp), 2))
    rows = problem.blocks.gather(np.arange(300))

    def bins(budget):
        search = TableSearch(
            problem, Uniform(), start, rows, 0, Deadline(None), budget, TABLE_RULES, views=views
        )
        return search._candidates([MID], [None])[0].recipe.code.n_bins

    assert bins(None) == 16  # 800 columns
    assert bins(Budget(4096)) < 8


def test_bytes_are_counted_as_they_are_stored(learned_in_few_bytes):
    _, _, refined = learned_in_few_bytes
    packed, code = refined.expansion.packed, refined.expansion.encoder
    n, r = packed.landmarks.values.shape
    shape = ModelShape(r, 1, (code.n_columns, r), scales=scale_types(discrete=True))
    bits = [part.bits for part in (packed.projection, packed.landmarks, packed.dual_coef)]
    assert shape.bytes_in(PartBits(*bits), n) + code.n_bytes == refined.expansion.n_bytes
    for part in (packed.projection, packed.landmarks, packed.dual_coef):
        assert part.scale.dtype == np.float16
    assert packed.landmarks.offset.dtype == packed.intercept.values.dtype == np.float16


def test_targets_of_any_unit_have_scales_in_float32():
    raw, targets = _values(400)
    large = ValueTargets(1e9 * targets.coded())
    _, _, refined = _refined(raw, large, Refinement(n_epochs=5, search=False), Budget(2048))
    assert refined.kept
    packed = refined.expansion.packed
    assert packed.dual_coef.scale.dtype == packed.intercept.values.dtype == np.float32
    assert packed.landmarks.scale.dtype == np.float16


def test_the_number_of_columns_is_chosen_on_held_out_rows():
    # two of five columns matter
    raw, targets = _steps(600)
    _, problem, start = _fitted(raw, targets)
    rows = problem.blocks.gather(np.arange(600))
    importance, counts = np.array([5.0, 4.0, 1.0, 2.0, 3.0]), (5, 2, 1)
    search = TableSearch(
        problem, ClassCentroids(), replace(start, encoder=None), rows, 0, Deadline(None),
        Budget(256), TABLE_RULES, views=SmallViews(raw, importance=importance, counts=counts),
    )  # fmt: skip
    found = search.run((MID, SMOOTH), (LONGEST,))
    code = found.best.candidate.recipe.code
    assert code.n_columns == 2
    assert "of 2 columns" in code.description
    model = search.refit(found, rows, search.views)
    assert set(model.encoder.groups) == {0, 1}
    assert model.n_bytes <= 256
    others, truth = _steps(2000, seed=1)
    assert truth.hits(model(others)).mean() > 0.85


# ---- weights and starts --------------------------------------------------------------------------


def test_columns_that_matter_weigh_most():
    raw, targets = _steps(800)
    views, problem, _ = _fitted(raw, targets)
    view = views("thermometer", 8, False)
    block = replace(problem.blocks.gather(np.arange(800)), X=view.X)
    found = importances(problem, block, view.code, 0, TABLE_RULES)
    assert found[:2].min() > 4.0 * found[2:].max()
    weights = column_weights(found, view.code, TABLE_RULES)
    assert (weights**2).mean() == pytest.approx(1.0)
    for column in range(5):
        assert len(np.unique(weights[view.code.groups == column])) == 1
    # as good for another number of bins
    finer = column_weights(found, views.code("thermometer", 16), TABLE_RULES)
    assert (finer**2).mean() == pytest.approx(1.0)
    np.testing.assert_allclose(finer[0] / finer[-1], weights[0] / weights[-1])


def test_a_function_that_is_constant_weighs_all_columns_alike():
    code = SmallViews(np.random.RandomState(0).rand(100, 3)).code("thermometer", 4)
    np.testing.assert_allclose(column_weights(np.zeros(3), code, TABLE_RULES), np.ones(12))


def test_weights_stretch_the_space_in_which_training_starts():
    raw, targets = _values(300)
    views, problem, _ = _fitted(raw, targets)
    view = views("standard", None, False)
    block = replace(problem.blocks.gather(np.arange(300)), X=view.X)
    weights = np.array([10.0, 1.0, 1.0, 1.0, 1.0])
    prepared = TableSetup.of(problem, block, weights, Size(20, 1), 0)
    direction = prepared.setup.basis[:, 0] / weights
    assert abs(direction[0]) > 0.99  # of rows whose first column is ten times as wide
    first = prepared.first(0.5, TABLE_RULES.value_ridge)
    model = prepared.setup.expansion(first, np.dtype(np.float64))
    assert model.projection.shape == (5, 1)
    # coefficients of the penalised ridge
    K = problem.kernel.__class__(1.0)(view.X @ model.projection, model.landmarks)
    A = np.linalg.solve(K.T @ K + 10.0 * np.eye(20), K.T @ (block.Y - block.Y.mean()))
    np.testing.assert_allclose(model.dual_coef, A, rtol=1e-3, atol=1e-3 * np.abs(A).max())


def test_options_follow_rows_and_targets():
    classes, values = (options_of(MID, 5000, discrete, TABLE_RULES) for discrete in (True, False))
    assert values.n_steps == pytest.approx(2 * classes.n_steps, abs=1)
    assert (classes.map_decay, classes.beta2, values.coef_learning_rate) == (0.1, 0.95, 0.05)
    assert options_of(MID, 100, True, TABLE_RULES).n_steps == TABLE_RULES.least_steps
    many = options_of(MID, 40_000, True, TABLE_RULES)
    assert many.n_rows == pytest.approx(40_000 * MID.epochs / 2, rel=0.01)
    assert options_of(SMOOTH, 5000, True, TABLE_RULES).map_decay > classes.map_decay
    assert options_of(LONG, 5000, True, TABLE_RULES).n_steps > classes.n_steps


def test_parameters_of_the_refinement_count():
    refinement = Refinement(rank=3, n_epochs=7, batch_size=50, widths=(0.2,), learning_rate=0.01)
    rules = refinement.table_rules(TABLE_RULES)
    assert (rules.rank, rules.batch_size, rules.learning_rate) == (3, 50, 0.01)
    first, longer = refinement.table_styles(discrete=True)
    for style in (*first, *longer, rules.metric_style):
        assert (style.epochs, style.value_epochs, style.width) == (7, 7, 0.2)
    assert options_of(first[0], 500, True, rules).n_steps == 70
