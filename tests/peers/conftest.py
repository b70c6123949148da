"""Tests of scikit-learn are run by `make peer-suites` only."""

collect_ignore_glob = ["*.py"]
