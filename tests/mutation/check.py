"""Change the engine in hundreds of ways, and count the changes that its tests notice.

``make mutation``, or ``python tests/mutation/check.py``. Every module of ``mutated.toml`` gives the
same number of mutants (see ``mutants.py``), a fixed sample of all. The tests are first run once
with coverage. A mutant is tested by the tests that execute the changed lines: the tests of the
module's own file first, then those of its room, then the others, each from the fastest on, until
their times add up to ``--seconds``. For constants these are the tests that execute lines with the
constant's name. The first failure kills the mutant, and so does a hang. In the end all tests that
failed are run without a mutant; a kill by one that fails there does not count.

Nothing is written into the sources: each mutant is imported by a process of its own. Results are
kept in ``build/mutation``, and an interrupted run resumes. ``--again`` tests the survivors again,
after tests were added. The command fails if fewer than ``--least`` percent are killed.
"""

from __future__ import annotations

import os

if __name__ == "__main__":  # before numpy reads it
    for variable in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR"):
        os.environ[f"{variable}_NUM_THREADS"] = "1"

import argparse
import contextlib
import fnmatch
import importlib
import importlib.util
import json
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from typing import Any

from mutants import Mutant, mutants_of

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCE = ROOT / "src"
BUILD = ROOT / "build" / "mutation"
SETTINGS: dict[str, Any] = tomllib.loads((HERE / "mutated.toml").read_text(encoding="utf-8"))
MARKERS = "not slow and not all_combinations"
# Exit codes of pytest; a module that cannot be imported interrupts it.
OK, TESTS_FAILED, INTERRUPTED, NO_TESTS_COLLECTED = 0, 1, 2, 5
# Outcomes that count as noticed.
KILLED = ("killed", "hangs")
# Imported once: the process of a mutant then starts within a tenth of a second.
LIBRARIES = (
    *("numpy", "scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.spatial.distance"),
    *("sklearn.cluster", "sklearn.datasets", "sklearn.kernel_approximation", "sklearn.svm"),
    *("sklearn.kernel_ridge", "sklearn.linear_model", "sklearn.metrics", "sklearn.pipeline"),
    *("sklearn.model_selection", "sklearn.preprocessing", "sklearn.utils.estimator_checks"),
    *("joblib", "pandas", "pyarrow.parquet", "pytest", "safetensors.numpy", "threadpoolctl"),
    *("dask.array", "dask.dataframe", "hypothesis.extra.numpy", "onnx", "pdb", "doctest"),
    *("_pytest.junitxml", "_pytest.doctest", "_pytest.debugging", "xml.etree.ElementTree"),
)


# ---- which mutants -------------------------------------------------------------------------------


def modules() -> list[Path]:
    """Return the modules that are changed."""
    found = {path for name in SETTINGS["modules"] for path in (SOURCE / "nysplus").glob(name)}
    return sorted(found)


@cache
def source_of(module: str) -> str:
    """Return the source of a module as it was when the mutants were made."""
    return (SOURCE / module).read_text(encoding="utf-8")


def excluded(mutant: Mutant) -> bool:
    """Return whether a mutant is listed as one that cannot or need not be noticed."""
    return any(
        fnmatch.fnmatch(mutant.module, f"nysplus/{entry['module']}")
        and fnmatch.fnmatch(mutant.scope, entry.get("scope", "*"))
        and re.search(entry.get("line", ""), mutant.text)
        and entry.get("old", mutant.old) == mutant.old
        and entry.get("new", mutant.new) == mutant.new
        for entry in SETTINGS.get("excluded", [])
    )


def sample(count: int) -> list[Mutant]:
    """Return `count` mutants, the same number of every module where there are enough."""
    ranked = []
    for path in modules():
        module = path.relative_to(SOURCE).as_posix()
        found = mutants_of(module, source_of(module))
        kept = sorted((m for m in found if not excluded(m)), key=lambda mutant: mutant.key)
        ranked += [(rank, mutant.key, mutant) for rank, mutant in enumerate(kept)]
    return [mutant for _, _, mutant in sorted(ranked, key=lambda entry: entry[:2])[:count]]


# ---- which tests ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Baseline:
    """The tests by the lines that they execute, and their times.

    Attributes
    ----------
    tests : dict
        For each module, the tests that execute each line.
    seconds : dict
        Time of each test.
    """

    tests: dict[str, dict[int, set[str]]]
    seconds: dict[str, float]

    @classmethod
    def measure(cls) -> Baseline:
        """Run the tests once with coverage; raise unless all of them pass."""
        BUILD.mkdir(parents=True, exist_ok=True)
        ignored = [f"--ignore={path}" for path in SETTINGS["ignored_tests"]]
        command = [
            *(sys.executable, "-m", "pytest", "tests", *ignored, "-m", MARKERS),
            *("-p", "no:cacheprovider", "-p", "check", "--cov", "--cov-context=test"),
            *("--cov-report=", "--cov-fail-under=0"),
        ]
        more = {"COVERAGE_FILE": str(BUILD / "coverage"), "PYTHONPATH": f"{SOURCE}:{HERE}"}
        done = subprocess.run(command, cwd=ROOT, env=os.environ | more, check=False)
        if done.returncode:
            raise SystemExit("The tests fail without a mutant. Mend them first.")
        return cls.read()

    @classmethod
    def read(cls) -> Baseline:
        """Return the baseline that was measured last."""
        from coverage import CoverageData

        data = CoverageData(str(BUILD / "coverage"))
        data.read()
        seconds = json.loads((BUILD / "seconds.json").read_text())
        tests: dict[str, dict[int, set[str]]] = {}
        for path in data.measured_files():
            if Path(path).is_relative_to(SOURCE):
                module = Path(path).relative_to(SOURCE).as_posix()
                tests[module] = {
                    line: {name.partition("|")[0] for name in names} & set(seconds)
                    for line, names in data.contexts_by_lineno(path).items()
                }
        return cls(tests, seconds)

    def of(self, mutant: Mutant, most: float) -> list[list[str]]:
        """Return the tests of a mutant: of its own file, of its room, and others.

        Their times add up to at most `most` seconds.
        """
        lines = [(mutant.module, line) for line in range(mutant.lines[0], mutant.lines[1] + 1)]
        if mutant.names:
            lines += _mentions(mutant.names)
        found = {test for module, line in lines for test in self._at(module, line)}
        place = Path(mutant.module).relative_to("nysplus")
        room = (Path("tests") / place).parent.as_posix()
        own = f"{room}/test_{place.name.lstrip('_')}"
        # the whole file, for tests that are newer than the baseline
        parts: list[list[str]] = [[own] if (ROOT / own).is_file() else [], [], []]
        spent = 0.0
        for test in sorted(found, key=lambda test: (_rank(test, own, room), self.seconds[test])):
            spent += self.seconds[test]
            if spent <= most:
                parts[_rank(test, own, room)].append(test)
        return [part for part in parts if part]

    def _at(self, module: str, line: int) -> set[str]:
        return self.tests.get(module, {}).get(line, set())


def _rank(test: str, own: str, room: str) -> int:
    """Return 0 for the module's own test file, 1 for the files beside it and 2 for others."""
    file = test.partition("::")[0]
    return 0 if file == own else 1 if file.rpartition("/")[0] == room else 2


def _mentions(names: Iterable[str]) -> list[tuple[str, int]]:
    """Return the lines of the package that mention one of some names."""
    pattern = re.compile(rf"\b({'|'.join(names)})\b")
    return [
        (path.relative_to(SOURCE).as_posix(), number)
        for path in (SOURCE / "nysplus").rglob("*.py")
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(text)
    ]


# This file is also the plugin of pytest that notes the times of the baseline's tests.
_seconds: dict[str, float] = defaultdict(float)


def pytest_runtest_logreport(report: Any) -> None:
    """Add the time of a test's setup, call or teardown."""
    _seconds[report.nodeid] += report.duration


def pytest_sessionfinish() -> None:
    """Write the times."""
    (BUILD / "seconds.json").write_text(json.dumps(_seconds))


# ---- one mutant ----------------------------------------------------------------------------------


class _Loader(SourceFileLoader):
    """Loads a changed source."""

    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self.source = source

    def get_code(self, fullname: str) -> Any:
        return compile(self.source, self.path, "exec", dont_inherit=True)


@dataclass(frozen=True)
class _Finder:
    """Finds the mutant in place of its module."""

    mutant: Mutant

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        module = self.mutant.module.removesuffix(".py").removesuffix("/__init__")
        if name != module.replace("/", "."):
            return None
        file = SOURCE / self.mutant.module
        source = self.mutant.apply(source_of(self.mutant.module))
        package = [str(file.parent)] if file.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            name, file, loader=_Loader(name, str(file), source), submodule_search_locations=package
        )


class _Chosen:
    """Plugin of pytest that runs the chosen tests in their order, and notes those that fail.

    Tests that are newer than the baseline come first.
    """

    def __init__(self, tests: Sequence[str], known: Collection[str]) -> None:
        self.known = known
        self.rank = {test: rank for rank, test in enumerate(tests)}
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        chosen = [i for i in items if i.nodeid in self.rank or i.nodeid not in self.known]
        items[:] = sorted(chosen, key=lambda item: self.rank.get(item.nodeid, -1))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


class Run:
    """A process that runs tests until one fails, with a mutant or without one."""

    def __init__(self, mutant: Mutant | None, tests: Sequence[str], baseline: Baseline) -> None:
        self.mutant, self.tests, self.known = mutant, tests, baseline.seconds
        # ten times what the tests took, and generous for small ones
        self.limit = 60 + 10 * sum(baseline.seconds.get(test, 0.0) for test in tests)
        self.report = BUILD / (mutant.key if mutant else "without")
        self.report.unlink(missing_ok=True)
        self.begun = time.monotonic()
        self.pid = os.fork()
        if not self.pid:
            os.setsid()
            code = 4
            try:
                code = self._test()
            finally:
                os._exit(code)

    def _test(self) -> int:
        import pytest

        log = os.open(self.report.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for descriptor in (1, 2):
            os.dup2(log, descriptor)
        if self.mutant is not None:
            sys.meta_path.insert(0, _Finder(self.mutant))  # type: ignore[arg-type]
        chosen = _Chosen(self.tests, self.known)
        files = sorted({test.partition("::")[0] for test in self.tests})
        options = ["-m", MARKERS, *(["-x"] if self.mutant else [])]
        for plugin in ("cacheprovider", "cov", "xdist"):
            options += ["-p", f"no:{plugin}"]
        # hypothesis is imported already
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        code = pytest.main([*options, *files], [chosen])
        self.report.write_text("\n".join(chosen.failed))
        return int(code)

    def outcome(self) -> tuple[str, str] | None:
        """Return how it ended and the tests that failed, a line each; None while it runs."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid and time.monotonic() - self.begun < self.limit:
            return None
        _end_group(self.pid)
        if not pid:
            os.waitpid(self.pid, 0)
            return "hangs", ""
        failed = self.report.read_text() if self.report.exists() else ""
        code = os.waitstatus_to_exitcode(status)
        if code in (OK, NO_TESTS_COLLECTED):  # a mutant may change the names of all its tests
            return "survives", failed
        if code in (TESTS_FAILED, INTERRUPTED) or code < 0:
            return "killed", failed
        raise SystemExit(f"pytest ended with {code}; see {self.report.with_suffix('.log')}.")


def _end_group(pid: int) -> None:
    """End what a child has started and left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


# ---- all mutants ---------------------------------------------------------------------------------


class Results:
    """Outcomes on disk, by mutant; a changed module has new mutants only where it was changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.known = {entry["key"]: entry for entry in map(json.loads, lines)}

    def add(self, mutant: Mutant, outcome: str, test: str) -> None:
        """Print and append an outcome."""
        entry = {"key": mutant.key, "outcome": outcome, "test": test, "mutant": describe(mutant)}
        self.known[mutant.key] = entry
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        print(f"{entry['mutant']}: {outcome} {test}", flush=True)


def check(mutants: Sequence[Mutant], baseline: Baseline, results: Results, options: Any) -> None:
    """Test the mutants, some at a time, and note their outcomes."""
    waiting = [(mutant, baseline.of(mutant, options.seconds)) for mutant in reversed(mutants)]
    running: list[tuple[Run, list[list[str]]]] = []

    def start(mutant: Mutant, parts: list[list[str]]) -> None:
        running.append((Run(mutant, parts[0], baseline), parts[1:]))

    while waiting or running:
        while waiting and len(running) < options.workers:
            mutant, parts = waiting.pop()
            if parts:
                start(mutant, parts)
            else:
                results.add(mutant, "survives", "no test executes it")
        for entry in list(running):
            run, rest = entry
            ended = run.outcome()
            if ended is not None:
                assert run.mutant is not None
                running.remove(entry)
                if ended[0] == "survives" and rest:
                    start(run.mutant, rest)
                else:
                    results.add(run.mutant, *ended)
        time.sleep(0.02)


def failing(tests: Sequence[str], baseline: Baseline) -> list[str]:
    """Return the tests that fail without a mutant, run in the way of mutants."""
    run = Run(None, tests, baseline)
    while (ended := run.outcome()) is None:
        time.sleep(0.02)
    if ended[0] == "hangs":
        raise SystemExit("The tests hang without a mutant.")
    return ended[1].splitlines()


def describe(mutant: Mutant) -> str:
    """Return the place and the change of a mutant."""
    new = mutant.new or "(removed)"
    return f"src/{mutant.module}:{mutant.line} [{mutant.text}] {mutant.old} → {new}"


def report(mutants: Sequence[Mutant], results: Results, unsound: Sequence[str]) -> float:
    """Print the survivors and the counts of each module; return the percentage killed."""
    by_module: dict[str, list[bool]] = defaultdict(list)
    print("\nSurvivors:")
    for mutant in sorted(mutants, key=lambda mutant: (mutant.module, mutant.line)):
        entry = results.known[mutant.key]
        killed = entry["outcome"] in KILLED and entry["test"] not in unsound
        by_module[mutant.module].append(killed)
        if not killed:
            print(f"  {describe(mutant)} {entry['test']}")
    print("\nmodule: killed of mutants")
    for module, killed in sorted(by_module.items()):
        print(f"  {module}: {sum(killed)} of {len(killed)}")
    total = [killed for own in by_module.values() for killed in own]
    rate = 100 * sum(total) / max(len(total), 1)
    print(f"{sum(total)} of {len(total)} mutants killed: {rate:.1f} %")
    if unsound:
        print(f"Tests that fail without a mutant: {', '.join(unsound)}")
    return rate


def main() -> None:
    """Parse the command line, test and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--mutants", type=int, default=400, help="size of the sample")
    parser.add_argument("--only", default="*", help="pattern of modules, such as '*/_ridge/*'")
    parser.add_argument("--seconds", type=float, default=20.0, help="time of a mutant's tests")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="test survivors again")
    parser.add_argument("--least", type=float, default=85.0, help="percentage to be killed")
    parser.add_argument("--keep-baseline", action="store_true", help="do not run the tests again")
    options = parser.parse_args()
    sys.path[:0] = [str(SOURCE)]
    os.chdir(ROOT)
    os.environ["PYTHONPATH"] = str(SOURCE)
    baseline = Baseline.read() if options.keep_baseline else Baseline.measure()
    chosen = [m for m in sample(options.mutants) if fnmatch.fnmatch(m.module, options.only)]
    results = Results(BUILD / "results.jsonl")
    done = {
        key
        for key, entry in results.known.items()
        if entry["outcome"] in KILLED or not options.again
    }
    for library in LIBRARIES:
        importlib.import_module(library)
    check([m for m in chosen if m.key not in done], baseline, results, options)
    tests = {results.known[m.key]["test"] for m in chosen} & set(baseline.seconds)
    if report(chosen, results, failing(sorted(tests), baseline)) < options.least:
        raise SystemExit(f"Fewer than {options.least:g} % of the mutants were killed.")


if __name__ == "__main__":
    main()
