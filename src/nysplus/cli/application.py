"""The commands of ``nysplus``, and how their errors are reported."""

from __future__ import annotations

import importlib.util
import sys
from importlib import import_module
from typing import Any

import typer

from nysplus.cli.compare import compare
from nysplus.cli.compress import compress
from nysplus.cli.distill import distill
from nysplus.cli.errors import CommandError
from nysplus.cli.evaluate import evaluate
from nysplus.cli.explain import explain
from nysplus.cli.export import export
from nysplus.cli.inspection import inspect
from nysplus.cli.predict import predict
from nysplus.cli.serve import serve
from nysplus.cli.train import train

# Exit codes: an error that the user can mend, and Ctrl-C.
MENDABLE, INTERRUPTED = 2, 130
# Errors whose message is written for users: of arguments and files, of the library's checks, of
# paths and permissions, and of extras that are not installed.
ERRORS = (ValueError, TypeError, OSError, ImportError)
# Commands of the experiments. They are imported when they are called.
EXPERIMENTS = {
    "datasets": "List, fetch or convert the datasets of the experiments.",
    "reproduce": "Reproduce the figures of the paper.",
    "figures": "Draw the figures of the paper from results.",
    "report": "Write the report on the paper from results.",
    "bench": "Repeat the measurements of the documentation.",
}


class Commands(typer.core.TyperGroup):
    """Commands that print errors which users can mend in one line, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            sys.stderr.close()  # the reader of the output, such as head, has seen enough
            raise typer.Exit(0) from None
        except KeyboardInterrupt as stop:
            typer.echo(str(stop) or "Stopped. No file was written.", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except ERRORS as error:
            typer.echo(f"Error: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(MENDABLE) from error


app = typer.Typer(
    cls=Commands,
    help="Small models of your own tables: train, judge, export. Kernel machines in kilobytes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="rich",
)
COMMANDS = (
    *(train, predict, evaluate, explain, inspect),
    *(compress, distill, export, serve, compare),
)
for command in COMMANDS:
    app.command()(command)


def experiment(context: typer.Context) -> None:
    """Hand all arguments to the command line of the experiments."""
    if importlib.util.find_spec("nysplus_experiments") is None:
        raise CommandError(f"nysplus {context.info_name} needs the package nysplus_experiments.")
    try:
        found = import_module("nysplus_experiments.cli")
    except ModuleNotFoundError as error:
        raise CommandError(
            f"nysplus {context.info_name} needs {error.name}, which is not installed: "
            'pip install "nysplus[experiments,plot]"'
        ) from error
    found.app([str(context.info_name), *context.args], prog_name="nysplus")


for name, summary in EXPERIMENTS.items():
    app.command(
        name,
        help=summary,
        rich_help_panel="Experiments",
        add_help_option=False,  # the experiments have their own
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )(experiment)
