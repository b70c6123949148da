"""Survey rows in a first pass: their number, mean and variance, classes and weights.

Surveys add, like moments, over the chunks of a file and over the partitions of a cluster.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._rows.accumulators import ClassRows, MeanAndScatter
from nysplus._rows.target_codes import ClassCode, TargetCode, code_of
from nysplus._typing import Float, Kind
from nysplus._validation import check_indicator


@dataclass(frozen=True)
class PartSummary:
    """Number, weights and checksum of some consecutive rows.

    Attributes
    ----------
    n_rows : int
    weighing : ndarray of uint8 or None
        A bit for every row, set where its weight is positive; None where all weights are.
    checksum : int
        Of the rows, their targets and their weights.
    """

    n_rows: int
    weighing: npt.NDArray[np.uint8] | None
    checksum: int

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Float | None) -> PartSummary:
        """Return the summary of some rows."""
        stored = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
        checksum = 0
        for array in (*stored, y, sample_weight):
            checksum = zlib.crc32(_bytes_of(array), checksum)
        if sample_weight is None or (sample_weight > 0).all():
            return cls(X.shape[0], None, checksum)
        return cls(X.shape[0], np.packbits(sample_weight > 0), checksum)

    def candidates(self) -> npt.NDArray[np.intp]:
        """Return the numbers of the rows of positive weight."""
        if self.weighing is None:
            return np.arange(self.n_rows)
        return np.flatnonzero(np.unpackbits(self.weighing, count=self.n_rows))

    @property
    def n_candidates(self) -> int:
        """Number of rows of positive weight."""
        return self.n_rows if self.weighing is None else len(self.candidates())


@dataclass
class Survey:
    """The survey of some rows, to which surveys of other rows are added.

    Attributes
    ----------
    n_features : int
    cells : MeanAndScatter
        Mean and scatter of all entries of X.
    features : MeanAndScatter
        Mean and scatter of every column of X; without mass for sparse rows.
    classes : ndarray
        The classes in y, sorted.
    masses : ndarray
        Sum of the sample weights of each class.
    class_rows : ClassRows
        Number and first of the rows of each class, or of each label.
    values : MeanAndScatter
        Mean and scatter of values, or of ±1 labels.
    y_shape : tuple of int
        Shape of y beyond the rows; None where targets are ignored.
    pieces : list of PartSummary
    """

    n_features: int
    cells: MeanAndScatter
    features: MeanAndScatter
    classes: npt.NDArray[Any]
    masses: Float
    class_rows: ClassRows
    values: MeanAndScatter
    y_shape: tuple[int, ...] | None
    pieces: list[PartSummary] = field(default_factory=list)

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Float | None, kind: Kind | None) -> Survey:
        """Return the survey of some rows.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (b, d)
        y : ndarray of shape (b,) or (b, L), or None
        sample_weight : ndarray of shape (b,) or None
        kind : "classes", "values" or None
            What y stands for; None to ignore it.
        """
        weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        features = MeanAndScatter.of_features(X, weight)
        survey = cls(
            n_features=X.shape[1],
            cells=MeanAndScatter.of_cells(X, weight) if sp.issparse(X) else features.pooled(),
            features=features,
            classes=np.zeros(0, dtype=np.intp),
            masses=np.zeros(0),
            class_rows=ClassRows.zero(0),
            values=MeanAndScatter.zero((0,)),
            y_shape=None,
            pieces=[PartSummary.of(X, y, sample_weight)],
        )
        if kind is not None:
            survey._look_at(y, weight, kind)
        return survey

    def _look_at(self, y: npt.NDArray[Any], weight: Float, kind: Kind) -> None:
        self.y_shape = y.shape[1:]
        if kind == "classes" and self.y_shape == (1,):
            self.y_shape = ()
        if kind == "classes" and not self.y_shape:
            labels = _check_labels(y.ravel())
            self.classes = np.unique(labels)
            codes = ClassCode(self.classes).encode(labels)
            self.masses, self.class_rows = codes.masses(weight), codes.class_rows(weight)
            return
        if kind == "classes":
            check_indicator(y)
        targets = self.code(kind).encode(y)
        self.values = MeanAndScatter.of_columns(targets.coded(), weight)
        self.class_rows = targets.class_rows(weight)

    def __iadd__(self, other: Survey) -> Survey:
        if (other.n_features, other.y_shape) != (self.n_features, self.y_shape):
            raise ValueError(
                f"Rows must agree: some have {self.n_features} columns and targets of shape "
                f"{self.y_shape}, others {other.n_features} and {other.y_shape}."
            )
        self.cells += other.cells
        self.features += other.features
        if self.values.mean.size == 0:
            self.values = other.values
        else:
            self.values += other.values
        self._add_classes(other)
        self.pieces = self.pieces + other.pieces
        return self

    def _add_classes(self, other: Survey) -> None:
        if len({survey.classes.dtype.kind in "biuf" for survey in (self, other)}) > 1:
            raise _mixed(self.classes, other.classes)
        code = ClassCode(np.union1d(self.classes, other.classes))
        self.masses = self.masses_of(code) + other.masses_of(code)
        rows, later = self.class_rows_of(code), other.class_rows_of(code)
        self.class_rows = rows.followed_by(later, self.n_rows)
        self.classes = code.classes

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(piece.n_rows for piece in self.pieces)

    @property
    def n_candidates(self) -> int:
        """Number of rows of positive weight."""
        return sum(piece.n_candidates for piece in self.pieces)

    def candidate(self, positions: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Return the row numbers of candidates by their positions among the candidates."""
        if all(piece.weighing is None for piece in self.pieces):
            return positions
        firsts = np.cumsum([0, *(piece.n_rows for piece in self.pieces)])
        passed = np.cumsum([0, *(piece.n_candidates for piece in self.pieces)])
        rows = np.empty_like(positions)
        home = np.searchsorted(passed, positions, side="right") - 1
        for number in np.unique(home):
            here = home == number
            candidates = self.pieces[number].candidates()
            rows[here] = firsts[number] + candidates[positions[here] - passed[number]]
        return rows

    def code(self, kind: Kind) -> TargetCode:
        """Return the code of the targets."""
        assert self.y_shape is not None
        return code_of(kind, self.y_shape, self.classes)

    def masses_of(self, code: TargetCode) -> Float:
        """Return the sum of the sample weights for each class of `code`."""
        masses: Float = np.zeros(len(code.classes))
        masses[code.encode(self.classes).class_codes] = self.masses
        return masses

    def class_rows_of(self, code: TargetCode) -> ClassRows:
        """Return the number and the first of the rows of each class of `code`, or of each label."""
        if code.kind != "classes" or len(code.classes) == 0:
            return self.class_rows
        codes = code.encode(self.classes).class_codes
        assert codes is not None
        return self.class_rows.placed(codes, len(code.classes))

    def target_spread(self, code: TargetCode, class_factors: Float | None) -> MeanAndScatter:
        """Return weight, mean and variance of the coded targets."""
        if code.kind != "classes":
            return self.values
        weight = self.masses_of(code) * (1.0 if class_factors is None else class_factors)
        return MeanAndScatter.of_columns(code.encode(code.classes).coded(), weight)

    def digest(self) -> str:
        """Return a hash of the rows."""
        digest: str = joblib.hash([(piece.n_rows, piece.checksum) for piece in self.pieces])
        return digest


def _bytes_of(array: Any) -> Any:
    """Return the bytes of an array, without a copy where its memory is contiguous."""
    if array is None:
        return b""
    if array.dtype.kind == "O":
        return repr(array.tolist()).encode()
    return array.T.data if array.flags.f_contiguous else np.ascontiguousarray(array).data


def _check_labels(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return labels of one type, or raise."""
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        raise ValueError(
            "Unknown label type: continuous. A classifier needs classes, y contains "
            f"{y[y != np.floor(y)][0]}. Use NystroemRegressor for values."
        )
    if y.dtype.kind != "O":
        return y
    text = np.array([isinstance(label, str) for label in y])
    if text.any() and not text.all():
        raise _mixed(y[text], y[~text])
    return y.astype(str) if text.all() else y


def _mixed(some: npt.NDArray[Any], others: npt.NDArray[Any]) -> ValueError:
    return ValueError(
        f"y contains text in some rows and numbers in others: {some.tolist()[:3]} and "
        f"{others.tolist()[:3]}. Use one of them."
    )
