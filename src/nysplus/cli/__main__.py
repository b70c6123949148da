"""Run the command with ``python -m nysplus.cli``."""

from nysplus.cli import app

if __name__ == "__main__":
    app(prog_name="nysplus")
