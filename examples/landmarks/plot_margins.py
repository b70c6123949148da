"""
The margins of the paper's landmarks
====================================

Al, Chanyaswad and Kung (2018) select the rows with the most negative margins under a pilot model:
rows that it gets wrong, or nearly so. ``MarginDisplay`` shows the margins of all training rows
under the final model, and those of the selected rows.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from nysplus import NystroemClassifier
from nysplus.landmarks import NegativeMargin
from nysplus.plots import MarginDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, stratify=y, random_state=0)

# %%
# Rows drawn at random have margins like all others. Those of the paper's rule lie further to the
# left: they are the rows that are hard to classify.

fig, axes = plt.subplots(1, 2, figsize=(13, 5.4), layout="constrained", sharey=True)
for ax, selection in zip(axes, ["uniform", "negative-margin"], strict=True):
    model = NystroemClassifier(100, selection=selection, random_state=0).fit(X_train, y_train)
    MarginDisplay.from_estimator(model, X_train, y_train, ax=ax)
    accuracy = model.score(X_test, y_test)
    ax.set_title(f'"{selection}": {accuracy:.1%} of test rows', fontsize=13, pad=62)

# %%
# A selector is an object with parameters of its own. The pilot model of this one has more
# landmarks:

model = NystroemClassifier(100, selection=NegativeMargin(n_initial=200), random_state=0)
model.fit(X_train, y_train)
print(f"{model.score(X_test, y_test):.1%}; first rows selected: {model.landmark_indices_[:5]}")
