"""Estimate the time and memory of a fit from trial fits to few rows, within a few seconds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state

from nysplus._bytes.budget import ModelShape, make_budget, most_landmarks
from nysplus._fit.growth import Growth
from nysplus._fit.model import Columns
from nysplus._fit.pipeline import fit_model
from nysplus._ridge.solvers import direct_bytes
from nysplus._rows.opening import open_rows
from nysplus._rows.slicing import MAX_BLOCK_ROWS
from nysplus._runtime.checkpoint import Journal
from nysplus._runtime.memory import working_bytes
from nysplus._runtime.progress import Advance, Progress
from nysplus._runtime.threads import thread_count
from nysplus._typing import Kind
from nysplus.encoding.frames import take_rows
from nysplus.encoding.image_encoder import ImageEncoder
from nysplus.encoding.parameter import make_encoder, table_encoder
from nysplus.landmarks import GivenLandmarks, make_selector

# Rows of the largest trial: more than any stage of a fit samples, so that beyond them only the
# passes over all rows take longer.
TRIAL_ROWS = 60_000
# Bytes of the rows of a trial, at most.
TRIAL_BYTES = 2e8
# Seconds of all trials together, and growth of the rows from one trial to the next.
TRIAL_SECONDS, GROWTH = 4.0, 6
# An estimate in the middle of an interval of this ratio is off by a factor of two at most.
MAX_RATIO = 4.0
# Order of the matrices that tell the speed of this machine.
SPEED_ORDER = 384


@dataclass(frozen=True)
class Cost:
    """Estimated cost of a fit on this machine.

    Attributes
    ----------
    seconds : float or None
        Computing time. Reading from disk overlaps with it, and dominates where it is slower. None
        if trials of a few seconds do not tell it within a factor of two.
    bytes : int
        Memory beside the rows themselves and the libraries.
    passes : int or None
        Passes over rows in memory. Files are also read once before, and once for each set of
        rows that is drawn from them. None if the number depends on the rows.
    reason : str or None
        Why `seconds` or `passes` is None.
    """

    seconds: float | None
    bytes: int
    passes: int | None
    reason: str | None = None

    def __str__(self) -> str:
        seconds = "unknown time" if self.seconds is None else f"{self.seconds:,.1f} s"
        passes = (
            f"{self.passes or 'an unknown number of'} {'pass' if self.passes == 1 else 'passes'}"
        )
        known = f"{seconds}, {self.bytes / 2**20:,.0f} MiB, {passes}"
        return known if self.reason is None else f"{known} ({self.reason})"


@dataclass(frozen=True)
class Trial:
    """A fit to some rows.

    Attributes
    ----------
    n_rows : int
    seconds : float
    pass_seconds : float
        Part of `seconds` in passes over all rows; the rest is work on samples and on landmarks.
    passes : int
    """

    n_rows: int
    seconds: float
    pass_seconds: float
    passes: int

    def interval(self, n_rows: int) -> tuple[float, float]:
        """Return the least and the largest number of seconds of the same fit to more rows.

        Passes take time in proportion to the rows. Samples may grow, up to `TRIAL_ROWS` rows.
        """
        passes = self.pass_seconds * n_rows / self.n_rows
        rest = self.seconds - self.pass_seconds
        growth = max(1.0, min(n_rows, TRIAL_ROWS) / self.n_rows)
        return rest + passes, rest * growth + passes


class _PassTimes(Progress):
    """Add up the time of passes over all rows."""

    def __init__(self, n_rows: int) -> None:
        super().__init__()
        self.seconds = 0.0
        self._n_rows = n_rows

    def aside(self) -> Progress:
        """Return the progress of work on a sample, whose time is not counted."""
        return Progress()

    @contextmanager
    def stage(self, name: str, n_rows: int | None, n_blocks: int | None) -> Iterator[Advance]:
        """Measure a pass."""
        start = time.perf_counter()
        yield lambda rows: None
        if n_rows == self._n_rows:
            self.seconds += time.perf_counter() - start


def estimate(estimator: Any, shape: tuple[int, int], rows: tuple[Any, Any]) -> Cost:
    """Fit `estimator` to small sets of rows of increasing size, and extrapolate the last time.

    Ends after about `TRIAL_SECONDS`; a trial that would take longer is not started.

    Parameters
    ----------
    estimator : estimator
        Not changed.
    shape : tuple of int
        Rows and features of the fit to be estimated.
    rows : tuple of arrays
        Typical X and y, any number of rows.
    """
    n_rows, n_features = shape
    n_columns = _n_columns(estimator, n_features)
    n = _n_landmarks(estimator, (n_rows, n_columns))
    n_bytes = _bytes(n, n_features, n_columns, n_rows)
    if getattr(estimator, "refine", False):
        return Cost(
            None, n_bytes, None, "refine trains more models, and longer, where held-out rows ask it"
        )
    if _grows(estimator):
        reason = (
            "n_components='auto' chooses the number of landmarks by held-out rows; the memory is "
            f"that of {n}, the largest number"
        )
        return Cost(None, n_bytes, None, reason)
    trials = _trials(estimator, shape, rows, n, n_columns)
    if not trials:
        limit = f"a trial fit with {n} landmarks would take more than {TRIAL_SECONDS:.0f} s"
        return Cost(None, n_bytes, None, limit)
    last, reasons = trials[-1], []
    least, most = last.interval(n_rows)
    seconds: float | None = float(np.sqrt(least * most))
    passes: int | None = last.passes
    reach = f"trial fits of {TRIAL_SECONDS:.0f} s reach {last.n_rows:,} rows"
    if most > MAX_RATIO * least:
        seconds = None
        reasons.append(f"{reach}, too few to tell the time")
    if last.n_rows < min(n_rows, TRIAL_ROWS):
        passes = None
        reasons.append(f"{reach}; more rows may need fewer passes, because samples replace them")
    return Cost(seconds, n_bytes, passes, ", and ".join(reasons) or None)


def _trials(
    estimator: Any, shape: tuple[int, int], rows: tuple[Any, Any], n: int, n_columns: int
) -> list[Trial]:
    """Fit to more and more rows, as long as the next fit is expected to end in time."""
    (n_rows, d), (X, y) = shape, rows
    first = min(n_rows, max(4 * n, 100))
    most = max(first, min(n_rows, TRIAL_ROWS, int(TRIAL_BYTES / (8 * d))))
    trials: list[Trial] = []
    count, left = first, TRIAL_SECONDS
    expected = 4 * count * n * (2 * n_columns + 2 * n) * _seconds_per_operation()
    while expected < left:
        take = np.arange(count) % len(y)  # few typical rows are repeated
        trials.append(_timed(estimator, take_rows(X, take), take_rows(y, take)))
        left -= trials[-1].seconds
        if count == most:
            break
        count = min(most, GROWTH * count)
        expected = _expected_seconds(trials, count)
    return trials


def _expected_seconds(trials: list[Trial], n_rows: int) -> float:
    """Return the time of a trial with more rows, from the line through the last two trials."""
    last = trials[-1]
    if len(trials) == 1:
        return last.seconds * n_rows / last.n_rows
    slope = (last.seconds - trials[-2].seconds) / (last.n_rows - trials[-2].n_rows)
    return last.seconds + max(slope, 0.0) * (n_rows - last.n_rows)


def _seconds_per_operation() -> float:
    """Return the time of one multiplication or addition in a product of matrices."""
    A = np.random.RandomState(0).standard_normal((SPEED_ORDER, SPEED_ORDER))
    times = []
    for _ in range(3):
        start = time.perf_counter()
        A @ A
        times.append(time.perf_counter() - start)
    return min(times) / (2.0 * SPEED_ORDER**3)


def _timed(estimator: Any, X: Any, y: Any) -> Trial:
    """Fit a copy of an estimator and measure its time."""
    model = clone(estimator)
    start = time.perf_counter()
    columns, progress = copy(model), _PassTimes(len(y))
    rng = check_random_state(model.random_state)
    with warnings.catch_warnings():
        # what is true of few rows, or of rows that are repeated, need not be true of all
        warnings.simplefilter("ignore", UserWarning)
        encoder = table_encoder(model.encoder)
        rows = open_rows(columns, X, y, None, model._target_spec(), encoder=encoder)
        plan = model._plan(rows)
        blocks, code = rows.open(progress, Journal())
        assert code is not None
        fitted = fit_model(plan, blocks, code, Columns.of(columns), rng)
    seconds = time.perf_counter() - start
    assert fitted.n_passes is not None
    return Trial(len(y), seconds, progress.seconds, fitted.n_passes)


def invented_rows(
    n_features: int, dtype: npt.DTypeLike, kind: Kind, n_outputs: int | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return normally distributed rows with classes or values that a kernel machine can learn."""
    rng = np.random.RandomState(0)
    n_rows = min(TRIAL_ROWS, max(int(TRIAL_BYTES / (8 * n_features)), 1))
    X = rng.standard_normal((n_rows, n_features))
    width = n_outputs or (2 if kind == "classes" else 1)
    directions = rng.standard_normal((n_features, width)) / np.sqrt(n_features)
    values = np.sin(2.0 * X @ directions)
    if kind == "values":
        return X.astype(dtype), values
    values += 0.5 * rng.standard_normal(values.shape)
    return X.astype(dtype), values.argmax(axis=1)


def _n_columns(estimator: Any, n_features: int) -> int:
    """Return the columns of landmarks: of images the cosines, not the pixels."""
    encoder = make_encoder(estimator.encoder)
    if not isinstance(encoder, ImageEncoder):
        return n_features
    budget = make_budget(estimator.budget)
    return encoder.code(n_features, None if budget is None else budget.n_bytes).n_columns


def _n_landmarks(estimator: Any, shape: tuple[int, int]) -> int:
    """Return the largest number of landmarks that the fit may have."""
    n_rows, n_features = shape
    budget = make_budget(estimator.budget)
    if budget is not None:
        model = ModelShape(n_features, 1)
        room = budget.landmarks(model, model.dtypes[0])
        return max(1, min(room, most_landmarks(n_rows)))
    selector = make_selector(estimator.selection)
    if isinstance(selector, GivenLandmarks):
        return int(selector.points.shape[0])
    if _grows(estimator):
        return Growth().largest(n_rows)
    return int(min(estimator.n_components, n_rows))


def _grows(estimator: Any) -> bool:
    """Return whether held-out rows choose the number of landmarks, and no budget limits it."""
    given = isinstance(make_selector(estimator.selection), GivenLandmarks)
    return bool(estimator.n_components == "auto" and estimator.budget is None and not given)


def _bytes(n: int, n_features: int, n_columns: int, n_rows: int) -> int:
    """Return the bytes of the n × n matrices and of blocks of rows with their kernel values.

    A block is held as given and as the kernel sees it.
    """
    row_bytes = 8 * (n_features + n_columns + 3 * n)
    blocks = thread_count() * min(n_rows, MAX_BLOCK_ROWS) * row_bytes
    return int(direct_bytes(n) + min(blocks, working_bytes()))
