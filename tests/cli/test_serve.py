"""`nysplus serve`: a page on this machine, until Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from browser import Browser, needs_chromium
from command_line import failure, invoke

import nysplus
from nysplus.cli.serve import HOST, server_of
from nysplus.export import to_html


@pytest.fixture
def address(model):
    """The address of a running server of the page of a model."""
    page = to_html(nysplus.load(model), title="late").encode()
    with server_of(page, 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://{HOST}:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_there_is_one_page(address, model):
    with urlopen(address) as answer:
        assert answer.read().decode() == to_html(nysplus.load(model), title="late")
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    with pytest.raises(HTTPError, match="404") as caught:
        urlopen(f"{address}etc/passwd")
    caught.value.close()


def test_the_command_prints_the_address_and_opens_nothing(model, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)

    def interrupted(server):
        raise KeyboardInterrupt

    monkeypatch.setattr("http.server.ThreadingHTTPServer.serve_forever", interrupted)
    code, output, errors = invoke("serve", model, "--port", 0)
    assert (code, errors) == (130, "Stopped.\n")
    assert f": http://{HOST}:" in output
    assert opened == []
    _, output, _ = invoke("serve", model, "--port", 0, "--open", "--json")
    assert opened == [json.loads(output)["address"]]


def test_a_port_that_is_taken(address, model):
    port = address.rstrip("/").rpartition(":")[2]
    assert f"Port {port} cannot be used" in failure("serve", model, "--port", port)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent in another way there")
def test_ctrl_c_ends_it(model):
    command = [sys.executable, "-m", "nysplus.cli", "serve", str(model), "--port", "0", "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}

    def heed_ctrl_c():
        # programs in the background of a shell ignore it, and so do their children
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with subprocess.Popen(command, preexec_fn=heed_ctrl_c, **pipes) as process:
        try:
            address = json.loads(process.stdout.readline())["address"]
            with urlopen(address) as answer:
                assert b"<title>late</title>" in answer.read()
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
            assert process.stderr.read() == "Stopped.\n"
        finally:
            process.kill()


@needs_chromium
@pytest.mark.slow
def test_the_page_runs(address, tmp_path):
    browser = Browser(tmp_path)
    try:
        browser.open(address, width=400)
        assert browser.run("prediction.textContent") in ("yes", "no")
        assert browser.run("document.documentElement.scrollWidth") <= 400
        assert browser.complaints == []
    finally:
        browser.close()
