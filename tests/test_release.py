"""What has to agree in a release: versions, lower bounds, the changelog."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import nysplus

ROOT = Path(__file__).parents[1]
PROJECT = ROOT / "pyproject.toml"
pytestmark = pytest.mark.skipif(not PROJECT.exists(), reason="an installed package has no project")


def _lower_bounds(lines):
    """Return the lowest version that each requirement allows; own extras have none."""
    bounds = {}
    for requirement in map(Requirement, lines):
        for part in requirement.specifier:
            assert part.operator == ">=", f"{requirement} should only have a lower bound"
            bounds[requirement.name] = Version(part.version)
    return bounds


def test_oldest_versions_are_the_lower_bounds():
    """`make test-oldest` installs what the project says it works with."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    used = [*project["project"]["dependencies"], *(line for extra in extras for line in extra)]
    named = project["dependency-groups"]["dev"]
    # the group that builds the site is included, and has no library that `fit` gets tables from
    tools = _lower_bounds([line for line in named if isinstance(line, str)])
    bounds = _lower_bounds(used)
    # libraries whose tables are passed to `fit` by tests, but which nothing of ours imports
    bounds |= {name: tools[name] for name in ("pandas", "polars") if name in tools}
    pinned = (ROOT / "tests" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    oldest = dict(line.split("==") for line in pinned if "==" in line)
    assert {name: Version(version) for name, version in oldest.items()} == bounds


def test_versions_agree():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (\S+)$", citation, flags=re.M) == [nysplus.__version__]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = [v for v in re.findall(r"^## (\S+)", changes, flags=re.M) if v != "Unreleased"]
    assert released[0] == nysplus.__version__
