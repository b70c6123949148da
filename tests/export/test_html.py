"""The page that runs a model: what is in its text, and what it does in a browser."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from browser import OUTPUTS, Browser, as_rows, needs_chromium
from factories import classes, frame_of_all_kinds, table
from sklearn.svm import SVC
from web_models import KINDS, TRAIN, case

from nysplus import NystroemClassifier, NystroemRegressor, from_svc
from nysplus.encoding import ImageEncoder
from nysplus.explain import shapley_values
from nysplus.export import to_html, to_json
from nysplus.export.web_page import FLOAT32_PARTS

EVIL = "</script><script>alert(1)</script><!-- \"&amp;'$title"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("chromium"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def digits_model(digits):
    X, y = digits
    encoder = ImageEncoder((8, 8), n_cosines=8)
    return NystroemClassifier(100, encoder=encoder, random_state=0).fit(16 * X, y)


@pytest.fixture(scope="module")
def frame_model():
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame, y = frame_of_all_kinds()
    frame = frame.drop(columns=["id", "constant"])
    return NystroemClassifier(20, encoder="auto", random_state=0).fit(frame, y), frame


class _Parts(HTMLParser):
    """The text of each script, and the elements of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self._inside = [], [], False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag == "script"
        if self._inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._inside = False

    def handle_data(self, data):
        if self._inside:
            self.scripts[-1] += data


def settings(text):
    """Return the settings of a page."""
    return json.loads(_Parts(text).scripts[1])


# -- the text --------------------------------------------------------------------------------------


def test_it_has_the_model_and_goes_into_a_file(tmp_path):
    model = case("targets text").model
    text = to_html(model, tmp_path / "model.html", title="Levels")
    assert (tmp_path / "model.html").read_text(encoding="utf-8") == text
    parts = _Parts(text)
    whole = json.loads(to_json(model, explain=True, confidence=0.9))
    assert json.loads(parts.scripts[0]) == {k: v for k, v in whole.items() if k != "prediction_set"}
    plain = to_html(model, explain=False, confidence=None)
    assert json.loads(_Parts(plain).scripts[0]) == json.loads(to_json(model))
    assert settings(text)["bytes"] == model.model_bytes_
    assert settings(text)["outputs"] == ["low", "mid", "uppermost"]
    assert "<title>Levels</title>" in text
    assert "<title>NystroemClassifier</title>" in to_html(model)


@pytest.mark.parametrize("kind", ["4 bits", "float32", "images in 4 kB", "table, 3 bits"])
def test_numbers_of_float32_have_few_digits(kind):
    model = case(kind).model
    text = _Parts(to_html(model, explain=False, confidence=None)).scripts[0]
    found, whole = json.loads(text), json.loads(to_json(model))
    assert found.keys() == whole.keys()
    for name, value in whole.items():
        if name in FLOAT32_PARTS and value is not None:
            np.testing.assert_array_equal(np.float32(found[name]), np.float32(value))
        else:
            assert found[name] == value
    assert len(text) < 0.8 * len(to_json(model))


def test_it_is_self_contained():
    text = to_html(case("images").model)
    addresses = [v for _, attrs in _Parts(text).tags for k, v in attrs.items() if k == "href"]
    assert addresses == ["data:,"]
    assert not re.search(r"https?://|@import|url\(|\bsrc=|^import ", text, flags=re.MULTILINE)


def test_texts_cannot_end_a_script():
    y = np.where(TRAIN.targets["binary"], EVIL, "b")
    text = to_html(NystroemClassifier(5, random_state=0).fit(TRAIN.X, y), title=EVIL)
    parts = _Parts(text)
    assert len(parts.scripts) == 3
    assert EVIL in json.loads(parts.scripts[0])["classes"]


def test_sliders_have_the_range_of_the_knots(frame_model):
    model, frame = frame_model
    columns = {column["name"]: column for column in settings(to_html(model))["columns"]}
    assert columns["whole"]["range"] == [0.0, 8.0, 1.0]
    low, high, step = columns["number"]["range"]
    assert step == 0.01
    assert low < frame["number"].quantile(0.02) < frame["number"].quantile(0.98) < high
    assert columns["colour"]["levels"][0] == frame["colour"].value_counts().index[0]
    assert columns["date"]["kind"] == "date"
    assert all(column["gaps"] for column in columns.values())


def test_fields_of_columns_that_refuse_gaps_and_other_levels():
    columns = {c["name"]: c for c in settings(to_html(case("table").model))["columns"]}
    assert not columns["income"]["gaps"]
    assert not columns["city"]["others"]
    assert columns["größe, in */ m"]["others"]


def test_rows_of_many_features_are_pasted():
    X, y = table(100, 61).X, table(100, 61).targets["values"]
    assert settings(to_html(NystroemRegressor(5, random_state=0).fit(X, y)))["columns"] is None
    fields = settings(to_html(NystroemRegressor(5, random_state=0).fit(X[:, 1:], y)))["columns"]
    assert len(fields) == 60


def test_examples(frame_model, digits_model, digits):
    model, frame = frame_model
    found = settings(to_html(model, examples=frame.head(30)))
    raw = model._model.columns.schema.read(frame.head(30))
    assert found["examples"] == as_rows(raw)
    assert found["start"] == found["examples"][0]
    assert any(None in row for row in found["examples"])
    found = settings(to_html(digits_model, examples=digits[0][:3]))
    assert found["white"] == 1.0
    with pytest.raises(ValueError, match=r"examples has the shape \(1, 2\).* rows of 64 features"):
        to_html(digits_model, examples=[[1, 2]])
    with pytest.raises(ValueError, match="examples contains NaN"):
        to_html(case("float32").model, examples=[[1, np.nan, 2]])


@pytest.mark.parametrize("white", [1.0, 16.0, 255.0, 4000.0])
def test_the_value_of_a_white_pixel_follows_from_the_landmarks(digits, white):
    X, y = digits
    encoder = ImageEncoder((8, 8), n_cosines=6)
    model = NystroemClassifier(30, encoder=encoder, random_state=0).fit(white * X[:500], y[:500])
    assert settings(to_html(model))["white"] == pytest.approx(white, rel=0.3)


def test_drawings_are_centred_unless_they_have_colours(digits_model):
    assert settings(to_html(digits_model))["fit"] == "filled"
    assert settings(to_html(case("images in colour").model))["fit"] == "drawn"
    X, y = np.random.RandomState(0).rand(50, 256), np.arange(50) % 2
    model = NystroemClassifier(5, encoder=ImageEncoder((16, 16)), random_state=0).fit(X, y)
    assert settings(to_html(model))["fit"] == "margin"


def test_bounds_of_several_confidences():
    X, y = classes(300)
    model = NystroemClassifier(10, random_state=0).fit(X, y)
    found = settings(to_html(model, confidence=0.85))
    assert [(s["confidence"], s["chosen"]) for s in found["sets"]] == [
        (0.8, False),
        (0.85, True),
        (0.9, False),
        (0.95, False),
        (0.99, False),
    ]
    bounds = json.loads(to_json(model, confidence=0.95))["prediction_set"]["bounds"]
    assert found["sets"][3]["bounds"] == bounds
    assert settings(to_html(model, confidence=None))["sets"] == []
    with pytest.raises(ValueError, match=r"confidence=1\.0 is not allowed"):
        to_html(model, confidence=1.0)
    few = NystroemClassifier(5, random_state=0).fit(X[:30], y[:30])
    assert [s["confidence"] for s in settings(to_html(few))["sets"]] == [0.8, 0.9, 0.95]
    tiny = NystroemClassifier(2, random_state=0).fit(X[:3], [0, 1, 0])
    assert "too few rows" in settings(to_html(tiny))["no_sets"]


def test_models_without_sets_say_why():
    X, y = classes(300)
    imported = from_svc(SVC().fit(X, y))
    assert "Call model.calibrate(X, y)" in settings(to_html(imported))["no_sets"]
    imported.calibrate(X, y)
    assert "no probabilities" in settings(to_html(imported))["no_sets"]
    assert "several labels" in settings(to_html(case("targets labels").model))["no_sets"]
    assert "novelty" in json.loads(_Parts(to_html(case("targets labels").model)).scripts[0])
    assert settings(to_html(case("function alone").model))["no_sets"] == ""


def test_backgrounds_of_explanations(frame_model):
    def content(model, **options):
        return json.loads(_Parts(to_html(model, **options)).scripts[0])

    model, frame = frame_model
    found = content(model)["explanation"]["background"]
    starts = [column["start"] for column in settings(to_html(model))["columns"]]
    np.testing.assert_allclose(found, [starts], rtol=1e-2, atol=0.01)
    found = content(model, explain=frame.head(20))["explanation"]["background"]
    assert found == as_rows(model._model.columns.schema.read(frame.head(20)))
    assert any(None in row for row in found)
    wide = table(100, 1001)
    many = NystroemRegressor(5, random_state=0).fit(wide.X, wide.targets["values"])
    assert "explanation" not in content(many)
    assert len(content(many, explain=wide.X[:2])["explanation"]["background"]) == 2


def test_a_linear_function_has_no_landmarks():
    assert settings(to_html(case("linear function").model))["landmarks"] == 0


def test_it_takes_fitted_models_only():
    with pytest.raises(TypeError, match="Fit the model first"):
        to_html(NystroemRegressor())


# -- in a browser ----------------------------------------------------------------------------------


def opened(browser, tmp_path, model, width=400, **options):
    """Open the page of a model, and check that it complains of nothing."""
    to_html(model, tmp_path / "model.html", **options)
    browser.open(tmp_path / "model.html", width)
    assert browser.complaints == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    requested = [address for address in browser.requests if not address.startswith("data:")]
    assert requested == [(tmp_path / "model.html").resolve().as_uri()]


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_agrees_with_python(browser, tmp_path, kind):
    made = case(kind)
    opened(browser, tmp_path, made.model)
    rows = json.dumps(as_rows(made.raw))
    found = json.loads(browser.run(f"JSON.stringify(({OUTPUTS})(nysplus.model, {rows}))"))
    largest = np.abs(made.scores).max()
    np.testing.assert_allclose(found["scores"], made.scores, rtol=0, atol=made.tolerance * largest)
    if made.probabilities is not None:
        np.testing.assert_allclose(found["probabilities"], made.probabilities, atol=1e-3)
    shows_result(browser)


def shows_result(browser):
    """Check that a page shows a result, or waits for a drawing."""
    message = browser.run("document.getElementById('message').textContent")
    assert message in ("", "Nothing is drawn yet.")
    if not message:
        assert browser.run("document.getElementById('prediction').textContent") != ""
        count = browser.run("document.querySelectorAll('#landmarks li').length")
        assert (count == 0) == browser.run("reasons.hidden")
        assert count <= 5


def shown(browser):
    """Return the prediction and the bars of a page."""
    bars = browser.run("[...document.querySelectorAll('#bars li')].map(li => li.innerText)")
    return browser.run("document.getElementById('prediction').textContent"), [
        bar.split("\n") for bar in bars
    ]


@needs_chromium
def test_a_table_in_a_page(browser, tmp_path, frame_model):
    model, frame = frame_model
    opened(browser, tmp_path, model, examples=frame.iloc[3:6])
    for i in (3, 4, 5):
        row = frame.iloc[i : i + 1]
        browser.run(
            f"example.value = {i - 3}, example.dispatchEvent(new Event('input', {{bubbles: true}}))"
        )
        label, bars = shown(browser)
        assert browser.run("example.selectedIndex") == i - 3
        assert label == model.predict(row)[0]
        expected = [f"{100 * p:.1f} %" for p in model.predict_proba(row)[0]]
        assert bars == [["no", expected[0]], ["yes", expected[1]]]


@needs_chromium
def test_sets_contributions_and_a_warning_in_a_page(browser, tmp_path):
    X, y = classes(400, n_classes=3, noise=2.0)
    model = NystroemClassifier(20, random_state=0).fit(X, y)
    sets = model.predict_set(X, confidence=0.95)
    rows = np.array([X[sets.sum(axis=1) == 2][0], 9 * X[0]])
    opened(browser, tmp_path, model, examples=rows, explain=X[:3], confidence=0.95)
    chips = browser.run("[...document.querySelectorAll('.chip')].map(e => e.textContent)")
    assert sorted(chips) == sorted(map(str, model.classes_[model.predict_set(rows[:1], 0.95)[0]]))
    assert browser.run("document.getElementById('warning').hidden")
    expected = shapley_values(model, rows[:1], X[:3]).output(shown(browser)[0])
    lines = browser.run("[...document.querySelectorAll('#columns li')].map(e => e.innerText)")
    order = np.argsort(-np.abs(expected.values[0]))
    shares = [float(line.split("\n")[-1].replace("−", "-")) for line in lines]
    total = expected.base_values[0] + expected.values[0].sum()
    wanted = [expected.base_values[0], *expected.values[0][order], total]
    largest = np.abs(expected.values[0]).max()
    np.testing.assert_allclose(shares, wanted, rtol=0, atol=5e-3 * largest)
    # a smaller confidence has a smaller set, and a strange row a warning
    browser.run(f"({SET})('confidence', 0)")
    assert browser.run("document.querySelectorAll('.chip').length") == 1
    browser.run(f"({SET})('example', 1)")
    assert browser.run("warning.innerText") == (
        "This row is unlike the training rows (more unusual than all of them). Do not trust the "
        "prediction."
    )
    assert browser.complaints == []


SET = """(id, value) => {
    const field = document.getElementById(id);
    field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
}"""


@needs_chromium
def test_fields_of_every_kind(browser, tmp_path, frame_model):
    pd = pytest.importorskip("pandas")
    model, frame = frame_model
    opened(browser, tmp_path, model)
    names = [column["name"] for column in settings(to_html(model))["columns"]]
    levels = model._model.columns.schema.columns[names.index("colour")].levels
    values = {
        "number": "0.25",
        "whole": "3",
        "colour": levels.index("blue"),
        "date": "2020-03-04T05:06:07",
        "zip": "303",
    }
    for name, value in values.items():
        browser.run(f"({SET})('column-{names.index(name)}', {json.dumps(value)})")
    row = frame.head(1).assign(number=0.25, whole=3, colour="blue", zip=303)
    row["date"] = pd.Timestamp("2020-03-04 05:06:07")
    for name in ("street", "size", "flag"):
        code = f"document.getElementById('column-{names.index(name)}').selectedOptions[0].text"
        row[name] = {"True": True, "False": False}.get(browser.run(code), browser.run(code))
    raw = model._model.columns.schema.read(row)
    assert browser.run("nysplus.row()") == raw[0].tolist()
    # a gap, from the box beside the field
    box = f"document.querySelector('.field:has(#column-{names.index('number')}) .gap input')"
    browser.run(f"{box}.click()")
    assert browser.run("Number.isNaN(nysplus.row()[0])")
    _, bars = shown(browser)
    expected = model.predict_proba(row.assign(number=np.nan))[0]
    assert [bar[1] for bar in bars] == [f"{100 * p:.1f} %" for p in expected]
    # a number ends the gap, and an empty field is an error
    browser.run(f"({SET})('column-{names.index('number')}', '1.5')")
    assert browser.run("nysplus.row()[0]") == 1.5
    browser.run(f"({SET})('column-{names.index('number')}', '')")
    assert browser.run("message.textContent") == "“number” has no number."
    assert browser.run("result.hidden")


@needs_chromium
def test_every_control_has_a_name_and_the_keyboard_reaches_it(browser, tmp_path, digits_model):
    for model in (case("table").model, digits_model, case("images in colour").model):
        opened(browser, tmp_path, model)
        controls = "[...document.querySelectorAll('input, select, textarea, button, canvas')]"
        unnamed = (
            f"{controls}.filter(e => !(e.labels?.length || e.ariaLabel || e.textContent))"
            ".map(e => e.outerHTML)"
        )
        assert browser.run(unnamed) == []
        assert browser.run(f"{controls}.filter(e => e.id && e.tabIndex < 0).length") == 0


def place(browser, points):
    """Return points of the drawing, given as shares of its size, in pixels of the page."""
    box = "(r => [r.left, r.top, r.width, r.height])(board.getBoundingClientRect())"
    left, top, width, height = browser.run(box)
    return [(left + width * x, top + height * y) for x, y in points]


ONE = [(0.5, 0.15), (0.5, 0.4), (0.5, 0.6), (0.5, 0.85)]
SEVEN = [(0.25, 0.2), (0.5, 0.2), (0.72, 0.2), (0.6, 0.45), (0.5, 0.65), (0.42, 0.85)]


@needs_chromium
@pytest.mark.parametrize(("strokes", "digit"), [(ONE, "1"), (SEVEN, "7")], ids=["one", "seven"])
def test_drawing(browser, tmp_path, digits_model, strokes, digit):
    opened(browser, tmp_path, digits_model)
    assert browser.run("message.textContent") == "Nothing is drawn yet."
    browser.drag(place(browser, strokes))
    row = np.array(browser.run("nysplus.row()"))
    assert row.shape == (64,)
    assert 8 < row.max() <= 16
    label, bars = shown(browser)
    assert label == str(digits_model.predict(row[None])[0]) == digit
    expected = digits_model.predict_proba(row[None])[0]
    shares = [float(bar[1].removesuffix(" %")) / 100 for bar in bars]
    np.testing.assert_allclose(shares, expected, atol=2e-3)
    assert browser.run("document.querySelectorAll('#landmarks canvas').length") == 5
    assert browser.run("document.querySelectorAll('#heat canvas').length") == 1
    assert browser.complaints == []
    browser.run("clear.click()")
    assert browser.run("message.textContent") == "Nothing is drawn yet."


@needs_chromium
def test_drawing_with_a_finger(browser, tmp_path, digits_model):
    opened(browser, tmp_path, digits_model)
    browser.swipe(place(browser, SEVEN))
    assert shown(browser)[0] == "7"


@needs_chromium
def test_drawing_with_the_keyboard(browser, tmp_path, digits_model):
    opened(browser, tmp_path, digits_model)
    browser.run("board.focus()")
    for key in ["ArrowUp"] * 6 + ["Space"] + ["ArrowDown"] * 12 + ["Space"]:
        browser.key(key)
    assert shown(browser)[0] == "1"


@needs_chromium
def test_positions_of_a_drawing(browser, tmp_path, digits_model):
    """A small drawing in a corner stays there, or is moved to the middle."""
    opened(browser, tmp_path, digits_model)
    browser.drag(place(browser, [(0.1, 0.1), (0.1, 0.3)]))

    def image(position):
        browser.run(f"({SET})('fit', '{position}')")
        return np.reshape(browser.run("nysplus.row()"), (8, 8))

    drawn, margin, filled = map(image, ("drawn", "margin", "filled"))
    assert not drawn[:, 3:].any()
    assert not drawn[4:].any()
    assert filled[0].any()
    assert filled[7].any()
    assert margin[1:7].sum() > 0.9 * margin.sum()
    for centred in (margin, filled):
        np.testing.assert_allclose(centred, centred[:, ::-1], atol=1.5)
    browser.run(f"({SET})('white', '1')")
    assert image("filled").max() <= 1.0


@needs_chromium
def test_evil_names_are_shown_as_they_are(browser, tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pd.DataFrame({EVIL: TRAIN.X[:, 0], "b": np.where(TRAIN.X[:, 1] > 0, EVIL, "low")})
    y = np.where(TRAIN.X[:, 0] > -0.5, EVIL, "b")
    model = NystroemClassifier(5, encoder="auto", random_state=0).fit(frame, y)
    opened(browser, tmp_path, model, title=EVIL)
    assert browser.run("document.title") == EVIL
    assert shown(browser)[0] == EVIL
    assert browser.run("document.querySelector('label').textContent") == EVIL
    assert browser.run("document.scripts.length") == 3


@needs_chromium
def test_pasted_rows(browser, tmp_path):
    made = table(100, 70)
    model = NystroemRegressor(5, random_state=0).fit(made.X, made.targets["values"])
    opened(browser, tmp_path, model)
    browser.run(f"({SET})('row', '{' '.join(map(repr, made.X[0].tolist()))}')")
    assert float(shown(browser)[0]) == pytest.approx(model.predict(made.X[:1])[0], rel=1e-5)
    browser.run(f"({SET})('row', '1, 2')")
    assert browser.run("message.textContent") == "The model takes 70 columns, and the row has 2."
