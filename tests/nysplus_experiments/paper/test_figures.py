"""Figures are drawn from results alone, with whatever curves there are."""

from __future__ import annotations

import builtins

import numpy as np
import pytest

from nysplus_experiments.paper import figures
from nysplus_experiments.paper.results import Result

ONE_STAGE = {"Nys": 0.0, "ENys": -0.4, "RNys": -0.6, "KNys": 0.2, "Fourier": -4.0}
TWO_STAGE = {"Nys+": 0.5, "ENys+": 0.3, "RNys+": 0.1, "KNys+": -0.2, "SC": 0.6}


def result(dataset, method, n, n_initial, trial, accuracy):
    return Result(
        dataset=dataset,
        method=method,
        n=n,
        n_initial=n_initial,
        trial=trial,
        seed=trial,
        status="ok",
        accuracy=accuracy,
        first_stage_seconds=None if n_initial is None else n / 100,
        final_stage_seconds=n / 90,
        predict_seconds=n / 1000,
        paper_bytes=n * 26 * 8,
        stored_bytes=n * 26 * 8 + 80,
        n_train=1297,
        n_test=500,
        n_features=16,
        n_outputs=10,
    )


def made_up(datasets=("letter",), trials=3, sizes=(20, 50, 100), n_initials=(50, 100)):
    """Return a full grid of results for each dataset."""
    rows = []
    for dataset in datasets:
        for trial in range(trials):
            for n in sizes:
                base = 95 - 100 / n + 0.1 * trial
                for method, gain in ONE_STAGE.items():
                    rows.append(result(dataset, method, n, None, trial, base + gain))
                for method, gain in TWO_STAGE.items():
                    rows.append(result(dataset, method, n, n, trial, base + gain))
                rows += [
                    result(dataset, "Nys+", n, n_0, trial, base + 0.1)
                    for n_0 in n_initials
                    if n_0 != n
                ]
        rows.append(result(dataset, "KRR", 1297, None, 0, 96.0))
    return rows


def only(results, *methods):
    return [r for r in results if r.method in methods]


def legend(figure):
    return [entry.get_text() for entry in figure.legends[0].get_texts()]


@pytest.mark.slow
def test_all_five_figures_are_written(tmp_path):
    pytest.importorskip("matplotlib")
    paths = figures.draw_all(made_up(("letter", "digits")), tmp_path / "new")
    assert [path.name for path in paths] == [f"figure{i}.png" for i in range(1, 6)]
    for path in paths:
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < 300_000
    assert len(list((tmp_path / "new").iterdir())) == 5  # no partial file stays


def test_equal_results_give_equal_files(tmp_path):
    pytest.importorskip("matplotlib")
    first, second = (
        figures.draw_all(made_up(), tmp_path / name, only={4})[0] for name in ("a", "b")
    )
    assert first.read_bytes() == second.read_bytes()


def test_only_chosen_figures_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    assert [p.name for p in figures.draw_all(made_up(), tmp_path, {2})] == ["figure2.png"]
    with pytest.raises(ValueError, match="no figure 6"):
        figures.draw_all(made_up(), tmp_path, {6})


def test_nothing_to_show_gives_no_figure(tmp_path):
    assert figures.draw_all([], tmp_path / "none") == []
    assert not (tmp_path / "none").exists()
    failed = Result("letter", "Nys+", 10, 10, 0, 0, "error", "MemoryError")
    assert figures.draw_all([failed], tmp_path) == []


def test_figure1_has_the_ends_of_n_initial_and_lines_for_full_machines():
    pytest.importorskip("matplotlib")
    figure = figures.draw(1, made_up(n_initials=(20, 50, 100)))
    assert legend(figure) == [
        *("Std Nys", "Nys+, smallest $n_0$", "Nys+, largest $n_0$", "Fourier", "KRR"),
    ]
    assert [text.get_text() for text in figure.axes[0].texts] == ["$n_0$: 20 and 100"]
    (axes,) = figure.axes
    assert axes.get_title() == "Letter: 1,297 train, 16 features"
    assert "landmarks" in axes.get_xlabel()
    assert axes.get_ylabel() == "test accuracy (%)"


def test_figure1_without_fixed_n_initial_shows_the_equal_one():
    pytest.importorskip("matplotlib")
    figure = figures.draw(1, made_up(n_initials=()))
    assert "Nys+, $n_0$ = $n_f$" in legend(figure)


def test_panels_only_for_datasets_with_the_methods():
    pytest.importorskip("matplotlib")
    results = made_up(("letter",)) + only(made_up(("digits",)), "Nys", "Nys+", "KNys")
    assert len(figures.draw(2, results).axes) == 1
    assert len(figures.draw(4, results).axes) == 1
    assert len(figures.draw(5, results).axes) == 1
    assert figures.draw(5, only(results, "Nys", "KNys")) is None


def test_figure3_shows_the_second_stage_alone_and_no_k_means():
    pytest.importorskip("matplotlib")
    figure = figures.draw(3, made_up())
    (axes,) = figure.axes
    assert "steps 3–6" in axes.get_xlabel()
    assert not any("KNys" in label for label in legend(figure))
    lines = dict(zip(legend(figure), figure.legends[0].legend_handles, strict=True))
    plus = next(x for x in axes.lines if x.get_color() == lines["Nys+"].get_color())
    np.testing.assert_allclose(plus.get_xdata(), [n / 90 for n in (20, 50, 100)])


@pytest.mark.parametrize(("missing", "drawn"), [(50, [20, 100]), (100, [20, 50, 100])])
def test_a_gap_of_one_curve_is_not_bridged_beside_another(missing, drawn):
    pytest.importorskip("matplotlib")
    results = [r for r in made_up() if (r.method, r.n) != ("KNys+", missing)]
    k_means, other, *_ = figures.draw(4, results).axes[0].lines
    kb = 26 * 8 / 1024
    np.testing.assert_allclose(k_means.get_xdata(), [n * kb for n in drawn])
    np.testing.assert_allclose(other.get_xdata(), [n * kb for n in drawn if n != missing])


def test_support_centroids_carry_their_printed_name():
    pytest.importorskip("matplotlib")
    assert legend(figures.draw(5, made_up()))[-1] == "KNys+ (centroids)"


def test_one_trial_draws_no_band(tmp_path):
    pytest.importorskip("matplotlib")
    axes = figures.draw(4, made_up(trials=1)).axes[0]
    assert all(len(band.get_paths()) == 0 for band in axes.collections)
    assert len(axes.lines) >= 2


def test_wide_intervals_are_lines_that_cover_nothing():
    pytest.importorskip("matplotlib")
    results = only(made_up(sizes=(50, 60, 80, 100)), "KNys", "KNys+")
    axes = figures.draw(4, results).axes[0]
    assert [len(part.get_paths()) for part in axes.collections] == [1, 0, 1, 0]
    spread = [result("letter", "KNys", 70, None, t, 94.0 + 3 * t) for t in range(-1, 2)]
    spread += [result("letter", "KNys+", 70, 70, t, 93.4 + 0.1 * t) for t in range(-1, 2)]
    band, line, *_ = figures.draw(4, results + spread).axes[0].collections
    assert len(line.get_paths()) == 1
    assert not band.get_paths()[0].contains_point((70 * 26 * 8 / 1024, 94.0))


def test_the_legend_fills_the_place_of_a_panel():
    pytest.importorskip("matplotlib")
    names = ("letter", "digits", "usps", "mnist", "cod_rna")
    figure = figures.draw(4, made_up(names, trials=2))
    assert not figure.legends
    texts = figure.axes[5].get_legend().get_texts()
    assert [text.get_text() for text in texts] == ["KNys", "KNys+"]


def test_wide_ranges_have_a_logarithmic_axis():
    pytest.importorskip("matplotlib")
    assert figures.draw(2, made_up(sizes=(10, 100, 500))).axes[0].get_xscale() == "log"
    assert figures.draw(2, made_up(sizes=(100, 500))).axes[0].get_xscale() == "linear"


def test_a_few_low_points_do_not_squash_the_rest():
    pytest.importorskip("matplotlib")
    results = made_up(sizes=(40, 50, 60, 80, 100))
    results += [result("letter", "Nys", 2, None, t, 10.0) for t in range(3)]
    low, high = figures.draw(2, results).axes[0].get_ylim()
    assert low > 80
    assert high < 100
    arrows = [x for x in figures.draw(2, results).axes[0].lines if "arrow" in str(x.get_marker())]
    assert [len(x.get_xdata()) for x in arrows if len(x.get_xdata())] == [1]


def test_without_matplotlib_the_error_names_the_extra(monkeypatch, tmp_path):
    real = builtins.__import__

    def refuse(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"nysplus\[plot\]"):
        figures.draw_all(made_up(), tmp_path)
