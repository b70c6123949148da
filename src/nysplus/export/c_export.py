"""Export fitted models as C headers, in floating point or in integers, and report their sizes."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nysplus._runtime.atomic_file import write_whole
from nysplus.expansion import KernelExpansion
from nysplus.export.c_header import classes_table, header_text, output_names
from nysplus.export.c_integer import IntegerModel, integer_model
from nysplus.export.c_model import MAX_CHANGE, WRONG, CModel, c_model
from nysplus.export.c_report import CReport, float_report, integer_report
from nysplus.export.c_text import identifier
from nysplus.export.contents import Contents, contents, contents_of, trust_of
from nysplus.export.explanation import background_rows, check_exact_in_c
from nysplus.export.integer_agreement import Agreement, agreement
from nysplus.export.integer_header import integer_header
from nysplus.transformer import Nystroem

__all__ = ["c_report", "to_c"]


def _check_change(change: float) -> None:
    """Warn if float arithmetic changes scores, and raise if it makes them wrong."""
    if change > WRONG:
        raise ValueError(
            f"float arithmetic, which the header uses, would change scores of this model by up to "
            f"{change:.1g} of the largest. Fit with a larger alpha, which makes smaller "
            "coefficients, or pass dtype='float64', which makes tables and arithmetic double."
        )
    if change > MAX_CHANGE:
        warnings.warn(
            f"float arithmetic, which the header uses, changes scores of this model by up to "
            f"{change:.1g} of the largest. A larger alpha makes smaller coefficients; "
            "dtype='float64' makes tables and arithmetic double.",
            stacklevel=4,
        )


def _contents(model: Any) -> Contents:
    """Return the contents of a model; those of a transformer compute its features."""
    if not isinstance(model, Nystroem):
        return contents_of(model)
    check_is_fitted(model)
    W = model.normalization_.T
    expansion = KernelExpansion(
        model.feature_map_.kernel, model.components_, W, np.zeros(W.shape[1], dtype=W.dtype)
    )
    return contents(expansion, "features")


def _float_model(model: Any, dtype: str, integer_options: dict[str, Any]) -> CModel:
    """Return a model in floating point, or raise if options are not those of it."""
    if dtype not in ("auto", "float32", "float64"):
        raise ValueError(
            f"dtype={dtype!r} is not allowed. Pass 'auto' (as the model is stored, but float32 for "
            "float64), 'float32' or 'float64'; a model is stored in float16 or in integers "
            "if it is fitted or compressed to a budget."
        )
    given = [name for name, value in integer_options.items() if value is not None]
    if given:
        raise ValueError(
            f"{', '.join(given)}: options of arithmetic='int'. Pass arithmetic='int', or drop them."
        )
    written = c_model(_contents(model), dtype)
    _check_change(written.change)
    return written


def _integer_model(
    model: Any, dtype: str, X: Any, options: dict[str, Any]
) -> tuple[IntegerModel, Agreement]:
    """Return a model in integers with its agreement, or raise if options are not those of it."""
    if dtype != "auto":
        raise ValueError(
            f"dtype={dtype!r} is not an option of arithmetic='int', whose tables are integers. "
            "Drop it."
        )
    if isinstance(model, Nystroem):
        raise TypeError(
            "arithmetic='int' needs a classifier or regressor: the features of Nystroem are made "
            "for a linear model, whose coefficients belong in the same tables. Fit a "
            "NystroemClassifier or NystroemRegressor, or pass arithmetic='float'."
        )
    written = integer_model(model, X, **{k: v for k, v in options.items() if v is not None})
    found = agreement(model, written, X)
    found.check(given=X is not None)
    return written, found


def to_c(
    model: Any,
    path: Any = None,
    *,
    name: str = "nysplus",
    dtype: str = "auto",
    explain: Any = False,
    confidence: float | None = None,
    arithmetic: str = "float",
    X: Any = None,
    input_type: str | None = None,
    input_range: Any = None,
    input_scale: Any = None,
) -> str:
    """Return a fitted model as one self-contained C99 header.

    It consists of tables and ``static inline`` functions, allocates no memory, and calls no
    function of libm but ``expf``, and those that the code of a table needs. With the default
    name::

        int nysplus_predict(const float *x);       /* position in nysplus_classes */
        void nysplus_scores(const float *x, float *scores);
        void nysplus_probabilities(const float *x, float *probabilities);

    The function of a multilabel model is ``void nysplus_predict(const float *x, int *labels)``,
    that of a regressor ``void nysplus_predict(const float *x, float *y)``, without probabilities.
    A classifier of `from_svc` that has no ``predict_proba`` has no function for probabilities.
    Rows are ``const double *x`` where float has too few digits for features that are far from zero,
    such as Unix times, or too small a range for them. The sizes are macros (``NYSPLUS_FEATURES``,
    ``NYSPLUS_SCORES``). The stack takes 8 L bytes and some scalars, 4 r bytes more for a learned
    map or a centre, and 4 L bytes more for a linear term. Without a linear term, kernels that fall
    off with the distance give the intercepts as scores of rows far from all landmarks, infinite
    rows included.

    The tables take `model_bytes_` bytes of flash memory; those of a classifier with integer classes
    take 4 bytes more for each class. Integers of 2 to 7 bits are packed without gaps, and unpacked
    one by one where they are used. The compiler adds the instructions, some constants, and bytes
    between tables that align them.

    A model that encodes tables takes a row of raw numbers, in an order that the comment at the top
    lists: numbers, seconds since 1970 in UTC for dates, and for each category a constant of an
    enum of its levels (``NYSPLUS_CITY_ROME``), −1 for any other level. NAN stands for a gap, also
    with ``-ffast-math``. The positions have names as well: ``x[NYSPLUS_X_CITY]``. A model that
    encodes images takes their pixels, computes the cosines with ``cosf``, and needs 4 k (w + 1)
    bytes more of the stack for k cosines of images that are w pixels wide, per channel.

    The function of a transformer is ``void nysplus_transform(const float *x, float *features)``.

    With ``arithmetic="int"`` the header has no floating point, no division, and no product of more
    than 32 bits, for processors without a floating-point unit::

        int nysplus_predict(const int16_t *x);     /* position in nysplus_classes */
        void nysplus_scores(const int16_t *x, int32_t *scores);

    Scores are integers over ``2^NYSPLUS_SCORE_BITS``; there are no probabilities. The tables of
    the model keep their 2 to 8 bits, exponentials and cosines come from tables, and on AVR all
    tables stay in flash memory. :class:`~nysplus.export.c_integer.IntegerModel` computes the same
    integers in Python, bit by bit. No row makes a sum overflow: the bounds are computed, and a
    model that has none is refused. The kernel is ``RBF``, ``Laplacian`` or ``Matern``; of
    encoders, :class:`~nysplus.encoding.ImageEncoder` and pipelines that scale numbers are allowed.

    Parameters
    ----------
    model : NystroemClassifier, NystroemRegressor, Pipeline or Nystroem
        Fitted, with a kernel of :mod:`nysplus.kernels` other than ``FunctionKernel``; a polynomial
        one needs a whole degree. A pipeline becomes one model, see
        :func:`~nysplus.from_pipeline`.
    path : path, optional
        A file to write the header to, in one step.
    name : str, default="nysplus"
        The first part of all C names; characters that C does not allow in names become ``_``.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Type of the tables: "auto" keeps float32, float16 and integers, and makes float64 float32;
        "float32" makes all tables float32, which takes more bytes and less time, but for the
        knots of an encoder that only float64 keeps apart; "float64" makes all tables, rows and
        outputs double, for models whose large coefficients float cannot hold.
    explain : bool or rows, as for `predict`, default=False
        Rows, a few typical ones: the header has a function for the exact Shapley values of the
        scores against these rows, ``void nysplus_explain(const float *x, float *values)``, with a
        value for each feature and score. It takes ``4 (m d + 2 ⌈d/2⌉)`` bytes more of flash memory
        for m rows of d features, and 16 d bytes of the stack. True: one row, the mean of the
        landmarks. Only for rows of numbers, an RBF, Laplacian or chi-squared kernel, and no map
        but a diagonal one.
    confidence : float, optional
        Adds ``int nysplus_set(const float *x, unsigned char *in_set)``, the prediction set at this
        confidence, or ``void nysplus_interval(const float *x, float *low, float *high)``, and
        ``float nysplus_novelty(const float *x)`` where the model has a novelty. They take one
        number and 112 bytes of tables; bounds of several outputs or classes 4 bytes each, and the
        directions of a model with a learned map 56 bytes and 20 for each feature.
    arithmetic : {"float", "int"}, default="float"
        The parameters that follow are those of "int".
    X : array-like of shape (n_rows, n_features), optional
        Rows like those that will be predicted, a few thousand. They define the range of the
        features; the labels that integer arithmetic changes on them are counted; and a model of
        floating numbers is rounded to 8 bits with them. More than 0.5 % of changed labels give a
        warning, more than 10 % an error. Without X, scores near the landmarks are compared.
    input_type : {"int16", "int8", "uint8"}, default="int16"
        Type of the integers of a row.
    input_range : (low, high), optional
        The range of the features, two numbers or two arrays; that of X by default, or that of the
        type. Rows outside it are clipped where sums could overflow otherwise.
    input_scale : float, array-like of shape (n_features,) or "auto", default="auto"
        The number that a step of the integers stands for: a feature is its integer times the
        scale. "auto" is 1 for 8-bit types, and for X of whole numbers; otherwise a power of two
        with which the range fills 16 bits. The comment at the top of the header has it.

    Returns
    -------
    str

    Examples
    --------
    >>> from sklearn.datasets import load_digits, load_iris
    >>> from nysplus import NystroemClassifier
    >>> from nysplus.export import to_c
    >>> model = NystroemClassifier(10, random_state=0).fit(*load_iris(return_X_y=True))
    >>> print(to_c(model, name="iris").splitlines()[0])
    /* NystroemClassifier, exported by nysplus: 4 features, 10 landmarks, 3 classes.
    >>> digits = load_digits()
    >>> model = NystroemClassifier(budget="4kB", random_state=0).fit(digits.data, digits.target)
    >>> header = to_c(model, arithmetic="int", X=digits.data, input_type="uint8")
    >>> "float " in header
    False
    """
    prefix = identifier(name)
    options = {
        "input_type": input_type,
        "input_range": input_range,
        "input_scale": input_scale,
    }
    if _is_integer(arithmetic):
        if explain is not False or confidence is not None:
            raise ValueError(
                "explain and confidence are options of arithmetic='float'. Drop them, or pass "
                "arithmetic='float'."
            )
        integers, found = _integer_model(model, dtype, X, options)
        labels = classes_table(integers.content), output_names(integers.content)
        text = integer_header(type(model).__name__, integers, prefix, *labels, found.comment())
    else:
        written = _float_model(model, dtype, options | {"X": X})
        if explain is not False:
            check_exact_in_c(model)
            written = replace(written, background=background_rows(model, explain))
        trust = None if confidence is None else trust_of(model, confidence)
        text = header_text(type(model).__name__, written, prefix, trust)
    if path is not None:
        write_whole(path, text.encode("ascii"))
    return text


def c_report(
    model: Any,
    *,
    dtype: str = "auto",
    arithmetic: str = "float",
    X: Any = None,
    input_type: str | None = None,
    input_range: Any = None,
    input_scale: Any = None,
) -> CReport:
    """Return the bytes and the operations of the C header of a model.

    Parameters
    ----------
    model, dtype, arithmetic, X, input_type, input_range, input_scale
        See :func:`to_c`.

    Returns
    -------
    CReport
        ``print`` shows it as text.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nysplus import NystroemClassifier
    >>> from nysplus.export import c_report
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NystroemClassifier(budget="1kB", random_state=0).fit(X, y)
    >>> report = c_report(model, arithmetic="int", X=X)
    >>> report.table_bytes < 1500
    True
    """
    options = {
        "input_type": input_type,
        "input_range": input_range,
        "input_scale": input_scale,
    }
    if _is_integer(arithmetic):
        return integer_report(*_integer_model(model, dtype, X, options))
    return float_report(_float_model(model, dtype, options | {"X": X}))


def _is_integer(arithmetic: str) -> bool:
    if arithmetic not in ("float", "int"):
        raise ValueError(f"arithmetic={arithmetic!r} is not allowed. Pass 'float' or 'int'.")
    return arithmetic == "int"
