"""Kill processes at random moments, and check that nothing is lost.

``python tests/injected/kills.py {save,fit,reproduce} --kills 50`` forks a child for every kill, so
that the libraries are imported once. Prints how many kills hit the work, and exits with 1 at the
first loss.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import sklearn

from nysplus import NystroemClassifier
from nysplus._runtime.checkpoint import Checkpoint
from nysplus.persistence import load, save
from nysplus_experiments.cli import app

EXPERIMENT = """
[[run]]
figures = [2]
datasets = ["digits"]
methods = ["Nys", "Nys+", "ENys", "ENys+", "RNys", "RNys+", "KNys"]
sizes = [10, 20]
"""
# Columns that differ from run to run.
MEASURED = {"first_stage_seconds", "final_stage_seconds", "predict_seconds", "peak_rss_mb"}


def in_child(work: Callable[[], None]) -> int:
    """Start the work in a forked child, and return the number of its process."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:
            print(f"the child failed: {error!r}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    return child


def killed(work: Callable[[], None], seconds: float) -> bool:
    """Start the work, kill it after some time, and return whether it was still running."""
    child = in_child(work)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        assert os.waitstatus_to_exitcode(status) == 0
        return False
    return True


def finished(work: Callable[[], None]) -> float:
    """Run the work in a child to its end, and return the seconds that it took."""
    start = time.monotonic()
    _, status = os.waitpid(in_child(work), 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return time.monotonic() - start


def _data(n: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.RandomState(0).standard_normal((n, 4))
    return X, np.searchsorted([-0.5, 0.5], X[:, 0] * X[:, 1])


def kill_saves(folder: Path, kills: int, rng: random.Random) -> Counter[str]:
    """Kill processes that save one model after the other under one name."""
    X, y = _data(3000)
    models = [NystroemClassifier(1000, alpha=a, gamma=1.0, random_state=0) for a in (0.1, 1.0)]
    contents, path = [], folder / "model"
    for model in models:
        save(model.fit(X, y), path)
        contents.append(path.read_bytes())

    def save_both() -> None:
        while True:
            for model in models:
                save(model, path)

    seen: Counter[str] = Counter()
    for _ in range(kills):
        assert killed(save_both, rng.uniform(0.0, 0.1))
        assert path.read_bytes() in contents, "the file is neither the old nor the new one"
        load(path)
        seen["in a write" if len(os.listdir(folder)) > 1 else "between writes"] += 1
        save(models[0], path)
        assert os.listdir(folder) == ["model"], "temporary files stay"
    return seen


def kill_fits(folder: Path, kills: int, rng: random.Random) -> Counter[str]:
    """Kill fits with a checkpoint, and let them go on."""
    X, y = _data(20_000)
    path, result = folder / "fit.checkpoint", folder / "result.npz"

    def fit() -> None:
        model = NystroemClassifier(60, gamma=0.5, selection="negative-margin", random_state=0)
        with sklearn.config_context(working_memory=1):
            model.fit(X, y, checkpoint=Checkpoint(path, seconds=0))
        known = {"landmarks": model.landmarks_, "coef": model.dual_coef_, "b": model.intercept_}
        np.savez(result, **known, alpha=model.alpha_, passes=model.n_passes_)

    def outcome() -> dict[str, np.ndarray]:
        with np.load(result) as arrays:
            return dict(arrays)

    finished(fit)
    whole, seconds = outcome(), finished(fit)  # the first one starts more slowly
    seen: Counter[str] = Counter()
    for _ in range(kills):
        result.unlink()
        stopped = killed(fit, rng.uniform(0.0, seconds))
        seen[
            "after the fit" if not stopped else "with a record" if path.exists() else "before it"
        ] += 1
        finished(fit)
        again = outcome()
        for name, expected in whole.items():
            np.testing.assert_array_equal(again[name], expected)
        assert os.listdir(folder) == ["result.npz"], "files of the fit stay"
    return seen


def kill_reproductions(folder: Path, kills: int, rng: random.Random) -> Counter[str]:
    """Kill ``nysplus reproduce``, and run the same command again."""
    config = folder / "small.toml"
    config.write_text(EXPERIMENT)

    def reproduce(out: Path) -> None:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            app(["reproduce", "--config", str(config), "--out", str(out)], standalone_mode=False)

    def rows(out: Path) -> list[dict[str, str]]:
        with open(out / "results.csv", newline="") as file:
            found = list(csv.DictReader(file))
        return [{k: v for k, v in row.items() if k not in MEASURED} for row in found]

    # not in this process: children of one that has used OpenMP hang
    seconds = finished(lambda: reproduce(folder / "whole"))
    expected, names = rows(folder / "whole"), sorted(os.listdir(folder / "whole"))
    seen: Counter[str] = Counter()
    for number in range(kills):
        out = folder / str(number)
        stopped = killed(lambda out=out: reproduce(out), rng.uniform(0.0, seconds))
        done = len(rows(out)) if (out / "results.csv").exists() else 0
        seen[
            "after the end"
            if not stopped
            else "while drawing"
            if done == len(expected)
            else "while fitting"
        ] += 1
        finished(lambda out=out: reproduce(out))
        assert rows(out) == expected
        assert sorted(os.listdir(out)) == names, "files stay or are missing"
    return seen


SCENES = {"save": kill_saves, "fit": kill_fits, "reproduce": kill_reproductions}


def main() -> None:
    """Parse the arguments, and kill."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scene", choices=SCENES)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rng, start = random.Random(options.seed), time.monotonic()
        seen = SCENES[options.scene](Path(folder), options.kills, rng)
    where = ", ".join(f"{count} {moment}" for moment, count in sorted(seen.items()))
    seconds = time.monotonic() - start
    print(f"{options.scene}: {options.kills} kills ({where}), nothing lost, {seconds:.0f} s")


if __name__ == "__main__":
    main()
