"""Where a peer beats nysplus, found in the measurements rather than remembered."""

from __future__ import annotations

from collections.abc import Iterator

from benchmark_runs import Runs, dataset_title, percent, short, size, system_title, table
from measurement import Cell

_OURS = ("nysplus", "nysplus-defaults")
# Less than this many points of accuracy is the same accuracy as printed.
_SAME = 0.005


def section(runs: Runs) -> list[str]:
    """Return the section "Where we lose" as Markdown."""
    same_work, same_accuracy = list(_at_the_same_work(runs)), list(_at_the_same_accuracy(runs))
    return [
        "## Where we lose",
        "",
        "Medians of the repeats. First, cells in which scikit-learn's `Nystroem` + "
        "`RidgeClassifier` or `RBFSampler` + `RidgeClassifier` beats `nysplus` at the same n and "
        "type of rows:",
        "",
        *_table_or_none(
            ("data", "n", "peer", "more accurate by", "faster to fit", "faster to predict",
             "smaller"),
            same_work,
        ),
        "",
        "Then, peers without a size to choose that are more accurate than every `nysplus` model "
        "here (in bold; compared in time and size with our most accurate one), or that are faster "
        "or smaller than every `nysplus` model of at least their accuracy:",
        "",
        *_table_or_none(
            ("data", "peer", "accuracy %", "our best %", "faster to fit", "faster to predict",
             "smaller"),
            same_accuracy,
        ),
    ]  # fmt: skip


def _table_or_none(header: tuple[str, ...], rows: list[list[str]]) -> list[str]:
    return table(header, rows) if rows else ["None in this run."]


def _at_the_same_work(runs: Runs) -> Iterator[list[str]]:
    for dataset in runs.datasets:
        for peer in runs.cells(dataset):
            _, name, dtype, n = peer
            ours: Cell = (dataset, "nysplus", dtype, n)
            if n is None or name in _OURS or not runs.rows(ours):
                continue
            points = runs.median(peer, "accuracy") - runs.median(ours, "accuracy")
            lost = [
                f"{points:.2f} points" if points > _SAME else "",
                *(
                    _times(runs.median(ours, column) / runs.median(peer, column))
                    for column in ("fit_seconds", "predict_seconds", "model_bytes")
                ),
            ]
            if any(lost):
                yield [dataset_title(dataset), str(n), system_title(peer), *lost]


def _at_the_same_accuracy(runs: Runs) -> Iterator[list[str]]:
    for dataset in runs.datasets:
        cells = runs.cells(dataset)
        ours = [cell for cell in cells if cell[1] in _OURS]
        if not ours:
            continue
        best = max(ours, key=lambda cell: runs.median(cell, "accuracy"))
        for peer in cells:
            if peer[1] in _OURS or peer[3] is not None:
                continue
            accuracy = runs.median(peer, "accuracy")
            equal = [cell for cell in ours if runs.median(cell, "accuracy") > accuracy - _SAME]
            lost = [
                _cheapest(runs, equal or [best], peer, column)
                for column in ("fit_seconds", "predict_seconds", "model_bytes")
            ]
            if not equal or any(lost):
                shown = percent(accuracy) if equal else f"**{percent(accuracy)}**"
                highest = percent(runs.median(best, "accuracy"))
                yield [dataset_title(dataset), system_title(peer), shown, highest, *lost]


def _cheapest(runs: Runs, ours: list[Cell], peer: Cell, column: str) -> str:
    """Say by how much a peer beats the cheapest of our cells, or nothing."""
    cheapest = min(runs.median(cell, column) for cell in ours)
    theirs = runs.median(peer, column)
    times = _times(cheapest / theirs)
    write = size if column == "model_bytes" else lambda value: f"{short(value)} s"
    return f"{times} ({write(theirs)} against {write(cheapest)})" if times else ""


def _times(ratio: float) -> str:
    """Write how many times a peer is better; nothing where it is not, as printed."""
    return f"{ratio:.2f}×" if ratio >= 1.005 else ""
