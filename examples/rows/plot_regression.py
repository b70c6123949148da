"""
Regression
==========

``NystroemRegressor`` takes the same parameters for values. Its landmarks are moved down the
gradient of the training error.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.metrics import PredictionErrorDisplay
from sklearn.model_selection import train_test_split

from nysplus import NystroemRegressor

# %%
# In one dimension: a noisy curve, and the landmarks, which need not lie among the rows.

rng = np.random.RandomState(0)
x = np.sort(rng.uniform(0, 10, 300))
z = np.sin(x) * np.exp(-0.15 * x) + 0.1 * rng.randn(300)
curve = NystroemRegressor(12, random_state=0).fit(x[:, None], z)
grid = np.linspace(0, 10, 400)

fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.plot(x, z, ".", color="#767676", markersize=4, label="training rows")
ax.plot(grid, curve.predict(grid[:, None]), color="#0072B2", linewidth=2, label="prediction")
at = curve.landmarks_[:, 0]
ax.plot(at, np.full(12, -0.9), "D", color="#D55E00", label="12 landmarks")
ax.set_xlabel("x", fontsize=13)
ax.set_ylabel("y", fontsize=13)
ax.legend(fontsize=12)

# %%
# With ten features, five of which are noise:

X, y = make_friedman1(2000, noise=1.0, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
models = {
    "linear": RidgeCV(),
    "gradient boosting": HistGradientBoostingRegressor(random_state=0),
    "100 landmarks": NystroemRegressor(100, random_state=0),
    "and a learned metric": NystroemRegressor(100, metric="diagonal", random_state=0),
}
for name, model in models.items():
    print(f"{name:22} R² {model.fit(X_train, y_train).score(X_test, y_test):.3f}")

# %%
# scikit-learn's displays take the models as they are.

fig, ax = plt.subplots(figsize=(6, 4.6), layout="constrained")
PredictionErrorDisplay.from_estimator(
    model, X_test, y_test, kind="actual_vs_predicted", ax=ax, scatter_kwargs={"s": 10}
)
ax.set(xticks=range(0, 31, 5), yticks=range(0, 31, 5))
ax.set_xlabel("predicted values", fontsize=13)
ax.set_ylabel("actual values", fontsize=13)
