"""Fitted models in files: safetensors with a JSON header, never pickle.

A file consists of

- 8 bytes: the length of the header, little-endian;
- the header: JSON, as safetensors has it. It names the tensors, and its ``__metadata__`` has one
  entry, "nysplus": JSON text again, with everything that is not a tensor and a checksum;
- the tensors, without gaps: "landmarks" (for CSR landmarks "landmarks.data", "landmarks.indices"
  and "landmarks.indptr"), "dual_coef", "intercept" and, where there is a learned map,
  "projection"; for int8 numbers also "landmarks.scale" and so on. Files of format 2 also have
  "center", a number for each feature that is subtracted from it. Files of format 3 are of models
  that encode tables: "encoder.float16", "encoder.float32" and "encoder.float64" have the knots and
  tables of the code, and the header has its other numbers and the columns of the table. Files of
  format 4 have integers of 2 to 7 bits, offsets, or scales in float16. Integers of few bits are
  streams of bits in uint8 (:mod:`nysplus._bytes.bit_stream`), with their number of bits and their
  shape in the header; "landmarks.offset" and so on are added to the columns. Files of format 5 are
  of models that encode images: the header has the shape of these and the number of cosines.

So the size of a file is ``8 + length of the header + model.model_bytes_``, exactly; for tables
it is a little less, because `model_bytes_` counts the numbers of the code in the header as well.

Kept are the fitted function, the parameters, the classes, the names of features and the numbers
that the fit reports. Sums of `partial_fit` are not: a loaded model predicts, and `partial_fit`
starts new sums with its landmarks, kernel and ridge, as after `fit`. Nothing in a file names code:
classes are looked up in a fixed list, and functions cannot be saved.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import reprlib
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save as serialized
from sklearn.utils.validation import check_is_fitted

from nysplus._runtime.atomic_file import write_whole
from nysplus.persistence.models import MODELS, model_in, model_out
from nysplus.persistence.parameters import array_bytes, require
from nysplus.persistence.tables import Tensors
from nysplus.pipelines import as_model

# Raised whenever an older version would misread a new file.
FORMAT = 5
# The limit of safetensors.
MAX_HEADER_BYTES = 100_000_000
# Bytes that the values of a header may take as objects of Python, apart from those in proportion to
# the file, and the bytes of a list, of an object with its keys, and of any other value.
VALUE_BYTES, VALUE_RATIO = 40 * 2**20, 12
VALUE_COSTS = {b"[": 90, b"{": 240, b",": 64}
# The same of its arrays: text takes four bytes for each character of the longest entry.
ARRAY_BYTES, ARRAY_RATIO = 16 * 2**20, 4
TOO_MUCH = "the values of its header would take much more memory than the file: it is forged."
# Types of tensors, as safetensors names them.
TYPES = {
    "BOOL": "bool",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "I8": "int8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "U8": "uint8",
}

__all__ = ["FORMAT", "load", "save"]


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file, which :func:`load` reads.

    The file is written under a temporary name in the same folder and moved into place, so that
    there is never half a file under `path`. A file that is replaced keeps its permissions, and a
    symbolic link its target.

    Parameters
    ----------
    model : NystroemClassifier, NystroemRegressor or Pipeline
        Fitted. A pipeline becomes one model, see :func:`~nysplus.from_pipeline`.
    path : str or path
        Replaced if it exists.
    """
    model = as_model(model)
    if MODELS.get(type(model).__name__) is not type(model):
        raise TypeError(
            f"A {type(model).__name__} cannot be saved. Allowed are {sorted(MODELS)}, and not "
            "classes derived from them, and pipelines that end in one of these."
        )
    check_is_fitted(model)
    write_whole(path, _content(model))


def load(path: str | os.PathLike[str]) -> Any:
    """Return the model that :func:`save` has written to a file.

    Its predictions are those of the saved one, bit for bit, on the same machine. Everything in the
    file is checked and nothing in it is executed, so a file from an untrusted source can do no
    harm. A damaged file, or one that is not a model, raises a ValueError that says why.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    NystroemClassifier or NystroemRegressor
    """
    path = Path(path)
    try:
        header, tensors = _read(path)
        return model_in(header, tensors)
    # the errors of readers whose input is not as they expect
    except (ValueError, TypeError, OverflowError, RecursionError, SafetensorError) as error:
        raise ValueError(f"{path} cannot be loaded: {error}") from error


# Writing


def _content(model: Any) -> bytes:
    """Return the bytes of the file."""
    own, tensors = model_out(model)
    header = {"format": _format(own, tensors), "version": library_version(), **own}
    text = json.dumps({**header, "sha256": _checksum(header, tensors)}, sort_keys=True)
    content = serialized(tensors, {"nysplus": text})
    if len(content) - sum(tensor.nbytes for tensor in tensors.values()) > MAX_HEADER_BYTES:
        raise ValueError(
            f"The parameters and classes of the model take more than {MAX_HEADER_BYTES} bytes. "
            "Set parameters that are large arrays, such as selection, to their defaults first."
        )
    if array_bytes(own) > ARRAY_BYTES + ARRAY_RATIO * len(content):
        raise ValueError(
            "The classes and parameters of the model have text of a type that is much wider than "
            "its entries, which no file can hold. Convert them to a narrower type, for example "
            'with y.astype("U20"), and fit again.'
        )
    return content


def _format(own: dict[str, Any], tensors: Tensors) -> int:
    """Return the first format that has the given parts, so that older versions read the rest."""
    packed = any(
        name.endswith(".offset") or (name.endswith(".scale") and tensor.dtype != np.float32)
        for name, tensor in tensors.items()
    )
    if "shape" in own["expansion"].get("encoder", {}):
        return 5
    if packed or "few_bits" in own["expansion"]:
        return 4
    if "encoder" in own["expansion"]:
        return 3
    return 2 if "center" in tensors else 1


def library_version() -> str:
    """Return the version of the installed library."""
    try:
        return importlib.metadata.version("nysplus")
    except importlib.metadata.PackageNotFoundError:  # run from its source
        return "unknown"


def _checksum(header: dict[str, Any], tensors: Tensors) -> str:
    """Return a hash of everything: a flipped bit is found, whatever it would have meant."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype.name} {tensor.shape}".encode())
        digest.update(tensor.tobytes())
    return digest.hexdigest()


# Reading


def _read(path: Path) -> tuple[dict[str, Any], Tensors]:
    """Return header and tensors of a file, with the checksum checked."""
    size = path.stat().st_size
    require(size >= 8, f"it has {size} bytes, which is no safetensors file.")
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        require(
            length <= min(size - 8, MAX_HEADER_BYTES),
            f"its header should have {length} bytes, more than the file or the limit of "
            f"{MAX_HEADER_BYTES}: it is truncated, or no safetensors file.",
        )
        file.seek(0)
        content = file.read(size)
    header = _header(content[8 : 8 + length], size)
    tensors = {}
    for name, view in deserialize(content):  # type: ignore[no-untyped-call]  # it has no types
        require(view["dtype"] in TYPES, f"tensor {name!r} has the type {view['dtype']}.")
        flat = np.frombuffer(view["data"], dtype=np.dtype(TYPES[view["dtype"]]).newbyteorder("<"))
        tensors[name] = flat.astype(TYPES[view["dtype"]]).reshape(view["shape"])
    checksum = header.pop("sha256", None)
    require(checksum == _checksum(header, tensors), "its checksum is wrong: the file is damaged.")
    return header, tensors


def _header(content: bytes, size: int) -> dict[str, Any]:
    """Return the header of a file of `size` bytes, of a format that this version reads."""
    require(_value_bytes(content) <= VALUE_BYTES + VALUE_RATIO * size, TOO_MUCH)
    try:
        outer = json.loads(content.decode("utf-8"))
        header: dict[str, Any] = json.loads(outer["__metadata__"]["nysplus"])
        number = header["format"]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError("it has no nysplus header: it is damaged or of another origin.") from error
    require(
        type(number) is int and number >= 1, f"format={reprlib.repr(number)} is no format number."
    )
    require(
        number <= FORMAT,
        f"it has format {number} of nysplus {reprlib.repr(header.get('version'))}; this version "
        f"reads formats up to {FORMAT}. Upgrade nysplus.",
    )
    require(array_bytes(header) <= ARRAY_BYTES + ARRAY_RATIO * size, TOO_MUCH)
    return header


def _value_bytes(content: bytes) -> int:
    """Return an upper bound of the memory of all values in a JSON text, without parsing it.

    Brackets and commas that are part of a text are counted like the others.
    """
    return sum(cost * content.count(sign) for sign, cost in VALUE_COSTS.items())
