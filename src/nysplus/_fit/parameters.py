"""Types of the parameters of the estimators, and advice about names that are no parameters."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec

import numpy as np
import numpy.typing as npt

from nysplus._ridge.feature_map import Approximation
from nysplus._runtime.checkpoint import Checkpoint
from nysplus._tuning.metric import LearnedMetric
from nysplus._validation import advice
from nysplus.encoding import ImageEncoder, TableEncoder
from nysplus.kernels import Kernel
from nysplus.landmarks import LandmarkSelector

KernelLike = str | Kernel | Callable[..., float]
GammaLike = float | str | None
SelectionLike = str | LandmarkSelector | npt.ArrayLike
ApproximationLike = str | Approximation
AlphaLike = float | str | Sequence[float]
EncoderLike = str | TableEncoder | ImageEncoder | None
MetricLike = str | int | LearnedMetric | None
CheckpointLike = str | os.PathLike[str] | Checkpoint
RandomStateLike = int | np.random.RandomState | None

Parameters = ParamSpec("Parameters")


def advising(init: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Let a constructor give advice about unknown keyword arguments. A decorator."""
    known = list(signature(init).parameters)

    @wraps(init)
    def checked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        for name in kwargs:
            if name not in known and (about := advice(name, known)):
                raise TypeError(
                    f"{init.__qualname__}() got an unexpected keyword argument {name!r}.{about}"
                )
        init(*args, **kwargs)

    return checked


class AdvisingMixin:
    """Let `set_params`, which grid searches call, give advice about unknown names."""

    def set_params(self, **params: Any) -> Any:
        """Set parameters, as :meth:`sklearn.base.BaseEstimator.set_params` does.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self
        """
        try:
            return super().set_params(**params)  # type: ignore[misc]  # of BaseEstimator
        except ValueError as error:
            known = self.get_params(deep=False)  # type: ignore[attr-defined]  # of BaseEstimator
            about = [advice(name, known) for name in params if name not in known]
            raise ValueError(f"{error}{''.join(about)}") from error
