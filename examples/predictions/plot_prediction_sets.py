"""
Prediction sets, intervals and novelty
======================================

A prediction alone does not tell how sure the model is. This example fits a classifier to
scikit-learn's digits, returns the *set* of classes that covers the true one for 99 % of the rows,
and finds rows that are no digits at all. A second model returns intervals for the diabetes data.
"""

# %%
# Sets of classes
# ---------------
# ``predict_set`` works right after ``fit``: it uses the leave-one-out scores of the training rows,
# so that no rows are held out. A clear digit has a set of one class, an ambiguous one several. If
# no class is as probable as true classes usually are, the set is empty.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import train_test_split

from nysplus import NystroemClassifier, NystroemRegressor

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
model = NystroemClassifier(30, random_state=0).fit(X_train, y_train)
sets = model.predict_set(X_test, confidence=0.99)
covered = sets[np.arange(len(y_test)), y_test].mean()
print(f"accuracy {model.score(X_test, y_test):.3f}, coverage of the sets {covered:.3f}")
print("rows by number of classes in the set:", np.bincount(sets.sum(axis=1)))

# %%
# The rows of the largest sets:

largest = np.argsort(-sets.sum(axis=1), kind="stable")[:5]
figure, axes = plt.subplots(1, 5, figsize=(8, 2.2))
for axis, row in zip(axes, largest, strict=True):
    axis.imshow(X_test[row].reshape(8, 8), cmap="gray_r")
    classes = ", ".join(map(str, model.classes_[sets[row]]))
    axis.set(title=f"{{{classes}}}\ntrue: {y_test[row]}", xticks=[], yticks=[])
figure.tight_layout()

# %%
# Exact coverage
# --------------
# Leave-one-out scores are slightly optimistic, because the landmarks were chosen with the labels.
# ``calibrate`` takes the bound from rows of its own. The coverage is then at least the confidence
# for rows of the same distribution, whatever the model.

half = len(y_test) // 2
model.calibrate(X_test[:half], y_test[:half])
sets = model.predict_set(X_test[half:], confidence=0.99)
print(f"coverage after calibrate: {sets[np.arange(len(sets)), y_test[half:]].mean():.3f}")

# %%
# Novelty
# -------
# A classifier assigns a class to anything. ``novelty`` tells how unlike the known rows a row is:
# .99 if it is farther from all landmarks than 99 % of them. ``predict_or_abstain`` masks the
# predictions of such rows.

noise = np.random.RandomState(0).permutation(X_test.ravel()).reshape(X_test.shape)
figure, axis = plt.subplots(figsize=(5, 3))
bins = np.linspace(0, 1, 21)
axis.hist(model.novelty(X_test[half:]), bins, label="digits", color="#0072B2")
axis.hist(model.novelty(noise[half:]), bins, label="shuffled pixels", color="#E69F00", alpha=0.8)
axis.set(xlabel="novelty", ylabel="rows")
axis.legend()
figure.tight_layout()
print(f"abstains from {model.predict_or_abstain(noise).mask.mean():.0%} of the shuffled rows")

# %%
# Intervals of values
# -------------------
# ``predict_interval`` of a regressor returns the lower and the upper end for each row.

X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
regressor = NystroemRegressor(20, random_state=0).fit(X_train, y_train)
low, high = regressor.predict_interval(X_test, confidence=0.9).T
order = np.argsort(regressor.predict(X_test))
figure, axis = plt.subplots(figsize=(6, 3))
axis.fill_between(np.arange(len(order)), low[order], high[order], alpha=0.3, label="90 % interval")
axis.plot(y_test[order], ".", color="black", label="true value")
axis.set(xlabel="test rows, by predicted value", ylabel="disease progression")
axis.legend()
figure.tight_layout()
print(f"coverage of the intervals: {((low <= y_test) & (y_test <= high)).mean():.3f}")
plt.show()
