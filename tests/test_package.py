"""The shape of the package: imports point one way, and nothing optional is imported."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import nysplus

SOURCE = Path(nysplus.__file__).parent

# Each module may import from itself and from what stands before it.
ORDER = [
    "_checks",
    "_files",
    "_progress",
    "_targets",
    "_threads",
    "_sums",
    "_checkpoint",
    "_sources",
    "_blocks",
    "_survey",
    "_streams",
    "_distributed",
    "kernels",
    "_ridge",
    "_feature_map",
    "_iterative",
    "_tasks",
    "_solvers",
    "_projection",
    "_storage",
    "_budget",
    "_expansion",
    "_quantise",
    "_incremental",
    "_nested",
    "_probability",
    "landmarks",
    "_tuning",
    "_metric",
    "_sizing",
    "_gradients",
    "_training",
    "_learner",
    "_verdict",
    "_judging",
    "_refine",
    "_validation",
    "_intake",
    "_cost",
    "_pruning",
    "_compress",
    "_parameters",
    "persistence",
    "transformer",
    "estimators",
    "_from_sklearn",
    "export",
    "curve",
    "plots",
    "",  # the package itself
    "experiments",
    "cli",
]


def _room(module: str) -> str:
    parts = module.split(".")[1:]
    return parts[0] if parts and parts[0] in ORDER else ""


def _imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative imports hide their direction"
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name == "nysplus" or name.startswith("nysplus.")}


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: p.stem)
def test_imports_point_one_way(path):
    relative = path.relative_to(SOURCE).with_suffix("")
    room = relative.parts[0] if relative.parts[0] in ORDER else ""
    assert room or path.name == "__init__.py", f"{path.name} has no place in ORDER"
    for name in _imports(path):
        target = _room(name)
        if target or name == "nysplus":
            assert ORDER.index(target) <= ORDER.index(room), f"{path.name} imports {name}"


OPTIONAL = [
    *("matplotlib", "rich", "typer", "pandas", "polars", "dask", "pyarrow"),
    *("onnx", "onnxruntime", "skl2onnx"),
]


def test_import_needs_nothing_optional():
    """With every optional library made impossible to import, the package still imports."""
    code = f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL})); import nysplus"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_only_public_names_of_scikit_learn():
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn"):
                names = [node.module, *(alias.name for alias in node.names)]
                assert not any(part.startswith("_") for name in names for part in name.split("."))
