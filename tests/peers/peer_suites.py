"""Run scikit-learn's own tests with the classes of nysplus in the place of scikit-learn's.

    python tests/peers/peer_suites.py [arguments of pytest]

The test modules come from the installed scikit-learn. While one is imported, the names listed in
`SUITES` are replaced in the modules that it imports them from. Tests that use none of these names
are left out. Tests that are expected to fail are listed with their reasons in `differences.toml`;
such a test that passes is a failure too.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import tomllib
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any
from unittest.mock import patch

import pytest
import sklearn
import stand_ins

import nysplus

DIFFERENCES = Path(__file__).with_name("differences.toml")
META = ("SVC", "SVR", "LinearSVC", "LogisticRegression", "Ridge", "LinearRegression")
SUITES: dict[str, tuple[str, ...]] = {
    "sklearn.tests.test_kernel_approximation": ("Nystroem",),
    "sklearn.tests.test_kernel_ridge": ("KernelRidge",),
    "sklearn.linear_model.tests.test_ridge": ("RidgeClassifier",),
    "sklearn.svm.tests.test_svm": ("SVC",),
    "sklearn.svm.tests.test_sparse": ("SVC",),
    "sklearn.compose.tests.test_target": META,
    "sklearn.ensemble.tests.test_bagging": META,
    "sklearn.ensemble.tests.test_stacking": META,
    "sklearn.ensemble.tests.test_voting": META,
    "sklearn.ensemble.tests.test_weight_boosting": META,
    "sklearn.feature_selection.tests.test_rfe": META,
    "sklearn.feature_selection.tests.test_sequential": META,
    "sklearn.inspection.tests.test_permutation_importance": META,
    "sklearn.model_selection.tests.test_classification_threshold": META,
    "sklearn.model_selection.tests.test_search": META,
    "sklearn.model_selection.tests.test_successive_halving": META,
    "sklearn.model_selection.tests.test_validation": META,
    "sklearn.semi_supervised.tests.test_self_training": META,
    "sklearn.tests.test_calibration": META,
    "sklearn.tests.test_multiclass": META,
    "sklearn.tests.test_multioutput": META,
    "sklearn.tests.test_pipeline": META,
}
# Where tests import the names from.
HOMES = {
    "KernelRidge": "sklearn.kernel_ridge",
    "LinearRegression": "sklearn.linear_model",
    "LinearSVC": "sklearn.svm",
    "LogisticRegression": "sklearn.linear_model",
    "Nystroem": "sklearn.kernel_approximation",
    "Ridge": "sklearn.linear_model",
    "RidgeClassifier": "sklearn.linear_model",
    "SVC": "sklearn.svm",
    "SVR": "sklearn.svm",
}


def ours(name: str) -> Any:
    """Return the class that takes the place of the class `name` of scikit-learn."""
    return nysplus.Nystroem if name == "Nystroem" else getattr(stand_ins, name)


def import_suite(module: str, names: tuple[str, ...]) -> ModuleType:
    """Import a test module with our classes under the given names."""
    replaced: dict[str, dict[str, Any]] = {}
    for name in names:
        replaced.setdefault(HOMES[name], {})[name] = ours(name)
    with ExitStack() as stack:
        for home, classes in replaced.items():
            stack.enter_context(patch.multiple(importlib.import_module(home), **classes))
        suite = importlib.import_module(module)
    for home, classes in replaced.items():
        # a test that imports the module itself gets a copy, with our classes in it
        for name, value in vars(suite).items():
            if value is sys.modules[home]:
                other = ModuleType(home)
                other.__dict__.update(vars(value) | classes)
                setattr(suite, name, other)
    return suite


def uses(item: Any, names: tuple[str, ...]) -> bool:
    """Return whether a test names one of the classes, or has one as a parameter."""
    params = repr(item.callspec.params) if hasattr(item, "callspec") else ""
    named = names_in(inspect.unwrap(item.function).__code__)
    return not named.isdisjoint(names) or bool(re.search(rf"\b({'|'.join(names)})\b", params))


def names_in(code: CodeType) -> set[str]:
    """Return the names that a function and the functions inside it look up."""
    inner = [names_in(const) for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*inner)


def pytest_configure(config: Any) -> None:
    """Import the test modules, which pytest then finds imported."""
    for module, names in SUITES.items():
        suite = import_suite(module, names)
        if module.endswith("test_kernel_ridge"):
            suite.Ridge = stand_ins.RidgeWithIntercept


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out tests that do not concern us, and mark those that are expected to fail."""
    kept = [item for item in items if uses(item, SUITES[item.module.__name__])]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
    unknown, modules = [], {_titles(item)[0].partition("::")[0] for item in items}
    for difference in tomllib.loads(DIFFERENCES.read_text(encoding="utf-8"))["difference"]:
        for test in difference["tests"]:
            matching = [item for item in items if test in _titles(item)]
            if not matching and test.partition("::")[0] in modules:
                unknown.append(test)
            for item in matching:
                item.add_marker(pytest.mark.xfail(reason=difference["reason"], strict=True))
    if unknown:
        raise pytest.UsageError(f"{DIFFERENCES.name} lists tests that do not exist: {unknown}")


def _titles(item: Any) -> tuple[str, str]:
    """Return the names under which a test may be listed: of this case, and of all its cases."""
    module = item.module.__name__.rpartition(".")[2]
    return f"{module}::{item.name}", f"{module}::{item.originalname}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the number of tests of each suite."""
    outcomes = ("passed", "xfailed", "failed")
    counts = {
        outcome: Counter(
            Path(report.nodeid.partition("::")[0]).stem
            for report in terminalreporter.stats.get(outcome, ())
        )
        for outcome in outcomes
    }
    terminalreporter.write_line(
        f"{'suite':28}{'run':>6}{'passed':>8}{'explained':>11}{'failed':>8}"
    )
    for module in SUITES:
        suite = module.rpartition(".")[2]
        passed, explained, failed = (counts[outcome][suite] for outcome in outcomes)
        run = passed + explained + failed
        terminalreporter.write_line(f"{suite:28}{run:6}{passed:8}{explained:11}{failed:8}")


if __name__ == "__main__":
    here = Path(__file__).parent
    options = ["-c", str(here / "pytest.ini"), "--rootdir", str(Path(sklearn.__file__).parents[1])]
    chosen = [argument for argument in sys.argv[1:] if argument.startswith("sklearn.")]
    others = [argument for argument in sys.argv[1:] if argument not in chosen]
    suites = chosen or list(SUITES)
    sys.exit(pytest.main([*options, "-p", Path(__file__).stem, *others, "--pyargs", *suites]))
