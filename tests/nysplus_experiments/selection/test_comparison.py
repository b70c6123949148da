"""Statistics of rules that are compared in many cells, on numbers that can be checked by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from nysplus_experiments.selection import tables
from nysplus_experiments.selection.comparison import Cell, compare

# cells × rules × trials
VALUES = np.array(
    [
        [[90.0, 92.0], [88.0, 88.0], [80.0, 82.0]],
        [[70.0, 70.0], [75.0, 79.0], [60.0, 64.0]],
        [[50.0, 52.0], [51.0, 51.0], [51.0, 51.0]],
    ]
)
RULES = ("auto", "kmeans", "uniform")
CELLS = [("usps", 20), ("usps", 100), ("letter", 20), ("letter", 100)]


def _frame(observations):
    return pd.DataFrame(
        observations, columns=["dataset", "n", "width", "selector", "trial", "accuracy"]
    )


def _comparison(values=VALUES, rules=RULES):
    observations = [
        (*CELLS[c], "scale", rules[r], t, value) for (c, r, t), value in np.ndenumerate(values)
    ]
    return compare(_frame(observations), "selector")


def test_losses_ranks_and_gains():
    compared = _comparison()
    assert compared.rules == RULES
    np.testing.assert_array_equal(compared.values, VALUES)
    # best: auto (91), kmeans (77), all equal (51)
    np.testing.assert_allclose(compared.losses, [[0, 3, 10], [7, 0, 15], [0, 0, 0]])
    assert compared.ranked() == ["kmeans", "auto", "uniform"]
    assert compared.worst("uniform") == (15.0, Cell("usps", 100, "scale"))
    assert [compared.mean_rank(rule) for rule in RULES] == pytest.approx(
        [(1 + 2 + 2) / 3, (2 + 1 + 2) / 3, (3 + 3 + 2) / 3]
    )
    assert compared.mean("auto").mean == pytest.approx((91 + 70 + 51) / 3)
    # by trial: (10 + 10 − 1)/3 and (10 + 6 + 1)/3
    gain = compared.gain("auto", "uniform")
    assert gain.mean == pytest.approx(6)
    assert gain.high - gain.low == pytest.approx(2 * 12.7062047 / 3, rel=1e-6)
    assert compared.mean_loss("uniform").mean == pytest.approx(25 / 3)


def test_regret_chooses_on_other_trials():
    values = np.array([[[90.0, 80.0], [80.0, 90.0]]])  # each is best in one trial
    compared = _comparison(values, ("auto", "uniform"))
    assert compared.mean_loss("auto").mean == 0
    # trial 0 is compared with the best of trial 1, uniform: 80 − 90; and the other way round
    assert compared.mean_regret("auto").mean == pytest.approx((80 - 90 + 80 - 80) / 2)


def test_datasets_are_drawn_whole():
    compared = _comparison()
    found = compared.gain_over_datasets("auto", "uniform")
    # USPS alone: (10 + 8)/2; Letter alone: 0; a draw of both: the mean of their cells
    assert (found.low, found.high) == (0, 9)
    assert found.mean == pytest.approx(6)
    assert found.trials == 2
    alone = compared.where(lambda cell: cell.dataset == "usps")
    assert not alone.gain_over_datasets("auto", "uniform").has_interval


def test_clear_differences():
    rng = np.random.RandomState(0)
    noise = rng.normal(scale=0.1, size=(3, 2, 5))
    values = 80 + noise + np.array([[[1.0], [0]], [[-1.0], [0]], [[0], [0]]])
    compared = _comparison(values, ("auto", "uniform"))
    above, below = compared.clear("auto", "uniform")
    assert above == [compared.cells[0]]
    assert below == [compared.cells[1]]
    (line,) = tables.exceptions(compared).splitlines()[2:]
    assert line.startswith('| USPS | 100 | `"scale"` | `uniform` | ')


def test_an_incomplete_run_is_compared_where_it_is_complete():
    def fits(trial, sizes):
        return [("usps", n, "scale", rule, trial, 1.0) for n in sizes for rule in "ab"]

    observations = fits(0, (20, 100, 500))[:-1]  # one rule is missing in the largest cell
    observations += fits(1, (20,))
    compared = compare(_frame(observations), "selector")
    assert compared.cells == (Cell("usps", 20, "scale"), Cell("usps", 100, "scale"))
    assert compared.trials == (0,)
    complete = compare(_frame(observations + fits(1, (100,))), "selector")
    assert complete.trials == (0, 1)
    assert compare(_frame([]), "selector") is None
    single = [("usps", 20, "scale", "a", 0, 1.0), ("usps", 100, "scale", "b", 0, 1.0)]
    assert compare(_frame(single), "selector") is None


def test_times_are_ratios():
    # −log seconds: kmeans takes twice as long as uniform
    values = -np.log(np.array([[[2.0, 4.0], [1.0, 2.0]]]))
    lines = tables.seconds(_comparison(values, ("kmeans", "uniform"))).splitlines()
    assert lines[2] == "| `uniform` | 1.4 s |"
    assert lines[3] == "| `kmeans` | 2.00 [2.00, 2.00] |"
