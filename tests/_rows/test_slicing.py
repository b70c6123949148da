"""Slices of rows follow the working memory and the number of threads."""

from __future__ import annotations

import pytest
from sklearn import config_context

from nysplus._rows.slicing import row_slices


@pytest.mark.parametrize("threads", [1, 2])
def test_row_slices_follow_working_memory(threads):
    with config_context(working_memory=1):
        slices = row_slices(2500, 1024, threads=threads)
        # every thread holds one slice, and all of them together fit
        assert max(s.stop - s.start for s in slices) * threads * 1024 <= 2**20
        assert len(slices) == {1: 4, 2: 8}[threads]  # 3 and 5 would do, but 4 share evenly
        assert len({s.stop - s.start for s in slices[:-1]}) == 1
        assert [s.start for s in slices[1:]] == [s.stop for s in slices[:-1]]
        assert (slices[0].start, slices[-1].stop) == (0, 2500)
        assert len(row_slices(3, 10**9)) == 3  # never less than a row
        assert row_slices(1000 // threads, 1024, threads=threads) == [slice(0, 1000 // threads)]
        assert len(row_slices(1000 // threads, 1024, 300, threads=threads)) == 4
    assert row_slices(0, 1024) == []
