"""
Rows that stay on disk
======================

``fit`` reads Parquet, CSV and memory maps block by block, and gives the model that the same rows
in memory would give.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import sklearn

from nysplus import NystroemClassifier

folder = Path(tempfile.mkdtemp())
rng = np.random.RandomState(0)
X = rng.standard_normal((50_000, 8))
y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
columns = {f"x{j}": X[:, j] for j in range(8)}
pa.parquet.write_table(pa.table(columns | {"label": y}), folder / "rows.parquet")
np.save(folder / "X.npy", X)

# %%
# The same model from an array, a memory map and a file. ``working_memory`` limits the memory of
# all blocks, in MiB.

sources = {
    "array": (X, y),
    "memory map": (np.load(folder / "X.npy", mmap_mode="r"), y),
    "Parquet": (folder / "rows.parquet", "label"),
}
model = NystroemClassifier(100, selection="kmeans", random_state=0)
scores = {}
with sklearn.config_context(working_memory=64):
    for name, (rows, target) in sources.items():
        scores[name] = model.fit(rows, target).decision_function(rows)
for name, score in scores.items():
    print(f"{name:12} {np.abs(score - scores['array']).max():.0e} largest difference of scores")
print(model.n_passes_, "passes over the file")

# %%
# ``estimate_cost`` tells time and memory in advance, from small fits on this machine.

sizes = np.array([10**5, 10**6, 10**7])
costs = [model.estimate_cost((int(n), 8)) for n in sizes]
for n, cost in zip(sizes, costs, strict=True):
    print(f"{n:>10,} rows: {cost}")

# %%
# Rows may also arrive over time. ``partial_fit`` keeps sums, so that the model is always that of
# all rows so far.

growing = NystroemClassifier(100, selection="kmeans", random_state=0)
seen, accuracy = [], []
for start in range(0, 20_000, 1000):
    rows = slice(start, start + 1000)
    growing.partial_fit(X[rows], y[rows], classes=[0, 1])
    seen.append(start + 1000)
    accuracy.append(100 * growing.score(X[40_000:], y[40_000:]))

fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.plot(seen, accuracy, "o-", color="#0072B2")
ax.xaxis.set_major_formatter("{x:,.0f}")
ax.set_xlabel("rows so far", fontsize=13)
ax.set_ylabel("accuracy on later rows, %", fontsize=13)
