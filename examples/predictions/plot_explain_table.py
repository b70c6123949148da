"""
Explain the predictions of a table
==================================

Which columns move a prediction, and by how much? For kernels that are products over features the
Shapley values are exact, and take milliseconds. Levels of a category, and the flag of a missing
entry, belong to the column that the user knows.
"""

# %%
# A table with a category and gaps
# --------------------------------
# The price of a used car, invented: age and mileage lower it, the make counts, and old cars of one
# make are collected.

import numpy as np
import pandas as pd

from nysplus import NystroemRegressor
from nysplus.explain import feature_importance, landmark_attribution, shapley_values
from nysplus.plots import ShapleyBarDisplay, ShapleyBeeswarmDisplay, ShapleyWaterfallDisplay

rng = np.random.RandomState(0)
n = 1500
cars = pd.DataFrame(
    {
        "age": rng.gamma(3.0, 4.0, n).round(1),
        "mileage": rng.gamma(4.0, 30.0, n).round(),
        "make": rng.choice(["Aurora", "Borealis", "Corvus"], n, p=[0.5, 0.3, 0.2]),
        "doors": rng.choice([3.0, 5.0], n),
    }
)
price = 20 * np.exp(-cars["age"] / 10) - 0.02 * cars["mileage"]
price += cars["make"].map({"Aurora": 0.0, "Borealis": 4.0, "Corvus": 1.0})
price += np.where((cars["make"] == "Corvus") & (cars["age"] > 15), 8.0, 0.0)
price += rng.normal(0.0, 0.7, n)
cars.loc[rng.rand(n) < 0.1, "mileage"] = np.nan

train, test = slice(0, 1000), slice(1000, n)
model = NystroemRegressor(60, encoder="auto", random_state=0)
model.fit(cars[train], price[train])
print(f"R² on test rows: {model.score(cars[test], price[test]):.3f}")

# %%
# Shapley values
# --------------
# The background stands for "not known": 100 rows of the training set. Values and base add up to
# the prediction, up to the float32 arithmetic of models that encode tables.

background = cars[train].sample(100, random_state=0)
explanation = shapley_values(model, cars[test], background)
total = explanation.base_values + explanation.values.sum(axis=1)
print("exact:", explanation.exact)
print(f"largest difference from predictions: {abs(total - model.predict(cars[test])).max():.1e}")

# %%
# One car: an old one that is collected
# -------------------------------------

old = (cars[test]["make"] == "Corvus") & (cars[test]["age"] > 18)
row = int(np.flatnonzero(old)[0])
ShapleyWaterfallDisplay.from_values(explanation, row=row)

# %%
# All cars
# --------

ShapleyBarDisplay.from_values(explanation)

# %%
ShapleyBeeswarmDisplay.from_values(explanation)

# %%
# The plots of shap take the same values: ``shap.plots.scatter(explanation.to_shap()[:, "age"])``.
#
# Which landmarks carry the prediction?
# -------------------------------------
# A prediction is a sum over landmarks. The row numbers are those of the closest training rows.

print(landmark_attribution(model, cars[test][row : row + 1], cars[train], price[train].round(1)))

# %%
# Which columns does the model need?
# ----------------------------------
# Permutation importance is the loss of R² when a column is shuffled; the intervals are of 95 %.

importance = feature_importance(model, cars[test], price[test], random_state=0)
for name, loss, (low, high) in zip(
    importance.feature_names, importance.permutation, importance.permutation_interval, strict=True
):
    print(f"{name:>8}: {loss:.3f}  [{low:.3f}, {high:.3f}]")
