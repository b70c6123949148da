"""Write models as one C header: C99, tables and loops, no heap, ``expf`` alone of libm.

The functions are in ``c_templates/*.h``: ``$word`` is filled in, ``@`` becomes the name of the
model and ``@@`` the same in capitals. A ``${word}`` at the beginning of a line stands for any
number of whole lines, none included. Words between backquotes depend on the type of real numbers
(:func:`~nysplus.export.c_kernels.in_real`).
"""

from __future__ import annotations

import re
import textwrap
import warnings
from collections.abc import Iterable
from dataclasses import fields
from importlib import resources
from string import Template
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._runtime.atomic_file import write_whole
from nysplus.expansion import PackedArray
from nysplus.export.c_kernels import CKernel, c_kernel, in_real, literal, number
from nysplus.export.c_model import MAX_CHANGE, WRONG, CModel, c_model
from nysplus.export.contents import Contents, contents_of

__all__ = ["to_c"]

# Types of the tables.
C_TYPES = {"float64": "double", "float32": "float", "float16": "uint16_t", "int8": "int8_t"}

# A line of the comment at the top of the header.
WHY_DOUBLE = " * x is double because float has too few digits or too small a range for it.\n"


def _template(name: str) -> str:
    """Return the text of a template."""
    file = resources.files("nysplus.export") / "c_templates" / f"{name}.h"
    return file.read_text(encoding="ascii")


def _filled(name: str, **values: Any) -> str:
    """Return a template with its words filled in."""
    return Template(_template(name)).substitute(values)


# -- names and tables ----------------------------------------------------------------------------


def _string(label: str) -> str:
    """Return a string literal of the UTF-8 bytes: plain characters, octal escapes for the rest."""
    plain = re.compile(rb"[A-Za-z0-9 _.,:;+*/=<>()\[\]{}#&|~^!$%'-]")
    parts = (bytes([byte]) for byte in label.encode())
    return '"' + "".join(p.decode() if plain.match(p) else f"\\{p[0]:03o}" for p in parts) + '"'


def _identifier(name: str) -> str:
    """Return a valid C name: characters other than letters and digits become ``_``."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"name={name!r} is not allowed. Pass the first part of all C names.")
    clean = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return clean if clean[0].isalpha() else f"model_{clean.lstrip('_')}"


def _table(c_type: str, name: str, values: Iterable[str], size: int) -> str:
    """Return the definition of a table."""
    lines = textwrap.wrap(", ".join(values), 96, break_long_words=False, break_on_hyphens=False)
    body = "\n".join(f"    {line}" for line in lines)
    return f"static const {c_type} {name}[{size}] = {{\n{body}\n}};\n"


def _tables(name: str, stored: PackedArray) -> str:
    """Return the definition of the values, and of the scales where there are any."""
    values: npt.NDArray[Any] = stored.values
    if values.dtype == np.float16:
        texts = [f"0x{bits:04x}" for bits in values.ravel().view(np.uint16)]
    elif values.dtype == np.int8:
        texts = [str(value) for value in values.ravel()]
    elif values.dtype == np.float64:
        texts = [repr(float(value)) for value in values.ravel()]
    else:
        texts = [literal(value) for value in values.ravel()]
    text = _table(C_TYPES[values.dtype.name], name, texts, values.size)
    if stored.scale is None:
        return text
    scales = [literal(value) for value in np.atleast_1d(stored.scale)]
    return text + _table("float", f"{name}_scale", scales, len(scales))


def _entry(table: str, stored: PackedArray, index: str) -> str:
    """Return the expression of a stored value as float, without its scale."""
    if stored.values.dtype == np.float16:
        return f"@_half(@_{table}[{index}])"
    entry = f"@_{table}[{index}]"
    return f"(float){entry}" if stored.values.dtype == np.int8 else entry


def _scale(table: str, stored: PackedArray, column: str) -> str:
    """Return the factor of a column, empty where there is none."""
    if stored.scale is None:
        return ""
    return f" * @_{table}_scale[{column if stored.scale.ndim else '0'}]"


# -- functions -----------------------------------------------------------------------------------


def _indented(statements: str, depth: int) -> str:
    return textwrap.indent(statements, "    " * depth) + "\n" if statements else ""


def _feature(model: CModel, i: str) -> str:
    """Return the expression of a feature minus the centre, in the unit, as a real number."""
    center, feature = model.content.stored.center, f"x[{i}]"
    wide = model.row == "double" or (center is not None and center.values.dtype == np.float64)
    if center is not None:
        feature = f"({feature} - @_center[{i}])"
    if model.unit != 1.0:
        feature += f" * {model.unit!r}" if wide else f" * {literal(model.unit)}"
    return f"(float)({feature})" if wide and model.real == "float" else feature


def _coordinates(model: CModel) -> str:
    """Return the statements that compute ``u = (x - c) P``."""
    stored = model.content.stored.projection
    if stored is None:
        feature = _feature(model, "j")
        if feature == "x[j]":
            return "const `float` *u = x;"
        return f"`float` u[@@_RANK];\nfor (int j = 0; j < @@_RANK; j++) u[j] = {feature};"
    if stored.values.ndim == 1:
        value = f"{_entry('projection', stored, 'j')}{_scale('projection', stored, 'j')}"
        product = f"{_feature(model, 'j')} * {value}"
        return f"`float` u[@@_RANK];\nfor (int j = 0; j < @@_RANK; j++) u[j] = {product};"
    entry = _entry("projection", stored, "i * @@_RANK + j")
    lines = [
        "`float` u[@@_RANK];",
        "for (int j = 0; j < @@_RANK; j++) u[j] = `0.0`;",
        "for (int i = 0; i < @@_FEATURES; i++)",
        "    for (int j = 0; j < @@_RANK; j++)",
        f"        u[j] += {_feature(model, 'i')} * {entry};",
    ]
    if stored.scale is not None:
        by = _scale("projection", stored, "j").removeprefix(" * ")
        lines.append(f"for (int j = 0; j < @@_RANK; j++) u[j] *= {by};")
    return "\n".join(lines)


def _scoring(model: CModel, kernel: CKernel) -> str:
    """Return the function that computes ``k((x - c) P, Z) A + b``."""
    stored = model.content.stored
    Z, A, b = stored.landmarks, stored.dual_coef, stored.intercept
    return _filled(
        "scores",
        row=model.row,
        projecting=_indented(_coordinates(model), 1),
        start=_indented(kernel.start, 2),
        coordinate=f"{_entry('landmarks', Z, 'i * @@_RANK + j')}{_scale('landmarks', Z, 'j')}",
        terms=_indented(kernel.terms, 3),
        final=_indented(kernel.final, 2),
        value=kernel.value,
        coefficient=_entry("dual_coef", A, "i * @@_SCORES + c"),
        score=f"scores[c]{_scale('dual_coef', A, 'c')} + {_entry('intercept', b, 'c')}",
    )


def _predicting(model: CModel) -> str:
    """Return the functions that make predictions and probabilities of scores."""
    content = model.content
    binary = content.kind == "classes" and content.n_outputs == 1
    kind = "two_classes" if binary else content.kind
    predictions = _filled(kind, row=model.row)
    if content.slope is None:
        return predictions
    slope, twice = number(content.slope), number(2.0 * content.slope)
    probabilities = _filled(f"{kind}_probabilities", slope=slope, twice=twice, row=model.row)
    return f"{predictions}\n{probabilities}"


def _classes(content: Contents) -> str:
    """Return the table of class labels: whole numbers or strings."""
    if content.kind != "classes":
        return ""
    classes = content.classes
    if classes.dtype.kind in "biu" or (
        classes.dtype.kind == "f" and (classes == np.floor(classes)).all()
    ):
        small = np.abs(classes.astype(np.float64)).max() < 2**31 - 1
        c_type, texts = "int" if small else "long long", [str(int(label)) for label in classes]
        if not small:
            texts = [f"{text}LL" for text in texts]
    else:
        c_type, texts = "char *const", [_string(str(label)) for label in classes]
    return _table(c_type, "@_classes", texts, len(classes)) + "\n"


def _header(estimator: str, model: CModel, name: str) -> str:
    """Return the text of the header."""
    content = model.content
    stored, kernel = content.stored, c_kernel(content.kernel)
    n, r = stored.landmarks.values.shape
    arrays = {
        field.name: array
        for field in fields(stored)
        if (array := getattr(stored, field.name)) is not None
    }
    helpers, scoring = list(kernel.helpers), _scoring(model, kernel)
    if model.real == "double":
        helpers = ["root"] if helpers else []
    if any(array.values.dtype == np.float16 for array in arrays.values()):
        helpers.append("half")
    sizes = {"FEATURES": content.n_features, "RANK": r, "LANDMARKS": n, "SCORES": content.n_outputs}
    if content.kind == "classes":
        sizes["CLASSES"] = len(content.classes)
    width = getattr(content.kernel, "gamma", None)
    text = _filled(
        "header",
        model=estimator,
        n_features=content.n_features,
        n_landmarks=n,
        outputs=_output_names(content),
        u=_mapped(model),
        formula=kernel.formula + (f",  g = {width:.9g}" if width else ""),
        n_bytes=stored.n_bytes,
        types=", ".join(f"{key} {array.values.dtype.name}" for key, array in arrays.items()),
        stack=(8 if model.real == "double" else 4)
        * ((r if "` u[" in scoring else 0) + 2 * content.n_outputs),
        row=model.row,
        why_double=WHY_DOUBLE if model.row != model.real else "",
        includes=_includes(arrays.values(), helpers),
        sizes="".join(f"#define @@_{key} {value}\n" for key, value in sizes.items()),
        classes=_classes(content),
        tables="\n".join(_tables(f"@_{key}", array) for key, array in arrays.items()),
        helpers="".join(f"{_template(helper)}\n" for helper in helpers),
        scores=scoring,
        predictions=_predicting(model),
    )
    return in_real(text, model.real).replace("@@", name.upper()).replace("@", name)


def _includes(arrays: Iterable[PackedArray], helpers: list[str]) -> str:
    """Return the lines that include headers of the C library."""
    integers = any(array.values.dtype in (np.int8, np.float16) for array in arrays)
    includes = ["#include <math.h>"]
    includes += ["#include <stdint.h>"] if integers or helpers else []
    includes += ["#include <string.h>"] if helpers else []
    return "\n".join(includes)


def _output_names(content: Contents) -> str:
    """Return the number and kind of outputs for the comment, such as "3 classes"."""
    if content.kind == "classes":
        return f"{len(content.classes)} classes"
    if content.kind == "labels":
        return f"{content.n_outputs} labels"
    return f"{content.n_outputs} value" + "s" * (content.n_outputs > 1)


def _mapped(model: CModel) -> str:
    """Return the formula of u for the comment."""
    stored = model.content.stored
    x = "x" if stored.center is None else "(x - c)"
    if model.unit != 1.0:
        x = f"{model.unit:g} {x}"
    if stored.projection is None:
        return f"u = {x}"
    shape = stored.projection.values.shape
    return f"u = {x} P, P " + ("diagonal" if len(shape) == 1 else f"{shape[0]} x {shape[1]}")


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
            stacklevel=3,
        )


def to_c(model: Any, path: Any = None, *, name: str = "nysplus", dtype: str = "auto") -> str:
    """Return a fitted model as one self-contained C99 header.

    It consists of tables and ``static inline`` functions, allocates no memory, and calls no
    function of the C library but ``expf``. With the default name::

        int nysplus_predict(const float *x);       /* position in nysplus_classes */
        void nysplus_scores(const float *x, float *scores);
        void nysplus_probabilities(const float *x, float *probabilities);

    The function of a multilabel model is ``void nysplus_predict(const float *x, int *labels)``,
    that of a regressor ``void nysplus_predict(const float *x, float *y)``, without probabilities.
    A classifier of `from_svc` that has no ``predict_proba`` has no function for probabilities.
    Rows are ``const double *x`` where float has too few digits for features that are far from zero,
    such as Unix times, or too small a range for them. The sizes are macros (``NYSPLUS_FEATURES``,
    ``NYSPLUS_SCORES``). The stack takes 8 L bytes and some scalars, and 4 r bytes more for a
    learned map or a centre. Kernels that fall off with the distance
    give the intercepts as scores of rows far from all landmarks, infinite rows included.

    Parameters
    ----------
    model : NystroemClassifier or NystroemRegressor
        Fitted, with a kernel of :mod:`nysplus.kernels` other than ``FunctionKernel``; a polynomial
        one needs a whole degree.
    path : path, optional
        A file to write the header to, in one step.
    name : str, default="nysplus"
        The first part of all C names; characters that C does not allow in names become ``_``.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Type of the tables: "auto" keeps float32, float16 and int8, and makes float64 float32;
        "float32" makes all tables float32, which takes more bytes and less time; "float64" makes
        all tables, rows and outputs double, for models whose large coefficients float cannot hold.

    Returns
    -------
    str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nysplus import NystroemClassifier
    >>> from nysplus.export import to_c
    >>> model = NystroemClassifier(10, random_state=0).fit(*load_iris(return_X_y=True))
    >>> print(to_c(model, name="iris").splitlines()[0])
    /* NystroemClassifier, exported by nysplus: 4 features, 10 landmarks, 3 classes.
    """
    if dtype not in ("auto", "float32", "float64"):
        raise ValueError(
            f"dtype={dtype!r} is not allowed. Pass 'auto' (as the model is stored, but float32 for "
            "float64), 'float32' or 'float64'; a model is stored in float16 or int8 if it is "
            "fitted or compressed to a budget."
        )
    prefix, written = _identifier(name), c_model(contents_of(model), dtype)
    _check_change(written.change)
    text = _header(type(model).__name__, written, prefix)
    if path is not None:
        write_whole(path, text.encode("ascii"))
    return text
