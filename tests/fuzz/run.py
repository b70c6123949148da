"""Search for files that break the promises of `bounds`: ``python tests/fuzz/run.py [TARGET]...``.

Atheris, where it is installed, is guided by the lines of nysplus that an input reaches; otherwise
inputs are changed at random. Each target runs in a process of its own, which also tells of
crashes. Inputs that break a promise are kept in ``build/fuzz/TARGET``, one for each description.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import hashlib
import importlib.util
import io
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOUND = HERE.parent.parent / "build" / "fuzz"
# Code outside of Python cannot be interrupted: the process ends after this time.
SECONDS_TO_ABORT = 20
# Larger inputs are slow to change, and reach nothing that smaller ones do not.
MAX_INPUT = 2**16


class Findings:
    """Run inputs, and keep those that break a promise."""

    def __init__(self, name: str, folder: Path) -> None:
        from bounds import violation
        from targets import TARGETS

        self._violation, self.target, self._work = violation, TARGETS[name], folder
        self._kept = FOUND / name
        self._kept.mkdir(parents=True, exist_ok=True)
        self._known: set[str] = set()
        self.n_runs = 0

    def try_input(self, content: bytes) -> None:
        """Run the target on an input."""
        self.n_runs += 1
        running = self._kept / "running"  # stays if the process crashes
        running.write_bytes(content)
        faulthandler.dump_traceback_later(SECONDS_TO_ABORT, exit=True)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            broken = self._violation(lambda: self.target.run(content, self._work), len(content))
        faulthandler.cancel_dump_traceback_later()
        if broken is None:
            return
        kind = re.sub(r"\d+|'.*?'", "#", broken)
        if kind not in self._known:
            self._known.add(kind)
            kept = self._kept / hashlib.sha256(content).hexdigest()[:12]
            kept.write_bytes(content)
            print(f"FOUND {kept}: {broken}", file=sys.__stdout__, flush=True)

    def report(self, engine: str, seconds: float) -> None:
        """Print the number of runs and findings."""
        (self._kept / "running").unlink(missing_ok=True)
        print(
            f"{self.target.name}: {self.n_runs} inputs in {seconds:.0f} s ({engine}), "
            f"{len(self._known)} kinds of broken promises",
            file=sys.__stdout__,
            flush=True,
        )

    @property
    def failed(self) -> bool:
        """Whether an input has broken a promise."""
        return bool(self._known)


def run_own(findings: Findings, seconds: float, seed: int) -> None:
    """Change valid inputs at random."""
    from mutator import Mutator

    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        seeds = findings.target.seeds(Path(folder))
    mutator, until = Mutator(rng, findings.target.words), time.monotonic() + seconds
    while time.monotonic() < until:
        content = mutator.mutated(rng.choice(seeds), rng.choice(seeds))
        findings.try_input(content[:MAX_INPUT])


def run_atheris(findings: Findings, seconds: float, seed: int, folder: Path) -> None:
    """Let Atheris choose the inputs, half of whose changes are ours."""
    import atheris
    from mutator import Mutator

    corpus = folder / "corpus"
    corpus.mkdir()
    for number, content in enumerate(findings.target.seeds(folder)):
        (corpus / str(number)).write_bytes(content)

    def changed(data: bytes, max_size: int, number: int) -> bytes:
        rng = random.Random(number)
        if rng.random() < 0.5:
            return atheris.Mutate(data, max_size)
        return Mutator(rng, findings.target.words).mutated(bytes(data))[:max_size]

    start = time.monotonic()

    def try_input(data: bytes) -> None:
        findings.try_input(data)
        seconds_used = time.monotonic() - start
        if seconds_used > seconds:  # Atheris never returns
            findings.report("atheris", seconds_used)
            shutil.rmtree(folder)
            os._exit(int(findings.failed))

    arguments = [sys.argv[0], str(corpus), f"-seed={seed + 1}", f"-max_len={MAX_INPUT}"]
    arguments += ["-timeout=0", "-rss_limit_mb=0", "-print_final_stats=0", "-verbosity=0"]
    atheris.Setup(arguments, try_input, custom_mutator=changed)
    atheris.Fuzz()


def run_target(name: str, seconds: float, seed: int, engine: str) -> int:
    """Run one target in this process."""
    sys.path.insert(0, str(HERE))
    with tempfile.TemporaryDirectory() as folder:
        if engine == "atheris":
            import atheris

            with atheris.instrument_imports(include=["nysplus", "nysplus_experiments"]):
                findings = Findings(name, Path(folder))
            run_atheris(findings, seconds, seed, Path(folder))
        findings = Findings(name, Path(folder))
        start = time.monotonic()
        run_own(findings, seconds, seed)
        findings.report("own mutator", time.monotonic() - start)
    return int(findings.failed)


def run_each(names: list[str], options: argparse.Namespace) -> int:
    """Run targets one after the other, each in a process of its own."""
    failed = False
    for name in names:
        command = [sys.executable, __file__, name, "--alone", "--engine", options.engine]
        command += ["--seconds", str(options.seconds), "--seed", str(options.seed)]
        code = subprocess.run(command, check=False).returncode
        running = FOUND / name / "running"
        if running.exists():
            kept = running.rename(running.with_name(f"crash-{time.time_ns()}"))
            print(f"FOUND {kept}: the process ended with {code}", flush=True)
        failed |= code != 0
    return int(failed)


def main() -> int:
    """Parse the arguments, and run."""
    installed = importlib.util.find_spec("atheris") is not None
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", help="All by default.")
    parser.add_argument("--seconds", type=float, default=600.0, help="For each target.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", choices=["atheris", "own"])
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.engine = options.engine or ("atheris" if installed else "own")
    if options.alone:
        return run_target(options.targets[0], options.seconds, options.seed, options.engine)
    sys.path.insert(0, str(HERE))
    from targets import TARGETS

    return run_each(options.targets or list(TARGETS), options)


if __name__ == "__main__":
    sys.exit(main())
