"""The evaluator in JavaScript: the same outputs as in Python, for every kind of model."""

from __future__ import annotations

import json

import numpy as np
import pytest
from browser import needs_node, node_outputs, run_node
from factories import frame_of_all_kinds
from web_models import KINDS, TRAIN, case

from nysplus import NystroemClassifier
from nysplus.export import to_json

pytestmark = needs_node


def agree(found, case):
    """Compare the outputs of JavaScript with those of Python."""
    expected = case.scores
    largest = np.abs(expected).max()
    scores = np.array(found["scores"])
    np.testing.assert_allclose(scores, expected, rtol=0, atol=case.tolerance * largest)
    if case.labels is None or case.labels.dtype.kind == "f":
        shown = np.reshape(found["predictions"], expected.shape)
        np.testing.assert_allclose(shown, expected, rtol=0, atol=case.tolerance * largest)
    else:
        # a class is decided unless rounding may change the order of scores
        scored = np.sort(expected if expected.shape[1] > 1 else np.c_[-expected, expected])
        decided = scored[:, -1] - scored[:, -2] > 2 * case.tolerance * largest
        if case.labels.ndim == 2:
            decided = (np.abs(expected) > case.tolerance * largest).all(axis=1)
        assert decided.mean() > 0.95
        assert (np.array(found["predictions"]) == case.labels)[decided].all()
    if case.probabilities is None:
        assert set(found["probabilities"]) == {None}
    else:
        np.testing.assert_allclose(found["probabilities"], case.probabilities, atol=1e-3)
    content = json.loads(to_json(case.model))
    assert np.shape(found["contributions"])[1:] == np.shape(content["dual_coef"])
    if "linear" not in content:
        total = np.sum(found["contributions"], axis=1) + content["intercept"]
        np.testing.assert_allclose(total, scores[: len(total)], atol=1e-9 * largest)


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_models(kind):
    made = case(kind)
    agree(node_outputs(to_json(made.model), made.raw), made)


def test_texts_dates_and_gaps_of_a_table():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame, y = frame_of_all_kinds()
    frame = frame.drop(columns=["id", "constant"])
    model = NystroemClassifier(20, encoder="auto", random_state=0).fit(frame, y)
    columns = [column.name for column in model._model.columns.schema.columns]
    rows = frame[columns].head(200).astype(object)
    rows["flag"] = rows["flag"].astype(str)
    rows["date"] = rows["date"].map(str, na_action="ignore")
    rows.loc[3, "colour"] = "unknown"
    cells = rows.mask(pd.isna(rows), None).values.tolist()
    code = f"const rows = {json.dumps(cells)}; const model = createModel({to_json(model)});"
    found = json.loads(run_node(code + "console.log(JSON.stringify(rows.map(model.scores)));"))
    frame.loc[3, "colour"] = "unknown"
    expected = model.decision_function(frame.head(200))
    np.testing.assert_allclose(np.array(found)[:, 0], expected, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "row", "message"),
    [
        ({"format": "other"}, [0, 0, 0], "not a model that nysplus.export.to_json wrote"),
        ({"format_version": 6}, [0, 0, 0], "format_version 6 is not known. Known are 1, 2, 3, 4"),
        ({"kernel": {"name": "new"}}, [0, 0, 0], 'The kernel "new" is not known. Known are add'),
        ({}, [0, 0], "The model takes 3 columns, and the row has 2."),
        ({}, None, "The model takes 3 columns, and the row has none."),
        ({}, [0, 0, None], "Column 2 is null, not a finite number."),
        ({}, [0, "1", 0], 'A feature cannot be "1".'),
    ],
    ids=str,
)
def test_errors(change, row, message):
    model = NystroemClassifier(5, random_state=0).fit(TRAIN.X, TRAIN.targets["binary"])
    content = json.loads(to_json(model)) | change
    call = f"createModel({json.dumps(content)}).scores({json.dumps(row)})"
    code = f"try {{ {call} }} catch (error) {{ console.log(error.message) }}"
    assert message in run_node(code)
