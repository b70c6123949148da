"""Models of version 0.1.0, which present ones are compared with."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from nysplus_experiments.harness.tables import MISSING, size

#: Medians of refined models of version 0.1.0, which stored numbers in int8, float16 and float32:
#: see the commits of results/kilobytes/kilobytes.csv up to 45d8035. Seconds are of the clock.
BEFORE = pd.read_csv(Path(__file__).with_name("before.csv"), dtype={"setting": str})
# A model is as accurate as another one if it is at most so many points more accurate.
CLOSE = 0.2


class Earlier(NamedTuple):
    """The accuracy of version 0.1.0 in the same budget, and its bytes for the same accuracy.

    ``low`` are the bytes of its largest model that is less accurate, ``high`` of its smallest one
    that is not; NaN if there is none. They are equal if the latter is as accurate.
    """

    accuracy: float
    low: float
    high: float

    def texts(self, n_bytes: float) -> list[str]:
        """Write the bytes that were needed, and the share of them that suffices now."""
        low, high = map(np.isfinite, (self.low, self.high))
        if self.low == self.high:
            return [size(self.high), f"{n_bytes / self.high:.2f}"]
        if low and high:
            shares = f"{n_bytes / self.high:.2f} to {n_bytes / self.low:.2f}"
            return [f"{size(self.low)} to {size(self.high)}", shares]
        if low:
            return [f"> {size(self.low)}", f"< {n_bytes / self.low:.2f}"]
        return [f"≤ {size(self.high)}" if high else MISSING, MISSING]


def frontier(dataset: str) -> pd.DataFrame:
    """Return the models of version 0.1.0 that are more accurate than all smaller ones."""
    own = BEFORE[BEFORE["dataset"] == dataset].sort_values("bytes", kind="stable")
    return own[~own["accuracy"].cummax().duplicated()]


def earlier(dataset: str, setting: str, reached: float) -> Earlier:
    """Compare an accuracy reached in a budget with the models of version 0.1.0."""
    same = (BEFORE["dataset"] == dataset) & (BEFORE["setting"] == setting)
    models = frontier(dataset)
    enough, less = models[models["accuracy"] >= reached], models[models["accuracy"] < reached]
    low, high = less["bytes"].max(), enough["bytes"].min()
    close = enough["accuracy"].min() <= reached + CLOSE
    return Earlier(BEFORE.loc[same, "accuracy"].median(), high if close else low, high)
