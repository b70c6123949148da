"""``nysplus serve``: a page that runs a model, on this machine alone."""

from __future__ import annotations

import webbrowser
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated, Any

import typer

from nysplus.cli import options
from nysplus.cli.errors import CommandError, Stopped
from nysplus.cli.files import read_model
from nysplus.cli.output import Output
from nysplus.export import to_html

# Only programs on this machine reach this address.
HOST = "127.0.0.1"
DEFAULT_PORT = 8080


def serve(
    model_file: options.ModelFile,
    port: Annotated[
        int, typer.Option(help="Port; 0 for any free one.", min=0, max=65535)
    ] = DEFAULT_PORT,
    open_browser: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
) -> None:
    """Serve a page to try a model with, until Ctrl-C.

    Rows are entered in fields, images are drawn, and the page shows the prediction, its set or
    interval, the contributions of the columns and the landmarks that matter most, and warns of rows
    unlike the training rows. The model runs in the browser; other machines cannot reach it.

    Example: nysplus serve churn.nys --port 8080 --open
    """
    output = Output(json, quiet, no_color)
    model = read_model(model_file)
    with output.noting_warnings():
        page = to_html(model, title=model_file.stem).encode()
    with server_of(page, port) as server:
        address = f"http://{HOST}:{server.server_port}/"
        output.line(f"{model_file}: {address} (stop with Ctrl-C)")
        output.result(address=address, file=str(model_file))
        if open_browser:
            webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            raise Stopped("Stopped.") from None


def server_of(page: bytes, port: int) -> ThreadingHTTPServer:
    """Return a server of one page."""

    class Handler(BaseHTTPRequestHandler):
        """Answer requests for the page; there is nothing else."""

        def do_GET(self) -> None:
            found = self.path.partition("?")[0] in ("/", "/index.html")
            content = page if found else b"Not found\n"
            self.send_response(HTTPStatus.OK if found else HTTPStatus.NOT_FOUND)
            kind = "text/html" if found else "text/plain"
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_HEAD = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing: requests of the page are no news."""

    try:
        return ThreadingHTTPServer((HOST, port), Handler)
    except OSError as error:
        raise CommandError(
            f"Port {port} cannot be used: {error.strerror or error}. Give another --port, or 0 for "
            "any free one."
        ) from error
