"""The command ``nysplus``: small models of your own tables, from a file to a file."""

from __future__ import annotations

try:
    import rich  # noqa: F401
    import typer  # noqa: F401
except ModuleNotFoundError as error:  # pragma: no cover - both are there in the tests
    raise SystemExit(
        f"The command nysplus needs {error.name}, which is not installed: "
        'pip install "nysplus[cli,table]"'
    ) from error

from nysplus.cli.application import app

__all__ = ["app"]
