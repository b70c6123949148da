"""Weigh the columns of a table where a budget has no room for all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nysplus._fit.plan import Plan
from nysplus._fit.table import Table
from nysplus._learning.refinement import MIN_ROWS
from nysplus._learning.table_setup import importances
from nysplus._learning.tables import TABLE_RULES, TableRules
from nysplus._ridge.feature_map import StandardMap
from nysplus.kernels import RBF
from nysplus.landmarks import Problem


def with_importance(plan: Plan, table: Table, rules: TableRules = TABLE_RULES) -> Table:
    """Return a table with the importance of its columns, if a budget has no room for all of them.

    Importances are those of a small model of all columns, trained on at most 5000 rows in about a
    second.

    Parameters
    ----------
    plan : Plan
    table : Table
    rules : TableRules, optional

    Notes
    -----
    Nothing is drawn from the random numbers of the fit. The rows that choose between candidates
    later are among the rows here: all candidates share the same importances.
    """
    rows = table.drawn
    if plan.budget is None or len(rows) < MIN_ROWS or table.has_room(plan.budget):
        return table
    numbers: Any = "thermometer" if table.encoder.numbers == "auto" else table.encoder.numbers
    encoding = table.encoding(numbers, rules.metric_bins)
    coded = replace(rows, X=encoding(rows))
    problem = Problem(coded.blocks(), RBF(1.0), StandardMap(), plan.alphas)
    return replace(table, importance=importances(problem, coded, encoding.code, 0, rules))
