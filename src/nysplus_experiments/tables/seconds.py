"""Seconds of fits on tables of about 5,000 training rows, one after the other.

Nothing else should run on the machine: all methods are measured in the same run.
"""

from __future__ import annotations

from functools import partial

from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.raw_tables import SYNTHETIC, available_tables
from nysplus_experiments.tables import ours, peers
from nysplus_experiments.tables.fits import (
    CAPPED,
    SEEDS,
    TableFit,
    in_single_threads,
    measure,
    plan,
)

FILE = "seconds.csv"
#: Tables of 3,500 to 7,000 training rows.
TABLES = (
    *("banana", "churn", "wall_robot", "waveform_40"),
    *("cpu_act", "kin8nm", "parkinsons", "puma32h", "seoul_bike"),
)
METHODS = {name: ours.METHODS[name] for name in ("64kB", "16kB", "4kB", "fast", "unrefined")} | {
    name: peers.METHODS[name] for name in (peers.LIGHTGBM, peers.XGBOOST, peers.CATBOOST)
}


def run(options: BenchOptions) -> None:
    """Measure seconds. Options of this step: seeds."""
    options.expect("seeds")
    tables = [SYNTHETIC] if options.smoke else available_tables(options.choose_datasets(TABLES))
    seeds = options.integers("seeds", SEEDS[:1])
    methods = {name: method for name, method in METHODS.items() if method.installed}
    options.measure(
        *(FILE, TableFit, plan(methods, tables, seeds, [CAPPED]), partial(measure, METHODS)),
        **in_single_threads(options) | {"any_machine": False},
    )
