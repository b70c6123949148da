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
    """Return the number of models and the sizes that were fitted, a row a dataset."""
    fits = records.frame((row for row in rows if row.ok), Result)
    sizes = fits[~fits["method"].isin(FULL_METHODS)]
    table = fits.groupby("dataset", sort=False).agg(
        models=("n", "size"), trials=("trial", "nunique"), train=("n_train", "first")
    )
    table["landmarks"] = sizes.groupby("dataset")["n"].agg(lambda n: f"{min(n)} to {max(n)}")
    table = table.rename(index=dataset_title, columns={"train": "training rows"})
    return frame_markdown(table.rename_axis("data"), index=True)


def _outcomes(claims: Sequence[Claim]) -> str:
    """Return the number of claims with each outcome, a row a dataset."""
    names = [dataset_title(claim.dataset) if claim.dataset else "any data" for claim in claims]
    table = pd.crosstab(pd.Series(names, name="data"), [claim.verdict for claim in claims])
    table = table.reindex(dict.fromkeys(names)).reindex(columns=list(VERDICTS), fill_value=0)
    table.loc["all"] = table.sum()
    return frame_markdown(table, index=True)


def _claims(claims: Sequence[Claim]) -> str:
    rows = (
        [claim.where, claim.text, claim.subject, claim.paper, claim.measured, claim.verdict]
        for claim in claims
    )
    return markdown(("where", "claim", "on", "paper", "measured", "outcome"), rows)


PAGE = Page("results/paper.md", parts)
