"""The record of Shapley values."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._typing import Float


@dataclass(frozen=True, eq=False)
class ShapleyValues:
    """Shapley values of rows: the part of each column in the difference from a background.

    For every row, ``base_values + values.sum(axis=1)`` is the explained score. Names and shapes of
    the attributes are those of ``shap.Explanation``; :meth:`to_shap` returns one, for the functions
    of ``shap.plots``.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns), or (n_rows, n_columns, n_outputs)
        Of `decision_function` for a classifier, of the predicted value for a regressor. There is a
        third axis for more than two classes, for labels, and for several outputs.
    base_values : ndarray of shape (n_rows,), or (n_rows, n_outputs)
        The mean score of the background, the same for all rows.
    data : ndarray of shape (n_rows, n_columns)
        The rows as numbers; categories are the positions of their levels, dates seconds since 1970,
        and NaN is a gap.
    feature_names : list of str
        Names of the columns that the model uses.
    exact : bool
        Whether the values are exact; otherwise they are means over random permutations.
    standard_error : ndarray of the shape of `values`, or None
        Of the permutations; None for exact values.
    display_data : ndarray of object of shape (n_rows, n_columns), or None
        The entries of a table: levels as texts, dates, "missing" for gaps; None if all columns are
        numbers.
    output_names : list of str or None
        Of the third axis of `values`; None without one.
    """

    values: Float
    base_values: Float
    data: Float
    feature_names: list[str]
    exact: bool
    standard_error: Float | None = None
    display_data: npt.NDArray[np.object_] | None = None
    output_names: list[str] | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of `values`."""
        return self.values.shape

    @property
    def shown_data(self) -> npt.NDArray[Any]:
        """The entries as users know them: `display_data`, or `data` where there is none."""
        return self.data if self.display_data is None else self.display_data

    def output(self, output: int | str | None = None) -> ShapleyValues:
        """Return the values of one output, without a third axis.

        Parameters
        ----------
        output : int or str, optional
            Position or name of the output. It may be left out where there is one output only.
        """
        if self.output_names is None:
            if output is not None:
                raise ValueError(f"output={output!r}: there is one output only. Leave it out.")
            return self
        names = self.output_names
        if output is None:
            raise ValueError(f"There are {len(names)} outputs. Pass output=…, one of {names[:10]}.")
        known = isinstance(output, str) and output in names
        if not known and not (isinstance(output, (int, np.integer)) and 0 <= output < len(names)):
            raise ValueError(
                f"output={output!r} is not known. Pass a position below {len(names)}, or a name of "
                f"{names[:10]}."
            )
        k = names.index(output) if isinstance(output, str) else int(output)
        error = self.standard_error
        return ShapleyValues(
            self.values[:, :, k],
            self.base_values[:, k],
            self.data,
            self.feature_names,
            self.exact,
            None if error is None else error[:, :, k],
            self.display_data,
        )

    def to_shap(self) -> Any:
        """Return a ``shap.Explanation``, for the plots of shap. Needs shap.

        Categories and dates are numbers in its ``data``, and readable in its ``display_data``.
        """
        try:
            shap: Any = import_module("shap")
        except ModuleNotFoundError as error:
            raise ImportError(
                "to_shap needs shap, which is not installed. Run pip install shap, or draw with "
                "the displays of nysplus.plots."
            ) from error
        return shap.Explanation(
            self.values,
            self.base_values,
            self.data,
            display_data=self.display_data,
            feature_names=self.feature_names,
            output_names=self.output_names,
            error_std=self.standard_error,
        )
