"""The report of a fit: what was compared, what was chosen and why, bytes and seconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from itertools import groupby
from typing import Any

from nysplus._runtime.record import ACCURACY, Trial
from nysplus._tuning.width import kernel_text
from nysplus.expansion import KernelExpansion, PackedExpansion, stored_bytes

# Parts of a model as a user knows them.
PART_NAMES = {
    "projection": "map",
    "landmarks": "landmarks",
    "dual_coef": "coefficients",
    "linear": "linear term",
    "center": "centre",
    "intercept": "intercept",
}
# Width of the columns of the text.
NAME_WIDTH, VALUE_WIDTH = 13, 30
# Shorter stages are not listed.
LEAST_SECONDS = 0.005


@dataclass(frozen=True)
class Choice:
    """A property of the fitted model, and the reason for it.

    Attributes
    ----------
    name, value, reason : str
    """

    name: str
    value: str
    reason: str


@dataclass(frozen=True)
class ModelPart:
    """A part of the model and its size.

    Attributes
    ----------
    name : str
    n_bytes : int
        With the scales of integers.
    type_name : str
        Storage type, such as "float32" or "int5".
    """

    name: str
    n_bytes: int
    type_name: str


@dataclass(frozen=True)
class HeldOutScore:
    """The score of the chosen model on rows that it was not fitted to.

    Attributes
    ----------
    metric : str
        "accuracy", "leave-one-out accuracy" or "root mean squared error".
    value : float
    n_rows : int
        Number of rows.
    """

    metric: str
    value: float
    n_rows: int

    @property
    def standard_error(self) -> float | None:
        """Binomial standard error of an accuracy; None for errors of values."""
        if ACCURACY not in self.metric:
            return None
        p = min(self.value, 1.0)
        return float((p * (1.0 - p) / self.n_rows) ** 0.5)

    def __str__(self) -> str:
        error = self.standard_error
        shown = score_text(self.metric, self.value)
        shown += "" if error is None else f" ± {100 * error:.2f}"
        rows = "rows" if self.metric.startswith("leave-one-out") else "held-out rows"
        return f"{self.metric} {shown} on {self.n_rows:,} {rows}"


@dataclass(frozen=True, repr=False)
class FitReport:
    """Models that a fit compared and chose, and the bytes of the final model.

    Two fits of the same rows with the same `random_state` have equal reports: seconds are not
    compared. Neither pickles nor saved files have seconds, so that equal fits give equal files.

    Attributes
    ----------
    choices : tuple of Choice
        Properties of the model, with reasons.
    trials : tuple of Trial
        Models that were compared, in this order, with their scores on rows that they were not
        fitted to. Empty for models that are loaded, imported, compressed or from `partial_fit`.
    parts : tuple of ModelPart
        Where the bytes are.
    n_landmarks : int
    budget : int or None
        Largest size in bytes.
    held_out : HeldOutScore or None
        Score of the model; None if no rows were held out. A score that the model was chosen by is
        slightly optimistic.
    seconds : dict from str to float, or None
        Wall-clock time of the stages of the fit; None for a copy, a pickle or a loaded model.
    """

    choices: tuple[Choice, ...]
    trials: tuple[Trial, ...]
    parts: tuple[ModelPart, ...]
    n_landmarks: int
    budget: int | None = None
    held_out: HeldOutScore | None = None
    seconds: dict[str, float] | None = field(default=None, compare=False)

    @classmethod
    def of(cls, expansion: KernelExpansion, refined: bool | None, alpha: float | None) -> FitReport:
        """Return the report of a model of whose fit nothing else is known."""
        choices = model_choices(expansion)
        if alpha is not None:
            choices.append(Choice("ridge", f"alpha={alpha:.4g}", ""))
        if refined is not None:
            choices.append(Choice("refinement", "kept" if refined else "no", ""))
        return cls(tuple(choices), (), model_parts(expansion), int(expansion.landmarks.shape[0]))

    @property
    def n_bytes(self) -> int:
        """Bytes of the model, as `model_bytes_`."""
        return sum(part.n_bytes for part in self.parts)

    @property
    def summary(self) -> str:
        """One line: landmarks, bytes, score."""
        n, of = self.n_landmarks, "" if self.budget is None else f" of {self.budget:,}"
        landmarks = f"{n:,} landmark{'' if n == 1 else 's'}" if n else "a linear function"
        size = f"{landmarks}, {self.n_bytes:,}{of} bytes"
        return size if self.held_out is None else f"{size}, {self.held_out}"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"seconds": None}

    def __repr__(self) -> str:
        return f"<FitReport: {self.summary}, {len(self.trials)} trials>"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield self.summary
        yield from _section("Chosen", self._choice_lines())
        yield from _section("Compared", _trial_lines(self.trials))
        yield from _section("Bytes", self._byte_lines())
        yield from _section("Seconds", self._second_lines())

    def _choice_lines(self) -> Iterator[str]:
        for choice in self.choices:
            line = f"{choice.name:{NAME_WIDTH}s} {choice.value:{VALUE_WIDTH}s}  {choice.reason}"
            yield line.rstrip()

    def _byte_lines(self) -> Iterator[str]:
        total = self.n_bytes
        for part in self.parts:
            share = 100 * part.n_bytes / max(total, 1)
            yield f"{part.name:{NAME_WIDTH}s} {part.n_bytes:9,d}  {share:3.0f} %  {part.type_name}"
        yield f"{'total':{NAME_WIDTH}s} {total:9,d}"

    def _second_lines(self) -> Iterator[str]:
        for stage, seconds in (self.seconds or {}).items():
            if seconds >= LEAST_SECONDS:
                yield f"{stage:{NAME_WIDTH}s} {seconds:9.2f}"
        if self.seconds:
            yield f"{'total':{NAME_WIDTH}s} {sum(self.seconds.values()):9.2f}"


def score_text(metric: str, score: float) -> str:
    """Return a score as a user reads it: an accuracy in per cent, an error with four digits."""
    return f"{100 * score:.2f} %" if ACCURACY in metric else f"{score:.4g}"


def _section(title: str, lines: Iterator[str]) -> Iterator[str]:
    found = list(lines)
    if found:
        yield ""
        yield title
        yield from (f"  {line}" for line in found)


def _trial_lines(trials: tuple[Trial, ...]) -> Iterator[str]:
    """Yield a heading for each comparison, and a line for each of its models."""

    def comparison(trial: Trial) -> tuple[str, str, str, int]:
        return trial.stage, trial.step, trial.metric, trial.n_rows

    for (stage, step, metric, n_rows), group in groupby(trials, comparison):
        yield f"{stage}{f', {step}' if step else ''}: {metric} on {n_rows:,} rows"
        for trial in group:
            size = "" if trial.n_bytes is None else f", {trial.n_bytes:,} bytes"
            mark = "*" if trial.chosen else " "
            yield f"  {mark} {score_text(metric, trial.score):>8s}  {trial.model}{size}"


def model_parts(expansion: KernelExpansion) -> tuple[ModelPart, ...]:
    """Return the parts of a model with their bytes, which add up to its `n_bytes`."""
    parts = []
    for part in fields(PackedExpansion):
        name = PART_NAMES[part.name]
        if expansion.packed is not None:
            stored = getattr(expansion.packed, part.name)
            if stored is not None:
                parts.append(ModelPart(name, stored.n_bytes, stored.type_name))
        else:
            array = getattr(expansion, part.name)
            if array is not None:
                parts.append(ModelPart(name, stored_bytes(array), str(array.dtype.name)))
    if expansion.encoder is not None:
        parts.append(ModelPart("encoder", expansion.encoder.n_bytes, ""))
    order = [*PART_NAMES.values(), "encoder"]
    return tuple(sorted((p for p in parts if p.n_bytes), key=lambda p: order.index(p.name)))


def model_choices(expansion: KernelExpansion) -> list[Choice]:
    """Return the choices that a model shows."""
    n = int(expansion.landmarks.shape[0])
    if n == 0:
        return [Choice("kernel", "none", "a linear function of the code"), _storage(expansion)]
    choices = [
        Choice("kernel", kernel_text(expansion.kernel), ""),
        Choice("landmarks", f"{n:,}", ""),
    ]
    P = expansion.projection
    if P is not None:
        shape = f"{P.shape[0]} features to {P.shape[-1]}" if P.ndim == 2 else "a weight per feature"
        choices.append(Choice("map", shape, ""))
    return [*choices, _storage(expansion)]


def _storage(expansion: KernelExpansion) -> Choice:
    types = {part.name: part.type_name for part in model_parts(expansion) if part.type_name}
    name = "landmarks" if expansion.landmarks.shape[0] else "linear term"
    return Choice("storage", f"{types.get(name, '')} {name}", "")


def with_reasons(choices: list[Choice], reasons: dict[str, str]) -> list[Choice]:
    """Return the choices with reasons, by their names."""
    return [replace(each, reason=reasons.get(each.name) or each.reason) for each in choices]
