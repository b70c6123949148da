"""The parameter `encoder` of the estimators."""

from __future__ import annotations

from typing import Any

from nysplus.encoding.image_encoder import ImageEncoder
from nysplus.encoding.table_encoder import TableEncoder


def make_encoder(encoder: Any) -> TableEncoder | ImageEncoder | None:
    """Return the encoder of the parameter `encoder`; None for rows that are numbers as given."""
    if encoder is None:
        return None
    if isinstance(encoder, str) and encoder == "auto":
        return TableEncoder()
    if isinstance(encoder, (TableEncoder, ImageEncoder)):
        encoder.check()
        return encoder
    raise ValueError(
        f"encoder={encoder!r} is not known. Allowed are None, 'auto', a TableEncoder, or an "
        "ImageEncoder."
    )


def table_encoder(encoder: Any) -> TableEncoder | None:
    """Return the encoder of the parameter `encoder` if rows are those of a table."""
    found = make_encoder(encoder)
    return found if isinstance(found, TableEncoder) else None
