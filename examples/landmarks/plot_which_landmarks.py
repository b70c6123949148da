"""
Which landmarks?
================

A model compares an input with a few *landmarks*. With two features they can be seen. Here are
twelve landmarks of three selectors, and the regions of the classes that follow from them.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from nysplus import NystroemClassifier
from nysplus.plots import LandmarkBoundaryDisplay

X, y = make_moons(600, noise=0.25, random_state=0)
X_train, X_test, y_train, y_test = X[:300], X[300:], y[:300], y[300:]

# %%
# ``"uniform"`` draws rows at random, as scikit-learn's ``Nystroem`` does. ``"negative-margin"``
# takes the rows on which a first model is most wrong, the rule of Al, Chanyaswad and Kung (2018).
# ``"auto"``, the default, makes centroids of the rows of each class.

selections = ["uniform", "negative-margin", "auto"]
fig, axes = plt.subplots(1, 3, figsize=(14, 5), layout="constrained", sharey=True)
for ax, selection in zip(axes, selections, strict=True):
    model = NystroemClassifier(12, selection=selection, gamma=2.0, random_state=0)
    model.fit(X_train, y_train)
    LandmarkBoundaryDisplay.from_estimator(model, X_train, y_train, ax=ax)
    accuracy = model.score(X_test, y_test)
    ax.set_title(f'"{selection}": {accuracy:.1%} of test rows', fontsize=13, pad=46)
for ax in axes[1:]:
    ax.set_ylabel("")

# %%
# One draw of landmarks proves little. Over 20 draws:

for selection in selections:
    scores = [
        NystroemClassifier(12, selection=selection, gamma=2.0, random_state=seed)
        .fit(X_train, y_train)
        .score(X_test, y_test)
        for seed in range(20)
    ]
    print(f"{selection:16} {min(scores):.1%} to {max(scores):.1%}")

# %%
# The results of all selectors on twelve datasets are on the page on landmark selection.
