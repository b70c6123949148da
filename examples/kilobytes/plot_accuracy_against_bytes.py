"""
Accuracy against bytes
======================

How small may a model be? ``BudgetCurveDisplay`` fits one for each budget and scores it on
held-out rows.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from nysplus import NystroemClassifier
from nysplus.encoding import ImageEncoder
from nysplus.plots import BudgetCurveDisplay

X, y = load_digits(return_X_y=True)
budgets = ["1kB", "2kB", "4kB", "8kB"]

# %%
# Pixels as they are, and images as their first cosines, a fixed map that takes no bytes and
# leaves more of them for landmarks.

models = {
    "pixels": NystroemClassifier(random_state=0),
    "6 × 6 cosines": NystroemClassifier(encoder=ImageEncoder((8, 8), n_cosines=6), random_state=0),
}
curves = {}
for name, model in models.items():
    display = BudgetCurveDisplay.from_estimator(model, X, y, budgets, random_state=0, name=name)
    curves |= display.curves
    plt.close(display.figure_)
BudgetCurveDisplay(curves).plot()
