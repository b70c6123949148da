"""
Handwritten digits in 16 kB
===========================

``budget`` sets the size of the model. The number of landmarks and the bits of their numbers are
chosen during the fit.
"""

import pickle

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from nysplus import NystroemClassifier
from nysplus.plots import ConfusionSharesDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
model = NystroemClassifier(budget="16kB", random_state=0).fit(X_train, y_train)
print(f"{model.score(X_test, y_test):.1%} in {model.model_bytes_ / 1024:.1f} kB")

# %%
# A support vector machine with its defaults, for comparison:

svc = SVC().fit(X_train, y_train)
print(f"{svc.score(X_test, y_test):.1%} in {len(pickle.dumps(svc)) / 1024:.0f} kB")

# %%
# ``fit_report`` tells what the fit compared, what it chose and why, and where the bytes are.

print(model.fit_report())

# %%
# Which digits are taken for which others?

ConfusionSharesDisplay.from_estimator(model, X_test, y_test)
