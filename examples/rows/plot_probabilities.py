"""
Probabilities and calibration
=============================

``predict_proba`` scales leave-one-out scores: it needs no cross-validation and always agrees with
``predict``. ``ReliabilityDisplay`` tells whether predictions with a probability of 90 % are right
in 90 % of cases.
"""

import time

import matplotlib.pyplot as plt
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_moons
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB

from nysplus import NystroemClassifier
from nysplus.plots import ReliabilityDisplay

X, y = make_moons(8000, noise=0.4, random_state=0)
X_train, X_test, y_train, y_test = X[:2000], X[2000:], y[:2000], y[2000:]

# %%
# A model with its own probabilities, the same model calibrated by cross-validation, and a naive
# Bayes classifier:

models = {
    "nysplus": NystroemClassifier(50, random_state=0),
    "CalibratedClassifierCV": CalibratedClassifierCV(NystroemClassifier(50, random_state=0), cv=5),
    "naive Bayes": GaussianNB(),
}
fig, axes = plt.subplots(1, 3, figsize=(13, 4.6), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    start = time.perf_counter()
    model.fit(X_train, y_train)
    seconds = time.perf_counter() - start
    ReliabilityDisplay.from_estimator(model, X_test, y_test, ax=ax)
    ax.set_title(name, fontsize=13)
    loss = log_loss(y_test, model.predict_proba(X_test))
    print(f"{name:24} log-loss {loss:.3f}, fitted in {seconds:.2f} s")
for ax in axes[1:]:
    ax.set_ylabel("")

# %%
# The probability of class 1 for all rows:

fig, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
probability = models["nysplus"].predict_proba(X)[:, 1]
colored = ax.scatter(X[:, 0], X[:, 1], c=probability, s=6, cmap="cividis", vmin=0, vmax=1)
ax.set_xlabel("first feature", fontsize=13)
ax.set_ylabel("second feature", fontsize=13)
fig.colorbar(colored, ax=ax, label="probability of class 1")
