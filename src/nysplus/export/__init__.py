"""Write fitted models for other languages: C, ONNX, JSON, and a page that runs the model."""

from nysplus.export.c_export import c_report, to_c
from nysplus.export.json_text import to_json
from nysplus.export.onnx_converters import register_converters
from nysplus.export.onnx_graph import to_onnx
from nysplus.export.web_page import to_html

__all__ = ["c_report", "register_converters", "to_c", "to_html", "to_json", "to_onnx"]
