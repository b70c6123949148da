from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from nysplus_experiments.harness import measurement
from nysplus_experiments.harness.measurement import ChildError, TimeLimit, measure, run_in_child

forks = pytest.mark.skipif(sys.platform == "win32", reason="children are forked")


def test_peak_memory_is_that_of_the_call() -> None:
    """A call after a hungry one does not inherit its peak."""
    before = measure(int)
    hungry = measure(lambda: np.ones(20_000_000).sum())
    after = measure(int)
    if before.peak_mb is None:
        pytest.skip("this system cannot reset the peak")
    assert hungry.result == 20_000_000
    assert hungry.peak_mb > before.peak_mb + 140  # 160 MB are 153 MiB
    assert hungry.added_mb > 140
    assert after.peak_mb < hungry.peak_mb - 140
    assert hungry.seconds > 0


def test_waiting_takes_time_but_no_processor() -> None:
    waited = measure(time.sleep, 0.05)
    assert waited.seconds >= 0.05
    assert waited.cpu_seconds < waited.seconds


def test_a_system_that_does_not_tell_memory(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(measurement, "_CLEAR_REFS", tmp_path / "no" / "file")
    monkeypatch.setattr(measurement, "_STATUS", tmp_path / "no" / "file")
    found = measure(max, [1, 2], default=3)
    assert (found.result, found.peak_mb, found.added_mb) == (2, None, None)


@forks
def test_a_child_returns_its_result() -> None:
    assert run_in_child(sum, [1, 2]) == 3
    assert run_in_child(os.getpid) != os.getpid()


@forks
def test_a_child_that_raises_dies_or_hangs() -> None:
    with pytest.raises(ChildError, match="ValueError: invalid literal"):
        run_in_child(int, "x")
    with pytest.raises(ChildError, match="died with exit code -9"):
        run_in_child(lambda: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(TimeLimit, match=r"no result after 0\.1 s"):
        run_in_child(time.sleep, 60, time_limit=0.1)


def test_threads_are_fixed_once() -> None:
    """In a process of its own: others change the environment while they start processes."""
    code = """if True:
        import os, sys
        from nysplus_experiments.harness import measurement
        started = []
        os.execv = lambda *command: started.append(command)
        measurement.restart_with_fixed_threads()
        assert started == [(sys.executable, sys.orig_argv)], started
        assert os.environ["OMP_WAIT_POLICY"] == "passive"
        assert measurement.n_threads() == 3
        measurement.restart_with_fixed_threads()
        assert len(started) == 1
    """
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY")
    environment = os.environ | dict.fromkeys(names, "3")
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_the_environment_names_machine_and_versions() -> None:
    found = measurement.environment()
    assert found["processor"] == measurement.processor()
    assert found["versions"]["numpy"] == np.__version__
    assert list(found) == [
        *("processor", "cores", "threads", "system", "python", "blas", "versions")
    ]
