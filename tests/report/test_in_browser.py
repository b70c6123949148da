"""Reports as a browser shows them: in both themes, on a phone and in print."""

from __future__ import annotations

import pytest
from browser import Browser, needs_chromium
from factories import frame_of_all_kinds

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
pytest.importorskip("pandas", reason="pandas is not installed")

from pathlib import Path

from nysplus import NystroemClassifier
from nysplus.report import write_report

PAPER = Path(__file__).parents[2] / "results" / "paper" / "report.html"
pytestmark = [needs_chromium, pytest.mark.slow]
UNFOLD = "for (const each of document.querySelectorAll('details')) each.open = true"
# elements beyond the right edge of the window, apart from tables that scroll by themselves
CUT_OFF = """[...document.querySelectorAll('main *')].filter(each =>
    each.getBoundingClientRect().right > innerWidth + 1 && !each.closest('.scroll') &&
    !each.closest('svg')).map(each => each.outerHTML.slice(0, 90))"""
# figures without an area, and pictures that could not be decoded
MISSING = """[...document.querySelectorAll('figure svg, figure img')].filter(each =>
    each.getBoundingClientRect().height < 50 || each.naturalWidth === 0).length"""
# the contrast of the text to the ground, by relative luminance
CONTRAST = """(() => {
    const part = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const light = text => text.match(/\\d+/g).slice(0, 3).map(Number).map(part)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const style = getComputedStyle(document.querySelector('section'));
    const [a, b] = [light(style.color), light(style.backgroundColor)].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), light(style.backgroundColor)];
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("chromium"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    frame, y = frame_of_all_kinds(400)
    frame = frame.drop(columns=["id", "constant"])
    frame = frame.rename(columns={"number": "a_column_with_quite_a_long_name_" + "x" * 60})
    model = NystroemClassifier(20, encoder="auto", random_state=0).fit(frame[:300], y[:300])
    path = tmp_path_factory.mktemp("report") / "report.html"
    options = {"X_train": frame[:300], "y_train": y[:300], "target": "paid"}
    return write_report(model, frame[300:], y[300:], path, **options)


@pytest.fixture(params=["model", "paper"])
def page(request):
    if request.param == "model":
        return request.getfixturevalue("report")
    if not PAPER.exists():
        pytest.skip("an installed package has no results")
    return PAPER


@pytest.mark.parametrize(
    ("width", "scheme", "media"),
    [
        (1280, "light", "screen"),
        (1280, "dark", "screen"),
        (400, "dark", "screen"),
        (794, "light", "print"),
    ],
)
def test_pages_fit_their_window(browser, page, width, scheme, media):
    browser.open(page, width=width, scheme=scheme, media=media)
    browser.run(UNFOLD)
    assert browser.complaints == []
    assert all(address.startswith(("file:", "data:")) for address in browser.requests)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(CUT_OFF) == []
    assert browser.run("document.querySelectorAll('figure').length") >= 5
    assert browser.run(MISSING) == 0
    contrast, ground = browser.run(CONTRAST)
    assert contrast > 7
    assert (ground < 0.1) == (scheme == "dark")


def test_the_paper_has_four_screens_before_the_details(browser):
    if not PAPER.exists():
        pytest.skip("an installed package has no results")
    browser.open(PAPER, width=1280)
    assert browser.run("document.getElementById('claims').getBoundingClientRect().top") <= 4 * 800
    assert browser.run("document.querySelectorAll('details[open]').length") == 0
