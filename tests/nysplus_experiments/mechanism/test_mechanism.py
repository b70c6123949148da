"""Why selected landmarks help: rules, redundancy, changed conditions, runs and tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nysplus.kernels import RBF
from nysplus.landmarks import NegativeMargin
from nysplus_experiments.harness import records
from nysplus_experiments.harness.bench import RESULTS, BenchOptions
from nysplus_experiments.mechanism import (
    STEPS,
    conditions,
    figures,
    full_kernel,
    landmarks,
    rules,
    tables,
    trials,
)
from nysplus_experiments.mechanism.geometry import effective_rank, nearest_similarity, residuals
from nysplus_experiments.mechanism.trials import Conditions, changed_trial, fit_pilot
from nysplus_experiments.paper.methods import fit_method

pd = pytest.importorskip("pandas", reason="tables need pandas")
DIGITS = trials.SMOKE
FILES = {
    "landmarks": (landmarks.FILE, landmarks.LandmarkStatistics),
    "conditions": (conditions.FILE, conditions.Gain),
    "full_kernel": (full_kernel.FILE, full_kernel.FullKernel),
}


@pytest.fixture(scope="module")
def pilot():
    return fit_pilot(*changed_trial(DIGITS, 0, Conditions()), 30)


@pytest.fixture(scope="module")
def agreement():
    return trials.neighbour_agreement(DIGITS, 0)[0]


# -- redundancy ----------------------------------------------------------------------------------


def test_residuals_are_those_of_the_dense_approximation():
    rng = np.random.RandomState(0)
    Z, X, kernel = rng.rand(8, 3), rng.rand(20, 3), RBF(gamma=2.0)
    K = kernel(X, Z)
    expected = np.diag(kernel(X, X) - K @ np.linalg.inv(kernel(Z, Z)) @ K.T)
    assert residuals(kernel, Z, X) == pytest.approx(expected, abs=1e-9)
    assert residuals(kernel, Z, Z) == pytest.approx(0, abs=1e-9)
    assert residuals(kernel, np.repeat(Z, 2, axis=0), X) == pytest.approx(expected, abs=1e-7)


def test_similarity_and_rank_of_equal_and_of_unlike_landmarks():
    assert effective_rank(np.eye(5)) == pytest.approx(5)
    assert effective_rank(np.ones((5, 5))) == pytest.approx(1)
    K = np.array([[1, 0.5, 0.1], [0.5, 1, 0.2], [0.1, 0.2, 1]])
    assert nearest_similarity(K) == pytest.approx((0.5 + 0.5 + 0.2) / 3)
    assert K[0, 0] == 1  # the matrix is not changed


def test_agreement_is_that_of_a_loop(monkeypatch):
    monkeypatch.setattr(trials, "NEIGHBOUR_BLOCK", 7)
    rng = np.random.RandomState(0)
    X, codes, queries = rng.rand(40, 2), rng.randint(3, size=40), rng.rand(9, 2)
    own = rng.randint(3, size=9)

    def share(row, code, skipped=None):
        order = np.argsort(((X - row) ** 2).sum(axis=1))
        nearest = [i for i in order if i != skipped][: trials.NEIGHBOURS]
        return np.mean(codes[nearest] == code)

    expected = [share(row, code) for row, code in zip(queries, own, strict=True)]
    assert trials.agreement(X, codes, queries, own) == pytest.approx(expected)
    expected = [share(row, codes[i], i) for i, row in enumerate(X)]
    assert trials.agreement(X, codes, None, codes) == pytest.approx(expected)


# -- rules ---------------------------------------------------------------------------------------


def test_the_paper_is_repeated_where_all_rows_are_used(pilot, agreement):
    """Pilot and final model are those of `nysplus reproduce`."""
    trial = pilot.trial
    uniform = trials.score(trial, pilot.fit.expansion).accuracy
    assert uniform == pytest.approx(_paper_accuracy(trial, "Nys"), abs=1e-4)
    chosen = rules.RULES[rules.MARGIN](pilot, 30, agreement)
    final = pilot.problem.fit(chosen.points, pilot.rng).expansion
    expected = _paper_accuracy(trial, "Nys+")
    assert trials.score(trial, final).accuracy == pytest.approx(expected, abs=1e-4)
    assert uniform != pytest.approx(expected)


def _paper_accuracy(trial, method):
    return trial.accuracy(fit_method(method, trial, 30).predict(trial.split.X_test))


def test_rules_choose_distinct_rows(pilot, agreement):
    for name, rule in rules.RULES.items():
        chosen = rule(pilot, 30, agreement)
        assert chosen.points.shape == (30, 64), name
        if chosen.indices is not None:
            assert len(set(chosen.indices)) == 30, name
            assert np.array_equal(chosen.points, pilot.trial.split.X_train[chosen.indices]), name


def test_pools_go_from_the_paper_to_uniform_rows(pilot):
    direct = NegativeMargin().choose(pilot.problem, pilot.fit, 30, pilot.rng).indices
    assert set(rules.drawn_from_hardest(pilot, 30, 30)) == set(direct)
    pool = set(rules.hardest(pilot)[:120])
    drawn = rules.drawn_from_hardest(pilot, 30, 120)
    assert set(drawn) <= pool
    assert set(drawn) != set(direct)
    every = rules.drawn_from_hardest(pilot, 30, len(pilot.margins))
    assert np.median(pilot.margins[every]) < pilot.margins[drawn].min() + 1


def test_quotas_follow_the_classes(pilot, agreement):
    codes = np.repeat([0, 1, 2], [50, 30, 21])
    assert rules.class_quotas(codes, 10).tolist() == [5, 3, 2]
    assert rules.class_quotas(codes, 7).sum() == 7
    rows = rules.RULES["margin, class quotas"](pilot, 30, agreement).indices
    for k, quota in enumerate(rules.class_quotas(pilot.codes, 30)):
        margins = pilot.margins[pilot.codes == k]
        expected = np.sort(margins)[len(margins) - quota :]
        assert np.sort(pilot.margins[rows][pilot.codes[rows] == k]) == pytest.approx(expected)


def test_outliers_are_left_out(pilot, agreement):
    plain = rules.RULES[rules.MARGIN](pilot, 30, agreement).indices
    kept = rules.RULES["margin, no outliers"](pilot, 30, agreement).indices
    assert agreement[plain].min() < rules.MIN_AGREEMENT <= agreement[kept].min()


# -- conditions ----------------------------------------------------------------------------------


def test_another_scaling_keeps_the_mean_kernel_distance():
    own = trials.load_split(DIGITS, 0)
    products = [own.gamma * own.X_train.var(axis=0).sum()]
    for scaling in ("feature", "standard"):
        split = trials.load_split(DIGITS, 0, trials.MAX_TRAIN_ROWS, scaling)
        products.append(split.gamma * split.X_train.var(axis=0).sum())
        assert split.gamma != own.gamma
    assert products == pytest.approx(products[:1] * 3)


def test_fewer_rows_and_balanced_weights():
    trial, problem = changed_trial(DIGITS, 0, Conditions(rows=200, balanced=True, rho=0.1, gamma=2))
    assert len(trial.split.X_train) == 200
    assert trial.kernel.gamma == 2 * trials.load_split(DIGITS, 0).gamma
    assert problem.alphas == (0.1,)
    masses = np.bincount(trial.targets.codes, problem.blocks.class_weight)
    assert masses == pytest.approx(20)


def test_the_papers_conditions_return_with_every_factor():
    found = {}
    for factor in conditions.FACTORS:
        for row in conditions.measure(DIGITS, 50, factor, 0):
            found[factor, row.level] = replace(row, factor="", level="")
    base = found["gamma", "1"]
    levels = {"rho": "1e-05", "scaling": "one range", "weights": "equal", "rows": "1297"}
    assert all(found[key] == base for key in levels.items())
    assert found["pool", "1"].selected == pytest.approx(base.selected)
    assert found["pool", conditions.ALL].chosen_wrong < base.chosen_wrong
    assert found["gamma", "4"].uniform_unexplained > 2 * base.uniform_unexplained
    assert found["rho", "1"].uniform != base.uniform


def test_shares_of_eigenvectors_are_projections():
    rng = np.random.RandomState(0)
    X, Y = rng.rand(12, 2), rng.randn(12, 3)
    K = RBF(gamma=3.0)(X, X)
    of_kernel, of_labels = full_kernel.shares(K, Y)
    U = np.linalg.svd(K)[0][:, :4]
    centred = Y - Y.mean(axis=0)
    assert of_kernel[3] == pytest.approx(np.trace(U.T @ K @ U) / 12)
    assert of_labels[3] == pytest.approx(((U.T @ centred) ** 2).sum() / (centred**2).sum())
    assert (of_kernel[-1], of_labels[-1]) == pytest.approx((1, 1))


# -- runs and tables -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Two trials of every step on digits."""
    folder = tmp_path_factory.mktemp("results")
    options = BenchOptions("mechanism", folder, smoke=True, extra={"trials": "2"})
    for step in STEPS.values():
        step(options)
    return options


def _frame(options, step):
    file, row_class = FILES[step]
    return records.frame(options.path(file), row_class)


@pytest.mark.slow
def test_steps_measure_what_their_files_lack(measured, capsys):
    before = {step: measured.path(file).read_text() for step, (file, _) in FILES.items()}
    for name, step in STEPS.items():
        step(measured)
        assert measured.path(FILES[name][0]).read_text() == before[name]
    assert capsys.readouterr().out == ""
    chosen = _frame(measured, "landmarks")
    assert set(chosen["rule"]) == {landmarks.ALL_ROWS, *rules.RULES}
    assert set(chosen["trial"]) == {0, 1}
    selected, every = (chosen[chosen["rule"] == r] for r in (rules.MARGIN, landmarks.ALL_ROWS))
    assert selected["pilot_wrong"].min() > every["pilot_wrong"].max()
    known = chosen.dropna(subset=["accuracy"])
    parts = known["hard_rows"] * known["hard"] + (100 - known["hard_rows"]) * known["easy"]
    assert (parts / 100).to_numpy() == pytest.approx(known["accuracy"].to_numpy(), abs=1e-3)


@pytest.mark.slow
def test_gains_are_paired_over_trials(measured):
    rows = _frame(measured, "landmarks")
    found = tables.gains(rows)
    own = rows[(rows["n"] == 50) & (rows["trial"] == 1)].set_index("rule")["accuracy"]
    chosen = found[(found["n"] == 50) & (found["trial"] == 1) & (found["rule"] == rules.MARGIN)]
    assert chosen["gain"].tolist() == pytest.approx([own[rules.MARGIN] - own[rules.UNIFORM]])
    assert rules.UNIFORM not in set(found["rule"])


@pytest.mark.slow
def test_every_table_names_the_data(measured):
    chosen, changed, full = (_frame(measured, step) for step in FILES)
    for make in (tables.chosen_rows, tables.class_table, tables.redundancy, tables.rule_table):
        assert "Digits" in make(chosen)
    assert tables.easy_and_hard(chosen).count("[") == 6
    for factor in ("gamma", "rho", "scaling", "pool"):
        text = tables.condition_table(changed, factor)
        assert text.count("[") == len(tables.levels(changed, factor)) >= 3
    assert "balanced" in tables.weight_table(changed)
    cells = tables.error_cells(chosen, changed)
    assert [(cell.n, cell.n_train) for cell in cells] == [(50, 1297), (50, 1297), (20, 1297)]
    first, second = cells[:2]  # the same models, from two files
    assert first.ratio == pytest.approx(second.ratio, rel=1e-4)
    assert first.gain.mean == pytest.approx(second.gain.mean, abs=0.3)
    assert tables.error_table(cells).count("1,297") == 3
    assert tables.full_table(full).count("[") == 2 * 3 * 3
    assert tables.direction_table(full).count("Digits") == 3


@pytest.mark.slow
def test_rules_that_are_not_measured_everywhere_leave_gaps(measured):
    rows = _frame(measured, "landmarks")
    name = "support centroids"
    more = rows[rows["rule"] != name].assign(dataset="letter")
    both = pd.concat([rows, more])
    text = tables.rule_table(both)
    assert "nan" not in text
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {name}")]
    assert line.count("[") == 2
    assert line.count(tables.MISSING) == 2
    assert tables.class_name("letter", "8") == "H"
    assert tables.class_name("ijcnn1", "-1") == "-1"


def test_gains_of_the_paper_are_those_of_its_results():
    from nysplus_experiments.paper.results import Result

    path = RESULTS / "paper" / "results.csv"
    if not path.is_file():
        pytest.skip("no results")
    text = tables.paper_gains(records.frame(path, Result), ("mnist", "usps", "digits"))
    assert "2000: +0.16 [+0.09, +0.23]" in text
    assert "Digits" not in text


@pytest.mark.slow
def test_figures_have_a_panel_for_each_condition_and_dataset(measured):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    changed = figures.condition_figure(_frame(measured, "conditions"))
    assert [ax.get_title() for ax in changed.axes] == ["Pool", "Kernel width", "Ridge"]
    ruled = figures.rule_figure(_frame(measured, "landmarks"))
    (ax,) = ruled.axes
    assert [tick.get_text() for tick in ax.get_yticklabels()] == list(rules.RULES)[1:]
