"""Rows of libsvm text."""

from __future__ import annotations

import bz2
import gzip
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from reader_checks import assert_rows, read_all
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from nysplus import NystroemClassifier
from nysplus._rows.readers import LibsvmRows, open_source


@pytest.fixture
def sparse(rng):
    """Sparse rows in which the first and the last feature occur, and some rows are empty."""
    X = sp.random(200, 12, 0.2, format="csr", random_state=rng)
    X.data = X.data.round(3)
    X[7, 0] = X[150, 11] = 2.5
    assert (np.diff(X.indptr) == 0).any()
    return X, rng.randint(0, 3, 200).astype(float)


# entries are set one by one, to make rows that are empty
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
class TestLibsvm:
    @pytest.mark.parametrize("suffix", [".svm", ".libsvm", ".svmlight", ".svm.gz", ".svmlight.bz2"])
    @pytest.mark.parametrize("zero_based", [True, False])
    def test_file(self, tmp_path, sparse, suffix, zero_based):
        X, y = sparse
        dump_svmlight_file(X, y, str(tmp_path / "plain"), zero_based=zero_based, comment="one\ntwo")
        path = tmp_path / f"rows{suffix}"
        pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix, bytes)
        path.write_bytes(pack((tmp_path / "plain").read_bytes()))
        source = open_source(path)
        assert isinstance(source, LibsvmRows)
        assert (source.n_rows, source.n_features) == (200, 12)
        assert source.zero_based is zero_based
        assert_rows(source, X.toarray(), y)
        assert all(chunk.X.has_sorted_indices for chunk in source.chunks(30))
        expected, _ = load_svmlight_file(str(tmp_path / "plain"))
        assert expected.shape == X.shape

    def test_many_portions(self, tmp_path, sparse):
        """Whether 0 occurs is a question to all of the file."""
        X, y = sparse
        path = tmp_path / "rows.svm"
        dump_svmlight_file(X, y, str(path), zero_based=True)
        assert_rows(LibsvmRows({path.name: path}, read_bytes=100), X.toarray(), y)

    def test_comments_and_blank_lines_are_no_rows(self, tmp_path):
        path = tmp_path / "rows.svm"
        path.write_text("# one\n\n1 1:2 3:4 # two\n   \n-1 qid:7 2:1\r\n2\n# end")
        source = open_source(path)
        assert_rows(source, [[2, 0, 4], [0, 1, 0], [0, 0, 0]], [1, -1, 2])

    def test_folder(self, tmp_path, sparse):
        X, y = sparse
        dump_svmlight_file(X[:90], y[:90], str(tmp_path / "a.svm"), zero_based=False)
        dump_svmlight_file(X[90:], y[90:], str(tmp_path / "b.libsvm"), zero_based=False)
        source = open_source(tmp_path)
        assert_rows(source, X.toarray(), y)
        names = [(chunk.name, chunk.first) for chunk in source.chunks(60)]
        assert names == [("a.svm", 0), ("a.svm", 60), ("b.libsvm", 0), ("b.libsvm", 60)]

    def test_width_and_base_of_another_file(self, tmp_path):
        """A file to predict on need not have the first or the last feature."""
        path = tmp_path / "rows.svm"
        path.write_text("0 1:5 2:6\n")
        assert open_source(path, n_features=4).zero_based is False
        source = open_source(path, n_features=4, zero_based=True)
        assert source.n_rows is None
        assert_rows(source, [[0, 5, 6, 0]], [0])
        assert_rows(LibsvmRows({path.name: path}, 4, False), [[5, 6, 0, 0]], [0])
        assert LibsvmRows({path.name: path}, zero_based=True).n_features == 3

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("1 1:x", "could not convert"),
            ("1 2:1 1:1", "should be sorted"),
            ("1,2 1:1", "could not convert"),
            ("1 1", "unpack"),
            ("1 -3:1", "Invalid index"),
            ("1 99999999999999:1", "too large"),
        ],
    )
    def test_bad_line(self, tmp_path, line, reason):
        path = tmp_path / "rows.svm"
        path.write_text("# head\n" + "1 1:1 2:3\n" * 50 + line + "\n" + "1 1:1\n" * 9)
        message = rf"Row 50 of rows.svm \(counted from 0\) cannot be read: .*{reason}.*{line}"
        with pytest.raises(ValueError, match=message):
            LibsvmRows({path.name: path}, read_bytes=64)

    def test_many_empty_lines_take_little_memory_and_time(self, tmp_path):
        """Some bytes of a compressed file may be a million of them."""
        path = tmp_path / "rows.svm.bz2"
        path.write_bytes(bz2.compress(b"\n" * 10**6 + b"1 1:1\n" + b"\n" * 10**6 + b"-\n"))
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match=r"Row 1 of rows.svm.bz2 .* begins with b'-'"):
                open_source(path)
            assert tracemalloc.get_traced_memory()[1] < 30e6
        finally:
            tracemalloc.stop()

    def test_a_line_without_end(self, tmp_path, monkeypatch):
        monkeypatch.setattr("nysplus._rows.readers.libsvm.MAX_LINE_BYTES", 1000)
        path = tmp_path / "rows.svm"
        path.write_text("1 1:1\n1 " + " ".join(f"{j}:1" for j in range(1, 400)))
        with pytest.raises(ValueError, match=r"rows\.svm has a line of more than 1000 bytes"):
            LibsvmRows({path.name: path}, read_bytes=100)
        assert LibsvmRows({path.name: path}).n_features == 399

    def test_feature_with_too_large_a_number(self, tmp_path):
        path = tmp_path / "rows.svm"
        path.write_text("1 1:1\n1 2:1\n1 3:1\n")
        message = "Row 2 of rows.svm .* n_features was set to 2, but input file contains 3 features"
        with pytest.raises(ValueError, match=message):
            read_all(LibsvmRows({path.name: path}, n_features=2, zero_based=False))
        path.write_text("1 0:1\n")
        with pytest.raises(ValueError, match=r"Row 0 of rows.svm .* Invalid index 0"):
            LibsvmRows({path.name: path}, zero_based=False)

    @pytest.mark.parametrize("zero_based", ["auto", True, False])
    def test_a_number_of_a_feature_that_is_a_mistake(self, tmp_path, zero_based):
        """A fit would have vectors of so many numbers."""
        path = tmp_path / "rows.svm"
        path.write_text("1 1:1\n2 3:1\n1 2:1 2147483647:1 # two\n1 5:1\n")
        message = (
            r"Row 2 of rows.svm .* feature with the number 2147483647, .* 5 entries.*"
            r"load_svmlight_file\(path, n_features="
        )
        for read_bytes in (2**20, 4):
            with pytest.raises(ValueError, match=message):
                LibsvmRows({path.name: path}, zero_based=zero_based, read_bytes=read_bytes)
        with pytest.raises(ValueError, match=message):
            NystroemClassifier().fit(path)

    def test_many_features_are_read(self, tmp_path):
        path = tmp_path / "rows.svm"
        path.write_text("1 1:1\n2 16000000:1\n")
        assert open_source(path).n_features == 16_000_000

    @pytest.mark.parametrize("text", ["", "# nothing\n", "1\n2\n"])
    def test_no_features(self, tmp_path, text):
        (tmp_path / "rows.svm").write_text(text)
        with pytest.raises(ValueError, match=r"No row of rows\.svm has a feature"):
            open_source(tmp_path)

    def test_bad_values(self, tmp_path):
        path = tmp_path / "rows.svm"
        path.write_text("1 1:1 2:1\n1 1:1 2:nan\n")
        with pytest.raises(
            ValueError, match=r"X contains NaN in row 1 \(row 1 of rows.svm.*column 1"
        ):
            read_all(open_source(path))
        path.write_text("1 1:1\ninf 1:1\n")
        with pytest.raises(ValueError, match="y contains infinity in row 1"):
            read_all(open_source(path))

    @pytest.mark.parametrize("suffix", [".gz", ".bz2"])
    def test_packed_file_without_its_end(self, tmp_path, suffix, rng):
        pack = {".gz": gzip.compress, ".bz2": bz2.compress}[suffix]
        text = "".join(f"1 1:{value}\n" for value in rng.standard_normal(2000))
        (tmp_path / f"rows.svm{suffix}").write_bytes(pack(text.encode())[:-100])
        with pytest.raises(ValueError, match=rf"^rows.svm{suffix} cannot be read: "):
            open_source(tmp_path)
