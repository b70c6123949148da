"""Reports of fits: comparisons, choices, bytes and seconds."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits, make_moons

from nysplus import NystroemClassifier, NystroemRegressor, Refinement, load

DIGITS, CLASSES = (array[:500] for array in load_digits(return_X_y=True))
MOONS, SIDES = make_moons(400, noise=0.3, random_state=0)
VALUES = np.sin(3.0 * MOONS[:, 0]) + MOONS[:, 1]
QUICK = Refinement(n_epochs=4, search=False)


def choice(model, name):
    (found,) = (each for each in model.report_.choices if each.name == name)
    return found


def test_a_plain_fit_reports_leave_one_out_and_its_parameters():
    model = NystroemClassifier(30, random_state=0).fit(DIGITS, CLASSES)
    report = model.report_
    assert report.trials == ()
    assert report.n_landmarks == 30
    assert report.held_out.metric == "leave-one-out accuracy"
    assert 0.8 < report.held_out.value <= 1.0
    assert choice(model, "kernel").reason == "gamma='scale'"
    assert choice(model, "landmarks").reason == "n_components"
    assert choice(model, "ridge").value == f"alpha={model.alpha_:.4g}"


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"budget": "1kB"},
        {"metric": "diagonal"},
        {"budget": "1kB", "refine": QUICK},
        {"budget": "1kB", "encoder": "auto"},
        {"budget": 100, "encoder": "auto"},
    ],
)
def test_bytes_of_the_parts_add_up(params):
    for kind, y in ((NystroemClassifier, SIDES), (NystroemRegressor, VALUES)):
        model = kind(20, random_state=0, **params).fit(MOONS, y)
        report = model.report_
        assert sum(part.n_bytes for part in report.parts) == report.n_bytes == model.model_bytes_
        unused = [each for each in report.choices if each.name == "unused"]
        assert len(unused) == ("budget" in params)
        if unused:
            left = report.budget - model.model_bytes_
            assert unused[0].value == f"{left:,} of {report.budget:,} bytes"
            assert unused[0].reason
        assert str(report) in model.fit_report()


def test_kernels_and_sizes_that_were_compared_are_listed():
    model = NystroemClassifier("auto", kernel="auto", random_state=0).fit(MOONS, SIDES)
    kernels = [trial for trial in model.report_.trials if trial.stage == "kernel"]
    sizes = [trial for trial in model.report_.trials if trial.stage == "size"]
    assert len(kernels) == 18
    (kernel,) = (trial for trial in kernels if trial.chosen)
    assert kernel.model == choice(model, "kernel").value
    assert "best of 18" in choice(model, "kernel").reason
    (size,) = (trial for trial in sizes if trial.chosen)
    assert size.n_landmarks == model.report_.n_landmarks == len(model.landmarks_)
    assert size.score == model.report_.held_out.value


def test_a_budget_marks_the_size_that_was_chosen():
    model = NystroemRegressor(budget="1kB", random_state=0).fit(MOONS, VALUES)
    (chosen,) = (trial for trial in model.report_.trials if trial.chosen)
    assert chosen.n_bytes == model.model_bytes_
    assert chosen.metric == "root mean squared error"
    assert chosen.score == min(trial.score for trial in model.report_.trials)
    assert model.report_.held_out.value == chosen.score
    assert model.report_.held_out.standard_error is None


def test_refinement_that_is_kept_says_by_how_much():
    model = NystroemClassifier(10, refine=True, random_state=0).fit(DIGITS, CLASSES)
    assert model.refined_
    kept = choice(model, "refinement")
    assert kept.value == "kept"
    assert "standard errors" in kept.reason
    (chosen,) = (trial for trial in model.report_.trials if trial.chosen)
    assert chosen.model == choice(model, "training").value
    assert chosen.score == model.report_.held_out.value
    (start,) = (trial for trial in model.report_.trials if trial.model == "unrefined model")
    assert start.score < chosen.score


def test_refinement_that_is_not_kept_says_why():
    few = NystroemClassifier(10, refine=True, random_state=0).fit(MOONS[:20], SIDES[:20])
    assert choice(few, "refinement").value == "not tried"
    assert "too few" in choice(few, "refinement").reason
    noise = np.random.RandomState(0).normal(size=len(MOONS))
    model = NystroemRegressor(budget="1kB", refine=QUICK, random_state=0).fit(MOONS, noise)
    assert not model.refined_
    assert choice(model, "refinement").value == "not kept"
    stages = [trial.stage for trial in model.report_.trials]
    assert {"refinement", "size"} == set(stages)
    (chosen,) = (each for each in model.report_.trials if each.chosen and each.stage == "size")
    assert model.report_.held_out.value == chosen.score


def test_a_linear_function_of_a_table_is_reported():
    y = (MOONS[:, 0] > 0.5).astype(int)
    model = NystroemClassifier(budget="1kB", encoder="auto", random_state=0).fit(MOONS, y)
    assert model.solver_ == "linear"
    assert "a linear function" in model.report_.summary
    (chosen,) = (
        trial for trial in model.report_.trials if trial.stage == "linear" and trial.chosen
    )
    assert chosen.score == model.report_.held_out.value
    assert choice(model, "unused").reason == "a linear function needs no more"


def test_a_refined_table_names_its_code():
    model = NystroemClassifier(encoder="auto", refine=True, random_state=0).fit(MOONS, SIDES)
    steps = {trial.step for trial in model.report_.trials if trial.stage == "refinement"}
    assert {"short runs", "full runs", "unrefined model"} <= steps
    if model.refined_:
        assert "code" in choice(model, "training").value
    else:
        assert "code" in choice(model, "code").value


def test_a_refined_table_has_the_landmarks_that_learning_needs():
    X = np.random.RandomState(0).uniform(-1, 1, (600, 8))
    y = np.abs(X[:, 0]) + np.abs(X[:, 1]) > 1
    params = {"encoder": "auto", "random_state": 0}
    short = Refinement(search=False, n_epochs=20)
    model = NystroemClassifier("auto", refine=short, **params).fit(X, y)
    assert model.refined_
    assert len(model.landmarks_) == 250
    assert choice(model, "landmarks").reason == "the least number for learning on a table"
    assert len(NystroemClassifier("auto", **params).fit(X, y).landmarks_) < 250
    refined = NystroemClassifier(40, refine=short, **params).fit(X, y)
    assert len(refined.landmarks_) == 40
    assert choice(refined, "landmarks").reason == "n_components"


def test_columns_that_a_budget_has_room_for_are_named():
    X = np.random.RandomState(0).uniform(-1, 1, (1000, 30))
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(30)])
    params = {"encoder": "auto", "random_state": 0}
    model = NystroemClassifier(budget=200, **params).fit(frame, X[:, 3] * X[:, 7] > 0)
    n_used = len(np.unique(model.expansion_.encoder.groups))
    assert choice(model, "columns").value == f"{n_used} of 30"
    assert "x3" in choice(model, "columns").reason
    whole = NystroemClassifier(n_components=20, **params).fit(frame, X[:, 3] > 0)
    assert "columns" not in {each.name for each in whole.report_.choices}


def test_equal_fits_have_equal_reports_and_equal_files(tmp_path):
    models = [NystroemClassifier(budget="1kB", random_state=0).fit(MOONS, SIDES) for _ in range(2)]
    first, second = (model.report_ for model in models)
    assert first == second
    assert first.seconds != second.seconds
    files = [tmp_path / name for name in "ab"]
    for model, path in zip(models, files, strict=True):
        model.save(path)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert pickle.dumps(models[0]) == pickle.dumps(models[1])


def test_seconds_are_those_of_the_stages():
    report = NystroemClassifier(budget="1kB", random_state=0).fit(MOONS, SIDES).report_
    assert {"kernel", "size", "landmarks", "ridge"} <= set(report.seconds)
    assert all(seconds >= 0 for seconds in report.seconds.values())
    assert "Seconds" in str(report)


def test_pickles_and_copies_keep_the_report_without_seconds():
    model = NystroemClassifier(budget="1kB", random_state=0).fit(MOONS, SIDES)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert other.report_ == model.report_
        assert other.report_.seconds is None
        assert "Seconds" not in other.fit_report()
    assert model.report_.seconds is not None


def test_models_from_elsewhere_report_parameters_and_bytes(tmp_path):
    model = NystroemClassifier(20, refine=QUICK, random_state=0).fit(MOONS, SIDES)
    model.save(tmp_path / "model")
    later = NystroemClassifier(20, random_state=0).partial_fit(MOONS, SIDES, classes=[0, 1])
    for other in (load(tmp_path / "model"), model.compress(5), later):
        report = other.report_
        assert report.trials == ()
        assert report.seconds is None
        assert report.held_out is None
        assert report.n_bytes == other.model_bytes_
        assert "Bytes" in other.fit_report()
    loaded = load(tmp_path / "model")
    assert loaded.report_.parts == model.report_.parts
    assert choice(loaded, "refinement").value == ("kept" if model.refined_ else "no")


def test_before_a_fit_there_is_no_report():
    model = NystroemClassifier()
    assert not hasattr(model, "report_")
    with pytest.raises(ValueError, match="not fitted"):
        model.fit_report()
    fitted = NystroemClassifier(5, random_state=0).fit(MOONS, SIDES)
    assert not hasattr(clone(fitted), "report_")


def test_html_shows_size_landmarks_and_score():
    model = NystroemClassifier(budget="1kB", random_state=0)
    plain = model._repr_html_()
    assert "landmarks, " not in plain
    model.fit(MOONS, SIDES)
    html = model._repr_html_()
    assert model.report_.summary in html
    assert "accuracy" in model.report_.summary
    bundle = model._repr_mimebundle_()
    assert model.report_.summary in bundle["text/html"]
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert "text/html" not in model._repr_mimebundle_()


def test_repr_is_short():
    model = NystroemClassifier("auto", kernel="auto", random_state=0).fit(MOONS, SIDES)
    assert len(repr(model.report_)) < 200
