"""The parameter `encoder` of the estimators."""

from __future__ import annotations

import pytest

from nysplus.encoding import ImageEncoder, TableEncoder
from nysplus.encoding.parameter import make_encoder, table_encoder


def test_the_parameter_of_estimators():
    assert make_encoder(None) is None
    assert isinstance(make_encoder("auto"), TableEncoder)
    mine = TableEncoder(n_bins=4)
    assert make_encoder(mine) is mine
    for wrong in ("yes", True, TableEncoder, 3):
        with pytest.raises(ValueError, match=r"is not known\. Allowed are None, 'auto', a T"):
            make_encoder(wrong)
    with pytest.raises(ValueError, match="n_bins=0"):
        make_encoder(TableEncoder(n_bins=0))


def test_images():
    encoder = ImageEncoder((2, 3))
    assert make_encoder(encoder) is encoder
    assert table_encoder(encoder) is None
    assert isinstance(table_encoder("auto"), TableEncoder)
    for wrong in ((28, 28), ImageEncoder):
        with pytest.raises(ValueError, match="a TableEncoder, or an ImageEncoder"):
            make_encoder(wrong)
    with pytest.raises(ValueError, match="shape=28 must be"):
        make_encoder(ImageEncoder(28))
