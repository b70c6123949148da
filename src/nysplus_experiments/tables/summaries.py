"""Tables of the page on ordinary tables, in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pandas as pd

from nysplus_experiments.harness import records
from nysplus_experiments.harness.raw_tables import TABLES
from nysplus_experiments.harness.tables import MISSING, markdown, percent, short, size, spread
from nysplus_experiments.tables import csv_files, exports, fits, ours, peers, seconds
from nysplus_experiments.tables.comparison import (
    BEST_OF_THREE,
    DESIGN,
    GROUPS,
    LIGHTGBM_BETTER,
    UNREFINED,
    Opponent,
    Verdict,
    by_method,
    by_table,
    is_regression,
    margins,
    verdict,
)

METHODS = ours.METHODS | peers.METHODS
#: Methods of the tables with a line for each table; LightGBM is the better of its two forms.
COLUMNS = (
    *("64kB", "16kB", "4kB", "fast", "no-encoder", peers.LIGHTGBM, peers.XGBOOST),
    *(peers.CATBOOST, peers.SVM, peers.LINEAR),
)
#: Methods of which seconds are divided by those of LightGBM: with and without a search.
RATIOS = ("64kB", "fast")
TWINS = ("wine_quality_white", "artificial_characters")
_VERDICT = (
    *("points, mean", "median", "worst", "wins, ties, losses"),
    *("RMSE ratio, mean", "median", "worst", "wins, ties, losses"),
)


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _ratio(value: float) -> str:
    return f"{value:.3f}"


def _size(n_bytes: float) -> str:
    return size(n_bytes) if n_bytes >= 2**10 else f"{n_bytes:.0f} B"


def _cells(found: Verdict | None, write: Callable[[float], str]) -> list[str]:
    if found is None:
        return [MISSING] * 4
    worst = f"{write(found.worst)} ({found.worst_table})"
    counts = f"{found.wins}, {found.ties}, {found.losses}"
    return [write(found.mean), write(found.median), worst, counts]


def _line(margin: pd.Series) -> list[str]:
    """Return the cells of a summary: classification, then regression."""
    kinds = ((False, _signed), (True, _ratio))
    return [cell for kind, write in kinds for cell in _cells(verdict(margin, kind), write)]


def _lines(
    wide: pd.DataFrame, methods: Iterable[str], opponent: Opponent, groups: Iterable[str]
) -> list[list[str]]:
    theirs, lines = opponent.scores(wide), []
    for method in methods:
        margin = by_table(margins(wide[method], theirs)) if method in wide else pd.Series()
        for group in groups:
            own = margin[[GROUPS[group](str(table)) for table in margin.index]]
            if len(own):
                lines.append([METHODS[method].title, group, str(len(own)), *_line(own)])
    return lines


def _summary(wide: pd.DataFrame, methods: Iterable[str], opponent: Opponent) -> str:
    header = ("model", "tables", "number", *_VERDICT)
    return markdown(header, _lines(wide, methods, opponent, GROUPS))


def against_lightgbm(found: pd.DataFrame) -> str:
    """Return our models against LightGBM."""
    return _summary(by_method(found), ours.METHODS, LIGHTGBM_BETTER)


def against_best(found: pd.DataFrame) -> str:
    """Return our models against the best of the three libraries on each table."""
    return _summary(by_method(found), ours.METHODS, BEST_OF_THREE)


def other_libraries(found: pd.DataFrame) -> str:
    """Return the other methods against LightGBM, on all tables."""
    methods = (peers.XGBOOST, peers.CATBOOST, peers.SVM, peers.LINEAR)
    lines = _lines(by_method(found), methods, LIGHTGBM_BETTER, ["all"])
    return markdown(("model", "tables", *_VERDICT), [[line[0], *line[2:]] for line in lines])


def all_rows(found: pd.DataFrame) -> str:
    """Return our models on the largest tables with all their rows."""
    wide, lines = by_method(found, fits.ALL_ROWS), []
    for opponent in (LIGHTGBM_BETTER, BEST_OF_THREE):
        for line in _lines(wide, ours.METHODS, opponent, ["all"]):
            lines.append([line[0], opponent.title, *line[2:]])
    return markdown(("model", "against", "tables", *_VERDICT), lines)


def few_rows(found: pd.DataFrame) -> str:
    """Return our models fitted to 500 rows."""
    wide, lines = by_method(found, fits.FEW_ROWS), []
    for method, opponent in (
        ("64kB", UNREFINED),
        ("64kB", LIGHTGBM_BETTER),
        ("unrefined", LIGHTGBM_BETTER),
    ):
        for line in _lines(wide, [method], opponent, ["all"]):
            lines.append([line[0], opponent.title, *line[2:]])
    return markdown(("model", "against", "tables", *_VERDICT), lines)


def new_rows(found: pd.DataFrame) -> str:
    """Return our models against LightGBM on test rows that equal no training row."""
    lines = _lines(by_method(found, column="new_score"), ours.METHODS, LIGHTGBM_BETTER, ["all"])
    return markdown(("model", "tables", *_VERDICT), [[line[0], *line[2:]] for line in lines])


def _scores(wide: pd.DataFrame, write: Callable[[float], str]) -> pd.DataFrame:
    """Return the mean scores as text, one row a table, one column a method of `COLUMNS`."""
    better = wide.assign(**{peers.LIGHTGBM: LIGHTGBM_BETTER.scores(wide)})
    means = better.reindex(columns=list(COLUMNS)).groupby(level="table").mean()
    return means.map(write)


def _tables(found: pd.DataFrame, regression: bool, mode: str = fits.CAPPED) -> str:
    write = (lambda x: MISSING if pd.isna(x) else _ratio(x)) if regression else percent
    own = found[(found["mode"] == mode) & (found["table"].map(is_regression) == regression)]
    texts, shapes = _scores(by_method(own, mode), write), own.groupby("table").first()
    lines = []
    for name in TABLES:
        if name in texts.index:
            shape = shapes.loc[name]
            title = f"{name} *" if name in DESIGN else name
            features = f"{shape['features']} ({shape['nominal']})"
            lines.append([title, f"{shape['rows']:,}", features, *texts.loc[name]])
    titles = [METHODS[name].title for name in COLUMNS]
    return markdown(("table", "training rows", "columns (nominal)", *titles), lines)


def classification(found: pd.DataFrame) -> str:
    """Return the accuracies on each table."""
    return _tables(found, regression=False)


def regression(found: pd.DataFrame) -> str:
    """Return the errors on each table."""
    return _tables(found, regression=True)


def all_rows_tables(found: pd.DataFrame) -> str:
    """Return the scores on the largest tables with all their rows: accuracies, then errors."""
    first, second = (_tables(found, kind, fits.ALL_ROWS) for kind in (False, True))
    return "\n".join([first, *second.splitlines()[2:]])


def twins(found: pd.DataFrame) -> str:
    """Return accuracies with and without the test rows that equal a training row."""
    own = found[(found["mode"] == fits.CAPPED) & found["table"].isin(TWINS)]
    texts = {
        rows: _scores(by_method(own, column=column), percent)
        for rows, column in (("all", "score"), ("without a twin", "new_score"))
    }
    lines = []
    for table in TWINS:
        for rows, scores in texts.items():
            if table in scores.index:
                fit = own[own["table"] == table]
                share = 100 * (1 - (fit["new_rows"] / fit["test_rows"]).mean())
                lines.append([table, f"{share:.0f} %", rows, *scores.loc[table]])
    titles = [METHODS[name].title for name in COLUMNS]
    return markdown(("table", "rows with a twin", "test rows", *titles), lines)


def read_seconds(results: Path) -> pd.DataFrame:
    """Return the fits that were timed, the last of each key."""
    rows = records.read_last(results / "tables" / seconds.FILE, fits.TableFit)
    return records.frame(rows, fits.TableFit)


def sizes(found: pd.DataFrame) -> str:
    """Return the bytes of the models of each method."""
    own, lines = found[found["mode"] == fits.CAPPED], []
    for name, method in METHODS.items():
        n_bytes = own[own["method"] == name].groupby("table")["bytes"].mean()
        if len(n_bytes):
            lines.append([method.title, str(len(n_bytes)), spread(n_bytes, _size)])
    return markdown(("model", "tables", "bytes"), lines)


def times(timed: pd.DataFrame) -> str:
    """Return the seconds of fits on each table, their ratios to LightGBM, and the medians."""
    by_table = timed.groupby(["table", "method"])["fit_cpu_seconds"].mean().unstack()
    wide = by_table.reindex(index=list(seconds.TABLES), columns=list(seconds.METHODS))
    ratios = wide[list(RATIOS)].div(wide[peers.LIGHTGBM], axis=0)
    numbers = pd.concat([wide, ratios], axis=1)
    rows = timed.groupby("table")["rows"].first()
    lines = [
        [table, f"{rows[table]:,}" if table in rows else MISSING, *map(short, numbers.loc[table])]
        for table in seconds.TABLES
    ]
    lines.append(["median", MISSING, *map(short, numbers.median())])
    titles = [f"{METHODS[name].title}, s" for name in wide]
    against = [f"{METHODS[name].title} / LightGBM" for name in ratios]
    return markdown(("table", "training rows", *titles, *against), lines)


def read_exports(results: Path) -> pd.DataFrame:
    """Return the checks of exported models, the last of each key."""
    rows = records.read_last(results / "tables" / exports.FILE, exports.ExportCheck)
    return records.frame(rows, exports.ExportCheck)


def agreement(found: pd.DataFrame) -> str:
    """Return how far each exported format is from Python, over all tables."""
    lines = []
    for name, own in found.groupby("format", sort=False):
        worst = own.loc[own["difference"].idxmax()]
        lines.append(
            [
                *(str(name), str(len(own)), f"{own['rows'].sum():,}", f"{own['gaps'].sum():,}"),
                f"{own['unseen'].sum():,}",
                f"{worst['difference']:.1e} ({worst['table']})",
                str(own["other_labels"].sum()),
            ]
        )
    header = ("format", "tables", "rows", "gaps", "unseen levels", "largest difference")
    return markdown((*header, "other labels"), lines)


def read_csv_fits(results: Path) -> pd.DataFrame:
    """Return the fits on CSV files, the last of each key."""
    rows = records.read_last(results / "tables" / csv_files.FILE, csv_files.CsvFit)
    return records.frame(rows, csv_files.CsvFit)


def csv(found: pd.DataFrame) -> str:
    """Return the raw frame against the hand-made pipeline with the best mean test accuracy."""
    lines = []
    for table in csv_files.TABLES:
        own = found[found["table"] == table]
        means = own.pivot(index="seed", columns="pipeline", values="accuracy").mean()
        hand_made = means.drop(csv_files.RAW, errors="ignore")
        raw = means.get(csv_files.RAW)
        if hand_made.empty:
            continue
        best = hand_made.max()
        cells = [MISSING, MISSING] if raw is None else [percent(raw), _signed(raw - best)]
        lines.append([table, cells[0], str(hand_made.idxmax()), percent(best), cells[1]])
    header = ("table", "raw frame, %", "best pipeline", "its accuracy, %", "difference, points")
    return markdown(header, lines)


def pipelines(found: pd.DataFrame) -> str:
    """Return the mean accuracy of every pipeline on the rows of CSV files."""
    names: Sequence[str] = (csv_files.RAW, *csv_files.PIPELINES)
    means = found.groupby(["table", "pipeline"])["accuracy"].mean().unstack()
    texts = means.reindex(columns=list(names)).map(percent)
    lines = [[name, *texts.loc[name]] for name in csv_files.TABLES if name in texts.index]
    return markdown(("table", *names), lines)
