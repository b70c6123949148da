"""Models as one C header: C99, tables and loops, no heap, ``expf`` and nothing else of libm."""

from __future__ import annotations

import re
import textwrap
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._runtime.atomic_file import write_whole
from nysplus.expansion import PackedArray, PackedExpansion, pack_array
from nysplus.export.contents import Contents, contents_of
from nysplus.kernels import (
    RBF,
    AdditiveChi2,
    Chi2,
    Cosine,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Sigmoid,
)

__all__ = ["to_c"]

# A model whose scores change by more than this in float32 is worth a warning.
MAX_FLOAT32_ERROR = 1e-4
# Powers are products in the header: more factors than this are no polynomial kernel.
MAX_DEGREE = 64
C_TYPES = {"float32": "float", "float16": "uint16_t", "int8": "int8_t"}


# -- numbers and names ---------------------------------------------------------------------------


def _literal(value: float) -> str:
    """Return the shortest float literal that is read back as the same number."""
    single = np.float32(value)
    # compilers warn of subnormal literals, and many processors have no such numbers
    if abs(single) < np.finfo(np.float32).tiny:
        return "0.0f"
    text = str(single)
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def _string(label: str) -> str:
    """Return a string literal of the UTF-8 bytes: plain letters, and octal numbers for the rest."""
    plain = re.compile(rb"[A-Za-z0-9 _.,:;+*/=<>()\[\]{}#&|~^!$%'-]")
    parts = (bytes([byte]) for byte in label.encode())
    return '"' + "".join(p.decode() if plain.match(p) else f"\\{p[0]:03o}" for p in parts) + '"'


def _identifier(name: str) -> str:
    """Return a name that C takes: other characters than letters and digits become ``_``."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"name={name!r} is not allowed. Pass the first part of all C names.")
    clean = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return clean if clean[0].isalpha() else f"model_{clean.lstrip('_')}"


def _table(c_type: str, name: str, values: Iterable[str], size: int) -> str:
    """Return the definition of a table."""
    lines = textwrap.wrap(", ".join(values), 96, break_long_words=False, break_on_hyphens=False)
    body = "\n".join(f"    {line}" for line in lines)
    return f"static const {c_type} {name}[{size}] = {{\n{body}\n}};\n"


# -- kernels -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Recipe:
    """How C computes ``k(u, z)``: a sum over the r coordinates, then a number from the sum.

    Attributes
    ----------
    formula : str
        For the comment.
    terms : str
        Statements for coordinate j, of ``u[j]`` and ``z``, that add to ``sum``.
    value : str
        An expression of ``sum`` and what `final` makes.
    start, final : str
        Statements before and after the loop.
    root : bool
        Whether the square root function is used.
    """

    formula: str
    terms: str
    value: str
    start: str = ""
    final: str = ""
    root: bool = False


_DIFFERENCE = "const float t = u[j] - z;\nsum += t * t;"
_CHI2 = "const float t = u[j] - z, s = u[j] + z;\nif (s != 0.0f) sum += t * t / s;"


def _rbf(kernel: RBF) -> _Recipe:
    return _Recipe("exp(-g |u - z|^2)", _DIFFERENCE, f"expf({_literal(-kernel.width)} * sum)")


def _matern(kernel: Matern) -> _Recipe:
    factor = {
        0.5: "",
        1.5: "(1.0f + s) * ",
        2.5: f"(1.0f + s + s * s * {_literal(1.0 / 3.0)}) * ",
    }[kernel.nu]
    polynomial = {0.5: "", 1.5: "(1 + s) ", 2.5: "(1 + s + s^2 / 3) "}[kernel.nu]
    return _Recipe(
        f"{polynomial}exp(-s), s = sqrt({4 * kernel.nu:g} g) |u - z|",
        _DIFFERENCE,
        f"{factor}expf(-s)",
        final=f"const float s = @_sqrt({_literal(4.0 * kernel.nu * kernel.width)} * sum);",
        root=True,
    )


def _laplacian(kernel: Laplacian) -> _Recipe:
    terms = "const float t = u[j] - z;\nsum += t < 0.0f ? -t : t;"
    return _Recipe("exp(-g |u - z|_1)", terms, f"expf({_literal(-kernel.width)} * sum)")


def _polynomial(kernel: Polynomial) -> _Recipe:
    degree = float(kernel.degree)
    if not degree.is_integer() or not 0 <= degree <= MAX_DEGREE:
        raise ValueError(
            f"degree={kernel.degree!r} has no C export, which multiplies instead of calling powf. "
            f"Whole numbers from 0 to {MAX_DEGREE} have one."
        )
    return _Recipe(
        f"(g u.z + {kernel.coef0:g})^{int(degree)}",
        "sum += u[j] * z;",
        "power",
        final=f"const float base = {_literal(kernel.width)} * sum + {_literal(kernel.coef0)};\n"
        "float power = 1.0f;\n"
        f"for (int p = 0; p < {int(degree)}; p++) power *= base;",
    )


def _sigmoid(kernel: Sigmoid) -> _Recipe:
    return _Recipe(
        f"tanh(g u.z + {kernel.coef0:g})",
        "sum += u[j] * z;",
        # tanh(t) = 1 - 2 / (exp(2t) + 1)
        f"1.0f - 2.0f / (expf({_literal(2.0 * kernel.width)} * sum + "
        f"{_literal(2.0 * kernel.coef0)}) + 1.0f)",
    )


def _linear(kernel: Linear) -> _Recipe:
    return _Recipe("u.z", "sum += u[j] * z;", "sum")


def _cosine(kernel: Cosine) -> _Recipe:
    return _Recipe(
        "u.z / (|u| |z|), 0 for u = 0 or z = 0",
        "sum += u[j] * z;\nuu += u[j] * u[j];\nzz += z * z;",
        "norms > 0.0f ? sum / norms : 0.0f",
        start="float uu = 0.0f, zz = 0.0f;",
        final="const float norms = @_sqrt(uu) * @_sqrt(zz);",
        root=True,
    )


def _chi2(kernel: Chi2) -> _Recipe:
    formula = "exp(-g sum (u - z)^2 / (u + z))"
    return _Recipe(formula, _CHI2, f"expf({_literal(-kernel.width)} * sum)")


def _additive_chi2(kernel: AdditiveChi2) -> _Recipe:
    return _Recipe("-sum (u - z)^2 / (u + z)", _CHI2, "-sum")


# By the class itself: a subclass may fill the matrix in its own way.
_RECIPES: dict[type[Kernel], Callable[[Any], _Recipe]] = {
    AdditiveChi2: _additive_chi2,
    Chi2: _chi2,
    Cosine: _cosine,
    Laplacian: _laplacian,
    Linear: _linear,
    Matern: _matern,
    Polynomial: _polynomial,
    RBF: _rbf,
    Sigmoid: _sigmoid,
}


def _recipe(kernel: Kernel) -> _Recipe:
    if type(kernel) not in _RECIPES:
        raise ValueError(
            f"kernel={kernel!r} has no C export. Kernels that have one: "
            f"{', '.join(sorted(known.__name__ for known in _RECIPES))}."
        )
    return _RECIPES[type(kernel)](kernel)


# Newton's method from a guess that halves the exponent; three steps reach the last bit or so.
_SQRT = """\
static inline float @_sqrt(float v)
{
    uint32_t bits;
    float root;
    if (!(v > 1e-30f)) return 0.0f;
    if (v > 1e30f) v = 1e30f;
    memcpy(&bits, &v, sizeof bits);
    bits = (bits >> 1) + 0x1fbd1df5u;
    memcpy(&root, &bits, sizeof root);
    for (int step = 0; step < 3; step++) root = 0.5f * (root + v / root);
    return root;
}
"""

_HALF = """\
/* the number whose float16 bits are given */
static inline float @_half(uint16_t half)
{
    const uint32_t exponent = (half >> 10) & 0x1fu, fraction = half & 0x3ffu;
    float value = (float)fraction * 5.9604644775390625e-8f;
    if (exponent > 0) {
        const uint32_t bits = ((exponent + 112u) << 23) | (fraction << 13);
        memcpy(&value, &bits, sizeof value);
    }
    return half & 0x8000u ? -value : value;
}
"""


# -- tables --------------------------------------------------------------------------------------


def _stored(stored: PackedArray, dtype: str) -> PackedArray:
    """Return the numbers in a type that C has: as they are stored, or in float32."""
    if stored.values.dtype == np.float64 or dtype == "float32":
        return pack_array(stored.unpacked(), "float32")
    return stored


def _tables(name: str, stored: PackedArray) -> str:
    """Return the definition of the values, and of the scales where there are any."""
    values: npt.NDArray[Any] = stored.values
    if values.dtype == np.float16:
        texts = [f"0x{bits:04x}" for bits in values.ravel().view(np.uint16)]
    elif values.dtype == np.int8:
        texts = [str(value) for value in values.ravel()]
    else:
        texts = [_literal(value) for value in values.ravel()]
    text = _table(C_TYPES[values.dtype.name], name, texts, values.size)
    if stored.scale is None:
        return text
    scales = [_literal(value) for value in np.atleast_1d(stored.scale)]
    return text + _table("float", f"{name}_scale", scales, len(scales))


def _entry(table: str, stored: PackedArray, index: str) -> str:
    """Return the expression of a stored value as float, without its scale."""
    if stored.values.dtype == np.float16:
        return f"@_half(@_{table}[{index}])"
    entry = f"@_{table}[{index}]"
    return entry if stored.values.dtype == np.float32 else f"(float){entry}"


def _scale(table: str, stored: PackedArray, column: str) -> str:
    """Return the factor of a column, empty where there is none."""
    if stored.scale is None:
        return ""
    return f" * @_{table}_scale[{column if stored.scale.ndim else '0'}]"


# -- functions -----------------------------------------------------------------------------------


def _indented(statements: str, depth: int) -> str:
    return textwrap.indent(statements, "    " * depth) + "\n" if statements else ""


def _projecting(stored: PackedArray) -> str:
    """Return the statements that make ``u = x P``."""
    if stored.values.ndim == 1:
        value = f"{_entry('projection', stored, 'j')}{_scale('projection', stored, 'j')}"
        return f"float u[@@_RANK];\nfor (int j = 0; j < @@_RANK; j++) u[j] = x[j] * {value};"
    lines = [
        "float u[@@_RANK];",
        "for (int j = 0; j < @@_RANK; j++) u[j] = 0.0f;",
        "for (int i = 0; i < @@_FEATURES; i++)",
        "    for (int j = 0; j < @@_RANK; j++)",
        f"        u[j] += x[i] * {_entry('projection', stored, 'i * @@_RANK + j')};",
    ]
    if stored.scale is not None:
        by = _scale("projection", stored, "j").removeprefix(" * ")
        lines.append(f"for (int j = 0; j < @@_RANK; j++) u[j] *= {by};")
    return "\n".join(lines)


def _scoring(stored: PackedExpansion, recipe: _Recipe) -> str:
    """Return the function that computes ``k(x P, Z) A + b``."""
    Z, A, b = stored.landmarks, stored.dual_coef, stored.intercept
    coordinate = f"{_entry('landmarks', Z, 'i * @@_RANK + j')}{_scale('landmarks', Z, 'j')}"
    projecting = "const float *u = x;"
    if stored.projection is not None:
        projecting = _projecting(stored.projection)
    coefficient = _entry("dual_coef", A, "i * @@_SCORES + c")
    score = f"scores[c]{_scale('dual_coef', A, 'c')} + {_entry('intercept', b, 'c')}"
    return (
        "/* k(u, Z) A + b, a number for each output */\n"
        "static inline void @_scores(const float *x, float *scores)\n{\n"
        + _indented(projecting, 1)
        + "    float lost[@@_SCORES]; /* by rounding the sums: it goes into the next term */\n"
        "    for (int c = 0; c < @@_SCORES; c++) scores[c] = lost[c] = 0.0f;\n"
        "    for (int i = 0; i < @@_LANDMARKS; i++) {\n"
        "        float sum = 0.0f;\n"
        + _indented(recipe.start, 2)
        + "        for (int j = 0; j < @@_RANK; j++) {\n"
        f"            const float z = {coordinate};\n"
        + _indented(recipe.terms, 3)
        + "        }\n"
        + _indented(recipe.final, 2)
        + f"        const float k = {recipe.value};\n"
        "        for (int c = 0; c < @@_SCORES; c++) {\n"
        f"            const float term = k * {coefficient} - lost[c];\n"
        "            const float next = scores[c] + term;\n"
        "            lost[c] = (next - scores[c]) - term;\n"
        "            scores[c] = next;\n"
        "        }\n"
        "    }\n"
        f"    for (int c = 0; c < @@_SCORES; c++) scores[c] = {score};\n"
        "}\n"
    )


_TWO_CLASSES = """\
/* number of the class in @_classes */
static inline int @_predict(const float *x)
{
    float score;
    @_scores(x, &score);
    return score > 0.0f;
}

/* probabilities of both classes */
static inline void @_probabilities(const float *x, float *probabilities)
{
    float score;
    @_scores(x, &score);
    const float odds = expf(%(twice)s * (score > 0.0f ? -score : score));
    const float smaller = odds / (1.0f + odds);
    probabilities[0] = score > 0.0f ? smaller : 1.0f - smaller;
    probabilities[1] = score > 0.0f ? 1.0f - smaller : smaller;
}
"""

_CLASSES = """\
/* number of the class in @_classes: the first one of the highest score */
static inline int @_predict(const float *x)
{
    float scores[@@_SCORES];
    int winner = 0;
    @_scores(x, scores);
    for (int c = 1; c < @@_SCORES; c++)
        if (scores[c] > scores[winner]) winner = c;
    return winner;
}

/* probabilities of all classes */
static inline void @_probabilities(const float *x, float *probabilities)
{
    float largest, sum = 0.0f;
    @_scores(x, probabilities);
    largest = probabilities[0];
    for (int c = 1; c < @@_SCORES; c++)
        if (probabilities[c] > largest) largest = probabilities[c];
    for (int c = 0; c < @@_SCORES; c++) {
        probabilities[c] = expf(%(slope)s * (probabilities[c] - largest));
        sum += probabilities[c];
    }
    for (int c = 0; c < @@_SCORES; c++) probabilities[c] /= sum;
}
"""

_LABELS = """\
/* 1 for each label that applies, else 0 */
static inline void @_predict(const float *x, int *labels)
{
    float scores[@@_SCORES];
    @_scores(x, scores);
    for (int c = 0; c < @@_SCORES; c++) labels[c] = scores[c] > 0.0f;
}

/* probability of each label */
static inline void @_probabilities(const float *x, float *probabilities)
{
    @_scores(x, probabilities);
    for (int c = 0; c < @@_SCORES; c++)
        probabilities[c] = 1.0f / (1.0f + expf(-%(twice)s * probabilities[c]));
}
"""

_VALUES = """\
/* the predicted values */
static inline void @_predict(const float *x, float *y)
{
    @_scores(x, y);
}
"""


def _head(content: Contents) -> str:
    slopes = {"slope": _literal(content.slope), "twice": _literal(2.0 * content.slope)}
    if content.kind == "values":
        return _VALUES
    if content.kind == "labels":
        return _LABELS % slopes
    return (_TWO_CLASSES if content.n_outputs == 1 else _CLASSES) % slopes


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


def _header(model: Any, content: Contents, name: str) -> str:
    """Return the text of the header, for tables in types that C has."""
    stored, recipe = content.stored, _recipe(content.kernel)
    n, r = stored.landmarks.values.shape
    d, outputs = content.n_features, content.n_outputs
    arrays = {"landmarks": stored.landmarks, "dual_coef": stored.dual_coef}
    arrays["intercept"] = stored.intercept
    if stored.projection is not None:
        arrays["projection"] = stored.projection
    helpers = [_SQRT] if recipe.root else []
    if any(array.values.dtype == np.float16 for array in arrays.values()):
        helpers.append(_HALF)
    width = getattr(content.kernel, "gamma", None)
    stack = 4 * ((0 if stored.projection is None else r) + 2 * outputs)
    types = ", ".join(f"{key} {array.values.dtype.name}" for key, array in arrays.items())
    integers = any(array.values.dtype in (np.int8, np.float16) for array in arrays.values())
    includes = ["#include <math.h>"]
    includes += ["#include <stdint.h>"] if integers or helpers else []
    includes += ["#include <string.h>"] if helpers else []
    what = {
        "classes": f"{len(content.classes)} classes",
        "labels": f"{outputs} labels",
        "values": f"{outputs} value" + "s" * (outputs > 1),
    }[content.kind]
    u = "u = x"
    if stored.projection is not None:
        u += " P, P " + ("diagonal" if stored.projection.values.ndim == 1 else f"{d} x {r}")
    sizes = {"FEATURES": d, "RANK": r, "LANDMARKS": n, "SCORES": outputs}
    if content.kind == "classes":
        sizes["CLASSES"] = len(content.classes)
    text = (
        f"/* {type(model).__name__}, exported by nysplus: {d} features, {n} landmarks, {what}.\n"
        " *\n"
        f" *     scores = k(u, Z) A + b,  {u}\n"
        f" *     k(u, z) = {recipe.formula}" + (f",  g = {width:.9g}" if width else "") + "\n"
        " *\n"
        f" * Tables: {stored.n_bytes} bytes ({types}).\n"
        f" * Stack: {stack} bytes and a few scalars. C99, no heap, of libm expf alone (-lm).\n"
        " * Sums are compensated: -ffast-math makes them less exact.\n"
        " * x has @@_FEATURES floats, scores @@_SCORES. Nothing is written outside the outputs.\n"
        " */\n"
        "#ifndef @@_H\n#define @@_H\n\n"
        + "\n".join(includes)
        + "\n\n"
        + "".join(f"#define @@_{key} {value}\n" for key, value in sizes.items())
        + "\n"
        + _classes(content)
        + "\n".join(_tables(f"@_{key}", array) for key, array in arrays.items())
        + "\n"
        + "".join(f"{helper}\n" for helper in helpers)
        + _scoring(stored, recipe)
        + "\n"
        + _head(content)
        + "\n#endif\n"
    )
    return text.replace("@@", name.upper()).replace("@", name)


def to_c(model: Any, path: Any = None, *, name: str = "nysplus", dtype: str = "auto") -> str:
    """Return a fitted model as one self-contained C99 header.

    It has tables and ``static inline`` functions, allocates nothing, and calls nothing but
    ``expf``. With the default name::

        int nysplus_predict(const float *x);       /* position in nysplus_classes */
        void nysplus_scores(const float *x, float *scores);
        void nysplus_probabilities(const float *x, float *probabilities);

    In multilabel problems it is ``void nysplus_predict(const float *x, int *labels)``, for a
    regressor ``void nysplus_predict(const float *x, float *y)`` without probabilities. The sizes
    are macros (``NYSPLUS_FEATURES``, ``NYSPLUS_SCORES``). The stack takes 4 (r + 2L) bytes and
    some scalars, where r counts only behind a learned map. Rows far from all landmarks, infinite
    ones too, get the intercepts from kernels that fall off with the distance.

    Parameters
    ----------
    model : NystroemClassifier or NystroemRegressor
        Fitted, with a kernel of :mod:`nysplus.kernels` other than ``FunctionKernel``; a polynomial
        one needs a whole degree.
    path : path, optional
        Where to write the header as well; it appears there whole or not at all.
    name : str, default="nysplus"
        The first part of all C names; what C does not take in names becomes ``_``.
    dtype : {"auto", "float32"}, default="auto"
        Of the tables: as the model stores them (float16 and int8 stay so, float64 becomes
        float32), or float32 throughout, which takes more bytes and less time.

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
    if dtype not in ("auto", "float32"):
        raise ValueError(
            f"dtype={dtype!r} is not allowed. Pass 'auto' (as the model is stored) or 'float32'; a "
            "model is stored in float16 or int8 if it is fitted or compressed to a budget."
        )
    content, prefix = contents_of(model), _identifier(name)
    error = content.float32_error(direct=True)
    if error > MAX_FLOAT32_ERROR:
        warnings.warn(
            f"float32 arithmetic, which the header uses, changes scores of this model by up to "
            f"{error:.1g} of the largest. A larger alpha makes smaller coefficients.",
            stacklevel=2,
        )
    stored = content.stored
    P = stored.projection
    tables = PackedExpansion(
        _stored(stored.landmarks, dtype),
        _stored(stored.dual_coef, dtype),
        _stored(stored.intercept, dtype),
        None if P is None else _stored(P, dtype),
    )
    text = _header(model, replace(content, stored=tables), prefix)
    if path is not None:
        write_whole(path, text.encode("ascii"))
    return text
