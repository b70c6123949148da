"""A table in a fit: its raw rows, and the codes that are fitted to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nysplus._bytes.budget import Budget
from nysplus._fit.plan import Plan
from nysplus._holdout import Positions
from nysplus._learning.tables import View
from nysplus._rows.blocks import Block, RowBlocks
from nysplus._rows.encoded import Encoding, TableEncoding, of_terms
from nysplus._typing import Float
from nysplus.encoding import TableEncoder
from nysplus.encoding.code import Lookup
from nysplus.encoding.fitting import NumberCode
from nysplus.encoding.schema import TableSchema
from nysplus.encoding.table_encoder import DEFAULT_BINS
from nysplus.encoding.target_statistics import Categories

# Rows that knots and scales are taken from. With probability .99 the rank of a quantile is then
# within half a per cent of the one among all rows (Dvoretzky, Kiefer and Wolfowitz).
KNOT_ROWS = 100_000
# Bins of a thermometer code of an unrefined model at least.
FEWEST_BINS = DEFAULT_BINS // 4
# Share of a budget that the code, and a landmark in its columns, may take.
CODE_SHARE, LANDMARK_SHARE = 0.25, 0.25
# Share of a budget that the code of a learned model may take where columns are left out, and shares
# of that many columns to choose from: columns that hardly matter cost directions and landmarks.
COLUMNS_SHARE, COLUMN_SHARES = 0.4, (0.5, 1.0, 0.7, 0.35, 0.25)


@dataclass(frozen=True)
class Table:
    """The raw rows of a table, and how they are encoded.

    Attributes
    ----------
    encoder : TableEncoder
        The user's choices.
    schema : TableSchema
    rows : RowBlocks
        Raw numbers, with coded targets.
    drawn : Block
        All rows, or some, in their order: knots and scales come from these. The same rows are
        drawn wherever the rows are.
    importance : ndarray of shape (d,) or None
        Of the raw columns, where a budget has no room for all of them; None where it has.
    """

    encoder: TableEncoder
    schema: TableSchema
    rows: RowBlocks
    drawn: Block
    importance: Float | None = None
    _encodings: dict[Any, TableEncoding] = field(default_factory=dict, init=False)

    @classmethod
    def of(
        cls,
        encoder: TableEncoder,
        schema: TableSchema,
        rows: RowBlocks,
        knot_rows: int = KNOT_ROWS,
    ) -> Table:
        """Draw the rows that codes are fitted to, `knot_rows` at most."""
        n = min(knot_rows, rows.n_candidates)
        drawn = np.sort(rows.sample(n, np.random.RandomState(0)))
        return cls(encoder, schema, rows, rows.gather(drawn))

    @property
    def many(self) -> Categories:
        """Categories of so many levels that statistics of targets are worth a try."""
        if self.encoder.target_statistics is False:
            return Categories((), ())
        return self.encoder.many_levels(self.schema)

    def encoding(
        self,
        numbers: NumberCode,
        n_bins: int,
        target_statistics: bool = False,
        n_columns: int | None = None,
    ) -> TableEncoding:
        """Return a code of the table, or of its `n_columns` most important columns.

        Each code is fitted once.
        """
        key = numbers, n_bins, target_statistics
        if key not in self._encodings:
            complete, without = self._lookups() if target_statistics else ([], [])

            def code(lookups: list[Lookup]) -> Any:
                return self.encoder.code(self.drawn.X, self.schema, numbers, n_bins, lookups)

            self._encodings[key] = Encoding(code(complete), tuple(map(code, without)))
        found = self._encodings[key]
        return found if n_columns is None else self._of_columns(found, n_columns)

    def _of_columns(self, encoding: TableEncoding, n_columns: int) -> TableEncoding:
        assert self.importance is not None
        columns = np.unique(encoding.code.groups)
        order = np.argsort(-self.importance[columns], kind="stable")
        kept = columns[order[:n_columns]]
        terms = enumerate(encoding.code.terms)
        return of_terms(encoding, [i for i, term in terms if term.column in kept])

    @property
    def _smallest(self) -> TableEncoding:
        """The code of the fewest bytes: of numbers, one scaled column each if there is a choice."""
        numbers: Any = "standard" if self.encoder.numbers == "auto" else self.encoder.numbers
        n_bins = self.encoder.n_bins
        return self.encoding(numbers, FEWEST_BINS if n_bins == "auto" else int(n_bins))

    def has_room(self, budget: Budget) -> bool:
        """Return whether a budget has room for the code of all columns."""
        return _code_bytes(self._smallest) <= CODE_SHARE * budget.n_bytes

    def column_counts(self, budget: Budget | None) -> tuple[int | None, ...]:
        """Return the numbers of columns that learned models may have; None for all columns."""
        if budget is None or self.importance is None:
            return (None,)
        most = self._most_columns(self._smallest, COLUMNS_SHARE * budget.n_bytes)
        return tuple(dict.fromkeys(max(1, int(share * most)) for share in COLUMN_SHARES))

    def _most_columns(self, encoding: TableEncoding, n_bytes: float) -> int:
        """Return of how many columns there is room for the code, at least one."""
        for n in range(len(np.unique(encoding.code.groups)), 1, -1):
            if _code_bytes(self._of_columns(encoding, n)) <= n_bytes:
                return n
        return 1

    def _lookups(self) -> tuple[list[Lookup], list[list[Lookup]]]:
        """Return the statistics of the targets, in one pass over the rows."""
        many, n_outputs = self.many, self.rows.n_outputs
        sums = self.rows.fold(
            _StatisticsOf(many), lambda: many.zero(n_outputs), 16 * (n_outputs + 2), "levels"
        )
        return many.lookups(sums)

    def unrefined(self, budget: Budget | None) -> TableEncoding:
        """Return the code of a model that is not refined: as many bins as a budget has room for."""
        statistics = self.encoder.target_statistics is True and bool(self.many.columns)
        numbers: Any = "thermometer" if self.encoder.numbers == "auto" else self.encoder.numbers
        if self.encoder.n_bins != "auto":
            found = self.encoding(numbers, int(self.encoder.n_bins), statistics)
            return self._within(found, budget)
        for n_bins in (DEFAULT_BINS, DEFAULT_BINS // 2, FEWEST_BINS):
            found = self.encoding(numbers, n_bins, statistics)
            code = found.code
            if budget is None or (
                code.n_bytes <= CODE_SHARE * budget.n_bytes
                and code.n_columns <= LANDMARK_SHARE * budget.n_bytes
            ):
                return found
        return self._within(found, budget)

    def _within(self, encoding: TableEncoding, budget: Budget | None) -> TableEncoding:
        """Return a code of as many columns as an unrefined model has room for."""
        if budget is None or self.importance is None:
            return encoding
        most = self._most_columns(encoding, CODE_SHARE * budget.n_bytes)
        return self._of_columns(encoding, most)

    def alternatives(self, budget: Budget | None) -> list[TableEncoding]:
        """Return the codes of a model that is not refined, to choose from."""
        first = self.unrefined(budget)
        if self.encoder.numbers != "auto":
            return [first]
        statistics = self.encoder.target_statistics is True and bool(self.many.columns)
        standard = self._within(self.encoding("standard", DEFAULT_BINS, statistics), budget)
        return [first] if standard.code.same(first.code) else [first, standard]

    def views(self, rows: Positions) -> Views:
        """Return views of some rows by different codes, for a search among them."""
        return Views(self, self.rows.gather(rows))


@dataclass(frozen=True)
class Views:
    """Some rows of a table as different codes give them.

    Attributes
    ----------
    table : Table
    rows : Block
        Raw numbers.
    """

    table: Table
    rows: Block

    @property
    def n_numbers(self) -> int:
        """Number of columns that have bins."""
        return sum(column.kind != "category" for column in self.table.schema.columns)

    @property
    def many_levels(self) -> bool:
        """Whether statistics of targets are worth a try."""
        return bool(self.table.many.columns)

    @property
    def importance(self) -> Float | None:
        """Importance of the raw columns, where a budget has no room for all of them."""
        return self.table.importance

    def column_counts(self, budget: Budget | None) -> tuple[int | None, ...]:
        """Return the numbers of columns that learned models may have; None for all columns."""
        return self.table.column_counts(budget)

    def __call__(
        self,
        numbers: str,
        n_bins: int | None,
        target_statistics: bool,
        n_columns: int | None = None,
    ) -> View:
        """Return the rows by a code; what the user has chosen is not varied."""
        chosen = self.table.encoder
        found: Any = numbers if chosen.numbers == "auto" else chosen.numbers
        bins = DEFAULT_BINS if n_bins is None else n_bins
        bins = bins if chosen.n_bins == "auto" else int(chosen.n_bins)
        statistics = target_statistics or chosen.target_statistics is True
        encoding = self.table.encoding(found, bins, statistics and self.many_levels, n_columns)
        return View(encoding.code, encoding(self.rows))


@dataclass(frozen=True)
class _StatisticsOf:
    """The sums of levels over a block; a class, so that it can be pickled."""

    many: Categories

    def __call__(self, block: Block) -> Float:
        return self.many.sums(block.X, block.Y, block.weight, block.numbers)


def _code_bytes(encoding: TableEncoding) -> int:
    """Return the bytes of a code, and one for each code column: those of a direction of a map."""
    return encoding.code.n_bytes + encoding.code.n_columns


def table_of(plan: Plan, schema: TableSchema | None, rows: RowBlocks) -> Table | None:
    """Return the table of a fit; None where rows are numbers as given."""
    if schema is None:
        return None
    assert plan.encoder is not None
    return Table.of(plan.encoder, schema, rows)
