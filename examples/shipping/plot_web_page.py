"""
A page that runs the model
==========================

``to_html`` writes one file that computes predictions in the browser, without a server: to show a
model to others, or to try what it does with rows that are not in the data.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from nysplus import NystroemClassifier
from nysplus.export import to_html

X, y = load_wine(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
model = NystroemClassifier(30, encoder="auto", random_state=0).fit(X_train, y_train)
print(f"{model.score(X_test, y_test):.1%} of the test rows, {model.model_bytes_} bytes")

# %%
# A slider for each column, the probabilities of the classes, the prediction set, the contributions
# of the columns and the landmarks that contribute most. ``examples`` are rows to start from, and
# ``explain`` has typical rows that the contributions are compared with.

path = Path(tempfile.mkdtemp()) / "wine.html"
to_html(model, path, title="Three kinds of wine", examples=X_test[:5], explain=X_train[:20])
print(f"{path.stat().st_size / 1024:.0f} kB, to be opened in any browser")

# %%
# Moving one slider on the page does what these lines do: change one column of a row, and predict
# again.

row = X_test.iloc[[model.predict_proba(X_test).max(axis=1).argmin()]]  # the least certain one
lowest, highest = X["proline"].min(), X["proline"].max()
values = [lowest + (highest - lowest) * i / 100 for i in range(101)]
probabilities = model.predict_proba(row.loc[row.index.repeat(101)].assign(proline=values))

fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
styles = [("#0072B2", "-"), ("#D55E00", "--"), ("#009E73", "-.")]
for j, (color, style) in enumerate(styles):
    ax.plot(values, probabilities[:, j], style, color=color, label=f"class {j}", linewidth=2)
ax.axvline(row["proline"].item(), color="#767676", linewidth=1, label="as measured")
ax.set_xlabel("proline", fontsize=13)
ax.set_ylabel("probability", fontsize=13)
ax.legend(fontsize=12)
