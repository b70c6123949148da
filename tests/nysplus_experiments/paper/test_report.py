"""The report is one self-contained page, computed from results alone."""

from __future__ import annotations

import base64
import html
import re
from html.parser import HTMLParser

import pytest

from nysplus_experiments.paper import claims
from nysplus_experiments.paper.report import write_report
from nysplus_experiments.paper.results import Result

# The smallest PNG that browsers show: one transparent pixel.
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
VOID = {"meta", "img", "br", "link"}


def row(method="Nys", n=10, n_initial=None, trial=0, accuracy=84.0, **extra):
    values = {
        "dataset": "cod_rna",
        "first_stage_seconds": None if n_initial is None else 0.25,
        "final_stage_seconds": 0.5,
        "predict_seconds": 0.125,
        "paper_bytes": n * 9 * 8,
        "stored_bytes": n * 9 * 8 + 1024,
        "n_train": 49451,
        "n_test": 210758,
        "n_features": 8,
        "n_outputs": 1,
        "python": "3.11.7",
        "numpy": "2.0.0",
        "scipy": "1.15.0",
        "sklearn": "1.6.0",
        "nysplus": "0.1.0",
        "machine": "test machine",
    } | extra
    dataset = values.pop("dataset")
    return Result(dataset, method, n, n_initial, trial, trial, "ok", "", accuracy, **values)


def made_up(trials=3):
    plain = [row(trial=t, accuracy=84.0 + t / 10) for t in range(trials)]
    plus = [row("Nys+", 10, 500, t, 93.3 + t / 20) for t in range(trials)]
    return plain + plus


class Balance(HTMLParser):
    """Checks that every tag is closed and collects what the page loads."""

    def __init__(self):
        super().__init__()
        self.open, self.sources, self.tags = [], [], set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.sources += [value for key, value in attrs if key in ("src", "srcset")]
        self.sources += [v for k, v in attrs if k == "href" and tag == "link"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read(results, folder, figures=(), notes=()):
    path = write_report(results, list(figures), folder, list(notes))
    content = path.read_text(encoding="utf-8")
    parser = Balance()
    parser.feed(content)
    assert parser.open == []
    assert "script" not in parser.tags
    assert all(source.startswith("data:") for source in parser.sources)
    return content


def plain_text(content):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", content))


def test_page_is_whole_and_loads_nothing(tmp_path):
    (tmp_path / "figure2.png").write_bytes(PIXEL)
    content = read(made_up(), tmp_path, [tmp_path / "figure2.png"])
    assert base64.b64encode(PIXEL).decode() in content
    assert "Figure 2." in content
    assert "url(" not in content
    assert {p.name for p in tmp_path.iterdir()} == {"figure2.png", "report.html"}


def test_sections_and_summary(tmp_path):
    results = made_up()
    content = read(results, tmp_path)
    for name in ("summary", "claims", "figures", "tables", "deviations", "failures", "machine"):
        assert f'<section id="{name}">' in content
        assert f'href="#{name}"' in content
    assert claims.summary(claims.evaluate(results)) in html.unescape(content)
    assert "nysplus reproduce" in content


def test_claims_show_figures_and_verdicts(tmp_path):
    content = plain_text(read(made_up(), tmp_path))
    assert "93.4 against 84.1 (+9.3)" in content
    assert "✓ held" in content
    assert "There are no results on HAR." in content


def test_tables_have_means_intervals_sizes_and_times(tmp_path):
    content = read(made_up(), tmp_path)
    line = next(x for x in content.splitlines() if x.startswith("<tr>") and ">Nys+</td>" in x)
    cells = re.findall(r"<td[^>]*>(.*?)</td>", line)
    assert cells[:3] == ["Nys+", "10", "500"]
    assert re.fullmatch(r"93\.35 ± 0\.\d\d", cells[3])
    assert cells[4:] == ["3", "0.703", "1.7", "0.25", "0.5", "0.125"]


def test_one_trial_has_no_interval(tmp_path):
    content = read(made_up(trials=1), tmp_path)
    assert ">93.30</td>" in content
    assert "nan" not in plain_text(content).lower()
    assert "One trial only" in content


def test_deviations_name_counts_missing_data_and_notes(tmp_path):
    note = "KSVM was left out: n_0 is no part of it."
    content = plain_text(read(made_up(), tmp_path, notes=[note, note]))
    assert "COD-RNA has 49451 training and 210758 test rows here, 49451 and 97824" in content
    assert "There are no results on USPS, HAR, Letter, MNIST, Buzz, SVHN, IJCNN" in content
    assert content.count("KSVM was left out") == 1


def test_failures_are_listed_and_escaped(tmp_path):
    error = "ValueError: <script>alert('x')</script> & \"more\""
    failed = Result("letter", "KNys", 4000, None, 2, 7, "error", error)
    content = read([*made_up(), failed], tmp_path)
    assert "&lt;script&gt;" in content
    assert "&amp; &#34;more&#34;" in content
    assert "No run failed." not in content
    assert "No run failed." in read(made_up(), tmp_path)


def test_names_from_results_are_escaped(tmp_path):
    strange = [*made_up(), row("A<b>", dataset="x<y>&z", machine="M&M <1>")]
    content = read(strange, tmp_path, notes=["a < b & c"])
    assert "x&lt;y&gt;&amp;z" in content
    assert "A&lt;b&gt;" in content
    assert "M&amp;M &lt;1&gt;" in content
    assert "a &lt; b &amp; c" in content


def test_machine_and_versions_appear_once(tmp_path):
    content = read(made_up(), tmp_path)
    assert content.count("test machine") == 1
    assert ">1.6.0<" in content


def test_no_results_at_all(tmp_path):
    content = plain_text(read([], tmp_path))
    assert "There are no results." in content
    assert "No figure was drawn." in content


def test_writing_again_gives_the_same_page_and_fits_nothing(tmp_path, monkeypatch):
    first = read(made_up(), tmp_path)

    def refuse(*_args, **_kwargs):
        raise AssertionError("fitted or loaded something")

    monkeypatch.setattr("nysplus.NystroemClassifier.fit", refuse)
    monkeypatch.setattr("nysplus_experiments.harness.datasets.load", refuse)
    assert read(made_up(), tmp_path) == first


def test_a_file_name_is_taken_as_it_is(tmp_path):
    path = write_report(made_up(), [], tmp_path / "deep" / "page.html", [])
    assert path == tmp_path / "deep" / "page.html"
    assert path.is_file()


def test_an_old_page_survives_a_failure(tmp_path, monkeypatch):
    path = write_report(made_up(), [], tmp_path, [])
    before = path.read_bytes()
    with pytest.raises(FileNotFoundError):
        write_report(made_up(), [tmp_path / "figure9.png"], tmp_path, [])
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
