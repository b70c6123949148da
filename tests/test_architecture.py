"""The shape of the package: imports point one way, and nothing optional is imported."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import nysplus

SOURCE = Path(nysplus.__file__).parent
# A room may import itself and every room of an earlier line. docs/background/architecture.md is
# drawn from the same imports.
ORDER = """
    _typing
    _runtime
    _validation
    encoding
    _rows
    kernels _holdout _adam
    expansion
    _ridge _bytes
    conformal landmarks
    _tuning _learning
    _fit
    pipelines
    _compression _distillation persistence
    estimators transformer
    from_sklearn curve explain distillation
    export
    plots
    report
    cli
    __init__
"""
LEVEL = {room: level for level, line in enumerate(ORDER.split("\n")) for room in line.split()}
MODULES = sorted(path for path in SOURCE.rglob("*.py"))
OPTIONAL = [
    *("dask", "distributed", "jinja2", "matplotlib", "onnx", "onnxruntime", "pandas", "polars"),
    *("pooch", "pyarrow", "rich", "shap", "skl2onnx", "typer"),
]


def imports_of(path: Path) -> set[str]:
    """Return the modules of nysplus that a file imports."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    assert not any(isinstance(node, ast.ImportFrom) and node.level for node in nodes), "relative"
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return {name for name in names if name.partition(".")[0] == "nysplus"}


@pytest.mark.parametrize(
    "path", MODULES, ids=[str(path.relative_to(SOURCE).with_suffix("")) for path in MODULES]
)
def test_imports_point_one_way(path):
    room = path.relative_to(SOURCE).with_suffix("").parts[0]
    for name in imports_of(path):
        target = name.partition(".")[2].partition(".")[0] or "__init__"
        assert target == room or LEVEL[target] < LEVEL[room], f"{room} imports {target}"


def test_import_needs_nothing_optional():
    """With every optional library made impossible to import, the package still imports."""
    code = f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL})); import nysplus"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_only_public_names_of_scikit_learn():
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn"):
                names = [node.module, *(alias.name for alias in node.names)]
                assert not any(part.startswith("_") for name in names for part in name.split("."))


PAGE = Path(__file__).parents[1] / "docs" / "background" / "architecture.md"


@pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no pages")
def test_the_page_lists_the_rooms():
    listed = set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), flags=re.M))
    rooms = {path.relative_to(SOURCE).with_suffix("").parts[0] for path in MODULES}
    assert listed == rooms - {"__init__"} == set(LEVEL) - {"__init__"}


PUBLIC_TESTS = sorted((Path(__file__).parent / "api").glob("*.py"))


@pytest.mark.parametrize("path", PUBLIC_TESTS, ids=[path.stem for path in PUBLIC_TESTS])
def test_tests_of_the_public_names_use_no_others(path):
    """Whoever restructures the engine must not have to touch tests/api."""
    used = imports_of(path)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nysplus"):
            used |= {f"{node.module}.{alias.name}" for alias in node.names}
        if isinstance(node, ast.Constant) and str(node.value).startswith("nysplus."):
            used.add(node.value)  # a name to be patched
    private = {name for name in used if any(part.startswith("_") for part in name.split("."))}
    assert not private - {"nysplus.__version__"}
