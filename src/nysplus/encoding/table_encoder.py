"""The encoder of tables: a transformer, and the parameter `encoder` of the estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from nysplus._typing import Float
from nysplus._validation import check_count, check_table
from nysplus.encoding.code import Lookup, Ramps, TableCode, Term
from nysplus.encoding.fitting import CodeRules, NumberCode, fit_code
from nysplus.encoding.schema import TableColumn, TableSchema, warn_of_columns
from nysplus.encoding.summary import SchemaRules, TableSummary
from nysplus.encoding.target_statistics import Categories, fold_of

NUMBERS = ("auto", "thermometer", "standard", "rank_gauss")
# Bins of a thermometer code where no fit chooses them.
DEFAULT_BINS = 16
# Categories of more levels are worth a try with target statistics.
MANY_LEVELS = 8


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a table with numbers, categories, gaps and dates into code columns.

    Parameters
    ----------
    numbers : {"auto", "thermometer", "standard", "rank_gauss"}, default="auto"
        How numbers are coded. "thermometer": a column for each bin between quantiles, full below
        the number and empty above it; differences of such codes are differences of ranks.
        "standard": mean 0 and variance 1. "rank_gauss": ranks with the distribution of a
        Gaussian. "auto": chosen inside the fit of an estimator; "thermometer" for the transformer
        by itself.
    n_bins : int or "auto", default="auto"
        Bins of a thermometer code. "auto": chosen inside the fit of an estimator; 16 for the
        transformer by itself. With many numbers there are fewer, so that they have about 800
        columns together.
    categories : sequence of str or int, default=()
        Columns of numbers, by name or position, that are categories. Texts, truth values and the
        categorical types of pandas, polars and Arrow are categories in any case.
    target_statistics : bool or "auto", default="auto"
        Whether categories of more than 8 levels become the mean targets of their levels.
        Training rows get means to which they did not contribute. "auto": chosen inside the fit of
        an estimator; False for the transformer by itself.
    min_level_rows : int, default=10
        Levels of fewer rows are pooled with levels that are not known.
    max_levels : int, default=32
        Levels that have columns of their own, the most frequent ones.

    Attributes
    ----------
    schema_ : TableSchema
        The columns that are used, their kinds and levels, and those that are left out.
    code_ : TableCode
        The function from raw numbers to code columns.
    source_columns_ : ndarray of str
        The column of the table that each code column comes from.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    - *Gaps* in numbers are filled with the median, and a column says where they were. A gap in a
      category is a level of its own if there were gaps in training. If there were none, a gap in a
      "standard" number is its mean.
    - *Levels* that were not seen in training, or are pooled, have zeros in all columns of their
      category: they are equally far from all known levels.
    - *Dates* become their rank, and points on circles for season, weekday and hour, in UTC.
    - *Left out* are constants and, with a warning, columns that number the rows, free text and
      identifiers. A warning also names texts that are numbers or dates, which are levels otherwise.
    - *Refused* are infinity, columns of mixed types and other objects than numbers, texts, truth
      values, dates and durations, which become seconds.
    - Numbers beyond the range in training count as the end of the range, except "standard" ones.
    - Columns of frames are found by their names; further columns are ignored.

    Examples
    --------
    >>> import numpy as np
    >>> from nysplus.encoding import TableEncoder
    >>> X = np.array([[1.0], [2.0], [3.0], [np.nan]])
    >>> TableEncoder(numbers="standard").fit_transform(X).round(2)
    array([[-1.22,  0.  ],
           [ 0.  ,  0.  ],
           [ 1.22,  0.  ],
           [ 0.  ,  1.  ]], dtype=float32)
    """

    def __init__(
        self,
        numbers: str = "auto",
        n_bins: int | str = "auto",
        categories: Sequence[str | int] = (),
        target_statistics: bool | str = "auto",
        min_level_rows: int = 10,
        max_levels: int = 32,
    ) -> None:
        self.numbers = numbers
        self.n_bins = n_bins
        self.categories = categories
        self.target_statistics = target_statistics
        self.min_level_rows = min_level_rows
        self.max_levels = max_levels

    # -- parameters --------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise unless the parameters are known. Called before any work."""
        if self.numbers not in NUMBERS:
            raise ValueError(f"numbers={self.numbers!r} is not known. Allowed are {list(NUMBERS)}.")
        if self.n_bins != "auto":
            check_count("n_bins", self.n_bins)
        if self.target_statistics not in (True, False, "auto"):
            raise ValueError(
                f"target_statistics={self.target_statistics!r} must be True, False or 'auto'."
            )
        if isinstance(self.categories, str) or not np.iterable(self.categories):
            raise ValueError(
                f"categories={self.categories!r} must be a sequence of names or positions of "
                "columns, such as ['zip'] or [0, 3]."
            )
        check_count("min_level_rows", self.min_level_rows)
        check_count("max_levels", self.max_levels)

    @property
    def schema_rules(self) -> SchemaRules:
        """The rules for columns that the parameters amount to."""
        return SchemaRules(min_level_rows=self.min_level_rows)

    @property
    def code_rules(self) -> CodeRules:
        """The rules for codes that the parameters amount to."""
        return CodeRules(max_hot=self.max_levels)

    def summary(self, X: Any) -> TableSummary:
        """Return the summary of the columns of a table, or of some of its rows."""
        return TableSummary.of(X, self.categories, self.schema_rules)

    def schema(self, summary: TableSummary) -> TableSchema:
        """Return the schema of a table, and warn of columns that seem to be no features."""
        schema = TableSchema.of(summary, self.categories, self.schema_rules)
        warn_of_columns(schema)
        return schema

    def many_levels(self, schema: TableSchema) -> Categories:
        """Return the categories that target statistics are for."""
        found = [
            (i, len(column.levels))
            for i, column in enumerate(schema.columns)
            if len(column.levels) > MANY_LEVELS
        ]
        return Categories(tuple(i for i, _ in found), tuple(n for _, n in found))

    def code(
        self,
        raw: Float,
        schema: TableSchema,
        numbers: NumberCode,
        n_bins: int,
        lookups: Sequence[Lookup] = (),
    ) -> TableCode:
        """Return the code of raw numbers, with the rules of the parameters."""
        return fit_code(raw, schema, numbers, n_bins, lookups, self.code_rules)

    # -- the transformer ---------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Find knots, levels and, with ``target_statistics=True``, mean targets of levels.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            A frame of pandas or polars, or an Arrow table, in memory.
        y : array-like of shape (n_samples,), optional
            Needed for target statistics.

        Returns
        -------
        self
        """
        self._fit(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and return the code columns of the training rows.

        With target statistics these are not ``fit(X, y).transform(X)``: see the parameter.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional

        Returns
        -------
        ndarray of shape (n_samples, n_code_columns)
            float32.
        """
        raw, without = self._fit(X, y)
        code = self.code_(raw)
        folds = fold_of(np.arange(len(raw)))
        for fold, other in enumerate(without):
            code[folds == fold] = other(raw[folds == fold])
        return code

    def _fit(self, X: Any, y: Any) -> tuple[Float, list[TableCode]]:
        """Fit; return the raw numbers, and the codes without each fold, if these differ."""
        self.check()
        X = check_table(self, X, reset=True)
        summary = self.summary(X)
        schema = self.schema(summary)
        raw = schema.read(X)
        numbers: Any = "thermometer" if self.numbers == "auto" else self.numbers
        n_bins = DEFAULT_BINS if self.n_bins == "auto" else int(self.n_bins)
        lookups: list[Lookup] = []
        others: list[list[Lookup]] = []
        if self.target_statistics is True:
            Y = _coded(y, len(raw))
            many = self.many_levels(schema)
            if many.columns:
                sums = many.sums(raw, Y, np.ones(len(raw)), np.arange(len(raw)))
                lookups, others = many.lookups(sums)
        self.schema_ = schema
        self.code_ = self.code(raw, schema, numbers, n_bins, lookups)
        return raw, [self.code(raw, schema, numbers, n_bins, other) for other in others]

    def transform(self, X: Any) -> Any:
        """Return the code columns of rows.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            Columns of frames may come in any order.

        Returns
        -------
        ndarray of shape (n_samples, n_code_columns)
            float32.
        """
        check_is_fitted(self)
        return self.code_(self.schema_.read(check_table(self, X, reset=False)))

    @property
    def source_columns_(self) -> npt.NDArray[Any]:
        """The column of the table that each code column comes from."""
        names = [column.name for column in self.schema_.columns]
        return np.array(names, dtype=object)[self.code_.groups]

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the code columns.

        Parameters
        ----------
        input_features : None
            Ignored: the names of the fit are used.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        columns = self.schema_.columns
        names = [
            columns[term.column].name + suffix
            for term in self.code_.terms
            for suffix in _suffixes(term, columns[term.column])
        ]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        tags.target_tags.required = self.target_statistics is True
        return tags


def _suffixes(term: Term, column: TableColumn) -> list[str]:
    """Return the suffixes of the names of code columns; knots of dates are written as dates."""
    if column.kind == "date" and isinstance(term, Ramps):
        stamps = np.round(term.knots[1:].astype(np.float64)).astype("datetime64[s]")
        if len(np.unique(stamps)) == len(stamps):
            return [f" ≤ {stamp}" for stamp in stamps]
    return term.suffixes(column.levels)


def _coded(y: Any, n_rows: int) -> Float:
    """Return targets as numbers: values, or a column for each class."""
    if y is None:
        raise ValueError(
            "TableEncoder with target_statistics=True requires y to be passed, but the target y is "
            "None. Pass y to fit, or set target_statistics=False."
        )
    y = column_or_1d(y)
    check_consistent_length(y, np.empty(n_rows))
    if type_of_target(y).startswith("continuous"):
        return np.asarray(y, dtype=np.float64)[:, None]
    coded: Float = np.asarray(LabelBinarizer(neg_label=-1).fit_transform(y), dtype=np.float64)
    return coded
