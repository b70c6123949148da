"""The report on a model: its numbers are those of the model, and the page is whole."""

from __future__ import annotations

import html
import importlib.util
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from factories import frame_of_all_kinds
from sklearn.datasets import load_diabetes, load_digits
from sklearn.metrics import accuracy_score

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus.encoding import ImageEncoder
from nysplus.explain import shapley_values
from nysplus.report import write_report

VOID = {"meta", "link", "br", "wbr"}
EVIL = "<b>&\"'</style>"


class Page(HTMLParser):
    """Check that every tag is closed, and collect the text of sections and what is loaded."""

    def __init__(self, content):
        super().__init__()
        self.open, self.figures, self.loaded, self.tags = [], [], [], set()
        self.content = content
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        attrs = dict(attrs)
        if tag == "figure":
            self.figures.append(attrs["id"])
        self.loaded += [v for k, v in attrs.items() if k in ("src", "xlink:href", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def section(self, name):
        """Return the text of a section."""
        found = re.search(rf'<section id="{name}">(.*?)</section>', self.content, re.DOTALL)
        text = re.sub(r"<[^>]+>", " ", found[1].replace("<wbr>", ""))
        return html.unescape(re.sub(r"\s+", " ", text))


@pytest.fixture(scope="module")
def frame_parts():
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame, y = frame_of_all_kinds(500)
    frame = frame.drop(columns=["street", "size"]).rename(columns={"colour": EVIL})
    return frame[:350], y[:350], frame[350:], y[350:]


@pytest.fixture(scope="module")
def frame_model(frame_parts):
    X, y, _, _ = frame_parts
    with pytest.warns(UserWarning, match="numbers the rows"):
        return NystroemClassifier(20, encoder="auto", random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def page(frame_model, frame_parts, tmp_path_factory):
    X, y, X_test, y_test = frame_parts
    path = tmp_path_factory.mktemp("report") / "report.html"
    options = {"X_train": X, "y_train": y, "target": EVIL, "notes": ["a note"]}
    assert write_report(frame_model, X_test, y_test, path, **options) == path
    return Page(path.read_text(encoding="utf-8"))


def test_the_page_is_one_file_without_scripts(page):
    assert "script" not in page.tags
    assert all(place.startswith(("#", "data:")) for place in page.loaded)
    places = set(re.findall(r'\bid="([^"]*)"', page.content))
    assert len(places) == len(re.findall(r'\bid="', page.content))
    assert {place[1:] for place in page.loaded if place.startswith("#")} <= places


def test_the_result_has_the_score_and_the_baselines(page, frame_model, frame_parts):
    _, _, X_test, y_test = frame_parts
    share = accuracy_score(y_test, frame_model.predict(X_test))
    result = page.section("result")
    assert f"this model {100 * share:.1f} %" in result
    assert "logistic regression" in result
    assert "majority class" in result
    assert page.figures[:3] == ["confusion", "calibration", "margins"]
    assert page.figures[3:] == ["importance", "curve"]


def test_columns_landmarks_and_data_are_those_of_the_user(page):
    landmarks, data = page.section("landmarks"), page.section("data")
    for text in (page.section("columns"), landmarks, data):
        assert EVIL in text.replace(" ", "")
    assert "votes for" in landmarks
    assert re.search(r"red|green|blue", landmarks)
    assert "350 training rows, 150 test rows; 6 columns" in data
    assert "The column 'id' numbers the rows, and is left out." in data
    assert "a note" in data
    assert re.search(r"date date [\d.]+ % 2020-01-\d\d", data)


def test_the_card_tells_use_limits_and_versions(page, frame_model):
    card = page.section("card")
    assert "Intended use To predict one of 2 classes" in card
    assert f"{frame_model.model_bytes_:,} bytes of numbers" in card
    assert "scikit-learn" in card
    assert "The interval covers the draw of the 150 test rows." in card


def test_single_predictions(page, frame_model, frame_parts):
    X, _, X_test, y_test = frame_parts
    text = page.section("trust")
    sets = frame_model.predict_set(X_test, confidence=0.9)
    covered = sets[np.arange(len(y_test)), np.searchsorted(frame_model.classes_, y_test)].mean()
    assert re.search(
        rf"90 % {100 * covered:.1f} % [\d.]+ % to [\d.]+ % {sets.sum() / 150:.2f}", text
    )
    novelty = frame_model.novelty(X_test)
    flagged = int((novelty > 0.99).sum())
    assert f"{flagged} of 150 test rows ({100 * flagged / 150:.1f} %) are more unusual" in text
    P = np.sort(frame_model.predict_proba(X_test), axis=1)
    rows = [P[:, -1].argmax(), (P[:, -1] - P[:, 0]).argmin(), novelty.argmax()]
    titles = ["A certain prediction", "The least certain prediction", "The most unusual row"]
    assert len(set(rows)) == 3
    for title, row in zip(titles, rows, strict=True):
        assert f"{title}: test row {row + 1} " in text.replace("\xa0", " ")
    assert text.count("This row is unlike the training rows") == (novelty[rows] > 0.99).sum() > 0
    # bars of the contributions to the predicted class
    found = shapley_values(frame_model, X_test.iloc[rows[:1]], X.sample(100, random_state=0))
    assert found.exact
    assert "They are exact." in text
    score = abs(frame_model.decision_function(X_test.iloc[rows[:1]])[0])
    assert f"this row {score:+.3g}" in text


def test_choices_and_trials_are_those_of_the_fit(page, frame_model):
    fit = page.section("fit")
    for choice in frame_model.report_.choices:
        assert choice.name in fit
    assert len(re.findall(" chosen ", fit)) >= sum(t.chosen for t in frame_model.report_.trials)


def test_values_without_training_rows(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model = NystroemRegressor(20, random_state=0).fit(X[:300], y[:300])
    path = write_report(model, X[300:], y[300:], tmp_path / "r.html", model_file=tmp_path / "m.nys")
    page = Page(path.read_text(encoding="utf-8"))
    assert page.figures == ["residuals", "importance"]
    assert f"this model {model.score(X[300:], y[300:]):.3f}" in page.section("result")
    assert "ridge regression" not in page.content
    assert "A landmark curve needs the training rows." in page.section("fit")
    assert 'nysplus.load("m.nys")' in page.section("card")
    assert "column 3" in page.section("data")
    trust = page.section("trust")
    low, high = model.predict_interval(X[300:]).T
    share = ((low <= y[300:]) & (y[300:] <= high)).mean()
    assert f"90 % {100 * share:.1f} %" in trust
    assert "up to 100 test rows" in trust
    errors = np.abs(model.predict(X[300:]) - y[300:])
    assert f"The row with the largest error: test row\xa0{errors.argmax() + 1} " in trust


def test_images(tmp_path):
    X, y = load_digits(return_X_y=True)
    model = NystroemClassifier(20, encoder=ImageEncoder((8, 8)), random_state=0)
    model.fit(X[:500], y[:500])
    path = write_report(model, X[500:800], y[500:800], tmp_path / "r.html")
    page = Page(path.read_text(encoding="utf-8"))
    assert page.figures == ["confusion", "calibration", "margins", "pixels", "images"]
    assert "Single pixels have no importance" in page.section("columns")
    assert "8 × 8 pixels" in page.section("card")


def test_classes_that_the_model_does_not_know(tmp_path):
    X, y = load_digits(return_X_y=True)
    model = NystroemClassifier(10, random_state=0).fit(X[y < 3], y[y < 3])
    path = write_report(model, X[y < 5][:60], y[y < 5][:60], tmp_path / "r.html")
    card = Page(path.read_text(encoding="utf-8")).section("card")
    assert "classes that the model never predicts: 3, 4." in card
    assert "fewer than 30 test rows, whose errors are hardly known: 0 (" in card


def test_the_same_rows_give_the_same_page(frame_model, frame_parts, tmp_path):
    _, _, X_test, y_test = frame_parts
    pages = [
        write_report(frame_model, X_test, y_test, tmp_path / name).read_bytes() for name in "ab"
    ]
    assert pages[0] == pages[1]


def test_bad_arguments(frame_model, frame_parts, tmp_path):
    _, _, X_test, y_test = frame_parts
    with pytest.raises(ValueError, match="Pass both or none"):
        write_report(frame_model, X_test, y_test, tmp_path / "r.html", X_train=X_test)
    with pytest.raises(ValueError, match="A report needs one target"):
        write_report(frame_model, X_test, np.zeros((150, 2)), tmp_path / "r.html")
    X = np.random.RandomState(0).rand(40, 2)
    several = NystroemRegressor(5, random_state=0).fit(X, X)
    with pytest.raises(ValueError, match="predicts 2 values for each row, and a report is about"):
        write_report(several, X, X, tmp_path / "r.html")
    labels = NystroemClassifier(5, random_state=0).fit(X, np.c_[X > 0.5, X[:, :1] > 0.2])
    with pytest.raises(ValueError, match="predicts 3 labels for each row"):
        write_report(labels, X, X > 0.5, tmp_path / "r.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("missing", ["matplotlib", "jinja2"])
def test_without_a_library(missing, frame_model, frame_parts, tmp_path, monkeypatch):
    X, y, X_test, y_test = frame_parts
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == missing else find(name)
    )
    if missing == "jinja2":
        with pytest.raises(ImportError, match=r'pip install "nysplus\[cli\]"'):
            write_report(frame_model, X_test, y_test, tmp_path / "r.html")
        assert not list(tmp_path.iterdir())
        return
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    options = {"X_train": X, "y_train": y}
    path = write_report(frame_model, X_test, y_test, tmp_path / "r.html", **options)
    page = Page(path.read_text(encoding="utf-8"))
    assert page.figures == []
    assert 'pip install "nysplus[plot]"' in html.unescape(page.content)
    assert "loss of accuracy in points" in page.section("columns")
