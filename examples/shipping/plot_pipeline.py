"""
A pipeline as one file
======================

The preprocessing of a pipeline is not lost when its model is shipped: ``save``, ``to_c``,
``to_json``, ``to_onnx`` and ``to_html`` take the pipeline, and fold its steps into the model.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nysplus
from nysplus import NystroemClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

# %%
# A pipeline, tuned as any other:

pipeline = make_pipeline(StandardScaler(), NystroemClassifier(50, random_state=0))
grid = {"nystroemclassifier__gamma": [0.003, 0.01, 0.03, 0.1, 0.3]}
search = GridSearchCV(pipeline, grid, cv=5).fit(X_train, y_train)
print(search.best_params_, f"{search.score(X_test, y_test):.1%}")

# %%
# One file, from which a model comes back that takes the table itself:

path = Path(tempfile.mkdtemp()) / "cancer.safetensors"
nysplus.save(search.best_estimator_, path)
model = nysplus.load(path)
print(f"{path.stat().st_size} bytes; a {type(model).__name__} of {model.n_features_in_} columns")
print(model.predict(X_test[:3]), search.predict(X_test[:3]))

# %%
# Its probabilities are those of the pipeline:

ours, theirs = model.predict_proba(X_test)[:, 1], search.predict_proba(X_test)[:, 1]
print(f"{np.abs(ours - theirs).max():.0e} largest difference")
fig, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
ax.plot([0, 1], [0, 1], color="#767676", linewidth=1)
ax.plot(theirs, ours, "o", color="#0072B2", alpha=0.5)
ax.set_xlabel("probability by the pipeline", fontsize=13)
ax.set_ylabel("probability by the loaded model", fontsize=13)
