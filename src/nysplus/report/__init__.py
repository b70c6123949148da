"""Reports on fitted models, one HTML page each. They need jinja2: ``nysplus[cli]``."""

from nysplus.report.writing import write_report

__all__ = ["write_report"]
