from __future__ import annotations

from pathlib import Path

import pytest

from nysplus_experiments.harness.bench import BenchError, BenchOptions


def test_options_have_types_and_defaults() -> None:
    extra = {"sizes": "10,20", "limit": "0.5", "systems": "a,b", "repeats": "3"}
    options = BenchOptions("speed", Path("r"), extra=extra)
    assert options.path("speed.csv") == Path("r/speed/speed.csv")
    assert options.integers("sizes", ()) == [10, 20]
    assert options.integers("others", (1, 2)) == [1, 2]
    assert (options.integer("repeats", 1), options.integer("other", 1)) == (3, 1)
    assert (options.number("limit", 2.0), options.number("other", 2.0)) == (0.5, 2.0)
    assert options.texts("systems", (), ("a", "b")) == ["a", "b"]
    assert options.texts("other", ["c"]) == ["c"]
    assert options.choose_datasets(("usps", "letter")) == ["usps", "letter"]
    assert options.choose_datasets(("usps", "letter"), ("letter",)) == ["letter"]
    options.expect(*extra)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda o: o.expect("sizes"), "--set way=… is not an option of this step"),
        (lambda o: o.integers("sizes", ()), "--set sizes=ten is not a number"),
        (lambda o: o.texts("way", (), ("a", "b")), "--set way: 'c' is unknown. Choose from a, b."),
        (lambda o: o.choose_datasets(("letter",)), "--datasets: 'usps' is unknown"),
    ],
)
def test_wrong_options_are_explained(use, message: str) -> None:
    options = BenchOptions("speed", datasets=("usps",), extra={"sizes": "ten", "way": "c"})
    with pytest.raises(BenchError, match=message):
        use(options)
