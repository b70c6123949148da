"""Types that several rooms share."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.floating]

Rows = slice | npt.NDArray[np.intp]

Kind = Literal["classes", "values"]
