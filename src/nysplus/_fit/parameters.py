"""Types of the parameters of the estimators."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from nysplus._ridge.feature_map import Approximation
from nysplus._runtime.checkpoint import Checkpoint
from nysplus._tuning.metric import LearnedMetric
from nysplus.kernels import Kernel
from nysplus.landmarks import LandmarkSelector

KernelLike = str | Kernel | Callable[..., float]
GammaLike = float | str | None
SelectionLike = str | LandmarkSelector | npt.ArrayLike
ApproximationLike = str | Approximation
AlphaLike = float | str | Sequence[float]
MetricLike = str | int | LearnedMetric | None
CheckpointLike = str | os.PathLike[str] | Checkpoint
RandomStateLike = int | np.random.RandomState | None
