"""
Distill a random forest into two kilobytes.
===========================================

A random forest of some hundred kilobytes teaches a model of two kilobytes. The
student learns the probabilities of the forest, for the training rows and for
synthetic rows between them.
"""

# %%
# The teacher
# -----------
# Two half moons with noise, and a forest.
import pickle

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.inspection import DecisionBoundaryDisplay

from nysplus import distill

X, y = make_moons(400, noise=0.25, random_state=0)
X_test, y_test = make_moons(2000, noise=0.25, random_state=1)
forest = RandomForestClassifier(min_samples_leaf=5, random_state=0).fit(X, y)

# %%
# The student
# -----------
# One call; ``max_seconds`` keeps the example short.
student = distill(forest, X, budget="2kB", max_seconds=3, random_state=0)
agreement = (student.predict(X_test) == forest.predict(X_test)).mean()
print(f"forest:  {forest.score(X_test, y_test):.3f} in {len(pickle.dumps(forest)):,} bytes")
print(f"student: {student.score(X_test, y_test):.3f} in {student.model_bytes_:,} bytes")
print(f"equal predictions on {100 * agreement:.1f} % of the test rows")

# %%
# Probabilities side by side
# --------------------------
figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for ax, (title, model) in zip(axes, {"forest": forest, "student": student}.items(), strict=True):
    shown = DecisionBoundaryDisplay.from_estimator(
        *(model, X),
        response_method="predict_proba",
        class_of_interest=1,
        cmap="cividis",
        levels=[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0],
        ax=ax,
    )
    for number, marker in enumerate("o^"):
        rows = X[y == number]
        ax.scatter(*rows.T, s=12, marker=marker, edgecolors="black", facecolors="none")
    ax.set(title=title, xlabel="first feature")
axes[0].set_ylabel("second feature")
figure.colorbar(shown.surface_, ax=axes, label="probability of the second class")
plt.show()
