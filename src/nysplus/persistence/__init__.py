"""Save fitted models and load them: safetensors with a checked JSON header, never pickle."""

from nysplus.persistence.container import FORMAT, load, save
from nysplus.persistence.models import loadable

__all__ = ["FORMAT", "load", "loadable", "save"]
