"""Slow, obviously right versions of everything: loops, dense matrices, literal definitions."""

from __future__ import annotations

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
