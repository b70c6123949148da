"""Tables and images as code columns: what rows are, and how a kernel can compare them."""

from nysplus.encoding.image_encoder import ImageEncoder
from nysplus.encoding.table_encoder import TableEncoder

__all__ = ["ImageEncoder", "TableEncoder"]
