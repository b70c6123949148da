"""Write models as one C header: C99, tables and loops, no heap, and ``expf`` of libm.

The functions are in ``c_templates/*.h``: ``$word`` is filled in, ``@`` becomes the name of the
model and ``@@`` the same in capitals. A ``${word}`` at the beginning of a line stands for any
number of whole lines, none included. Words between backquotes depend on the type of real numbers
(:func:`~nysplus.export.c_kernels.in_real`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields

import numpy as np

from nysplus.expansion import PackedArray
from nysplus.explain.product import quadrature
from nysplus.export.c_encoding import LINEAR
from nysplus.export.c_inputs import constants, input_comment
from nysplus.export.c_kernels import CKernel, c_kernel, in_real, literal
from nysplus.export.c_kernels import number as marked
from nysplus.export.c_model import CModel
from nysplus.export.c_tables import factor, number, summand, tables, templates
from nysplus.export.c_text import filled, indented, string, table, template
from nysplus.export.c_trust import trust_functions
from nysplus.export.contents import Contents, Trust

# A line of the comment at the top of a header, if rows are double.
WHY_DOUBLE = " * x is double because float has too few digits or too small a range for it.\n"
# The statement before a linear term is summed up.
NO_LINEAR_TERM = "for (int c = 0; c < @@_SCORES; c++) v[c] = `0.0`;"


def _feature(model: CModel, i: str) -> str:
    """Return the expression of a feature minus the centre, in the unit, as a real number."""
    center, feature = model.content.stored.center, f"x[{i}]"
    wide = model.row == "double" or (center is not None and center.values.dtype == np.float64)
    if center is not None:
        feature = f"({feature} - @_center[{i}])"
    if model.unit != 1.0:
        feature += f" * {model.unit!r}" if wide else f" * {literal(model.unit)}"
    return f"(float)({feature})" if wide and model.real == "float" else feature


def _diagonal(P: PackedArray) -> str:
    """Return the expression of entry j of a diagonal map, as a factor."""
    text = number("projection", P, "j", "j")
    return text if P.offset is None else f"({text})"


def _from_code(model: CModel) -> str:
    """Return the statements that compute ``u = (E(x) - c) P``."""
    P, c = model.content.stored.projection, model.content.stored.center
    each = "for (int j = 0; j < @@_RANK; j++)"
    start = "`0.0`" if model.origin is None else "@_origin[j]"
    if model.content.stored.linear is None:
        lines = ["`float` u[@@_RANK];"]
    else:
        lines = ["`float` u[@@_RANK + @@_SCORES], *v = u + @@_RANK;", NO_LINEAR_TERM]
    lines += [f"{each} u[j] = {start};", "@_encode(x, u);"]
    if c is not None and model.origin is None:
        lines.append(f"{each} u[j] = (`float`)(u[j] - @_center[j]);")
    if P is not None:
        by = _diagonal(P) if P.values.ndim == 1 else factor("projection", P, "j")
        lines += [f"{each} u[j] *= {by.removeprefix(' * ')};"] if by else []
    return "\n".join(lines)


def _coordinates(model: CModel) -> str:
    """Return the statements that compute ``u = (x - c) P``."""
    if model.code is not None:
        return _from_code(model)
    stored = model.content.stored.projection
    if stored is None:
        feature = _feature(model, "j")
        if feature == "x[j]":
            return "const `float` *u = x;"
        return f"`float` u[@@_RANK];\nfor (int j = 0; j < @@_RANK; j++) u[j] = {feature};"
    if stored.values.ndim == 1:
        product = f"{_feature(model, 'j')} * {_diagonal(stored)}"
        return f"`float` u[@@_RANK];\nfor (int j = 0; j < @@_RANK; j++) u[j] = {product};"
    cell = summand("projection", stored, "i * @@_RANK + j", "j")
    lines = [
        "`float` u[@@_RANK];",
        "for (int j = 0; j < @@_RANK; j++) u[j] = `0.0`;",
        "for (int i = 0; i < @@_FEATURES; i++)",
        "    for (int j = 0; j < @@_RANK; j++)",
        f"        u[j] += {_feature(model, 'i')} * {cell};",
    ]
    by = factor("projection", stored, "j").removeprefix(" * ")
    if by:
        lines.append(f"for (int j = 0; j < @@_RANK; j++) u[j] *= {by};")
    return "\n".join(lines)


def _linear_term(model: CModel) -> str:
    """Return the statements that compute ``v = (x - c) B``; the code of a table has it already."""
    B = model.content.stored.linear
    if B is None or model.code is not None:
        return ""
    cell = summand(LINEAR, B, "i * @@_SCORES + c", "c")
    lines = [
        "`float` v[@@_SCORES];",
        NO_LINEAR_TERM,
        "for (int i = 0; i < @@_FEATURES; i++)",
        "    for (int c = 0; c < @@_SCORES; c++)",
        f"        v[c] += {_feature(model, 'i')} * {cell};",
    ]
    return "\n".join(lines)


def _scoring(model: CModel, kernel: CKernel) -> str:
    """Return the function that computes ``k((x - c) P, Z) A + x B + b``."""
    stored = model.content.stored
    Z, A, B, b = stored.landmarks, stored.dual_coef, stored.linear, stored.intercept
    linear = "" if B is None else f" + v[c]{factor(LINEAR, B, 'c')}"
    return filled(
        "scores",
        row=model.row,
        sum=_sum(model),
        projecting=indented(_coordinates(model), 1),
        linear=indented(_linear_term(model), 1),
        start=indented(kernel.start, 2),
        coordinate=number("landmarks", Z, "i * @@_RANK + j", "j"),
        terms=indented(kernel.terms, 3),
        final=indented(kernel.final, 2),
        value=kernel.value,
        coefficient=summand("dual_coef", A, "i * @@_SCORES + c", "c"),
        score=f"scores[c]{factor('dual_coef', A, 'c')}{linear} + "
        f"{number('intercept', b, 'c', 'c')}",
    )


def _predicting(model: CModel) -> str:
    """Return the functions that make predictions and probabilities of scores."""
    content = model.content
    binary = content.kind == "classes" and content.n_outputs == 1
    kind = "two_classes" if binary else content.kind
    predictions = filled(kind, row=model.row)
    if content.slope is None:
        return predictions
    slope, twice = marked(content.slope), marked(2.0 * content.slope)
    probabilities = filled(f"{kind}_probabilities", slope=slope, twice=twice, row=model.row)
    return f"{predictions}\n{probabilities}"


def _explaining(model: CModel, kernel: CKernel) -> str:
    """Return the function that computes Shapley values; none without a background."""
    if model.background is None:
        return ""
    stored = model.content.stored
    Z, A = stored.landmarks, stored.dual_coef
    share = marked(1.0 / len(model.background))
    return "\n" + filled(
        "explain",
        row=model.row,
        projecting=indented(_coordinates(model), 1),
        start=indented(kernel.start, 1),
        terms=indented(kernel.terms, 1),
        value=kernel.value,
        coordinate=number("landmarks", Z, "i * @@_RANK + j", "j"),
        coefficient=summand("dual_coef", A, "i * @@_SCORES + c", "c"),
        scale=f"{share}{factor('dual_coef', A, 'c')}",
    )


def _explanation_arrays(model: CModel) -> dict[str, PackedArray]:
    """Return the tables of the function that computes Shapley values."""
    if model.background is None:
        return {}
    U, _ = model.coordinates(model.background)
    t, w = quadrature(U.shape[1])
    return {
        "background": PackedArray(U),
        "nodes": PackedArray(t.astype(U.dtype)),
        "weights": PackedArray(w.astype(U.dtype)),
    }


def classes_table(content: Contents) -> str:
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
        c_type, texts = "char *const", [string(str(label)) for label in classes]
    return table(c_type, "@_classes", texts, len(classes)) + "\n"


def _arrays(model: CModel) -> dict[str, PackedArray]:
    """Return the tables of the header by name."""
    stored, origin = model.content.stored, model.origin
    arrays = {field.name: getattr(stored, field.name) for field in fields(stored)}
    arrays[LINEAR] = arrays.pop("linear")
    if origin is not None:
        arrays |= {"center": None, "origin": origin}
    if model.code is not None:
        arrays |= model.code.tables
    arrays |= _explanation_arrays(model)
    return {name: array for name, array in arrays.items() if array is not None}


def _helpers(model: CModel, kernel: CKernel, arrays: dict[str, PackedArray]) -> str:
    """Return the functions that the function of the scores calls."""
    helpers = list(kernel.helpers)
    if model.real == "double":
        helpers = ["root"] if helpers else []
    helpers += templates(arrays.values())
    texts = [template(helper) for helper in helpers]
    if model.code is not None:
        P, B = model.content.stored.projection, model.content.stored.linear
        texts.append(model.code.function(model.row, P, B))
    return "".join(f"{text}\n" for text in texts)


def table_bytes(model: CModel) -> int:
    """Return the bytes of the tables, without those of class labels."""
    return sum(array.n_bytes for array in _arrays(model).values())


def stack_bytes(model: CModel) -> int:
    """Return the bytes of arrays on the stack."""
    content = model.content
    n_numbers = (2 if content.stored.linear is None else 3) * content.n_outputs
    n_numbers += 0 if model.code is None else model.code.n_stack
    if "` u[" in _coordinates(model):
        n_numbers += content.stored.landmarks.values.shape[1]
    if model.background is not None:
        n_numbers = max(n_numbers, 4 * content.stored.landmarks.values.shape[1])
    return (8 if model.real == "double" else 4) * n_numbers


def header_text(estimator: str, model: CModel, name: str, trust: Trust | None = None) -> str:
    """Return the text of the header."""
    content, arrays = model.content, _arrays(model)
    kernel = c_kernel(content.kernel)
    helpers, scoring = _helpers(model, kernel, arrays), _scoring(model, kernel)
    predictions = _predicting(model)
    if trust is not None:
        predictions += "\n" + trust_functions(model, kernel, trust, _coordinates(model))
    n, r = content.stored.landmarks.values.shape
    sizes = {"FEATURES": content.n_features, "RANK": r, "LANDMARKS": n, "SCORES": content.n_outputs}
    if content.kind == "classes":
        sizes["CLASSES"] = len(content.classes)
    if model.background is not None:
        sizes |= {"BACKGROUND": len(model.background), "NODES": len(arrays["nodes"].values)}
    width = getattr(content.kernel, "gamma", None)
    text = filled(
        "header",
        model=estimator,
        n_features=content.n_features,
        n_landmarks=n,
        outputs=output_names(content),
        sum=_sum(model),
        u=_mapped(model),
        formula=kernel.formula + (f",  g = {width:.9g}" if width else ""),
        n_bytes=table_bytes(model),
        types=", ".join(f"{key} {array.type_name}" for key, array in arrays.items()),
        stack=stack_bytes(model),
        code="" if model.code is None else model.code.comment,
        libm=_libm(helpers),
        row=model.row,
        why_double=WHY_DOUBLE if model.row != model.real else "",
        inputs="" if content.schema is None else input_comment(content.schema),
        includes=_includes(arrays.values(), helpers),
        sizes="".join(f"#define @@_{key} {value}\n" for key, value in sizes.items()),
        constants="" if content.schema is None else constants(content.schema),
        classes=classes_table(content),
        tables="\n".join(tables(f"@_{key}", array) for key, array in arrays.items()),
        helpers=helpers,
        scores=scoring,
        predictions=predictions + _explaining(model, kernel),
    )
    return in_real(text, model.real).replace("@@", name.upper()).replace("@", name)


def _libm(functions: str) -> str:
    """Return the functions of libm for the comment: those of the kernel, and of a code."""
    names = sorted(set(re.findall(r"\b(cos|sin|floorf?|expm1f?|logf?|log1pf?)(?=[`(])", functions)))
    marked = [f"`{name}`" if name in ("cos", "sin") else name for name in names]
    return f"`exp`, {', '.join(marked)}" if marked else "`exp` alone"


def _includes(arrays: Iterable[PackedArray], helpers: str) -> str:
    """Return the lines that include headers of the C library."""
    integers = any(array.values.dtype in (np.int8, np.float16) for array in arrays)
    includes = ["#include <math.h>"]
    includes += ["#include <stdint.h>"] if integers or helpers else []
    includes += ["#include <string.h>"] if "memcpy" in helpers else []
    return "\n".join(includes)


def output_names(content: Contents) -> str:
    """Return the number and kind of outputs for the comment, such as "3 classes"."""
    if content.kind == "classes":
        return f"{len(content.classes)} classes"
    if content.kind in ("labels", "features"):
        return f"{content.n_outputs} {content.kind if content.kind == 'labels' else 'components'}"
    return f"{content.n_outputs} value" + "s" * (content.n_outputs > 1)


def _moved(model: CModel) -> str:
    """Return the formula of rows minus the centre, in the unit, for comments."""
    x = "x" if model.code is None else "E(x)"
    x = x if model.content.stored.center is None else f"({x} - c)"
    return x if model.unit == 1.0 else f"{model.unit:g} {x}"


def _sum(model: CModel) -> str:
    """Return the formula of the scores for comments."""
    if model.content.stored.linear is None:
        return "k(u, Z) A + b"
    return f"k(u, Z) A + {_moved(model) if model.code is None else 'E(x)'} B + b"


def _mapped(model: CModel) -> str:
    """Return the formula of u for the comment."""
    stored, x = model.content.stored, _moved(model)
    if stored.projection is None:
        return f"u = {x}"
    shape = stored.projection.values.shape
    return f"u = {x} P, P " + ("diagonal" if len(shape) == 1 else f"{shape[0]} x {shape[1]}")
