"""Leave-one-out scores in closed form equal those of models that are fitted without the row."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification

from nysplus import NystroemClassifier
from nysplus._ridge import solvers
from nysplus._ridge.leave_one_out import LeaveOneOut
from nysplus._ridge.solvers import Direct, GramFirst, Iterative


@pytest.fixture(scope="module")
def noisy():
    return make_classification(1200, 6, n_informative=4, n_classes=3, flip_y=0.2, random_state=0)


@pytest.mark.parametrize(
    "way",
    [Direct(np.float64), GramFirst(polished=False), Iterative(np.float64)],
    ids=lambda way: way.name,
)
def test_left_out_scores_of_every_way(way, noisy, monkeypatch):
    """Compared with models that are fitted without the row, literally."""
    X, y = noisy[0][:300], noisy[1][:300]
    seen = []
    original = LeaveOneOut.scores
    monkeypatch.setattr(
        LeaveOneOut, "scores", lambda self, most: seen.append(original(self, most)) or seen[-1]
    )
    monkeypatch.setattr(solvers, "_ways", lambda task: [way, Direct(np.float64)])
    model = NystroemClassifier(selection=X[::15], gamma=0.1, alpha=0.1, random_state=0).fit(X, y)
    assert model.solver_ == way.name
    monkeypatch.undo()
    rows, scores = seen[0].rows[:20], seen[0].scores
    expected = []
    for row in rows:
        rest = np.arange(300) != row
        alone = clone(model).fit(X[rest], y[rest])
        expected.append(alone.decision_function(X[row : row + 1])[0])
    if isinstance(way, Iterative):  # leverages of a sketch are rough, but far better than none
        without = np.abs(model.decision_function(X[rows]) - expected).mean()
        assert np.abs(scores[:20] - expected).mean() < 0.5 * without
    else:
        np.testing.assert_allclose(scores[:20], expected, atol=1e-6)
