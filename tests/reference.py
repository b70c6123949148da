"""Slow, obviously right versions of everything: loops, dense matrices, literal definitions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import factorial
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist

EPS = np.finfo(np.float64).eps


# ---- kernels, entry by entry -------------------------------------------------------------------


def rbf(x, z, gamma):
    return np.exp(-gamma * sum((a - b) ** 2 for a, b in zip(x, z, strict=True)))


def laplacian(x, z, gamma):
    return np.exp(-gamma * sum(abs(a - b) for a, b in zip(x, z, strict=True)))


def matern(x, z, gamma, nu):
    length = 1 / np.sqrt(2 * gamma)
    r = np.sqrt(sum((a - b) ** 2 for a, b in zip(x, z, strict=True))) / length
    s = np.sqrt(2 * nu) * r
    return {0.5: 1.0, 1.5: 1 + s, 2.5: 1 + s + s**2 / 3}[nu] * np.exp(-s)


def polynomial(x, z, gamma, coef0, degree):
    return (gamma * np.dot(x, z) + coef0) ** degree


def sigmoid(x, z, gamma, coef0):
    return np.tanh(gamma * np.dot(x, z) + coef0)


def cosine(x, z):
    return np.dot(x, z) / (np.linalg.norm(x) * np.linalg.norm(z))


def additive_chi2(x, z):
    return -sum((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0)


def matrix(kernel, X, Z, **params):
    """Fill a kernel matrix by a double loop."""
    return np.array([[kernel(x, z, **params) for z in Z] for x in X])


def rbf_matrix(X, Z, gamma):
    """The RBF matrix from explicit differences: no cancellation."""
    return np.exp(-gamma * cdist(X, Z, "sqeuclidean"))


# ---- codes of tables, entry by entry -----------------------------------------------------------


def code_of(term, x):
    """Return the code columns of one raw number by a term, as a list."""
    return CODES[type(term).__name__](term, float(x))


def _linear(term, x):
    return [((term.fill if np.isnan(x) else x) - term.offset) * term.scale]


def _ramps(term, x):
    knots = [float(t) for t in term.knots]
    x = knots[term.gap] if np.isnan(x) else x
    bins = pairwise(knots)
    return [term.height * min(max((x - low) / (high - low), 0.0), 1.0) for low, high in bins]


def _curve(term, x):
    knots, values = [float(t) for t in term.knots], [float(v) for v in term.values]
    x = knots[term.gap] if np.isnan(x) else x
    if x <= knots[0]:
        return [values[0]]
    for k in range(1, len(knots)):
        if x <= knots[k]:
            share = (x - knots[k - 1]) / (knots[k] - knots[k - 1])
            return [values[k - 1] + share * (values[k] - values[k - 1])]
    return [values[-1]]


def _one_hot(term, x):
    hot = [1.0 if x == level else 0.0 for level in range(term.n_levels)]
    return hot + [1.0 if np.isnan(x) else 0.0] * term.gaps


def _lookup(term, x):
    n_levels = len(term.table) - 2
    if np.isnan(x):
        return [float(v) for v in term.table[n_levels + 1]]
    known = 0 <= x < n_levels
    return [float(v) for v in term.table[int(x) if known else n_levels]]


def _circle(term, x):
    if np.isnan(x):
        return [0.0, 0.0]
    angle = 2 * np.pi * (x - term.origin) / term.period
    return [np.cos(angle), np.sin(angle)]


def _missing(term, x):
    return [term.missing if np.isnan(x) else term.present]


CODES = {
    "Linear": _linear,
    "Ramps": _ramps,
    "Curve": _curve,
    "OneHot": _one_hot,
    "Lookup": _lookup,
    "Circle": _circle,
    "Missing": _missing,
}


def mean_targets(levels, y, weight, used, prior):
    """Return the mean target of each level over the rows `used`, in units of their spread.

    Each level has `prior` more rows with the mean of all. Levels are numbers; the result maps each
    of them to a number.
    """
    rows = np.flatnonzero(used)
    mean = sum(weight[i] * y[i] for i in rows) / sum(weight[i] for i in rows)
    mass = {level: sum(weight[i] for i in rows if levels[i] == level) for level in set(levels)}
    means = {
        level: (sum(weight[i] * y[i] for i in rows if levels[i] == level) + prior * mean)
        / (mass[level] + prior)
        for level in mass
    }
    squares = sum(mass[level] * (means[level] - mean) ** 2 for level in mass)
    spread = np.sqrt(squares / sum(mass.values()))
    return {level: (means[level] - mean) / (spread or 1.0) for level in means}


# ---- Nyström maps ------------------------------------------------------------------------------


def whitening(B, rank=None):
    """U Σ^{-1/2} of the `rank` leading eigenpairs above rounding error."""
    values, vectors = np.linalg.eigh((B + B.T) / 2)
    values, vectors = values[::-1], vectors[:, ::-1]
    keep = np.arange(len(B)) < (rank or len(B))
    keep &= values > len(B) * EPS * values.max()
    return vectors[:, keep] / np.sqrt(values[keep])


def ensemble_whitening(B, n_experts):
    """Block-diagonal whitening of every m-th landmark, weight 1/m each."""
    n = len(B)
    blocks = []
    for i in range(n_experts):
        group = np.arange(i, n, n_experts)
        W = whitening(B[np.ix_(group, group)]) / np.sqrt(n_experts)
        column = np.zeros((n, W.shape[1]))
        column[group] = W
        blocks.append(column)
    return np.hstack(blocks)


# ---- ridge regression --------------------------------------------------------------------------


def ridge(features, Y, alpha, weight=None):
    """min Σ w‖φW + b − y‖² + α‖W‖², α > 0, by QR of the centred rows over the penalty."""
    weight = np.ones(len(features)) if weight is None else weight
    mean, target_mean = np.average(features, 0, weight), np.average(Y, 0, weight)
    root = np.sqrt(weight)[:, None]
    k = features.shape[1]
    rows = np.vstack([root * (features - mean), np.sqrt(alpha) * np.eye(k)])
    targets = np.vstack([root * (Y - target_mean), np.zeros((k, Y.shape[1]))])
    Q, R = np.linalg.qr(rows)
    W = solve_triangular(R, Q.T @ targets)
    return W, target_mean - mean @ W


def objective(features, Y, W, b, alpha):
    return ((features @ W + b - Y) ** 2).sum() + alpha * (W**2).sum()


def leave_one_out(features, Y, alpha, weight=None):
    """Literally: leave a row out, fit, predict it."""
    weight = np.ones(len(features)) if weight is None else weight
    scores = np.empty_like(Y)
    for i in range(len(features)):
        rest = weight.copy()
        rest[i] = 0.0
        W, b = ridge(features, Y, alpha, rest)
        scores[i] = features[i] @ W + b
    return scores


def kernel_ridge(K, Y, alpha):
    """Kernel ridge regression with an unpenalised intercept, from its optimality conditions."""
    n = len(K)
    system = np.block(
        [[K + alpha * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]]
    )
    solution = np.linalg.solve(system, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return solution[:-1], solution[-1]


def one_vs_rest(y):
    classes = np.unique(y)
    if len(classes) == 2:
        return np.where(y == classes[1], 1.0, -1.0)[:, None]
    return np.where(y[:, None] == classes[None, :], 1.0, -1.0)


# ---- Algorithm 1 -------------------------------------------------------------------------------


def algorithm_1(X, y, gamma, alpha, first_rows, n_final):
    """Steps 1 to 4, literally; returns the set of the selected rows."""
    Z = X[first_rows]
    features = rbf_matrix(X, Z, gamma) @ whitening(rbf_matrix(Z, Z, gamma))
    classes = np.unique(y)
    negative_margins = np.empty(len(X))
    for c in classes:
        target = np.where(y == c, 1.0, -1.0)[:, None]
        W, b = ridge(features, target, alpha)
        own = y == c
        negative_margins[own] = -(features[own] @ W + b)[:, 0]
    return set(np.argsort(-negative_margins, kind="stable")[:n_final].tolist())


# ---- landmarks from the kernel matrix -----------------------------------------------------------


def pivots(K, n, weight, rng=None):
    """Pivots by weight times residual, drawn with `rng`, else the largest; K in full each time."""
    residual, chosen = K.astype(np.float64), []
    for _ in range(n):
        score = weight * np.maximum(np.diag(residual), 0.0)
        score[chosen] = 0.0
        j = score.argmax() if rng is None else rng.choice(len(K), p=score / score.sum())
        chosen.append(int(j))
        residual = residual - np.outer(residual[:, j], residual[j]) / residual[j, j]
    return chosen


def pivot_probability(K, chosen, weight):
    """The probability that random pivots are these, in this order."""
    residual, probability = K.astype(np.float64), 1.0
    for j in chosen:
        score = weight * np.diag(residual)
        probability *= score[j] / score.sum()
        residual = residual - np.outer(residual[:, j], residual[j]) / residual[j, j]
    return probability


def trace_error(K, chosen):
    """Trace of ``K − K̂``, the Nyström approximation from some rows, relative to that of K."""
    T = K[:, chosen] @ whitening(K[np.ix_(chosen, chosen)])
    return 1 - (T**2).sum() / np.trace(K)


def farthest(X, n, weight, first):
    """Farthest-point traversal by weight times squared distance, from a given row."""
    chosen = [first]
    while len(chosen) < n:
        nearest = cdist(X, X[chosen], "sqeuclidean").min(axis=1)
        chosen.append(int((weight * nearest).argmax()))
    return chosen


def leverage(K, alpha):
    """Ridge leverage scores: the diagonal of ``K (K + αI)⁻¹``."""
    return np.diag(np.linalg.solve(K + alpha * np.eye(len(K)), K))


# ---- random problems: tests/test_solvers.py, benchmarks/sweep.py -------------------------------


def _matern_matrix(X, Z, gamma):
    s = np.sqrt(6 * gamma) * cdist(X, Z)
    return (1 + s) * np.exp(-s)


def _cosine_matrix(X, Z, gamma):
    return 1 - cdist(X, Z, "cosine")


# By the names of the estimators' parameter `kernel`, with the default coef0, degree and nu.
KERNEL_MATRICES = {
    "rbf": rbf_matrix,
    "laplacian": lambda X, Z, gamma: np.exp(-gamma * cdist(X, Z, "cityblock")),
    "matern": _matern_matrix,
    "polynomial": lambda X, Z, gamma: (gamma * X @ Z.T + 1) ** 3,
    "cosine": _cosine_matrix,
    "linear": lambda X, Z, gamma: X @ Z.T,
    "sigmoid": lambda X, Z, gamma: np.tanh(gamma * X @ Z.T + 1),
}


@dataclass(frozen=True)
class Problem:
    """A ridge problem on uniform landmarks, and how to solve it densely in float64.

    Attributes
    ----------
    seed : int
        What it was drawn from, and the seed of its landmarks.
    X : ndarray of shape (rows, d)
        Of the type that is to be fitted.
    y : ndarray
        Class numbers, or values of shape (rows, L).
    """

    seed: int
    kernel: str
    gamma: float
    alpha: float
    n: int
    X: Any
    y: Any

    @property
    def discrete(self):
        return self.y.ndim == 1

    @property
    def Y(self):
        """Coded targets."""
        return one_vs_rest(self.y) if self.discrete else self.y

    def dense(self, Z):
        """Return the dense solution on the landmarks Z."""
        X, Z = self.X.astype(np.float64), np.asarray(Z, dtype=np.float64)
        fill = KERNEL_MATRICES[self.kernel]
        K, B = fill(X, Z, self.gamma), fill(Z, Z, self.gamma)
        values, vectors = np.linalg.eigh((B + B.T) / 2)
        if self.kernel == "sigmoid":  # negative eigenvalues count by their size
            values = np.abs(values)
            B = (vectors * values) @ vectors.T
        kept = values > len(B) * EPS * values.max()
        T = vectors[:, kept] / np.sqrt(values[kept])
        features = K @ T
        W, b = ridge(features, self.Y, self.alpha)
        A = T @ W
        attained = ((K @ A + b - self.Y) ** 2).sum() + self.alpha * (A * (B @ A)).sum()
        scatter = np.linalg.svd(features - features.mean(0), compute_uv=False) ** 2
        conditions = (
            (scatter.max(initial=0.0) + self.alpha) / (scatter.min(initial=np.inf) + self.alpha),
            values[kept].max(initial=0.0) / values[kept].min(initial=np.inf),
        )
        return DenseSolution(
            K=K,
            B=B,
            Y=self.Y,
            alpha=self.alpha,
            scores=features @ W + b,
            objective=objective(features, self.Y, W, b, self.alpha),
            attained=attained,
            full_rank=bool(kept.all()),
            well_posed=bool(kept.all() and max(conditions) < 1e10),
        )


@dataclass(frozen=True)
class DenseSolution:
    """The scores and the objective that a fit is to reach.

    Attributes
    ----------
    objective, attained : float
        As computed from the features, and from the coefficients of the kernel that they collapse
        to. Both are the minimum; where they differ, this solution has no more digits than that.
    full_rank : bool
        Whether all directions of the landmarks count. Where they do not, which ones do is up to
        rounding, and another fit may span more and reach less.
    well_posed : bool
        Whether the solution is determined to enough digits for scores to be compared.
    """

    K: Any
    B: Any
    Y: Any
    alpha: float
    scores: Any
    objective: float
    attained: float
    full_rank: bool
    well_posed: bool

    def gap(self, A, b):
        """Return how far ``‖KA + b − Y‖² + α tr AᵀBA`` is above the minimum, relative to it."""
        A = A.astype(np.float64)
        squares = ((self.K @ A + b - self.Y) ** 2).sum()
        value = squares + self.alpha * (A * (self.B @ A)).sum()
        return value / max(self.objective, self.attained) - 1

    @property
    def error(self):
        """Relative rounding error of the dense solution itself."""
        return abs(self.attained / self.objective - 1)


def random_problem(seed):
    """Draw sizes, kernel, a width over eight decades around 1/d, a ridge over ten, the rows
    (some of them repeated), what they are fitted to, and the precision.
    """
    rng = np.random.RandomState(seed)
    kernel = list(KERNEL_MATRICES)[seed % 7] if seed % 3 else "rbf"
    N = int(50 * 60 ** rng.rand())
    d, n = rng.randint(1, 31), min(N, int(5 * 60 ** rng.rand()))
    gamma, alpha = 10.0 ** rng.uniform(-4, 4) / d, 10.0 ** rng.uniform(-8, 2)
    X = rng.randn(N, d) + rng.randint(0, 2) * 3.0
    if rng.rand() < 0.3:
        X[: N // 4] = X[N // 4 : 2 * (N // 4)]
    outputs = rng.randint(1, 5)
    F = np.sin(X @ rng.randn(d, outputs) / np.sqrt(d) + rng.randn(outputs))
    F += 10.0 ** rng.uniform(-4, 0) * rng.randn(N, outputs)
    if rng.rand() < 0.5:
        y = F
    else:
        y = F.argmax(axis=1)
        if len(np.unique(y)) == 1:
            y = (F[:, 0] > np.median(F[:, 0])).astype(int)
    dtype = np.float32 if rng.rand() < 0.5 else np.float64
    return Problem(seed, kernel, float(gamma), float(alpha), n, X.astype(dtype), y)


# ---- Shapley values ----------------------------------------------------------------------------


def shapley_values(score, x, background):
    """Return the Shapley values of all outputs at a row, summed over all coalitions of columns.

    `score` takes rows and returns an array of shape (rows, outputs).
    """
    d = len(x)
    masks = (np.arange(2**d)[:, None] >> np.arange(d)) & 1 == 1
    rows = np.where(masks, x, np.asarray(background)[:, None])
    value = score(rows.reshape(-1, d)).reshape(len(background), 2**d, -1).mean(axis=0)
    size = masks.sum(axis=1)
    values = np.zeros((d, value.shape[1]))
    for i in range(d):
        without = np.flatnonzero(~masks[:, i])
        weight = [factorial(s) * factorial(d - s - 1) / factorial(d) for s in size[without]]
        values[i] = weight @ (value[without + 2**i] - value[without])
    return values
