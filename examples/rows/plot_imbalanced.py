"""
Rare classes
============

Where one class is rare, a model may be accurate and miss most of it. ``class_weight="balanced"``
makes errors in all classes count alike.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.metrics import PrecisionRecallDisplay, balanced_accuracy_score
from sklearn.model_selection import train_test_split

from nysplus import NystroemClassifier
from nysplus.plots import ConfusionSharesDisplay

X, y = make_classification(
    6000, 10, n_informative=5, n_clusters_per_class=3, weights=[0.95], flip_y=0.01, random_state=1
)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
models = {
    "all rows count alike": NystroemClassifier(100, random_state=0),
    "classes count alike": NystroemClassifier(100, class_weight="balanced", random_state=0),
}
for name, model in models.items():
    predicted = model.fit(X_train, y_train).predict(X_test)
    print(
        f"{name:22} accuracy {model.score(X_test, y_test):.1%}, "
        f"balanced accuracy {balanced_accuracy_score(y_test, predicted):.1%}"
    )

# %%
# Class 1 has one row in twenty. With balanced weights more of its rows are found, and more rows
# of class 0 are taken for it.

fig, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    ConfusionSharesDisplay.from_estimator(model, X_test, y_test, ax=ax)
    ax.set_title(name)

# %%
# The weights move the threshold. Whether they change the order of the rows as well is seen in
# precision and recall at all thresholds:

fig, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
ax.set_prop_cycle(color=["#0072B2", "#D55E00"], linestyle=["-", "--"])
for name, model in models.items():
    PrecisionRecallDisplay.from_estimator(model, X_test, y_test, name=name, ax=ax)
ax.set_xlabel("recall of class 1", fontsize=13)
ax.set_ylabel("precision of class 1", fontsize=13)
