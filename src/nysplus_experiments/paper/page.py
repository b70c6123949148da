"""Tables of docs/results/paper.md: models that were fitted, and the outcome of the claims."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from nysplus_experiments.harness import records
from nysplus_experiments.harness.pages import Page
from nysplus_experiments.harness.tables import frame_markdown, markdown
from nysplus_experiments.paper.claims import VERDICTS, Claim, evaluate
from nysplus_experiments.paper.results import Result, read_results
from nysplus_experiments.paper.runner import RESULTS_FILE
from nysplus_experiments.paper.runs import FULL_METHODS, dataset_title


def parts(results: Path) -> dict[str, str]:
    """Return the marked parts of the page."""
    rows = read_results(results / "paper" / RESULTS_FILE)
    claims = evaluate(rows)
    tested = [claim for claim in claims if claim.estimate is not None]
    return {"runs": _runs(rows), "outcomes": _outcomes(claims), "claims": _claims(tested)}


def _runs(rows: Sequence[Result]) -> str:
    """Return the number of models, sizes and trials, a row a dataset.

    A cell is a method with an n and an n_0. Full kernel machines are counted among the models only.
    """
    fits = records.frame((row for row in rows if row.ok), Result)
    table = fits.groupby("dataset", sort=False).agg(rows=("n_train", "first"), models=("n", "size"))
    sizes = fits[~fits["method"].isin(FULL_METHODS)]
    table["landmarks"] = sizes.groupby("dataset")["n"].agg(_span)
    cells = sizes.groupby(["dataset", "method", "n", "n_initial"], dropna=False)["trial"].nunique()
    by_dataset = cells.groupby("dataset")
    table["cells"] = by_dataset.size()
    table["with 30 trials"] = by_dataset.agg(lambda trials: (trials >= 30).sum())
    table["trials"] = by_dataset.agg(_span)
    table = table.rename(index=dataset_title, columns={"rows": "training rows"})
    return frame_markdown(table.rename_axis("data"), index=True)


def _span(values: pd.Series) -> str:
    return " to ".join(dict.fromkeys(map(str, (values.min(), values.max()))))


def _outcomes(claims: Sequence[Claim]) -> str:
    """Return the number of claims with each outcome, a row a dataset."""
    names = [dataset_title(claim.dataset) if claim.dataset else "any data" for claim in claims]
    table = pd.crosstab(pd.Series(names, name="data"), [claim.verdict for claim in claims])
    table = table.reindex(dict.fromkeys(names)).reindex(columns=list(VERDICTS), fill_value=0)
    table.loc["all"] = table.sum()
    return frame_markdown(table, index=True)


def _outcome(claim: Claim) -> str:
    return f"{claim.verdict}. {claim.outlook}" if claim.outlook else claim.verdict


def _claims(claims: Sequence[Claim]) -> str:
    rows = (
        [claim.where, claim.text, claim.subject, claim.paper, claim.measured, _outcome(claim)]
        for claim in claims
    )
    return markdown(("where", "claim", "on", "paper", "measured", "outcome"), rows)


PAGE = Page("results/paper.md", parts)
