"""Tables as they come: numbers on any scale, categories, gaps and dates as code columns."""

from nysplus.encoding.table_encoder import TableEncoder

__all__ = ["TableEncoder"]
