"""Datasets: publishers' formats, look-up, download, splits and scaling. No test uses a network."""

from __future__ import annotations

import bz2
import dataclasses
import gzip
import hashlib
import io
import lzma
import os
import sys
import tarfile
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from scipy.io import savemat

from nysplus_experiments.harness import datasets
from nysplus_experiments.harness.datasets import (
    DATASETS,
    DatasetError,
    DatasetNotFound,
    RemoteFile,
    formats,
    publishers,
)

REAL = os.environ.get("NYSPLUS_DATA")
RNG_SEED = 0


@pytest.fixture(autouse=True)
def places(request, tmp_path, monkeypatch):
    """Empty look-up folders and no network for every test that is not on real files."""
    if request.node.name.startswith("test_real_"):
        return None
    data, cache = tmp_path / "data", tmp_path / "cache"
    data.mkdir()
    monkeypatch.setenv("NYSPLUS_DATA", str(data))
    monkeypatch.setenv("NYSPLUS_CACHE", str(cache))
    return data, cache


def shrink(monkeypatch, name, **changes):
    """Replace a row of the table by one with other counts or sources."""
    row = dataclasses.replace(DATASETS[name], **changes)
    monkeypatch.setitem(DATASETS, name, row)
    return row


def rows_and_labels(n, d, n_classes, low=0, high=16, first_label=0):
    rng = np.random.default_rng(RNG_SEED)
    X = rng.integers(low, high, size=(n, d))
    return X, np.arange(n) % n_classes + first_label


def libsvm_text(X, y):
    lines = (
        f"{label:g} " + " ".join(f"{j + 1}:{v:g}" for j, v in enumerate(row) if v != 0)
        for row, label in zip(X, y, strict=True)
    )
    return ("\n".join(lines) + "\n").encode()


def table_text(X, y, separator):
    rows = np.column_stack([X, y])
    return "\n".join(separator.join(f"{v:g}" for v in row) for row in rows).encode() + b"\n"


def prepared(tmp_path, name):
    """Convert the files in ``tmp_path/files`` and return the arrays of the result."""
    (path,) = datasets.prepare(tmp_path / "files", tmp_path / "out", [name])
    assert path == tmp_path / "out" / f"{name}.npz"
    with np.load(path) as content:
        return {key: content[key] for key in content.files}


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    return folder


# -- publishers' formats -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".bz2", bz2.compress), (".xz", lzma.compress), (".gz", gzip.compress), ("", bytes)],
)
def test_usps_in_libsvm_text(tmp_path, files, monkeypatch, suffix, compress):
    shrink(monkeypatch, "usps", rows=(20, 10))
    X, y = rows_and_labels(30, 256, 10, -3, 4, first_label=1)
    (files / f"usps{suffix}").write_bytes(compress(libsvm_text(X[:20], y[:20])))
    (files / f"usps.t{suffix}").write_bytes(compress(libsvm_text(X[20:], y[20:])))
    arrays = prepared(tmp_path, "usps")
    np.testing.assert_array_equal(arrays["X_train"], X[:20])
    np.testing.assert_array_equal(arrays["X_test"], X[20:])
    np.testing.assert_array_equal(arrays["y_train"], y[:20] - 1)  # digits, not LIBSVM's 1 to 10
    assert set(arrays["y_test"]) == set(range(10))


@pytest.mark.parametrize(("name", "d"), [("cod_rna", 8), ("ijcnn1", 22)])
def test_two_class_libsvm(tmp_path, files, monkeypatch, name, d):
    row = shrink(monkeypatch, name, rows=(12, 6))
    X, y = rows_and_labels(18, d, 2)
    y = 2 * y - 1
    for file, part in zip(row.sources[0].files, (slice(12), slice(12, 18)), strict=True):
        text = libsvm_text(X[part] / 4, y[part])
        (files / file.name).write_bytes(bz2.compress(text) if file.name.endswith("2") else text)
    arrays = prepared(tmp_path, name)
    np.testing.assert_array_equal(arrays["X_train"], X[:12] / 4)
    np.testing.assert_array_equal(arrays["y_test"], y[12:])


def test_letter_from_libsvm_and_from_uci(tmp_path, files, monkeypatch):
    shrink(monkeypatch, "letter", rows=(78, 26))
    X, y = rows_and_labels(104, 16, 26, first_label=1)
    lines = [f"{chr(64 + c)}," + ",".join(map(str, row)) for row, c in zip(X, y, strict=True)]
    (files / "letter-recognition.data").write_text("\n".join(lines) + "\n")
    uci = prepared(tmp_path, "letter")
    scaled = np.round(X / 7.5 - 1, 6)
    (files / "letter.scale").write_bytes(libsvm_text(scaled[:78], y[:78]))
    (files / "letter.scale.t").write_bytes(libsvm_text(scaled[78:], y[78:]))
    libsvm = prepared(tmp_path, "letter")
    assert "UCI" in str(uci.pop("notes")[0])
    assert "notes" not in libsvm
    np.testing.assert_array_equal(libsvm["X_train"], X[:78])
    assert libsvm["X_train"].dtype == np.uint8
    for key in libsvm:
        np.testing.assert_array_equal(libsvm[key], uci[key])


@pytest.mark.parametrize("nested", [False, True])
def test_har_zip(tmp_path, files, monkeypatch, nested):
    shrink(monkeypatch, "har", rows=(12, 6))
    X, y = rows_and_labels(18, 561, 6, -100, 100, first_label=1)
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("__MACOSX/UCI HAR Dataset/train/._X_train.txt", b"not the data")
        for part, rows in (("train", slice(12)), ("test", slice(12, 18))):
            text = "\n".join("  ".join(f"{v / 100:.7e}" for v in row) for row in X[rows])
            archive.writestr(f"UCI HAR Dataset/{part}/X_{part}.txt", text)
            labels = "\n".join(map(str, y[rows]))
            archive.writestr(f"UCI HAR Dataset/{part}/y_{part}.txt", labels)
    if nested:
        name = "human+activity+recognition+using+smartphones.zip"
        with zipfile.ZipFile(files / name, "w") as outer:
            outer.writestr("UCI HAR Dataset.zip", inner.getvalue())
    else:
        (files / "UCI HAR Dataset.zip").write_bytes(inner.getvalue())
    arrays = prepared(tmp_path, "har")
    np.testing.assert_allclose(arrays["X_train"], X[:12] / 100, rtol=1e-6)
    np.testing.assert_array_equal(arrays["y_test"], y[12:])


def test_mnist_idx(tmp_path, files, monkeypatch):
    shrink(monkeypatch, "mnist", rows=(20, 10))
    X, y = rows_and_labels(30, 784, 10, 0, 256)
    for prefix, rows in (("train", slice(20)), ("t10k", slice(20, 30))):
        n = len(y[rows])
        images = np.array([0x803, n, 28, 28], ">u4").tobytes() + X[rows].astype(np.uint8).tobytes()
        labels = np.array([0x801, n], ">u4").tobytes() + y[rows].astype(np.uint8).tobytes()
        (files / f"{prefix}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
        (files / f"{prefix}-labels-idx1-ubyte").write_bytes(labels)
    arrays = prepared(tmp_path, "mnist")
    np.testing.assert_array_equal(arrays["X_train"], X[:20])
    np.testing.assert_array_equal(arrays["y_test"], y[20:])


def test_idx_that_is_too_short_is_refused(tmp_path):
    path = tmp_path / "images-idx3-ubyte"
    path.write_bytes(np.array([0x803, 2, 2, 2], ">u4").tobytes() + bytes(7))
    with pytest.raises(DatasetError, match=r"\(2, 2, 2\) but has 7 values"):
        formats.read_idx(path)


@pytest.mark.parametrize("label", ["{:.0f}", "{:.1f}"])
@pytest.mark.parametrize("packing", ["uci", "tar", "file"])
def test_buzz_data(tmp_path, files, monkeypatch, packing, label):
    shrink(monkeypatch, "buzz", rows=(9,))
    X, y = rows_and_labels(9, 77, 2, 0, 5000)
    lines = [",".join([*map(str, row), label.format(c)]) for row, c in zip(X, y, strict=True)]
    text = ("\n".join(lines) + "\n").encode()
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w:gz") as archive:
        for member, content in (
            ("classification/TomsHardware/Absolute_labeling/TomsHardware.data", b"no"),
            ("classification/Twitter/Absolute_labeling/Twitter-Absolute-Sigma-500.data", text),
        ):
            info = tarfile.TarInfo(member)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    if packing == "uci":
        with zipfile.ZipFile(files / "buzz+in+social+media.zip", "w") as outer:
            outer.writestr("classification.tar.gz", tar.getvalue())
    elif packing == "tar":
        (files / "classification.tar.gz").write_bytes(tar.getvalue())
    else:
        (files / "Twitter-Relative-Sigma-500.data").write_bytes(text)
    arrays = prepared(tmp_path, "buzz")
    np.testing.assert_array_equal(arrays["X"], X)
    np.testing.assert_array_equal(arrays["y"], y)
    assert ("Relative" if packing == "file" else "Absolute") in str(arrays["notes"][0])


def test_svhn_mat(tmp_path, files, monkeypatch):
    shrink(monkeypatch, "svhn", rows=(20, 10))
    X, y = rows_and_labels(30, 3072, 10, 0, 256)
    images = X.reshape(30, 32, 32, 3).astype(np.uint8)
    labels = np.where(y == 0, 10, y).astype(np.uint8)[:, None]
    for part, rows in (("train", slice(20)), ("test", slice(20, 30))):
        content = {"X": images[rows].transpose(1, 2, 3, 0), "y": labels[rows]}
        savemat(files / f"{part}_32x32.mat", content)
    arrays = prepared(tmp_path, "svhn")
    assert arrays["X_train"].dtype == np.uint8
    np.testing.assert_array_equal(arrays["X_train"], X[:20])
    np.testing.assert_array_equal(arrays["y_test"], y[20:])  # the label 10 is the digit 0


def test_covtype_gz(tmp_path, files, monkeypatch):
    shrink(monkeypatch, "covtype", rows=(21,))
    X, y = rows_and_labels(21, 54, 7, -200, 7000, first_label=1)
    (files / "covtype.data.gz").write_bytes(gzip.compress(table_text(X, y, ",")))
    arrays = prepared(tmp_path, "covtype")
    np.testing.assert_array_equal(arrays["X"], X)
    np.testing.assert_array_equal(arrays["y"], y)


def lzw(data, max_width=16):
    """Unix ``compress`` in its simplest form: no clear code; padding at each change of width."""
    table = {bytes([i]): i for i in range(256)}
    codes, word, size = [], b"", 257
    for byte in data:
        longer = word + bytes([byte])
        if longer in table:
            word = longer
            continue
        codes.append(table[word])
        if size < 1 << max_width:
            table[longer] = size
            size += 1
        word = bytes([byte])
    codes.append(table[word])
    out, bits, n_bits, width, known = bytearray(b"\x1f\x9d"), 0, 0, 9, 256
    out.append(0x80 | max_width)
    group = 0
    for code in codes:
        bits |= code << n_bits
        n_bits += width
        group += 1
        known += 1  # entries that the decoder has after this code
        if known == 1 << width and width < max_width:
            n_bits += -group % 8 * width
            width, group = width + 1, 0
        while n_bits >= 8:
            out.append(bits & 255)
            bits >>= 8
            n_bits -= 8
    if n_bits:
        out.append(bits & 255)
    return bytes(out)


@pytest.mark.parametrize("n", [1, 300, 5000, 60000])
@pytest.mark.parametrize("max_width", [12, 16])
def test_unlzw_through_every_width(n, max_width):
    rng = np.random.default_rng(n)
    data = rng.integers(0, 7, n, dtype=np.uint8).tobytes() + rng.bytes(n)
    assert formats.unlzw(lzw(data, max_width)) == data


def test_unlzw_starts_again_at_a_clear_code():
    literals = [*b"abcabc", 256, *b"xyz"]
    groups, packed = [literals[:7], literals[7:]], b""
    for group in groups:  # the clear code ends a group of 8 codes
        bits = sum(code << 9 * i for i, code in enumerate(group))
        packed += bits.to_bytes(9, "little")
    # Whole padding codes at the very end would be read as zeros: cut the last group short.
    packed = packed[: 9 + -(-9 * len(groups[1]) // 8)]
    assert formats.unlzw(b"\x1f\x9d\x90" + packed) == b"abcabcxyz"


def test_unlzw_refuses_damage():
    with pytest.raises(DatasetError, match="1f 9d"):
        formats.unlzw(b"\x1f\x8b\x08")
    with pytest.raises(DatasetError, match="out of range"):
        formats.unlzw(b"\x1f\x9d\x90" + b"\xff" * 9)


def test_shuttle_compressed_and_plain(tmp_path, files, monkeypatch):
    shrink(monkeypatch, "shuttle", rows=(14, 7))
    X, y = rows_and_labels(21, 9, 7, -4000, 4000, first_label=1)
    (files / "shuttle.trn.Z").write_bytes(lzw(table_text(X[:14], y[:14], " ")))
    (files / "shuttle.tst").write_bytes(table_text(X[14:], y[14:], " "))
    arrays = prepared(tmp_path, "shuttle")
    np.testing.assert_array_equal(arrays["X_train"], X[:14])
    np.testing.assert_array_equal(arrays["y_test"], y[14:])


# -- conversion ----------------------------------------------------------------------------------


def shuttle_files(folder, monkeypatch, n=21):
    shrink(monkeypatch, "shuttle", rows=(14, 7), counts=(14, 7))
    X, y = rows_and_labels(n, 9, 7, first_label=1)
    (folder / "shuttle.trn").write_bytes(table_text(X[:14], y[:14], " "))
    (folder / "shuttle.tst").write_bytes(table_text(X[14:], y[14:], " "))
    return X, y


def test_prepare_writes_where_load_looks(files, places, monkeypatch):
    X, y = shuttle_files(files, monkeypatch)
    assert datasets.prepare(files) == [places[1] / "shuttle.npz"]
    split = datasets.load("shuttle", download=False)
    np.testing.assert_array_equal(split.y_train, y[:14])
    assert split.X_train.shape == X[:14].shape


def test_prepare_looks_into_a_folder_of_the_dataset(files, tmp_path, monkeypatch):
    (files / "shuttle").mkdir()
    shuttle_files(files / "shuttle", monkeypatch)
    assert [path.name for path in datasets.prepare(files, tmp_path / "out")] == ["shuttle.npz"]


def test_prepare_without_files_or_with_half_of_them(files, monkeypatch):
    with pytest.raises(DatasetNotFound, match=r"No publisher's file .* usps\.t\.bz2"):
        datasets.prepare(files)
    with pytest.raises(DatasetNotFound, match="its files are not in"):
        datasets.prepare(files, names=["mnist"])
    shuttle_files(files, monkeypatch)
    (files / "shuttle.tst").unlink()
    with pytest.raises(DatasetNotFound, match=r"holds shuttle\.trn but no shuttle\.tst"):
        datasets.prepare(files)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (b"1 2 three", "could not be read as Shuttle"),
        (b"1 2 3 4 5 6 7 8 9 1\n", r"shapes \(1, 9\) and \(1,\)"),
        (b"1 2 3 4 5 6 7 8 9 1\n" * 14, "found 6 classes"),
    ],
)
def test_bad_publisher_files_leave_nothing(files, tmp_path, monkeypatch, damage, message):
    shuttle_files(files, monkeypatch)
    (files / "shuttle.trn").write_bytes(damage)
    text = (files / "shuttle.tst").read_bytes().splitlines(keepends=True)
    (files / "shuttle.tst").write_bytes(b"".join(text[:-1] + text[-2:-1]))
    with pytest.raises(DatasetError, match=message):
        datasets.prepare(files, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_failing_write_keeps_the_old_file(files, places, monkeypatch):
    shuttle_files(files, monkeypatch)
    (path,) = datasets.prepare(files)
    before = path.read_bytes()

    def fail(stream, **arrays):
        stream.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="disk full"):
        datasets.prepare(files)
    assert path.read_bytes() == before
    assert [p.name for p in places[1].iterdir()] == ["shuttle.npz"]


# -- download ------------------------------------------------------------------------------------


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder without a word; ``cut`` announces more bytes than it sends."""

    cut = False

    def log_message(self, *args):
        pass

    def send_header(self, keyword, value):
        if self.cut and keyword == "Content-Length":
            value = str(int(value) + 1000)
        super().send_header(keyword, value)


@pytest.fixture
def server(files):
    """Serve ``files`` on this machine."""
    pytest.importorskip("pooch", reason="downloads need pooch")
    web = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(files)))
    threading.Thread(target=web.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{web.server_port}"
    web.shutdown()
    web.server_close()


def serve(folder, address, monkeypatch, sha256=None):
    """Let the row of Shuttle point to files in ``folder``."""
    shuttle_files(folder, monkeypatch)
    remote = [
        RemoteFile(f"{address}/{name}", hashlib.sha256((folder / name).read_bytes()).hexdigest())
        for name in ("shuttle.trn", "shuttle.tst")
    ]
    if sha256 is not None:
        remote[1] = RemoteFile(remote[1].url, sha256)
    source = dataclasses.replace(DATASETS["shuttle"].sources[0], files=tuple(remote))
    shrink(monkeypatch, "shuttle", sources=(source,))


def test_fetch_downloads_converts_and_cleans_up(files, server, places, monkeypatch):
    serve(files, server, monkeypatch)
    calls = []
    path = datasets.fetch("shuttle", lambda done, total: calls.append((done, total)))
    assert path == places[1] / "shuttle.npz" == datasets.find("shuttle")
    assert [p.name for p in places[1].iterdir()] == ["shuttle.npz"]
    size = (files / "shuttle.trn").stat().st_size
    assert calls[0] == (size, size)
    monkeypatch.setattr(publishers, "_download", None)  # the second time asks nobody
    assert datasets.fetch("shuttle") == path
    assert len(datasets.load("shuttle").X_test) == 7


def test_checksum_mismatch(files, server, places, monkeypatch):
    serve(files, server, monkeypatch, sha256="0" * 64)
    with pytest.raises(DatasetError, match=f"shuttle.tst does not have the checksum {'0' * 64}"):
        datasets.load("shuttle")
    assert list(places[1].iterdir()) == []


def test_a_file_without_a_checksum_is_downloaded_in_silence(files, server, monkeypatch, capfd):
    serve(files, server, monkeypatch, sha256="")
    datasets.fetch("shuttle")
    assert capfd.readouterr() == ("", "")


def test_download_that_breaks_off(files, server, places, monkeypatch):
    serve(files, server, monkeypatch)
    monkeypatch.setattr(Handler, "cut", True)
    with pytest.raises(DatasetNotFound, match="could not be downloaded"):
        datasets.fetch("shuttle")
    assert list(places[1].iterdir()) == []


def test_download_of_a_file_that_is_gone(files, server, places, monkeypatch):
    serve(files, server, monkeypatch)
    (files / "shuttle.tst").unlink()
    with pytest.raises(DatasetNotFound, match=r"could not be downloaded .*404"):
        datasets.fetch("shuttle")
    assert list(places[1].iterdir()) == []


@pytest.mark.parametrize("name", [name for name in DATASETS if name != "digits"])
def test_offline_error_says_what_where_and_how(places, monkeypatch, name):
    requests = pytest.importorskip("requests", reason="downloads need pooch, which needs requests")

    def offline(*args, **options):
        raise requests.ConnectionError("no route to host")

    monkeypatch.setattr(requests, "get", offline)
    for action in (lambda: datasets.load(name), lambda: datasets.load(name, download=False)):
        with pytest.raises(DatasetNotFound) as caught:
            action()
        text = str(caught.value)
        assert f"{name}.npz in {places[0]} (NYSPLUS_DATA); {places[1]} (cache" in text
        assert "nysplus datasets prepare DIR" in text
        assert all(file.url in text for file in DATASETS[name].sources[0].files)
    assert isinstance(caught.value, FileNotFoundError)


# -- look-up -------------------------------------------------------------------------------------


def save_shuttle(folder, value, monkeypatch, **changes):
    shrink(monkeypatch, "shuttle", rows=(14, 7), counts=(14, 7))
    X, y = rows_and_labels(21, 9, 7, first_label=1)
    X[0] = value
    arrays = {"X_train": X[:14], "y_train": y[:14], "X_test": X[14:], "y_test": y[14:]} | changes
    folder.mkdir(exist_ok=True)
    np.savez(folder / "shuttle.npz", **{k: v for k, v in arrays.items() if v is not None})
    return arrays


def test_look_up_order(places, monkeypatch):
    data, cache = places
    assert datasets.find("shuttle") is None
    save_shuttle(cache, 0, monkeypatch)
    assert datasets.find("shuttle") == cache / "shuttle.npz"
    save_shuttle(data, 0, monkeypatch)
    assert datasets.find("shuttle") == data / "shuttle.npz"
    monkeypatch.delenv("NYSPLUS_DATA")
    assert datasets.find("shuttle") == cache / "shuttle.npz"


def test_describe(places, monkeypatch):
    save_shuttle(places[1], 0, monkeypatch)
    found = {entry.dataset.name: entry for entry in datasets.describe()}
    assert list(found) == list(DATASETS)
    assert (found["shuttle"].where, found["shuttle"].present) == ("cache", True)
    assert found["digits"].where == "scikit-learn"
    assert (found["mnist"].where, found["mnist"].present) == ("", False)


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "base/nysplus"),
        ("win32", "LOCALAPPDATA", "base/nysplus"),
        ("darwin", "XDG_CACHE_HOME", "home/Library/Caches/nysplus"),
        ("linux", "OTHER", "home/.cache/nysplus"),
    ],
)
def test_cache_folder_by_platform(tmp_path, monkeypatch, platform, variable, expected):
    for name in ("NYSPLUS_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv(variable, str(tmp_path / "base"))
    monkeypatch.setattr(sys, "platform", platform)
    assert datasets.cache_folder() == tmp_path / expected


def test_unknown_name():
    for action in (datasets.find, datasets.fetch, datasets.load):
        with pytest.raises(ValueError, match=r"Unknown dataset 'iris'.*usps.*digits"):
            action("iris")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y_test": None}, "without y_test"),
        ({"X_train": np.zeros((14, 8))}, r"shapes \(14, 8\) and \(14,\).*needs \(14, 9\)"),
        ({"X_train": np.zeros(14)}, r"shapes \(14,\)"),
        ({"y_train": np.ones(13)}, r"and \(13,\)"),
        ({"X_test": np.full((7, 9), np.nan)}, "X_test has NaN"),
        ({"X_test": np.full((7, 9), "a")}, "X_test has the type <U1"),
        ({"y_train": np.zeros(14)}, "found 8 classes"),
        ({"y_train": np.array([None] * 14)}, "could not be read"),
    ],
)
def test_bad_npz(places, monkeypatch, changes, message):
    save_shuttle(places[0], 0, monkeypatch, **changes)
    with pytest.raises(DatasetError, match=message) as caught:
        datasets.load("shuttle")
    assert "shuttle.npz" in str(caught.value)
    assert "nysplus datasets prepare DIR" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more", b"text"])
def test_damaged_npz(places, content):
    (places[0] / "usps.npz").write_bytes(content)
    with pytest.raises(DatasetError, match=r"usps\.npz could not be read.*Delete it"):
        datasets.load("usps")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtype": np.int32}, "float64 or float32"),
        ({"trial": -1}, "trial=-1"),
        ({"trial": 0.5}, "trial=0.5"),
        ({"public_split": True}, "applies to ijcnn1 only"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        datasets.load("digits", **arguments)


# -- splits and scaling --------------------------------------------------------------------------


def test_digits():
    split = datasets.load("digits", trial=1)
    assert (split.X_train.shape, split.X_test.shape) == ((1297, 64), (500, 64))
    assert (split.X_train.min(), split.X_train.max()) == (0.0, 1.0)
    assert (split.X_train.dtype, split.gamma) == (np.float64, 0.02)
    assert any("our choice" in text for text in split.deviations)
    again, other = datasets.load("digits", trial=1), datasets.load("digits", trial=2)
    np.testing.assert_array_equal(split.X_test, again.X_test)
    assert not np.array_equal(split.y_test, other.y_test)
    assert datasets.load("digits", dtype=np.float32).X_test.dtype == np.float32
    # Every row of the set is used once.
    raw = formats.digits([])["X"]
    both = np.concatenate([split.X_train, split.X_test]) * 16
    np.testing.assert_array_equal(np.sort(both.sum(axis=1)), np.sort(raw.sum(axis=1)))


def test_feature_scaling(places, monkeypatch):
    X = np.zeros((14, 9))
    X[:, 0] = np.linspace(10, 20, 14)
    X[:, 1] = 5.0  # constant in training
    X_test = np.zeros((7, 9))
    X_test[:, 0], X_test[:, 1] = 25.0, 6.0
    save_shuttle(places[0], 0, monkeypatch, X_train=X, X_test=X_test)
    split = datasets.load("shuttle")
    np.testing.assert_allclose(split.X_train[:, 0], np.linspace(0, 1, 14))
    assert split.X_train[-1, 0] == 1.0
    assert (split.X_test[:, 0] == 1.5).all()  # not clipped
    assert not split.X_train[:, 1:].any()
    assert not split.X_test[:, 1:].any()


def test_another_scaling_than_the_datasets_own(places, monkeypatch):
    rng = np.random.RandomState(0)
    X, X_test = rng.rand(14, 9) * np.arange(1, 10), rng.rand(7, 9)
    X[:, 3] = 5.0
    save_shuttle(places[0], 0, monkeypatch, X_train=X, X_test=X_test)
    split = datasets.load("shuttle", scaling="standard")
    varied = np.arange(9) != 3
    np.testing.assert_allclose(split.X_train.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(split.X_train[:, varied].std(axis=0), 1.0)
    assert not split.X_test[:, 3].any()
    expected = (X_test[:, 0] - X[:, 0].mean()) / X[:, 0].std()
    np.testing.assert_allclose(split.X_test[:, 0], expected)
    split = datasets.load("shuttle", scaling="global")
    np.testing.assert_allclose(split.X_train, (X - X.min()) / (X.max() - X.min()))


def test_narrow_integers_do_not_overflow(places, monkeypatch):
    X = np.zeros((14, 9), np.int16)
    X[0], X[1] = -32768, 32767
    X_test = np.full((7, 9), 32767, np.int16)
    save_shuttle(places[0], 0, monkeypatch, X_train=X, X_test=X_test)
    split = datasets.load("shuttle")
    np.testing.assert_array_equal(split.X_train[0], 0.0)
    np.testing.assert_array_equal(split.X_train[1], 1.0)
    np.testing.assert_allclose(split.X_train[2], 32768 / 65535)
    np.testing.assert_array_equal(split.X_test, 1.0)


def test_global_scaling_of_bytes(places, monkeypatch):
    shrink(monkeypatch, "mnist", rows=(20, 10))
    X, y = rows_and_labels(30, 784, 10, 5, 200)
    X[0, 0], X[1, 1], X[25, 3] = 5, 205, 255
    X = X.astype(np.uint8)
    arrays = {"X_train": X[:20], "y_train": y[:20], "X_test": X[20:], "y_test": y[20:]}
    np.savez(places[0] / "mnist.npz", **arrays)
    split = datasets.load("mnist", dtype=np.float32)
    np.testing.assert_allclose(split.X_train, (X[:20] - 5.0) / 200, rtol=1e-6)
    assert split.X_test[5, 3] == np.float32(1.25)
    assert split.deviations == (
        "MNIST has 20 training and 10 test rows here, 60000 and 10000 in the paper.",
    )


def test_cod_rna_is_unique_by_features(places, monkeypatch):
    shrink(monkeypatch, "cod_rna", rows=(6, 4), paper=(4, 2))
    X = np.repeat(np.array([3.0, 1.0, 3.0, 2.0, 0.0, -0.0])[:, None], 8, axis=1)
    X_test = np.repeat(np.array([9.0, 1.0, 9.0, 5.0])[:, None], 8, axis=1)
    y, y_test = np.array([1, -1, -1, 1, 1, 1]), np.array([1, -1, 1, -1])
    np.savez(places[0] / "cod_rna.npz", X_train=X, y_train=y, X_test=X_test, y_test=y_test)
    split = datasets.load("cod_rna")
    np.testing.assert_allclose(split.X_train[:, 0] * 3, [3, 1, 2, 0])  # first ones, in order
    np.testing.assert_array_equal(split.y_train, [1, -1, 1, 1])
    np.testing.assert_allclose(split.X_test[:, 0] * 3, [9, 1, 5])
    text = " ".join(split.deviations)
    assert "4 training and 3 test rows here, 4 and 2 in the paper" in text
    assert "1 feature vectors of the training file and 0 of the test file" in text
    assert "1 test rows of COD-RNA also occur" in text


def test_ijcnn_is_pooled_and_split_again(places, monkeypatch):
    shrink(monkeypatch, "ijcnn1", rows=(10, 20), counts=(24, 6), paper=(24, 6))
    X, y = np.repeat(np.arange(30.0)[:, None], 22, axis=1), np.arange(30) % 2
    arrays = {"X_train": X[:10], "y_train": y[:10], "X_test": X[10:], "y_test": y[10:]}
    np.savez(places[0] / "ijcnn1.npz", **arrays)
    split = datasets.load("ijcnn1", trial=5)
    assert (len(split.X_train), len(split.X_test)) == (24, 6)
    order = np.random.RandomState(5).permutation(30)
    np.testing.assert_array_equal(split.y_train, y[order[:24]])
    np.testing.assert_array_equal(split.y_test, y[order[24:]])
    assert "pooled" in " ".join(split.deviations)
    public = datasets.load("ijcnn1", public_split=True)
    np.testing.assert_array_equal(public.y_test, y[10:])
    assert "10 training and 20 test rows here, 24 and 6 in the paper" in public.deviations[0]
    assert "pooled" not in " ".join(public.deviations)


def test_buzz_is_split_anew_in_each_trial_and_keeps_its_note(places, monkeypatch):
    shrink(monkeypatch, "buzz", rows=(40,), counts=(30, 10))
    X, y = rows_and_labels(40, 77, 2)
    np.savez(places[0] / "buzz.npz", X=X, y=y, notes=np.array(["Labels of the test."]))
    one, two = datasets.load("buzz", 1), datasets.load("buzz", 2)
    assert (len(one.X_train), len(one.X_test)) == (30, 10)
    assert not np.array_equal(one.X_train, two.X_train)
    assert "Labels of the test." in one.deviations


# -- the table -----------------------------------------------------------------------------------


def test_table_is_consistent():
    assert list(DATASETS) == [row.name for row in DATASETS.values()]
    for row in DATASETS.values():
        assert len(row.rows) == (1 if row.split == "random" else 2)
        if row.split != "fixed":
            assert sum(row.counts) == sum(row.rows)
        elif not row.unique:
            assert row.counts == row.rows
        for file in row.sources[0].files:
            assert file.url.startswith("http")
            assert file.sha256 is None or len(file.sha256) == 64


def test_table_agrees_with_the_paper():
    paper = {
        "usps": (256, 7291, 2007, 10, 0.01),
        "har": (561, 7352, 2947, 6, 0.01),
        "letter": (16, 15000, 5000, 26, 1.0),
        "cod_rna": (8, 49451, 97824, 2, 1.0),
        "mnist": (784, 60000, 10000, 10, 0.01),
        "buzz": (77, 120000, 20707, 2, 0.001),
        "svhn": (3072, 73257, 26032, 10, 0.001),
        "ijcnn1": (22, 120000, 21691, 2, 0.1),
        "covtype": (54, 500000, 81012, 7, 1.0),
    }
    table = {
        name: (row.n_features, *row.paper, row.n_classes, row.gamma)
        for name, row in DATASETS.items()
        if row.paper is not None
    }
    assert table == paper


# -- real files ----------------------------------------------------------------------------------


@pytest.mark.skipif(not REAL, reason="NYSPLUS_DATA names no folder of real datasets")
@pytest.mark.parametrize("name", DATASETS)
def test_real_counts(name):
    if datasets.find(name) is None and name != "digits":
        pytest.skip(f"{name}.npz is not in the folder that NYSPLUS_DATA names")
    row, split = DATASETS[name], datasets.load(name, trial=1, download=False, dtype=np.float32)
    assert (len(split.X_train), len(split.X_test)) == row.counts
    assert (len(split.y_train), len(split.y_test)) == row.counts
    assert split.X_train.shape[1] == row.n_features
    assert (split.X_train.min(), split.X_train.max()) == (0.0, 1.0)
    assert len(np.unique(split.y_train)) == row.n_classes
    if name == "cod_rna":
        text = " ".join(split.deviations)
        assert "49451 training and 210758 test rows here, 49451 and 97824 in the paper" in text
        assert "15 feature vectors of the training file" in text
        assert "2784 test rows" in text


@pytest.mark.skipif(not REAL, reason="NYSPLUS_DATA names no folder of real datasets")
def test_real_ijcnn_in_its_public_split():
    if datasets.find("ijcnn1") is None:
        pytest.skip("ijcnn1.npz is not in the folder that NYSPLUS_DATA names")
    split = datasets.load("ijcnn1", download=False, public_split=True)
    assert (len(split.X_train), len(split.X_test)) == (49990, 91701)
