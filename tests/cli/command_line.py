"""Run commands inside the process of the tests, and write small tables."""

from __future__ import annotations

import csv

from typer.testing import CliRunner

from nysplus.cli import app


def invoke(*arguments, report=False, **environment):
    """Return the exit code, the output and the errors of a command.

    `train` writes no report unless the test has one in mind: reports take seconds.
    """
    given = [str(each) for each in arguments]
    if given[0] == "train" and not report and "--help" not in given:
        given.append("--no-report")
    result = CliRunner().invoke(app, given, env=environment)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def run(*arguments, out=None, report=False):
    """Return the output of a command that must succeed."""
    given = (*arguments, *(() if out is None else ("--out", out)))
    code, output, errors = invoke(*given, report=report)
    assert code == 0, errors
    return output


def failure(*arguments, report=False):
    """Return the line that a command with a mendable error prints."""
    code, output, errors = invoke(*arguments, report=report)
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
