"""Seconds of fits on twelve tables of all sizes with all their training rows, one after the other.

Nothing else should run on the machine: all methods are measured in the same run, in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.raw_tables import SYNTHETIC, available_tables
from nysplus_experiments.tables import ours, peers
from nysplus_experiments.tables.fits import ALL_ROWS, SEEDS, TableFit, in_single_threads, measure

FILE = "seconds.csv"
#: Of the tables of more than 5,000 and fewer than 50,000 rows, in the order of their rows and, if
#: equal, of their names, every second one. a9a is adult again, and left out.
TABLES = (
    *("wall_robot", "cpu_act", "puma32h", "artificial_characters", "mammography"),
    *("vehicle_coupon", "miami_housing", "elevators", "hr_job_change", "house_16h"),
    *("credit_default", "adult"),
)
METHODS = {name: ours.METHODS[name] for name in ("64kB", "fast", "unrefined")} | {
    name: peers.METHODS[name] for name in (peers.LIGHTGBM, peers.XGBOOST)
}


def plan(tables: Sequence[str], seeds: Sequence[int]) -> Iterator[tuple[str, str, str, int]]:
    """Yield all fits, one split after the other, the methods in turn, with all training rows."""
    for seed in seeds:
        for table in tables:
            for name, method in METHODS.items():
                if method.installed:
                    yield ALL_ROWS, table, name, seed


def run(options: BenchOptions) -> None:
    """Measure seconds. Options of this step: seeds."""
    options.expect("seeds")
    tables = [SYNTHETIC] if options.smoke else available_tables(options.choose_datasets(TABLES))
    tasks = plan(tables, options.integers("seeds", SEEDS[:1]))
    alone = in_single_threads(options) | {"any_machine": False}
    options.measure(FILE, TableFit, tasks, partial(measure, METHODS), **alone)
