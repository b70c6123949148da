"""A model of a table without landmarks: a linear function of its code, ``h(x) = E(x)B + b``.

Near-linear tables, and budgets of a few hundred bytes, need no more. The code is the one of few
columns that is best on held-out rows, and raw columns whose terms contribute least for their bytes
are left out until the model is within the budget.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from nysplus._bytes.budget import NUMBER_BYTES, STORAGE, TYPES, Budget, NoRoomError
from nysplus._bytes.quantise import ROUNDING_ROWS, pack_expansion, representable_types
from nysplus._fit.size import HeldOutScores
from nysplus._fit.table import Table
from nysplus._holdout import NOISE_SHARE, PairedComparison, best_of
from nysplus._ridge.linear import LinearFunction, LinearPath, row_losses
from nysplus._ridge.probability import Scaling, fit_scaling
from nysplus._rows.accumulators import ScoredRows
from nysplus._rows.blocks import Block
from nysplus._rows.encoded import TableEncoding, of_terms
from nysplus._runtime.record import Trial
from nysplus._typing import Float
from nysplus.encoding.code import TableCode
from nysplus.encoding.fitting import NumberCode
from nysplus.expansion import MAX_BITS, KernelExpansion, bits_in_bytes
from nysplus.kernels import Linear

# Storage types of a linear function, the smallest first: its numbers have 6, 8, 16 or 32 bits.
LINEAR_TYPES = ("int4", *TYPES)
# The smallest unit of scores.
TINY = 1e-30


@dataclass(frozen=True)
class LinearRules:
    """Numbers that steer the search for a linear function.

    Attributes
    ----------
    held_out_rows : int
        Rows that choose, but not more than a third.
    fit_rows : int
        Rows that candidates are fitted to: enough to tell them apart.
    final_rows : int
        Rows that the chosen function is fitted to.
    codes : tuple
        Codes of numbers that are compared, with their bins, the one that is most often best first:
        thermometers of few bins take hardly more bytes than one scaled column, and follow curves.
    max_codes : int
        Codes at most that are compared.
    max_columns : int
        Code columns at most, for a fit of a second: their squares are summed.
    kept_at_once : float
        Share of the bytes that is kept at least before the function is fitted again.
    rounding_errors : float
        Standard errors by which rounded numbers may be worse on held-out rows.
    hopeless : float
        Standard errors by which the first code may be behind a rival: other codes gain less.
    """

    held_out_rows: int = 5000
    fit_rows: int = 8000
    final_rows: int = 50_000
    codes: tuple[tuple[NumberCode, int], ...] = (
        ("thermometer", 8),
        ("thermometer", 16),
        ("thermometer", 4),
        ("standard", 1),
    )
    max_codes: int = 4
    max_columns: int = 400
    kept_at_once: float = 0.6
    rounding_errors: float = 0.5
    hopeless: float = 4.0


DEFAULT_RULES = LinearRules()


@dataclass(frozen=True)
class LinearModel:
    """A linear function of a table's code, within a budget.

    Attributes
    ----------
    expansion : KernelExpansion
        Packed, without landmarks and without the encoder.
    code : TableCode
    alpha : float
        The ridge.
    scaling : Scaling or None
        From scores to probabilities; None for values.
    held_out : ScoredRows
        Outputs for held-out rows of the same function fitted without them.
    """

    expansion: KernelExpansion
    code: TableCode
    alpha: float
    scaling: Scaling | None
    held_out: ScoredRows


@dataclass(frozen=True)
class _Candidate:
    """A function of one code, with the scores, the losses and the mean loss of held-out rows."""

    encoding: TableEncoding
    function: LinearFunction
    scores: Float
    losses: Float
    loss: float

    @classmethod
    def of(cls, encoding: TableEncoding, function: LinearFunction, held_out: Block) -> _Candidate:
        scores, weight = function(held_out.X), held_out.weight
        losses = row_losses(scores, held_out)
        return cls(encoding, function, scores, losses, float(weight @ losses / weight.sum()))


def linear_bytes(code: TableCode, n_outputs: int, dtype: str = LINEAR_TYPES[0]) -> int:
    """Return the bytes of a linear function of a code, with its intercept and the code."""
    bits = STORAGE[dtype].map
    scales = NUMBER_BYTES * n_outputs if bits <= MAX_BITS else 0
    numbers = bits_in_bytes(code.n_columns * n_outputs, bits)
    return code.n_bytes + numbers + scales + NUMBER_BYTES * n_outputs


def linear_candidate(
    table: Table,
    budget: Budget,
    rng: np.random.RandomState,
    rival: HeldOutScores,
    rules: LinearRules = DEFAULT_RULES,
) -> LinearModel | None:
    """Return the best linear function of a table within a budget; None where a rival is better.

    Of equals within a quarter standard error the linear function is preferred: it is the smaller
    one. O(N d²) with at most 8000 rows for each code, of at most 400 columns.

    Parameters
    ----------
    table : Table
    budget : Budget
        Of everything, the code included.
    rng : RandomState
    rival : HeldOutScores
        Of the model with landmarks in the same budget. At least two thirds of the rows are fitted
        to, whatever the number of its rows.
    rules : LinearRules, optional
    """
    drawn = _drawn(table, rng, rules)
    rival = rival.some(min(rules.held_out_rows, -(-table.rows.n_candidates // 3)), rng)
    others = drawn.take(np.flatnonzero(~np.isin(drawn.numbers, rival.rows)))
    held_out = table.rows.gather(rival.rows)
    search = _Search(held_out, _first(others, rules) or held_out, budget, rival, rules)
    best = search.best(list(islice(_encodings(table, rules), rules.max_codes)))
    chosen = best is not None and search.lead(best) <= NOISE_SHARE
    if best is not None:
        table.rows.progress.record.add(*search.trials(best, chosen))
    if best is None or not chosen:
        return None
    return search.finished(best, drawn)


def only_linear(
    table: Table, budget: Budget, rng: np.random.RandomState, rules: LinearRules = DEFAULT_RULES
) -> LinearModel:
    """Return the best linear function of a table within a budget, or raise if there is no room."""
    drawn = _drawn(table, rng, rules)
    n_held_out = min(rules.held_out_rows, -(-len(drawn) // 3))
    held_out, others = (drawn.take(part) for part in np.split(np.arange(len(drawn)), [n_held_out]))
    search = _Search(held_out, _first(others, rules) or held_out, budget, None, rules)
    encodings = list(_encodings(table, rules))
    best = search.best(encodings)
    if best is None:
        n_outputs = table.rows.n_outputs
        raise _no_room(budget, _least_bytes(encodings, n_outputs), n_outputs)
    table.rows.progress.record.add(*search.trials(best, chosen=True))
    return search.finished(best, drawn)


def check_room(
    table: Table, budget: Budget, n_outputs: int, rules: LinearRules = DEFAULT_RULES
) -> None:
    """Raise if a budget has no room for the smallest model of a table, before any long work.

    With ``target_statistics=True`` the code depends on the targets, which are not known here, and
    nothing is checked.
    """
    if table.encoder.target_statistics is True:
        return
    least = _least_bytes(list(_encodings(table, rules)), n_outputs)
    if least > budget.available:
        raise _no_room(budget, least, n_outputs)


def _drawn(table: Table, rng: np.random.RandomState, rules: LinearRules) -> Block:
    """Return the rows to fit to, in random order."""
    return table.drawn.take(rng.permutation(len(table.drawn))[: rules.final_rows])


def _first(rows: Block, rules: LinearRules) -> Block | None:
    """Return rows that candidates are fitted to; None where a single row is both."""
    return rows.take(np.arange(min(len(rows), rules.fit_rows))) if len(rows) else None


def _encodings(table: Table, rules: LinearRules) -> Iterator[TableEncoding]:
    """Yield the codes that are compared, the first in any case and others if they are not large."""
    encoder = table.encoder
    statistics = encoder.target_statistics is True and bool(table.many.columns)
    seen: list[TableCode] = []
    for numbers, n_bins in rules.codes:
        if encoder.numbers not in ("auto", numbers):
            continue
        n_bins = n_bins if encoder.n_bins == "auto" else int(encoder.n_bins)
        found = table.encoding(numbers, n_bins, statistics)
        large = found.code.n_columns > rules.max_columns
        if found.code.terms and not (seen and (large or any(map(found.code.same, seen)))):
            seen.append(found.code)
            yield found
    if encoder.numbers == "rank_gauss":
        yield table.encoding("rank_gauss", rules.codes[0][1], statistics)


@dataclass(frozen=True)
class _Search:
    """The search for a linear function.

    Attributes
    ----------
    held_out, others : Block
        Raw rows that choose, and raw rows to fit to.
    budget : Budget
    rival : HeldOutScores or None
        Of the same held-out rows, by the model with landmarks.
    rules : LinearRules
    """

    held_out: Block
    others: Block
    budget: Budget
    rival: HeldOutScores | None
    rules: LinearRules

    def best(self, encodings: list[TableEncoding]) -> _Candidate | None:
        """Return the candidate of the smallest loss on held-out rows; None without any.

        None as well if the rival is far ahead of a code with all its terms. Without some of its
        terms a code may be far behind codes of fewer bytes.
        """
        best: _Candidate | None = None
        for encoding in encodings:
            found = [*self._of(encoding), *([] if best is None else [best])]
            if found:
                best = best_of(found, lambda candidate: -candidate.loss)
                if self._is_whole(encoding) and self.lead(best) > self.rules.hopeless:
                    return None
        return best

    def _is_whole(self, encoding: TableEncoding) -> bool:
        """Return whether the budget has room for all terms of a code."""
        n_outputs = self.others.Y.shape[1]
        return linear_bytes(encoding.code, n_outputs) <= self.budget.available

    def lead(self, candidate: _Candidate) -> float:
        """Return how far the rival is ahead of a candidate, in standard errors."""
        if self.rival is None:
            return -np.inf
        assert self.held_out.targets is not None
        scores = self.held_out.targets.row_scores(candidate.scores)
        return PairedComparison.of(scores, self.rival.scores, self.rival.weight, 0.0).errors

    def trials(self, candidate: _Candidate, chosen: bool) -> Iterator[Trial]:
        """Yield the records of a candidate and of its rival."""
        targets, weight = self.held_out.targets, self.held_out.weight
        assert targets is not None
        model = f"linear function of {candidate.encoding.code.n_columns} code columns"
        mean = float(weight @ targets.row_scores(candidate.scores) / weight.sum())
        n_rows = len(self.held_out)
        yield Trial.of("linear", model, mean, targets.discrete, n_rows, chosen=chosen)
        if self.rival is not None:
            model, mean = "model with landmarks", self.rival.mean
            yield Trial.of("linear", model, mean, targets.discrete, n_rows, chosen=not chosen)

    def _of(self, encoding: TableEncoding) -> Iterator[_Candidate]:
        """Yield the functions of a code, with as many of its terms as the budget has room for."""
        while True:
            path = LinearPath(_encoded(self.others, encoding))
            if self._is_whole(encoding):
                break
            n_bytes = linear_bytes(encoding.code, self.others.Y.shape[1])
            *_, function = path.functions(path.alphas[:2])
            least = max(self.budget.available, int(self.rules.kept_at_once * n_bytes))
            encoding = _smaller(encoding, function, path.moments.scatter, least)
            if not encoding.code.terms:
                return
        held_out, least_loss = _encoded(self.held_out, encoding), np.inf
        assert held_out.targets is not None
        discrete = held_out.targets.discrete
        for function in path.functions():
            found = _Candidate.of(encoding, function, held_out)
            yield found
            if found.loss > least_loss:  # and so are those of smaller ridges
                return
            # for classes the first two ridges tell, and further ones take time
            if discrete and least_loss < np.inf and self.lead(found) > self.rules.hopeless:
                return
            least_loss = found.loss

    def finished(self, best: _Candidate, drawn: Block) -> LinearModel:
        """Return the model of a candidate, fitted to all drawn rows and rounded."""
        held_out, others = _encoded(self.held_out, best.encoding), _encoded(drawn, best.encoding)
        assert held_out.targets is not None
        discrete = held_out.targets.discrete
        unit = max(float(np.abs(best.scores).max()), TINY) if discrete else 1.0
        scaling = None
        if discrete:
            scaling = fit_scaling(best.scores / unit, held_out.labels, held_out.weight)
        (final,) = LinearPath(others).functions((best.function.alpha,))
        model, some = _expansion(final.in_unit(unit)), others.X[:: -(-len(others) // ROUNDING_ROWS)]
        dtype = self._type(best, held_out, representable_types(model, LINEAR_TYPES))
        return LinearModel(
            pack_expansion(model, dtype, some),
            best.encoding.code,
            final.alpha,
            scaling,
            held_out.scored(best.scores / unit),
        )

    def _type(self, best: _Candidate, held_out: Block, dtypes: tuple[str, ...]) -> str:
        """Return the smallest storage type that does no harm, or else the largest with room."""
        exact, X = _expansion(best.function), _encoded(self.others, best.encoding).X
        n_outputs = len(best.function.b)
        for dtype in representable_types(exact, dtypes):
            if linear_bytes(best.encoding.code, n_outputs, dtype) > self.budget.available:
                break
            found = dtype
            losses = row_losses(pack_expansion(exact, dtype, X)(held_out.X), held_out)
            needed = self.rules.rounding_errors
            if not PairedComparison.of(-losses, -best.losses, held_out.weight, needed).better:
                break
        return found


def _least_bytes(encodings: list[TableEncoding], n_outputs: int) -> int:
    """Return the bytes of the smallest linear function of a single column."""
    return min(
        linear_bytes(TableCode(encoding.code.n_inputs, (term,)), n_outputs)
        for encoding in encodings
        for term in encoding.code.terms
    )


def _no_room(budget: Budget, least: int, n_outputs: int) -> NoRoomError:
    return NoRoomError(
        f"budget={budget.n_bytes} has no room for a linear function of a single column, with "
        f"{n_outputs} outputs: the smallest takes {least} bytes. Raise the budget."
    )


def _encoded(rows: Block, encoding: TableEncoding) -> Block:
    return replace(rows, X=encoding(rows))


def _expansion(function: LinearFunction) -> KernelExpansion:
    """Return a linear function as an expansion without landmarks."""
    (d, L), dtype = function.B.shape, np.float32
    nothing = np.zeros((0, d), dtype), np.zeros((0, L), dtype)
    return KernelExpansion(Linear(), *nothing, function.b, linear=function.B)


def _smaller(
    encoding: TableEncoding, function: LinearFunction, scatter: Float, n_bytes: int
) -> TableEncoding:
    """Return a code without the terms that contribute least for their bytes.

    The contribution of a term is the variance of its part of the scores.
    """
    code, n_outputs = encoding.code, len(function.b)
    ends = np.cumsum([term.n_columns for term in code.terms])
    parts = [slice(end - term.n_columns, end) for term, end in zip(code.terms, ends, strict=True)]
    bits = STORAGE[LINEAR_TYPES[0]].map
    costs = np.array(
        [term.n_bytes + 2 + bits_in_bytes(term.n_columns * n_outputs, bits) for term in code.terms]
    )
    values = np.array(
        [np.einsum("il,ij,jl->", function.B[p], scatter[p, p], function.B[p]) for p in parts]
    )
    left = n_bytes - linear_bytes(TableCode(code.n_inputs, ()), n_outputs)
    kept: list[int] = []
    for i in np.argsort(-values / costs, kind="stable"):
        if costs[i] <= left:
            kept.append(int(i))
            left -= int(costs[i])
    return of_terms(encoding, sorted(kept))
