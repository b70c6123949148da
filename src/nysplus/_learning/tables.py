"""Tables: views of their rows by different codes, and the ways to train on each of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from nysplus._bytes.budget import ANY_UNIT, Budget, PartBits, ScaleTypes, Size
from nysplus._holdout import Positions
from nysplus._learning.candidates import Recipe, SearchRules
from nysplus._learning.sizes import fewest_bits, largest_size
from nysplus._learning.training import TrainingOptions
from nysplus._typing import Float
from nysplus.encoding.code import TableCode


@dataclass(frozen=True, eq=False)
class View:
    """Rows of a table as one code gives them.

    Attributes
    ----------
    code : TableCode
    X : ndarray of shape (N, D)
        float32: the code columns of the rows to learn from. Statistics of targets are those of
        other rows, so that X may differ from the code of the same rows.
    """

    code: TableCode
    X: Float


class TableViews(Protocol):
    """Views of the same rows by different codes."""

    @property
    def n_numbers(self) -> int:
        """Number of raw columns that bins are made for."""

    @property
    def many_levels(self) -> bool:
        """Whether a column has more than 8 levels, so that statistics of targets may help."""

    @property
    def importance(self) -> Float | None:
        """Importance of the raw columns, where a budget has no room for all of them."""

    def column_counts(self, budget: Budget | None) -> tuple[int | None, ...]:
        """Return the numbers of columns to choose from; None for all columns."""

    def __call__(
        self,
        numbers: str,
        n_bins: int | None,
        target_statistics: bool,
        n_columns: int | None = None,
    ) -> View:
        """Return the view by a code.

        Parameters
        ----------
        numbers : {"thermometer", "standard", "rank_gauss"}
        n_bins : int or None
            Bins of the thermometer code; None for the other codes.
        target_statistics : bool
            Whether levels of columns with more than 8 of them become statistics of the targets.
        n_columns : int, optional
            Only the code of this many columns, the most important ones.
        """


# From positions of rows among all rows to views of these rows.
Tables = Callable[[Positions], TableViews]


@dataclass(frozen=True)
class CodeChoice:
    """The arguments of :class:`TableViews`."""

    numbers: str = "thermometer"
    n_bins: int | None = 32
    target_statistics: bool = False
    n_columns: int | None = None

    @property
    def description(self) -> str:
        """The code in words."""
        columns = "" if self.n_columns is None else f" of {self.n_columns} columns"
        bins = "" if self.n_bins is None else f" of {self.n_bins} bins"
        statistics = " with target statistics" if self.target_statistics else ""
        return f"{self.numbers.replace('_', ' ')} code{bins}{columns}{statistics}"


@dataclass(frozen=True)
class TableStyle:
    """A way to train on tables.

    Attributes
    ----------
    name : str
        In progress reports and in errors.
    code : CodeChoice
    epochs, value_epochs : float
        For classes, and for values, which want more.
    weight_decay, map_decay, label_smoothing : float
        See :class:`~nysplus._learning.training.TrainingOptions`.
    width : float
        See :meth:`~nysplus._learning.setup.TrainingSetup.first`.
    metric : bool
        Whether raw columns are weighted by the gradients of a first fit.
    n_landmarks : int
        Landmarks at most under a budget, and at least with ``n_components="auto"``. Clean targets
        want more landmarks, not more directions.
    """

    name: str
    code: CodeChoice = CodeChoice()
    epochs: float = 20.0
    value_epochs: float = 40.0
    weight_decay: float = 0.1
    map_decay: float = 0.0
    label_smoothing: float = 0.05
    width: float = 0.5
    metric: bool = True
    n_landmarks: int = 250


# The best single way for classes: some decay of the map.
MID = TableStyle("mid", map_decay=0.1)
# The best single way for values, which are less noisy in most tables.
FINE = TableStyle("fine", map_decay=0.03)
# Noisy targets want a smoother function.
SMOOTH = TableStyle("smooth", map_decay=0.3, width=0.15)
# Clean targets want longer runs and no decay of the map.
LONG = TableStyle("long", epochs=50.0, value_epochs=100.0, weight_decay=0.03, width=0.15)
# Functions that follow directions, not columns, want columns that are not cut into bins.
STANDARD = TableStyle("standard", CodeChoice("standard", None), width=0.15)
RANK_GAUSS = TableStyle("rank-Gauss", CodeChoice("rank_gauss", None), width=0.15)
# Categories with many levels.
STATISTICS = TableStyle("statistics", CodeChoice(target_statistics=True), weight_decay=0.3)
# Where long runs are best, still longer and sharper ones may be better. Weights of columns harm
# classes where all columns matter.
LONGEST = TableStyle(
    "longest",
    CodeChoice(n_bins=64),
    150.0,
    150.0,
    weight_decay=0.003,
    label_smoothing=0.02,
    n_landmarks=800,
)
UNWEIGHTED = replace(LONGEST, name="longest, unweighted", metric=False)

# Styles that are compared first, the one without a search before the others, and styles that are
# tried where the long one of them is best.
CLASS_STYLES = (MID, SMOOTH, LONG, STANDARD, RANK_GAUSS, STATISTICS), (LONGEST, UNWEIGHTED)
VALUE_STYLES = (FINE, MID, SMOOTH, LONG, STANDARD, RANK_GAUSS, STATISTICS), (LONGEST,)


def endless(style: TableStyle) -> TableStyle:
    """Return a still longer style with more landmarks, for classes that are nearly free of noise.

    Tables with few noisy rows, or with rows that repeat others, are learned by heart only so.
    """
    return replace(style, name="endless", epochs=3.5 * style.epochs, n_landmarks=1500)


FEWEST_BITS = PartBits(map=6, landmarks=5, coefficients=4)


@dataclass(frozen=True)
class TableRules(SearchRules):
    """The numbers that steer a search on tables, and the reason for each."""

    # The unrefined model is always fitted again without the held-out rows: selectors give landmarks
    # to rows of extreme values, and the model would know those among the held-out rows.
    honest_ratio: int = sys.maxsize
    # A fifth of the rows is held out, of many rows as well.
    n_folds_of_many: int = 5
    # Candidates are compared on this many rows at most. More rows tell them apart no better, but
    # take more time; the best candidate is trained on all rows.
    compared_rows: int = 12_500
    # As many of the five folds are held out, one after the other, as have this many rows together,
    # but not more than three: fewer rows tell candidates apart by chance.
    held_out_rows: int = 1500
    # Up to this many rows neither long runs nor statistics of targets are tried, and the unrefined
    # model is kept in case of doubt: 500 rows of adult lost three points otherwise. Columns are
    # weighed without each fold; with more rows the weights hardly depend on the rows of a fold.
    # Where a budget has no room for all columns, they were weighed before, with all rows.
    few_rows: int = 1500
    # Bins of all numbers together at most: more columns take time and gain nothing.
    max_bins: int = 800
    least_bins: int = 4
    # Bins of a number at least, where bytes are few.
    fewest_bins: int = 2
    # Directions at most.
    rank: int = 32
    # Directions to choose from, and the share of the bytes that the map should leave to landmarks
    # where the largest size does not fit.
    learning_rate: float = 0.04
    ranks: tuple[int, ...] = (32, 24, 16, 12, 8, 6, 4, 3, 2, 1)
    landmark_share: float = 0.3
    # The fewest bits of the map, the landmarks and the coefficients, by one split of five tables in
    # 4 kB: 4 bits lost to 5 and 6, which are level. Coefficients of few outputs hardly take bytes.
    fewest_bits: PartBits = FEWEST_BITS
    few_outputs: int = 2
    # With fewer directions than this, fewer bins are tried.
    least_rank: int = 8
    # Epochs fall with the root of the number of rows beyond this many. Shorter runs than this many
    # steps do not learn.
    full_epochs_rows: int = 10_000
    least_steps: int = 600
    batch_size: int = 128
    # The average over 20 steps makes runs half as long as good as those with 100 steps.
    beta2: float = 0.95
    # Coefficients of values lag behind the landmarks, and start from a ridge of this penalty.
    value_coef_learning_rate: float = 0.05
    value_ridge: float = 10.0
    # Rounds of the first fit that weighs columns, its style, and its rows, landmarks, directions
    # and bins at most, whatever the size of the model: with few directions it would miss columns
    # that matter. Then the rows whose gradients are averaged, and a number that is added to
    # importances relative to their mean.
    metric_rounds: int = 2
    metric_style: TableStyle = TableStyle("metric", epochs=20.0, value_epochs=20.0)
    metric_rows: int = 5000
    metric_landmarks: int = 100
    metric_rank: int = 32
    metric_bins: int = 16
    gradient_rows: int = 2000
    least_weight: float = 1e-3
    # Endless runs for classes take minutes. They are tried if the longest runs are better than the
    # long one by this many standard errors, and still have this share of errors.
    endless_gain: float = 2.0
    endless_errors: float = 0.05
    # Short looks at all candidates, with at most this many landmarks, tell which of them are worth
    # a whole run.
    look_landmarks: int = 100
    look_length: float = 0.4
    n_finalists: int = 2
    # Shares of the remaining time, where it is limited: for looks, for finalists, and later ones.
    look_time: float = 0.3
    first_time: float = 0.5
    last_time: float = 0.5


TABLE_RULES = TableRules()


@dataclass(frozen=True)
class TableRecipe(Recipe):
    """A style with the options of its runs.

    Attributes
    ----------
    style : TableStyle
    code : CodeChoice
        That of the style, with fewer bins where columns are many or bytes are few.
    """

    style: TableStyle = MID
    code: CodeChoice = CodeChoice()

    @property
    def description(self) -> str:
        """The code and the name of the style."""
        return f"{self.code.description}, style {self.style.name!r}"


def scale_types(discrete: bool) -> ScaleTypes:
    """Return the types of scales: code columns, and scores of classes, are about 1 in any table."""
    return ScaleTypes("float16", "float16" if discrete else "float32")


def size_of_view(
    code: TableCode,
    L: int,
    most: int,
    budget: Budget,
    style: TableStyle,
    rules: TableRules,
    scales: ScaleTypes = ANY_UNIT,
) -> Size | None:
    """Return the size of a learned model within a budget, with its bits; None if nothing fits.

    Parameters
    ----------
    code : TableCode
        Its bytes count, too.
    L, most : int
        Outputs, and landmarks at most.
    budget : Budget
    style : TableStyle
    rules : TableRules
    scales : ScaleTypes, optional
    """
    rest = budget.reserving(code.n_bytes)
    ranks = {min(rank, rules.rank, code.n_columns) for rank in rules.ranks}
    bits = fewest_bits(rules.fewest_bits, L, rules.few_outputs)
    most = min(most, style.n_landmarks)
    return largest_size(rest, code.n_columns, L, most, ranks, bits, rules.landmark_share, scales)


def options_of(
    style: TableStyle,
    n_rows: int,
    discrete: bool,
    rules: TableRules,
    bits: PartBits | None = None,
) -> TrainingOptions:
    """Return the options of the runs of a style, for a number of rows to train on."""
    shortened = min(1.0, (rules.full_epochs_rows / n_rows) ** 0.5)
    epochs = shortened * (style.epochs if discrete else style.value_epochs)
    batch = min(rules.batch_size, n_rows)
    n_steps = max(int(-(-epochs * n_rows // batch)), rules.least_steps)
    return TrainingOptions(
        n_steps,
        batch,
        rules.learning_rate,
        0.3 if discrete else rules.value_coef_learning_rate,
        style.label_smoothing,
        style.weight_decay,
        style.map_decay,
        rules.beta2,
        bits,
    )
