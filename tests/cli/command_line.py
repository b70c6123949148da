"""Run commands inside the process of the tests, and write small tables."""

from __future__ import annotations

import csv

from typer.testing import CliRunner

from nysplus.cli import app


def invoke(*arguments, **environment):
    """Return the exit code, the output and the errors of a command."""
    result = CliRunner().invoke(app, [str(each) for each in arguments], env=environment)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def run(*arguments, out=None):
    """Return the output of a command that must succeed."""
    given = (*arguments, *(() if out is None else ("--out", out)))
    code, output, errors = invoke(*given)
    assert code == 0, errors
    return output


def failure(*arguments):
    """Return the line that a command with a mendable error prints."""
    code, output, errors = invoke(*arguments)
    assert code == 2, (output, errors)
    lines = [line for line in errors.splitlines() if not line.startswith("Note: ")]
    assert len(lines) == 1, errors
    assert lines[0].startswith("Error: ")
    return lines[0]


def write_csv(path, **columns):
    """Write columns to a CSV file and return its path."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path
