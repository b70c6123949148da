"""
From an SVC to a few kilobytes
==============================

A fitted support vector machine is a model with many landmarks: its support vectors. ``from_svc``
imports it, and ``budget`` makes it small.
"""

import pickle

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from nysplus import from_svc
from nysplus.plots import BudgetCurveDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, train_size=600, stratify=y, random_state=0
)
svc = SVC(C=10).fit(X_train, y_train)
print(f"{len(svc.support_)} support vectors, {svc.score(X_test, y_test):.1%}")

# %%
# The imported model has the same support vectors. Its labels are those of the votes of ``SVC``,
# except where votes are close.

whole = from_svc(svc)
print(f"{(whole.predict(X_test) == svc.predict(X_test)).mean():.1%} of the labels are equal")

# %%
# Smaller models of its support vectors:

budgets = [512, "1kB", "4kB"]
small = [from_svc(svc, budget=budget, random_state=0) for budget in budgets]
sizes = [model.model_bytes_ for model in small]
accuracies = [model.score(X_test, y_test) for model in small]
for model, size, accuracy in zip(small, sizes, accuracies, strict=True):
    print(f"{size:>5} bytes: {accuracy:.1%} with {len(model.landmarks_)} landmarks")

# %%
display = BudgetCurveDisplay.from_points(sizes, accuracies, name="compressed")
display.ax_.axhline(100 * svc.score(X_test, y_test), color="#D55E00", linestyle="--", label="SVC")
display.ax_.set_ylabel("accuracy on test rows (%)")
display.ax_.legend(loc="lower right", fontsize=12)
print(f"the SVC takes {len(pickle.dumps(svc)) / 1024:.0f} kB")
