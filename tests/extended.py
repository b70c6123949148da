"""Ridge problems solved in extended precision, as the truth that fits are compared with.

Every number is an mpmath float of `DIGITS` digits, and rows are taken as the floats that they are.
The formulas are those of tests/reference.py. With 80 digits, normal equations are good enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from mpmath import mp, mpf

DIGITS = 80
EPS = float(np.finfo(np.float64).eps)

_number = np.vectorize(mpf, otypes=[object])


def exact(array):
    """Return an array of floats as extended numbers of the same values."""
    array = np.asarray(array, dtype=np.float64)
    return _number(array) if array.size else array.astype(object)


def rounded(array):
    """Return extended numbers as float64."""
    return np.asarray(array).astype(np.float64)


# ---- kernels -------------------------------------------------------------------------------------


def _apply(function, D):
    return np.vectorize(function, otypes=[object])(D)


def _squares(X, Z):
    return ((X[:, None] - Z[None]) ** 2).sum(axis=2)


def _matern(X, Z, gamma, nu):
    s = _apply(mp.sqrt, 4 * mpf(nu) * mpf(gamma) * _squares(X, Z))
    shape = {0.5: 1, 1.5: 1 + s, 2.5: 1 + s + s**2 / 3}[nu]
    return shape * _apply(mp.exp, -s)


def _chi2(X, Z):
    def entry(a, b):
        return (a - b) ** 2 / (a + b) if a + b > 0 else mpf(0)

    return np.vectorize(entry, otypes=[object])(X[:, None], Z[None]).sum(axis=2)


def _cosine(X, Z):
    lengths = [_apply(mp.sqrt, (R**2).sum(axis=1)) for R in (X, Z)]
    return X @ Z.T / np.outer(*lengths)


KERNELS = {
    "rbf": lambda X, Z, gamma: _apply(mp.exp, -mpf(gamma) * _squares(X, Z)),
    "laplacian": lambda X, Z, gamma: _apply(
        mp.exp, -mpf(gamma) * abs(X[:, None] - Z[None]).sum(axis=2)
    ),
    "matern": _matern,
    "polynomial": lambda X, Z, gamma, degree: (mpf(gamma) * (X @ Z.T) + 1) ** degree,
    "linear": lambda X, Z: X @ Z.T,
    "cosine": _cosine,
    "chi2": lambda X, Z, gamma: _apply(mp.exp, -mpf(gamma) * _chi2(X, Z)),
    "additive_chi2": lambda X, Z: -_chi2(X, Z),
    "sigmoid": lambda X, Z, gamma: _apply(mp.tanh, mpf(gamma) * (X @ Z.T) + 1),
}
INDEFINITE = ("additive_chi2", "sigmoid")


# ---- problems ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """Rows, targets and landmarks of a fit.

    Attributes
    ----------
    kernel : str
        A key of `KERNELS`.
    params : dict
        Parameters of the kernel.
    condition : str
        What makes the problem difficult.
    X, Z, more : ndarray
        Rows, landmarks and rows to predict, of the type that is fitted.
    y : ndarray
        Class numbers, or values of shape (rows, L).
    weight : ndarray or None
        Sample weights.
    """

    seed: int
    kernel: str
    params: dict[str, Any]
    condition: str
    alpha: float
    X: Any
    Z: Any
    more: Any
    y: Any
    weight: Any

    @property
    def discrete(self):
        return self.y.ndim == 1

    @property
    def Y(self):
        """Coded targets, in float64."""
        if not self.discrete:
            return self.y
        classes = np.unique(self.y)
        if len(classes) == 2:
            return np.where(self.y == classes[1], 1.0, -1.0)[:, None]
        return np.where(self.y[:, None] == classes[None, :], 1.0, -1.0)

    @property
    def decided(self):
        """Whether no direction of the landmarks is close to the floor of those that count."""
        with mp.workdps(DIGITS):
            Z = exact(self.Z)
            B = KERNELS[self.kernel](Z, Z, **self.params)
            indefinite = self.kernel in INDEFINITE
            values = _eigenpairs(B)[0] if indefinite else np.array(_pivots(B)[0], dtype=object)
            floor = _floor(values if indefinite else np.diag(B))
            return not any(floor / 1000 < value < 1000 * floor for value in values)

    def solve(self):
        """Return the solution in extended precision."""
        with mp.workdps(DIGITS):
            return Truth.of(self)


@dataclass(frozen=True)
class Truth:
    """The exact solution of a problem.

    Attributes
    ----------
    K, K_more, B : ndarray
        Kernel values of rows, of rows to predict and of landmarks, against the landmarks.
    penalty : ndarray of shape (n, n)
        B, or its absolute value where the kernel is not positive semidefinite.
    A, b : ndarray
        Coefficients and intercepts.
    inverse : callable
        ``G ↦ T (TᵀST + α)⁻¹ TᵀG``, with the scatter S of K and the landmarks' whitening T.
    """

    problem: Problem
    K: Any
    K_more: Any
    B: Any
    penalty: Any
    inverse: Any
    A: Any
    b: Any

    @classmethod
    def of(cls, problem):
        fill, params = KERNELS[problem.kernel], problem.params
        X, Z, more = exact(problem.X), exact(problem.Z), exact(problem.more)
        K, K_more, B = (fill(R, Z, **params) for R in (X, more, Z))
        T, penalty = _span(B, problem.kernel)
        Y, weight = exact(problem.Y), _weights(problem)
        mean, target_mean = weight @ K / weight.sum(), weight @ Y / weight.sum()
        features = (K - mean) @ T
        scatter = (features * weight[:, None]).T @ features
        inverse = T @ _inverse(scatter + mpf(problem.alpha) * (T.T @ penalty @ T)) @ T.T
        A = inverse @ ((K - mean) * weight[:, None]).T @ (Y - target_mean)
        return cls(problem, K, K_more, B, penalty, inverse, A, target_mean - mean @ A)

    @cached_property
    def objective(self):
        return self.objective_of(self.A, self.b)

    def objective_of(self, A, b):
        """Return ``Σ w ‖kA + b − y‖² + α tr AᵀBA``."""
        errors = self.K @ A + b - exact(self.problem.Y)
        squares = (_weights(self.problem) @ errors**2).sum()
        return squares + mpf(self.problem.alpha) * (A * (self.penalty @ A)).sum()

    def gap(self, A, b):
        """Return how far the objective of a solution is above the minimum, relative to it."""
        with mp.workdps(DIGITS):
            return float(self.objective_of(exact(A), exact(b)) / self.objective - 1)

    @cached_property
    def scores(self):
        """Scores of the rows and of the rows to predict."""
        with mp.workdps(DIGITS):
            return rounded(np.vstack([self.K, self.K_more]) @ self.A + self.b)

    @cached_property
    def left_out(self):
        """Scores of the rows, each by the solution without one observation of it."""
        with mp.workdps(DIGITS):
            weight = _weights(self.problem)
            centred = self.K - weight @ self.K / weight.sum()
            squares = ((centred @ self.inverse) * centred).sum(axis=1)
            unit = np.minimum(weight, mpf(1))
            leverage = unit * (1 / weight.sum() + squares)
            Y = exact(self.problem.Y)
            return rounded(Y - (Y - self.K @ self.A - self.b) / (1 - leverage)[:, None])

    @cached_property
    def probabilities(self):
        """Probabilities of the classes of all rows, at the slope of the smallest log-loss."""
        with mp.workdps(30):
            return _softmax(_versus(exact(self.scores)), self._slope)

    @cached_property
    def _slope(self):
        F = exact(np.clip(_versus(self.left_out), -1, 1))
        codes = np.unique(self.problem.y, return_inverse=True)[1]
        weight = _weights(self.problem)
        share = 1 / (1 + sum(max(w, mpf(1)) for w in weight if w > 0))
        own = F[np.arange(len(F)), codes]
        target = (1 - share) * own + share * F.mean(axis=1)

        def derivative(t):
            expected = (_softmax(F, mp.exp(t)) * F).sum(axis=1)
            return weight @ (expected - target)

        low, high = mp.log(mpf("1e-3")), mp.log(mpf("1e6"))
        if derivative(low) >= 0:
            return mp.exp(low)
        if derivative(high) <= 0:
            return mp.exp(high)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if derivative(middle) > 0 else (middle, high)
        return mp.exp(low)


def _weights(problem):
    weight = np.ones(len(problem.X)) if problem.weight is None else problem.weight
    return exact(weight)


def _span(B, kernel):
    """Return a basis T of the coefficients that count, and the matrix of the penalty.

    Directions within rounding errors of float64 are left out (docs/background/numerics.md): their
    features would depend on the last digits of B.
    """
    if kernel in INDEFINITE:
        values, vectors = _eigenpairs(B)
        return vectors[:, values > _floor(values)], (vectors * values) @ vectors.T
    pivots, chosen = _pivots(B)
    kept = [j for pivot, j in zip(pivots, chosen, strict=True) if pivot > _floor(np.diag(B))]
    return exact(np.eye(len(B)))[:, kept], B


def _floor(values):
    return len(values) * EPS * max(values)


def _eigenpairs(B):
    """Return the absolute eigenvalues and the eigenvectors of a symmetric matrix."""
    values, vectors = mp.eigsy(mp.matrix(B.tolist()))
    return abs(np.array(list(values), dtype=object)), np.array(vectors.tolist(), dtype=object)


def _pivots(B):
    """Return the pivots of a Cholesky factorisation with complete pivoting, and their rows."""
    residual, pivots, chosen = B.copy(), [], []
    for _ in range(len(B)):
        j = max(set(range(len(B))) - set(chosen), key=lambda i: residual[i, i])
        pivots.append(residual[j, j])
        chosen.append(j)
        if pivots[-1] > 0:
            residual = residual - np.outer(residual[:, j], residual[j]) / residual[j, j]
    return pivots, chosen


def _inverse(M):
    return np.array(mp.inverse(mp.matrix(M.tolist())).tolist(), dtype=object).reshape(M.shape)


def _versus(scores):
    return np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores


def _softmax(F, slope):
    P = _apply(mp.exp, slope * (F - F.max(axis=1, keepdims=True)))
    return P / P.sum(axis=1, keepdims=True)


# ---- random problems -----------------------------------------------------------------------------

CONDITIONS = (
    *("plain", "repeated landmarks", "nearly repeated landmarks", "repeated rows"),
    *("far from the origin", "wide kernel", "narrow kernel", "dependent features"),
)
SHIFTED = ("rbf", "laplacian", "matern")


def random_problem(seed):
    """Draw a kernel, sizes, a condition, a ridge over ten decades, targets, weights and a type.

    Draws are repeated until float64 is enough to tell which landmarks depend on others.
    """
    rng = np.random.RandomState(seed)
    with mp.workdps(DIGITS):
        while True:
            problem = _draw(rng, seed)
            if problem.decided:
                return problem


def _draw(rng, seed):
    kernel = list(KERNELS)[seed % len(KERNELS)]
    condition = CONDITIONS[seed // len(KERNELS) % len(CONDITIONS)]
    dtype = np.float32 if rng.rand() < 0.5 else np.float64
    N, d, n = rng.randint(12, 61), rng.randint(1, 5), rng.randint(2, 13)
    rows = _rows(rng, N + 10, d, kernel, condition, dtype).astype(dtype)
    X, more = rows[:N], rows[N:]
    Z = _landmarks(rng, X, n, condition)
    params = _params(rng, kernel, condition, X)
    # in units of the kernel
    values = rounded(KERNELS[kernel](exact(Z), exact(Z), **params))
    alpha = abs(values).mean() * 10.0 ** rng.uniform(-8, 2)
    y = _targets(rng, (rows[:N] - rows.mean(axis=0)).astype(np.float64))
    weight = rng.choice([0.5, 1.0, 2.0, 7.25], N) if rng.rand() < 0.4 else None
    return Problem(seed, kernel, params, condition, float(alpha), X, Z, more, y, weight)


def _rows(rng, N, d, kernel, condition, dtype):
    if "chi2" in kernel:
        X = rng.gamma(1.0, size=(N, d)) * (rng.rand(N, d) < 0.8)
    else:
        X = rng.randn(N, d)
    if condition == "dependent features":
        X[:, -1] = X[:, 0]
    if condition == "repeated rows":
        X[: N // 2] = X[rng.randint(0, 3, N // 2)]
    if condition == "far from the origin":
        # other kernels than those of distances are defined by the origin
        most = 0.5 if kernel not in SHIFTED else 3.0 if dtype is np.float32 else 8.0
        X = X + 10.0 ** rng.uniform(0.0, most)
    return X


def _landmarks(rng, X, n, condition):
    Z = X[rng.choice(len(X), n, replace=False)]
    copies = rng.randint(0, n, n)
    if condition == "repeated landmarks":
        Z[n // 3 :] = Z[copies[n // 3 :] % max(n // 3, 1)]
    if condition == "nearly repeated landmarks":
        step = 10.0 ** rng.uniform(-12, -3)
        Z[n // 2 :] = Z[: n - n // 2] * (1 + step * rng.rand(n - n // 2, X.shape[1]))
    return Z.astype(X.dtype)


def _params(rng, kernel, condition, X):
    if kernel in ("linear", "cosine", "additive_chi2"):
        return {}
    exponent = {"wide kernel": rng.uniform(-6, -2), "narrow kernel": rng.uniform(1, 3)}
    gamma = 10.0 ** exponent.get(condition, rng.uniform(-1, 1)) / X.shape[1]
    if kernel in ("polynomial", "sigmoid"):
        gamma = min(gamma, 0.3)
    more = {"matern": ("nu", [0.5, 1.5, 2.5]), "polynomial": ("degree", [2, 3])}
    if kernel not in more:
        return {"gamma": float(gamma)}
    name, choices = more[kernel]
    return {"gamma": float(gamma), name: choices[rng.randint(len(choices))]}


def _targets(rng, X):
    outputs = rng.randint(1, 4)
    F = np.sin(2 * X @ rng.randn(X.shape[1], outputs) / X.std() + rng.randn(outputs))
    F += 10.0 ** rng.uniform(-3, 0) * rng.randn(*F.shape)
    if rng.rand() < 0.4:
        return F
    y = F.argmax(axis=1) if outputs > 1 else (F[:, 0] > 0).astype(int)
    y[: outputs + 1] = np.arange(outputs + 1) % max(outputs, 2)  # every class occurs
    return y
