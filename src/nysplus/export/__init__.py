"""Write fitted models for other languages: C, ONNX and JSON."""

from nysplus.export.c_header import to_c
from nysplus.export.json_text import to_json
from nysplus.export.onnx_converters import register_converters
from nysplus.export.onnx_graph import to_onnx

__all__ = ["register_converters", "to_c", "to_json", "to_onnx"]
