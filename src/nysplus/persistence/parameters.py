"""Parameters as JSON and back: numbers, text, arrays, and objects of this library by name.

Values that JSON cannot express become an object with one key. The only names that are looked up are
the classes of a fixed list, whose constructors only assign, so reading executes no code.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import reprlib
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator

import nysplus.encoding
from nysplus._learning.refinement import Refinement
from nysplus._ridge.feature_map import APPROXIMATIONS
from nysplus._tuning.metric import LearnedMetric
from nysplus.kernels import KERNELS
from nysplus.landmarks import SELECTORS, GivenLandmarks
from nysplus.landmarks.pickers import PICKERS, LargestScores

CSR_PARTS = ("data", "indices", "indptr")
# Of the generator's state.
MT19937_WORDS = 624


def _is_estimator(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseEstimator)


# Objects that may be parameters of a saved model. Functions are not among them.
OBJECTS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *KERNELS.values(),
        *SELECTORS.values(),
        *PICKERS.values(),
        *APPROXIMATIONS.values(),
        GivenLandmarks,
        LargestScores,
        LearnedMetric,
        Refinement,
        *(kind for kind in vars(nysplus.encoding).values() if _is_estimator(kind)),
    )
}

PLAIN = (bool, int, float, str)

ARRAY = (("dtype", str), ("shape", list), ("values", list))
# Of lists and objects in each other: a kernel of a selector of a selector has 15.
MAX_DEPTH = 100
ARRAY_TYPE = re.compile(r"[<>|][biufUO]\d{0,9}")


def require(condition: Any, message: str) -> None:
    """Raise a ValueError unless the condition holds."""
    if not condition:
        raise ValueError(message)


def entry(record: Any, name: str, *kinds: type) -> Any:
    """Return an entry of a JSON object, of one of the given types."""
    require(isinstance(record, dict) and name in record, f"its header has no {name!r}.")
    value = record[name]
    allowed = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
    shown = reprlib.repr(value)
    require(type(value) in kinds, f"{name}={shown} in its header must be {allowed}.")
    return value


def params_out(thing: Any) -> dict[str, Any]:
    """Return the parameters of an estimator or another object as JSON."""
    kind = type(thing).__name__
    params = thing.get_params(deep=False)
    return {name: value_out(value, f"{kind}.{name}") for name, value in params.items()}


def value_out(value: Any, what: str) -> Any:
    """Return a value as JSON; `what` names it in errors."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, list):
        return [value_out(item, what) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [value_out(item, what) for item in value]}
    if isinstance(value, dict):
        pairs = [[value_out(key, what), value_out(item, what)] for key, item in value.items()]
        return {"dict": pairs}
    if OBJECTS.get(type(value).__name__) is type(value):
        name = type(value).__name__
        return {"object": {"class": name, "params": params_out(value)}}
    if isinstance(value, (np.ndarray, np.generic)) and _is_plain(np.asarray(value)):
        array = np.asarray(value)
        shape, values = list(array.shape), array.ravel().tolist()
        return {"array": {"dtype": array.dtype.str, "shape": shape, "values": values}}
    if isinstance(value, np.random.RandomState):
        state = [value_out(part, what) for part in value.get_state(legacy=True)]
        return {"random_state": state}
    if sp.issparse(value) and value.format == "csr":
        parts = {name: value_out(getattr(value, name), what) for name in CSR_PARTS}
        return {"csr": {**parts, "shape": list(value.shape)}}
    raise ValueError(
        f"{what}={reprlib.repr(value)} cannot be saved: a file holds numbers, text, arrays and "
        "objects of nysplus, but no functions or classes of others, which loading would "
        "have to execute. "
        "Replace it before saving (set_params does not change what is fitted); a model whose "
        "kernel is a function can only be pickled."
    )


def made(kind: type, params: dict[str, Any]) -> Any:
    """Return an object with these parameters, of a class whose constructor only assigns them."""
    known = inspect.signature(kind).parameters
    unknown = sorted(set(params) - set(known))
    require(not unknown, f"{kind.__name__} has no parameters {unknown}. Upgrade nysplus.")
    values = {name: value_in(value) for name, value in params.items()}
    missing = [
        name
        for name, parameter in known.items()
        if parameter.default is parameter.empty and name not in values
    ]
    require(not missing, f"{kind.__name__} needs the parameters {missing}.")
    return kind(**values)


def value_in(value: Any) -> Any:
    """Return the value of which :func:`value_out` has written JSON."""
    if isinstance(value, list):
        return [value_in(item) for item in value]
    if not isinstance(value, dict):
        return value
    require(len(value) == 1, f"{reprlib.repr(value)} is no value.")
    ((word, content),) = value.items()
    if word == "tuple":
        return tuple(value_in(item) for item in entry(value, word, list))
    if word == "dict":
        pairs = entry(value, word, list)
        require(
            all(type(pair) is list and len(pair) == 2 for pair in pairs),
            "a dict is no list of pairs.",
        )
        return {value_in(key): value_in(item) for key, item in pairs}
    if word == "object":
        name = entry(content, "class", str)
        require(name in OBJECTS, f"the object {name!r} is not known. Upgrade nysplus.")
        return made(OBJECTS[name], entry(content, "params", dict))
    if word == "array":
        return _array_in(*(entry(content, name, kind) for name, kind in ARRAY))
    if word == "random_state":
        return _random_state_in([value_in(part) for part in entry(value, word, list)])
    require(word == "csr", f"the word {reprlib.repr(word)} is not known. Upgrade nysplus.")
    parts = [value_in(entry(content, name, dict)) for name in CSR_PARTS]
    return csr_of(sp.csr_matrix, parts, entry(content, "shape", list))


def array_bytes(value: Any, depth: int = 0) -> int:
    """Return the bytes of all arrays that :func:`value_in` makes of some JSON, without making them.

    A short text may name a type of text of any width, which every entry of an array takes. Values
    that are nested too deep for functions that follow them raise a ValueError.
    """
    require(depth <= MAX_DEPTH, f"its values are nested more than {MAX_DEPTH} deep.")
    if isinstance(value, list):
        return sum(array_bytes(item, depth + 1) for item in value if type(item) in (list, dict))
    if not isinstance(value, dict):
        return 0
    content = value.get("array")
    dtype, values = (
        (content.get("dtype"), content.get("values")) if isinstance(content, dict) else (None, None)
    )
    if isinstance(dtype, str) and ARRAY_TYPE.fullmatch(dtype) and isinstance(values, list):
        return len(values) * np.dtype(dtype).itemsize
    return sum(array_bytes(item, depth + 1) for item in value.values())


def _array_in(dtype: str, shape: list[Any], values: list[Any]) -> Any:
    """Return an array, or a number of numpy where there are no axes."""
    require(ARRAY_TYPE.fullmatch(dtype), f"dtype={dtype[:20]!r} is not allowed.")
    kind = np.dtype(dtype)
    fits = all(type(size) is int and size >= 0 for size in shape) and len(shape) <= 2
    fits = fits and math.prod(shape) == len(values)
    require(fits, "an array has a wrong size.")
    require(
        all(type(value) in PLAIN for value in values), "an array has other things than numbers."
    )
    array = np.array(values, dtype=kind)
    # as text, which tells 1 from 1.0 and knows numbers that are not finite
    same = _is_plain(array) and json.dumps(array.tolist()) == json.dumps(values)
    require(same, f"an array has values that are not of its type {dtype}.")
    array = array.reshape(shape)
    return array if array.ndim else array[()]


def _is_plain(array: npt.NDArray[Any]) -> bool:
    """Tell whether an array has numbers, truth values or text."""
    if array.dtype.kind == "O":
        return all(type(value) in PLAIN for value in array.ravel())
    if array.dtype.kind == "U":
        return True
    # extended precision is no number of JSON
    return array.dtype.kind in "biuf" and array.dtype.itemsize <= 8


def _random_state_in(state: list[Any]) -> np.random.RandomState:
    """Return a random generator, after the checks of its state that numpy omits."""
    require(len(state) == 5, "a random state must have five parts.")
    name, keys, place, has_gauss, gauss = state
    fits = name == "MT19937" and isinstance(keys, np.ndarray) and keys.dtype == np.uint32
    fits = fits and keys.shape == (MT19937_WORDS,) and type(gauss) is float
    fits = fits and type(place) is int and 0 <= place <= MT19937_WORDS
    require(fits and has_gauss in (0, 1), "a random state is not one of RandomState.")
    rng = np.random.RandomState()
    rng.set_state((name, keys, place, int(has_gauss), gauss))
    return rng


def csr_of(make: Any, parts: list[Any], shape: list[Any]) -> Any:
    """Return the CSR matrix of three arrays, all of whose numbers are in range."""
    fits = len(shape) == 2 and all(type(size) is int and 1 <= size < 2**62 for size in shape)
    require(fits, f"shape={reprlib.repr(shape)} must be two positive integers.")
    data, indices, indptr = parts
    flat = all(isinstance(part, np.ndarray) and part.ndim == 1 for part in parts)
    whole = flat and all(part.dtype in (np.int32, np.int64) for part in (indices, indptr))
    require(whole and data.dtype.kind in "biuf", "CSR numbers have wrong types or axes.")
    fits = len(indptr) == shape[0] + 1 and indptr[0] == 0 and indptr[-1] == len(data)
    fits = fits and len(indices) == len(data) and (np.diff(indptr) >= 0).all()
    inside = fits and (indices >= 0).all() and (indices < shape[1]).all()
    require(inside, "CSR numbers of rows and columns do not fit its shape.")
    return make((data, indices, indptr), shape=tuple(shape))
