"""Tables of the benchmark of bytes, in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd

from nysplus_experiments.harness.statistics import estimate
from nysplus_experiments.harness.tables import MISSING, count, interval, markdown, percent, short
from nysplus_experiments.tables import fits
from nysplus_experiments.tables.comparison import (
    BEST_OF_THREE,
    CONSTANT,
    DESIGN,
    GROUPS,
    LIGHTGBM_DEFAULTS,
    OURS,
    Benchmark,
    Verdict,
    critical_difference,
    front,
    is_regression,
    margins,
    not_behind,
    not_clearly_behind,
    outcomes,
    own_front,
    ranks,
    verdict,
)
from nysplus_experiments.tables.systems import all_systems

LIMITED = tuple(size for size, n_bytes in fits.SIZES.items() if n_bytes is not None)
#: Sizes of the tables with a line for each table, and lines of the list of losses for each size.
SHOWN, N_LOSSES = ("1 kB", "16 kB"), 5
#: Our scores that are compared with other models of a size.
OUR_MODELS: dict[str, Callable[[Benchmark, str], pd.Series]] = {
    "of the size": lambda bench, size: bench.wide(size)[OURS],
    "best up to the size": own_front,
}


def title_of(system: str) -> str:
    """Return the title of a system."""
    return all_systems()[system].title


def marked(table: str) -> str:
    """Return the name of a table, with an asterisk if it was used to choose our defaults."""
    return f"{table} *" if table in DESIGN else table


def signed(value: float, decimals: int = 2) -> str:
    """Write a difference with its sign."""
    return f"{value:+z.{decimals}f}".replace("-", "−") if np.isfinite(value) else MISSING


def ratio(value: float) -> str:
    """Write a ratio of errors, or an error."""
    return f"{value:.3f}" if np.isfinite(value) else MISSING


def n_bytes(value: float) -> str:
    """Write a number of bytes with two or three digits."""
    if not np.isfinite(value):
        return MISSING
    for unit, name in ((2**20, "MB"), (2**10, "kB")):
        if value >= unit:
            return f"{value / unit:.3g} {name}" if value < 1000 * unit else f"{value / unit:,.0f}"
    return f"{value:.0f} B"


def share(values: Iterable[bool]) -> str:
    """Write the share of True in percent."""
    known = list(values)
    return f"{100 * np.mean(known):.0f} %" if known else MISSING


# -- the state of the run ------------------------------------------------------------------------


def coverage(found: pd.DataFrame, bench: Benchmark) -> str:
    """Return the tables and seeds that each system has, and whether it is compared."""
    lines = []
    for name, system in all_systems().items():
        own = found[(found["system"] == name) & found["table"].isin(fits.BENCHMARK)]
        if own.empty:
            lines.append([system.title, "0", MISSING, "0", "no"])
            continue
        seeds = own.groupby("table")["seed"].nunique()
        text = f"{seeds.min()}" if seeds.min() == seeds.max() else f"{seeds.min()} to {seeds.max()}"
        compared = "yes" if name in bench.systems else "not yet"
        lines.append([system.title, str(len(seeds)), text, f"{len(own):,}", compared])
    return markdown(("system", "tables", "seeds of a table", "fits", "compared"), lines)


def state(bench: Benchmark) -> str:
    """Return a sentence on the tables, systems and seeds that are compared."""
    seeds = bench.fits.groupby("table")["seed"].nunique().value_counts()
    design = sum(table in DESIGN for table in bench.tables)
    regression = sum(map(is_regression, bench.tables))
    if not bench.tables:
        return "Nothing can be compared yet."
    splits = ", ".join(
        f"{n_seeds} of {len(fits.SEEDS)} splits of {count(n_tables, 'table')}"
        for n_seeds, n_tables in seeds.sort_index(ascending=False).items()
    )
    return (
        f"Compared here: {len(bench.tables)} of {len(fits.BENCHMARK)} tables "
        f"({len(bench.tables) - regression} with classes, {regression} with numbers; {design} of "
        f"them used to choose our defaults, marked by an asterisk), {len(bench.compared)} systems, "
        f"{splits}, {len(bench.fits):,} fits."
    )


# -- all sizes at a glance -----------------------------------------------------------------------


def _groups(bench: Benchmark) -> dict[str, Benchmark]:
    """Return all tables, and those that were not used to choose our defaults."""
    return {
        "all tables": bench,
        "without the tables marked by an asterisk": bench.some(GROUPS["others"]),
    }


def _cells(found: Verdict | None, write: Callable[[float], str]) -> list[str]:
    if found is None:
        return [MISSING] * 4
    worst = f"{write(found.worst)} ({marked(found.worst_table)})"
    counts = f"{found.wins}, {found.ties}, {found.losses}"
    return [write(found.mean), write(found.median), worst, counts]


def against_defaults(bench: Benchmark) -> str:
    """Return our models of each size against gradient boosting with its defaults."""
    lines = []
    for opponent in (LIGHTGBM_DEFAULTS, BEST_OF_THREE):
        theirs = opponent.scores(bench)
        for size in fits.SIZES if len(theirs) else ():
            margin = margins(bench.wide(size)[OURS], theirs)
            for group, keep in GROUPS.items():
                own = margin[[keep(str(table)) for table in margin.index]]
                cells = [*_cells(verdict(own, False), signed), *_cells(verdict(own, True), ratio)]
                lines.append([opponent.title, size, group, str(len(own)), *cells])
    header = ("against", "our size", "tables", "number", "points, mean", "median", "worst")
    other = ("wins, ties, losses", "RMSE ratio, mean", "median", "worst", "wins, ties, losses")
    return markdown((*header, *other), lines)


def mean_ranks(bench: Benchmark) -> str:
    """Return the mean ranks of all systems at each size, with critical differences."""
    lines = []
    for group, own in _groups(bench).items():
        means = {size: ranks(own, size).mean() for size in fits.SIZES}
        for name in bench.compared:
            cells = [f"{means[size][name]:.2f}" for size in fits.SIZES]
            lines.append([title_of(name), group, *cells])
        if own.tables:
            needed = f"{critical_difference(len(own.compared), len(own.tables)):.2f}"
            lines.append(["*critical difference*", group, *[needed] * len(fits.SIZES)])
    return markdown(("system", "tables", *fits.SIZES), lines)


def fronts(bench: Benchmark) -> str:
    """Return the share of tables on whose front a system has a model, and of the front's models."""
    lines = []
    groups = {
        group: [
            pd.Series(front(own, table).index.get_level_values("system")) for table in own.tables
        ]
        for group, own in _groups(bench).items()
    }
    for name in bench.compared:
        cells = []
        for found in groups.values():
            models = [system for table in found for system in table]
            cells.append(share((table == name).any() for table in found))
            cells.append(share(system == name for system in models))
        lines.append([title_of(name), *cells])
    header = [f"{what}, {group}" for group in groups for what in ("tables", "models of the front")]
    return markdown(("system", *header), lines)


def unbeaten_cells(bench: Benchmark) -> str:
    """Return the share of tables on which we are not behind the best other system, or each one.

    Last come the shares if only clear leads of others count.
    """
    lines = []
    for group, own in _groups(bench).items():
        for ours, scores in OUR_MODELS.items():
            found = {size: not_behind(own, size, scores(own, size)) for size in fits.SIZES}
            lines += _shares([group, ours, "any"], found)
        clear = {size: not_clearly_behind(own, size) for size in fits.SIZES}
        lines += _shares([group, next(iter(OUR_MODELS)), "clear"], clear)
    header = ("tables", "our model", "leads", "of")
    return markdown((*header, *fits.SIZES, "0.25 to 64 kB"), lines)


def _shares(first: list[str], found: dict[str, pd.DataFrame]) -> list[list[str]]:
    limited = pd.concat([found[size] for size in LIMITED])
    return [
        [*first, others, *(share(part(each)) for each in (*found.values(), limited))]
        for others, part in (("any other system", _unbeaten), ("one other, mean", np.ravel))
    ]


def _unbeaten(found: pd.DataFrame) -> pd.Series:
    """Return for each table whether no other system is better than ours."""
    return found.all(axis=1)


def log_losses(bench: Benchmark) -> str:
    """Return the mean log-loss of systems with models of a size on most tables with classes.

    The mean is over the tables on which all of them have a model.
    """
    classes, lines = bench.some(lambda table: not is_regression(table)), []
    means, counts = {}, {}
    for size in fits.SIZES:
        wide = classes.wide(size, "log_loss")[classes.with_models(size)]
        wide = wide.loc[:, wide.notna().any()].dropna()
        means[size], counts[size] = wide.mean(), len(wide)
    for name in bench.compared:
        lines.append([title_of(name), *(ratio(means[size].get(name, np.nan)) for size in means)])
    lines.append(["*tables*", *(str(counts[size]) for size in means)])
    return markdown(("system", *fits.SIZES), lines)


def costs(bench: Benchmark) -> str:
    """Return medians over the tables of processor seconds, and of memory of the fit."""
    lines = []
    shown = ("4 kB", "64 kB", fits.UNLIMITED)
    with_models = {size: bench.with_models(size) for size in shown}
    for name in bench.compared:
        cells = []
        for size in shown:
            has_model = bench.wide(size, "model")[name].eq(True) & (name in with_models[size])
            for column in ("fit_cpu_seconds", "predict_cpu_seconds"):
                cells.append(short(bench.wide(size, column)[name].where(has_model).median()))
        memory = bench.wide("64 kB", "fit_mb")[name].median()
        memory = memory if name in with_models["64 kB"] else np.nan
        lines.append([title_of(name), *cells, f"{memory:.0f}" if np.isfinite(memory) else MISSING])
    header = [f"{what} {size}, s" for size in shown for what in ("fit", "predict")]
    return markdown(("system", *header, "memory of a 64 kB fit, MB"), lines)


# -- one size ------------------------------------------------------------------------------------


def at_size(bench: Benchmark, size: str) -> str:
    """Return all systems at one size."""
    wide, rank, lines = bench.wide(size), ranks(bench, size).mean(), []
    reference = LIGHTGBM_DEFAULTS.scores(bench)
    sizes, has_model = bench.wide(size, "bytes"), bench.wide(size, "model").eq(True)
    for name in sorted(bench.compared, key=lambda name: rank[name]):
        margin = margins(wide[name], reference)
        points, error = verdict(margin, False), verdict(margin, True)
        won = outcomes(bench, size, name)
        counts = ", ".join(str(int((won == sign).sum())) for sign in (1, 0, -1))
        lines.append(
            [
                *(title_of(name), f"{rank[name]:.2f}"),
                *(signed(points.mean) if points else MISSING, _worst(points, signed)),
                *(ratio(error.mean) if error else MISSING, _worst(error, ratio)),
                MISSING if name == OURS else counts,
                n_bytes(sizes[name].median()),
                str(int((~has_model[name]).sum())),
            ]
        )
    header = ("system", "mean rank", "points against LightGBM, mean", "worst", "RMSE ratio, mean")
    other = ("worst", "nysplus wins, ties, losses", "bytes, median", "tables without a model")
    return markdown((*header, *other), lines)


def _worst(found: Verdict | None, write: Callable[[float], str]) -> str:
    return MISSING if found is None else f"{write(found.worst)} ({marked(found.worst_table)})"


def losses(bench: Benchmark) -> str:
    """Return the tables with the largest losses against the best other system of each size."""
    lines = []
    for size in LIMITED:
        for regression in (False, True):
            own = bench.some(lambda table, kind=regression: is_regression(table) == kind)  # type: ignore[misc]
            lines += _largest_losses(own, size, regression)
    header = ("size", "table", "nysplus", "best other", "score", "difference")
    return markdown((*header, "on rows without a twin"), lines)


def _largest_losses(bench: Benchmark, size: str, regression: bool) -> list[list[str]]:
    wide = bench.wide(size)
    others = wide.drop(columns=OURS)
    if others.empty:
        return []
    best = others.min(axis=1) if regression else others.max(axis=1)
    who = others.idxmin(axis=1) if regression else others.idxmax(axis=1)
    new, write = bench.wide(size, "new_score"), ratio if regression else percent
    lost = _loss(wide[OURS], best, regression)
    lines = []
    for table, loss in lost[lost > 0].sort_values(ascending=False).head(N_LOSSES).items():
        name = str(who[table])
        own = _loss(new.loc[table, OURS], new.loc[table, name], regression)
        lines.append(
            [
                *(size, marked(str(table)), write(wide.loc[table, OURS])),
                *(title_of(name), write(best[table])),
                *(_loss_text(value, regression) for value in (loss, own)),
            ]
        )
    return lines


def _loss(own: Any, best: Any, regression: bool) -> Any:
    """Return how far scores are behind the best, in points or as a share of the error."""
    return own / best - 1 if regression else best - own


def _loss_text(value: float, regression: bool) -> str:
    if not np.isfinite(value):
        return MISSING
    return f"{signed(100 * value, 1)} % of the RMSE" if regression else f"{signed(-value)} points"


def scores(bench: Benchmark, size: str, regression: bool) -> str:
    """Return the scores of all systems on each table at one size: mean and interval over seeds."""
    own = bench.some(lambda table: is_regression(table) == regression)
    rows = own.fits[own.fits["size"] == size]
    lines = []
    for table in own.tables:
        cells = []
        for name in own.compared:
            values = rows[(rows["table"] == table) & (rows["system"] == name)]["score"].dropna()
            decimals = 3 if regression else 2
            cells.append(interval(estimate(values), decimals) if len(values) else MISSING)
        lines.append([marked(table), *cells])
    return markdown(("table", *map(title_of, own.compared)), lines)


def sets(bench: Benchmark) -> str:
    """Return the rows and columns of the tables that are compared."""
    shapes = bench.fits[bench.fits["system"] == OURS].groupby("table").first()
    constant = bench.cells.xs((fits.UNLIMITED, CONSTANT), level=("size", "system"))["score"]
    lines = []
    for table in bench.tables:
        shape = shapes.loc[table]
        kind = "numbers" if is_regression(table) else "classes"
        write = ratio if is_regression(table) else percent
        columns = f"{shape['features']} ({shape['nominal']})"
        rows = (f"{shape['rows']:,}", f"{shape['test_rows']:,}")
        lines.append([marked(table), kind, *rows, columns, write(constant[table])])
    header = ("table", "target", "training rows", "test rows", "columns (nominal)")
    return markdown((*header, "score of a constant"), lines)


def headline(bench: Benchmark) -> str:
    """Return the main numbers as a list of sentences."""
    lines = []
    for opponent in (LIGHTGBM_DEFAULTS, BEST_OF_THREE):
        theirs = opponent.scores(bench)
        for size in ("16 kB", "64 kB") if len(theirs) else ():
            margin = margins(bench.wide(size)[OURS], theirs)
            points, error = verdict(margin, False), verdict(margin, True)
            if points is None or error is None:
                continue
            lines.append(
                f"- **{size} against {opponent.title}**: {signed(points.mean)} points in the mean "
                f"over {points.wins + points.ties + points.losses} tables with classes (median: "
                f"{signed(points.median)}, worst: {signed(points.worst)}, {points.worst_table}), "
                f"{ratio(error.mean)} of the RMSE over {error.wins + error.ties + error.losses} "
                f"tables with numbers (median: {ratio(error.median)}, worst: {ratio(error.worst)}, "
                f"{error.worst_table})."
            )
    mean = {size: ranks(bench, size).mean() for size in LIMITED[1:]}
    first = ", ".join(
        f"{rank[OURS]:.2f} at {size} (best other: {rank.drop(OURS).min():.2f}, "
        f"{title_of(str(rank.drop(OURS).idxmin()))})"
        for size, rank in mean.items()
        if len(rank) > 1
    )
    lines.append(f"- **Mean rank** among {len(bench.compared)} systems: {first}.")
    found, on_front = (
        pd.concat([not_behind(bench, size, scores(bench, size)) for size in LIMITED])
        for scores in OUR_MODELS.values()
    )
    lines.append(
        f"- **Unbeaten**: in {share(_unbeaten(found))} of the cells of a table and a size from "
        "0.25 to 64 kB, no other system is better by more than 0.2 points or 1 % of the RMSE "
        f"({share(_unbeaten(on_front))} with our best model of at most that size). Against one "
        f"other system, nysplus is not behind in {share(np.ravel(found))} of the cells on average "
        f"({share(np.ravel(on_front))})."
    )
    not_clearly = pd.concat([not_clearly_behind(bench, size) for size in LIMITED])
    lines.append(
        f"- **Not clearly beaten**: in {share(_unbeaten(not_clearly))} of these cells, the 95 % "
        "interval of no other system's lead over the splits lies beyond 0.2 points or 1 % of the "
        f"RMSE; against one other system, in {share(np.ravel(not_clearly))} on average."
    )
    return "\n".join(lines)
