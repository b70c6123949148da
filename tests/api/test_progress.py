from __future__ import annotations

import io
import re
import sys

import numpy as np
import pytest
from sampling import sampled
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nysplus import NystroemClassifier, NystroemRegressor


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_silent_by_default(moons, capfd):
    NystroemClassifier(20).fit(*moons)
    assert capfd.readouterr() == ("", "")


def test_verbose_says_what_how_many_rows_and_how_long_on_a_terminal(moons, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    NystroemClassifier(20, selection="negative-margin", verbose=1).fit(*moons)
    *lines, last = [line.split("\033[K")[-1] for line in terminal.getvalue().strip().split("\n")]
    stages = [line.split(":")[0] + ":" + line.split(":")[1] for line in lines]
    assert stages == [
        "[NystroemClassifier] pilot: moments",
        "[NystroemClassifier] pilot: leave-one-out",
        "[NystroemClassifier] pilot: scores",
        "[NystroemClassifier] ridge: moments",
        "[NystroemClassifier] ridge: leave-one-out",
    ]
    assert all("━ 300 of 300 rows" in line and line.endswith(" rows/s") for line in lines)
    assert last == "[NystroemClassifier] 5 passes over 300 rows"


@pytest.mark.parametrize(("verbose", "n_lines"), [(1, 0), (2, 6)])
def test_pipes_get_lines_only_when_asked_twice(moons, capfd, verbose, n_lines):
    NystroemClassifier(20, selection="negative-margin", verbose=verbose).fit(*moons)
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.splitlines()) == n_lines
    assert "\r" not in err


CONTAINERS = {
    "arrays": lambda X, y: (X, y),
    "blocks": lambda X, y: (lambda: ((X[i : i + 70], y[i : i + 70]) for i in range(0, 300, 70)),),
    "blocks of one row": lambda X, y: (lambda: ((X[i : i + 1], y[i : i + 1]) for i in range(300)),),
}


@sampled(
    ("container", "params"),
    CONTAINERS.keys(),
    [
        {},
        {"selection": "kmeans"},
        {"selection": "negative-margin"},
        {"metric": "diagonal"},
        {"gamma": "auto"},
        {"refine": True},
        {"budget": "1kB"},
    ],
)
def test_no_stage_counts_more_rows_than_it_announces(moons, capfd, container, params):
    """Landmarks and samples that end before the last row need only a part of the last block."""
    rows = CONTAINERS[container](*moons)
    NystroemClassifier(10, random_state=0, verbose=2, **params).fit(*rows)
    lines = capfd.readouterr().err.splitlines()
    counts = [re.search(r": ([\d,]+) of ([\d,]+) rows", line) for line in lines]
    found = [[int(n.replace(",", "")) for n in count.groups()] for count in counts if count]
    assert len(found) >= 2
    assert [done for done, _ in found] == [announced for _, announced in found]


# ---- scikit-learn's callbacks, from 1.9 on -----------------------------------------------------


class Recorder:
    """A minimal callback that writes down the tasks it is told of."""

    def __init__(self):
        self.begun, self.ended, self.scores = [], [], []
        self.calls = []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.ended.append(context.task_name)
        if fitted_estimator is not None and hasattr(fitted_estimator, "score"):
            self.scores.append(fitted_estimator.score(X, y))


@pytest.fixture
def callback_module():
    return pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")


def test_callbacks_hear_of_every_pass(moons, callback_module):
    recorder = Recorder()
    NystroemClassifier(20, selection="negative-margin").set_callbacks(recorder).fit(*moons)
    assert recorder.calls == ["setup", "teardown"]
    assert sorted(recorder.begun) == sorted(recorder.ended)
    assert recorder.begun[0] == recorder.ended[-1] == "fit"
    assert [name for name in recorder.begun if name not in ("fit", "block")] == [
        "pilot: moments",
        "pilot: leave-one-out",
        "pilot: scores",
        "ridge: moments",
        "ridge: leave-one-out",
    ]
    assert recorder.scores[0] > 0.9


def test_callbacks_are_torn_down_after_an_error(moons, callback_module):
    recorder = Recorder()
    model = NystroemClassifier(20, kernel=lambda x, z: 1 / 0).set_callbacks(recorder)
    with pytest.raises(ZeroDivisionError):
        model.fit(*moons)
    assert recorder.calls == ["setup", "teardown"]


def test_progress_bar_of_scikit_learn(callback_module, capsys):
    pytest.importorskip("rich")
    X, y = np.random.RandomState(0).rand(500, 3), np.arange(500.0)
    bar = callback_module.ProgressBar()
    NystroemRegressor(20).set_callbacks(bar).fit(X, y)
    assert "NystroemRegressor - fit" in capsys.readouterr().out


def test_callbacks_reach_through_a_pipeline(moons, callback_module):
    class Propagated(Recorder):
        max_propagation_depth = None

    recorder = Propagated()
    make_pipeline(StandardScaler(), NystroemClassifier(20)).set_callbacks(recorder).fit(*moons)
    assert "ridge: moments" in recorder.begun
