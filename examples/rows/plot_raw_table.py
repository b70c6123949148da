"""
A raw table: categories, gaps and dates
=======================================

With ``encoder="auto"`` a table goes in as it is. The code of its columns is part of the model and
of its bytes.
"""

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import train_test_split

from nysplus import NystroemClassifier
from nysplus.plots import ReliabilityDisplay

# %%
# Deliveries. Bikes are slow with heavy parcels, everything is slow in the rush hour, and every
# tenth weight is missing.

rng = np.random.RandomState(0)
n = 4000
ordered = pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.randint(0, 365 * 86400, n), unit="s")
table = pd.DataFrame(
    {
        "weight": np.exp(1 + rng.randn(n)),
        "distance": 40 * rng.rand(n) ** 2,
        "vehicle": rng.choice(["bike", "van", "truck"], n, p=[0.5, 0.4, 0.1]),
        "ordered": ordered,
    }
)
rush = np.where((ordered.hour >= 16) & (ordered.hour < 19), 2.0, 1.0)
heavy = (table["vehicle"] == "bike") & (table["weight"] > 8)
hours = table["distance"] * rush / table["vehicle"].map({"bike": 12, "van": 25, "truck": 20})
table["late"] = np.where(hours + heavy + 0.2 * rng.randn(n) > 1, "yes", "no")
table.loc[rng.rand(n) < 0.1, "weight"] = np.nan
print(table.head())

# %%
# The target is a column of the table, named in ``fit`` and ``score``.

train, test = train_test_split(table, test_size=1000, random_state=0)
model = NystroemClassifier(encoder="auto", budget="4kB", random_state=0).fit(train, "late")
frequent = DummyClassifier().fit(train, train["late"]).score(test, test["late"])
print(f"{model.score(test, 'late'):.1%} in {model.model_bytes_} bytes")
print(f"{frequent:.1%} are in the more frequent class")

# %%
# Probabilities come with the model. Of the deliveries that it is 90 % sure of, nine in ten should
# be predicted correctly:

ReliabilityDisplay.from_estimator(model, test.drop(columns="late"), test["late"], n_groups=8)

# %%
# Columns are found by name, in any order. A vehicle that was never seen is no error.

new = test[["vehicle", "ordered", "distance", "weight"]][:3].assign(
    vehicle=["bike", "van", "drone"]
)
print(pd.DataFrame(model.predict_proba(new), columns=model.classes_, index=new["vehicle"]).round(2))
