"""
Refinement: landmarks that are learned
======================================

With ``refine=True`` landmarks, coefficients and a linear map are trained by gradient descent.
Several settings are compared on held-out rows, and the learned model is kept only if it is better
there than the unrefined one.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from nysplus import NystroemClassifier
from nysplus.plots import RefinementDisplay

X, y = make_classification(
    n_samples=2000,
    n_features=20,
    n_informative=6,
    n_redundant=0,
    n_clusters_per_class=4,
    flip_y=0.02,
    shuffle=False,
    random_state=0,
)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

# %%
# Fourteen of the twenty features are noise, which a kernel of all features has to average out.
# The learned map leaves them behind.

plain = NystroemClassifier(20, random_state=0).fit(X_train, y_train)
model = NystroemClassifier(20, refine=True, random_state=0).fit(X_train, y_train)
print(f"selected landmarks: {plain.score(X_test, y_test):.1%}")
print(f"learned landmarks:  {model.score(X_test, y_test):.1%}, kept: {model.refined_}")

# %%
# The comparisons in their order; the circle is the model that was kept:

RefinementDisplay.from_estimator(model)

# %%
# The weights of the features in the learned map. Only the first six have to do with the classes:

weights = (model.projection_**2).sum(axis=1) ** 0.5
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.bar(range(20), weights, color=["#0072B2"] * 6 + ["#767676"] * 14)
ax.set_xticks(range(20))
ax.set_xlabel("feature", fontsize=13)
ax.set_ylabel("weight in the learned map", fontsize=13)
