"""The base class of the classifier and the regressor: parameters in, one fitted model out."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from html import escape
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state, estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from nysplus._compression.compress import compress_model
from nysplus._fit.cost import Cost, estimate, invented_rows
from nysplus._fit.incremental import add_rows, merged, retuned
from nysplus._fit.model import Columns, FittedModel, adopt
from nysplus._fit.parameters import (
    AdvisingMixin,
    AlphaLike,
    CheckpointLike,
    EncoderLike,
    GammaLike,
    KernelLike,
    RandomStateLike,
)
from nysplus._fit.pipeline import fit_model
from nysplus._fit.plan import Plan, make_alphas, make_plan
from nysplus._fit.report import FitReport
from nysplus._fit.score import evaluate
from nysplus._learning.refinement import Refinement
from nysplus._rows.applying import apply_to_rows
from nysplus._rows.frames import split_frame
from nysplus._rows.opening import (
    RowsToOpen,
    TargetSpec,
    is_elsewhere,
    open_rows,
    schema_of,
)
from nysplus._rows.target_codes import TargetCode
from nysplus._runtime.checkpoint import FileJournal, Journal, fit_fingerprint
from nysplus._runtime.progress import CallbackSupportMixin, Progress, progress_of
from nysplus._typing import Float, Kind
from nysplus._validation import check_count, check_some_weigh
from nysplus.encoding import ImageEncoder
from nysplus.encoding.parameter import table_encoder
from nysplus.estimators.trust import TrustMixin
from nysplus.expansion import KernelExpansion
from nysplus.kernels import RBF, make_kernel
from nysplus.persistence import save


def sums_rows(estimator: KernelMachine) -> bool:
    """Return whether the parameters allow `partial_fit`; raise to say why not."""
    for name, left in (("refine", False), ("budget", None)):
        value = getattr(estimator, name)
        if value is not left and value is not None:
            raise AttributeError(
                f"{name}={value!r} goes by all rows at once, which partial_fit does not see. "
                f"Leave {name}={left}, or fit."
            )
    if isinstance(estimator.n_components, str):
        raise AttributeError(
            f"n_components={estimator.n_components!r} goes by all rows at once, which partial_fit "
            "does not see. Pass the number of landmarks, or fit."
        )
    return True


class KernelMachine(TrustMixin, AdvisingMixin, CallbackSupportMixin):
    """Base of the classifier and the regressor.

    Everything fitted is in one record, `_model`; the fitted attributes are views of it.
    """

    _kind: ClassVar[Kind]
    # set by the classes below
    n_components: int | str
    kernel: KernelLike
    gamma: GammaLike
    refine: bool | Refinement
    budget: int | str | None
    encoder: EncoderLike
    random_state: RandomStateLike
    # set by a fit
    n_features_in_: int
    _model: FittedModel

    def _target_spec(self) -> TargetSpec:
        """Return the targets that a fit needs."""
        return TargetSpec(self._kind)

    def _plan(self, rows: RowsToOpen) -> Plan:
        """Check all parameters, before any work."""
        automatic = isinstance(self.kernel, str) and self.kernel == "auto"
        if automatic and self.gamma not in ("scale", "auto"):
            raise ValueError(
                f"gamma={self.gamma!r} has no effect beside kernel='auto', which chooses the width "
                "as well. Leave gamma='scale', or name a kernel."
            )
        kernel = RBF("auto") if automatic else make_kernel(self.kernel, gamma=self.gamma)
        plan = make_plan(self, kernel, rows.n_features, rows.dtype, rows.kind)
        return plan.with_any_kernel() if automatic else plan

    def _fit(self, X: Any, y: Any, sample_weight: Any, checkpoint: CheckpointLike | None) -> None:
        """Fit a model to all rows and adopt it."""
        journal = Journal() if checkpoint is None else FileJournal(checkpoint)
        columns = copy(self)  # which scikit-learn's validation writes to
        encoder = table_encoder(self.encoder)
        rows = open_rows(columns, X, y, sample_weight, self._target_spec(), encoder=encoder)
        plan = self._plan(rows)
        with journal, progress_of(self, X, y) as progress:
            with progress.record.timed("reading"):
                blocks, code = rows.open(progress, journal)
            assert code is not None
            rng = check_random_state(self.random_state)
            name, params, schema = type(self).__name__, self.get_params(False), schema_of(columns)
            rng = journal.begin(
                lambda: fit_fingerprint(name, params, blocks.fingerprint(), schema), rng
            )
            model = fit_model(plan, blocks, code, Columns.of(columns), rng)
            passes = "1 pass" if model.n_passes == 1 else f"{model.n_passes} passes"
            progress.note(f"{passes} over {blocks.n_rows:,} rows")
            self._adopt(model)  # callbacks see the fitted estimator
            journal.remove()

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, code: TargetCode | None) -> None:
        """Fit a model to more rows and adopt it."""
        model, columns = self._fitted(), copy(self)
        # the other classes may come in later calls, and rows of weight zero are ignored
        spec = replace(
            self._target_spec(), code=code, needs_two_classes=False, needs_weight=model is None
        )
        encoder = table_encoder(self.encoder)
        rows = open_rows(columns, X, y, sample_weight, spec, model is None, encoder)
        plan = self._plan(rows)
        rng = check_random_state(self.random_state)
        with progress_of(self, X, y) as progress:
            blocks, found = rows.open(progress, Journal())
            assert found is not None
            if code is None and found.kind == "classes":
                raise ValueError("classes must be passed on the first call to partial_fit.")
            weighs = blocks.target_spread().mass > 0
            if model is None:
                check_some_weigh(int(weighs))
            elif not weighs:
                return
            self._adopt(add_rows(model, plan, blocks, found, Columns.of(columns), rng))

    def _fitted(self) -> FittedModel | None:
        """Return the fitted model, or None before a fit."""
        model: FittedModel | None = getattr(self, "_model", None)
        return model

    def _adopt(self, model: FittedModel) -> None:
        """Become the given model, in one assignment."""
        adopt(self, model.columns, _model=model)

    def retune(self, alpha: AlphaLike = "auto") -> Any:
        """Choose the ridge again from the sums that `partial_fit` and `merge` have made.

        As long as `partial_fit` collects rows, its next call chooses the ridge as well.

        Parameters
        ----------
        alpha : "auto", float or sequence of floats, default="auto"
            Given several values, the one of smallest generalized cross-validation error is
            taken. No rows are needed.

        Returns
        -------
        self
        """
        self._adopt(retuned(self._fitted(), make_alphas(alpha)))
        return self

    def merge(self, other: Any) -> Any:
        """Add the rows of another model that `partial_fit` has fitted with the same landmarks.

        The result is the model of all rows together, with the ridge of this one; `other` is not
        changed.

        Parameters
        ----------
        other : estimator of the same class

        Returns
        -------
        self
        """
        if type(other) is not type(self):
            name = type(self).__name__
            raise TypeError(f"merge expects another {name}, got {type(other).__name__}.")
        self._adopt(merged(self._fitted(), other._fitted()))
        return self

    def estimate_cost(
        self,
        shape: tuple[int, int],
        n_outputs: int | None = None,
        dtype: npt.DTypeLike = "float64",
        rows: tuple[Any, Any] | None = None,
    ) -> Cost:
        """Estimate the time and memory of a fit with these parameters on this machine.

        Fits models to few rows for at most 4 seconds and extrapolates: passes take time in
        proportion to the rows, and work on samples and landmarks does not grow beyond 60,000 rows.

        Parameters
        ----------
        shape : tuple of int
            Rows and features: ``X.shape``.
        n_outputs : int, optional
            Number of classes, 2 by default, or of regression outputs, 1 by default.
        dtype : type, default="float64"
            Type of the rows.
        rows : tuple of arrays, optional
            Typical ``(X, y)``, some thousands of rows or more, to replace synthetic ones. The
            solver depends on the spectrum of the kernel matrix, and so on the data.

        Returns
        -------
        Cost
            With `seconds`, `bytes` (beside the rows themselves) and `passes`. `seconds` or
            `passes` is None if the trial fits do not tell it, as for `refine`, and `reason` says
            why.
        """
        n_rows, n_features = shape
        check_count("shape[0]", n_rows)
        check_count("shape[1]", n_features)
        check_count("n_outputs", n_outputs, optional=True)
        if rows is None:
            rows = invented_rows(n_features, dtype, self._kind, n_outputs)
        return estimate(self, (n_rows, n_features), rows)

    def _apply(self, X: Any, function: Callable[[FittedModel, Any], Any]) -> Any:
        """Return the function of the fitted model and of rows, wherever these are."""
        check_is_fitted(self)
        return apply_to_rows(self, X, partial(function, self._model.without_sums()))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy (classifier) or R² (regressor) on the given rows.

        Parameters
        ----------
        X : anything that `fit` accepts
        y : array-like, or as for `fit`
        sample_weight : array-like, or as for `fit`

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if not is_elsewhere(X):
            names = getattr(self, "feature_names_in_", None)
            result: float = super().score(*split_frame(X, y, sample_weight, names))
            return result
        # rows may have classes that the model does not know, and never gets right
        code = None if self._model.code.kind == "classes" else self._model.code
        spec = TargetSpec(self._kind, code=code, needs_two_classes=False)
        rows = open_rows(self, X, y, sample_weight, spec, reset=False)
        blocks, found = rows.open(Progress(), Journal())
        assert found is not None
        return evaluate(self._model.predict, blocks, found)

    def compress(
        self,
        n_components: int | None = None,
        X: Any = None,
        y: Any = None,
        *,
        budget: int | str | None = None,
        max_seconds: float | None = None,
    ) -> Any:
        """Return a smaller model, without a fit from scratch.

        Landmarks are removed or merged where that changes the function least, the coefficients
        are solved again, and landmarks move if the kernel has gradients. If rows are given, a
        ridge regression on these or on new landmarks and, for RBF classifiers, a learned map are
        tried as well, and held-out rows choose the best.

        Parameters
        ----------
        n_components : int, optional
            Number of landmarks to keep.
        X : rows, as for `fit`, optional
            Typical rows, such as those of the fit. At most 25,000 are used.
        y : targets, as for `fit`, optional
            Targets of the rows; by default the predictions of this model.
        budget : int or str, optional
            Largest size of the model, such as "16kB", instead of `n_components`.
        max_seconds : float, optional
            Approximate time limit: after it the best model so far is returned.

        Returns
        -------
        estimator of the same class
            A fitted copy; this estimator is not changed.
        """
        return compress_model(self, n_components, budget, X, y, max_seconds)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that :func:`nysplus.load` reads; never pickle.

        Parameters
        ----------
        path : str or path
            Replaced in one step if it exists. Sums of `partial_fit` are not saved.
        """
        save(self, path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    @property
    def expansion_(self) -> KernelExpansion:
        """The fitted function."""
        return self._model.expansion

    @property
    def landmarks_(self) -> Any:
        """Landmarks of shape (n, d), or (n, r) behind a learned map."""
        return self.expansion_.given_landmarks()

    @property
    def projection_(self) -> Float | None:
        """The learned map P of shape (d, r), or None."""
        P = self.expansion_.projection
        return P if P is None or P.ndim == 2 else np.diag(P)

    @property
    def dual_coef_(self) -> Float:
        """Coefficients A of shape (n, n_outputs)."""
        return self.expansion_.dual_coef

    @property
    def intercept_(self) -> Float:
        """Intercepts b of shape (n_outputs,)."""
        return self.expansion_.intercept

    @property
    def gamma_(self) -> float | None:
        """The kernel's gamma as a number; None for kernels without one."""
        gamma: float | None = getattr(self.expansion_.kernel, "gamma", None)
        return gamma

    @property
    def model_bytes_(self) -> int:
        """Bytes of landmarks, coefficients, intercepts, map, centre, linear term and encoder.

        Numbers that `predict` does not need are not counted: the slope of probabilities, and the
        quantiles of prediction sets and of novelty, which take some 0.5 kB in a file.
        """
        return self.expansion_.n_bytes

    @property
    def report_(self) -> FitReport:
        """Models that the fit compared and chose, and the bytes and seconds of each part."""
        model = self._model
        return model.report or FitReport.of(model.expansion, model.refined, model.alpha)

    def fit_report(self) -> str:
        """Return a text about the fit: comparisons, choices with reasons, bytes and seconds.

        A model that is loaded, imported, compressed or updated by `partial_fit` has its bytes and
        its parameters, but neither comparisons nor seconds.

        Returns
        -------
        str

        See Also
        --------
        report_ : The same as an object.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from nysplus import NystroemClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = NystroemClassifier(budget="500B", random_state=0).fit(X, y)
        >>> print(model.fit_report())
        NystroemClassifier: ... landmarks, ... of 500 bytes, accuracy ... on 50 held-out rows
        ...
        """
        check_is_fitted(self)
        return f"{type(self).__name__}: {self.report_}"

    def _repr_html_inner(self) -> str:
        """Return scikit-learn's diagram, followed by size and score if the model is fitted."""
        diagram: str = estimator_html_repr(self)
        if self._fitted() is None:
            return diagram
        return f"{diagram}<p>{escape(self.report_.summary)}</p>"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    @property
    def alpha_(self) -> float:
        """The ridge; imported models have none."""
        alpha: float = self._known("alpha")
        return alpha

    @property
    def solver_(self) -> str:
        """How the ridge problem was solved."""
        return self._model.solver

    @property
    def landmark_indices_(self) -> npt.NDArray[np.intp] | None:
        """Row numbers of the landmarks, where they are rows."""
        return self._model.landmark_indices

    @property
    def refined_(self) -> bool:
        """Whether the landmarks that `refine` has learned were kept."""
        refined: bool = self._known("refined")
        return refined

    @property
    def n_kernel_evaluations_(self) -> int:
        """Kernel evaluations of the selection and the fit."""
        return self._model.n_kernel_evaluations

    @property
    def n_passes_(self) -> int:
        """Passes over all rows."""
        n_passes: int = self._known("n_passes")
        return n_passes

    def _known(self, name: str) -> Any:
        """Return an entry of the fitted model that not all models have."""
        value = getattr(self._model, name)
        if value is None:
            raise AttributeError(f"This {type(self).__name__} has no {name}_.")
        return value

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        if self.encoder is not None and not isinstance(self.encoder, ImageEncoder):
            tags.input_tags.allow_nan = True
            tags.input_tags.string = True
            tags.input_tags.categorical = True
        return tags
