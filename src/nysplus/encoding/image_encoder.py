"""The encoder of images: a transformer, and the parameter `encoder` of the estimators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from nysplus._typing import Float
from nysplus._validation import check_count, check_rows, is_count
from nysplus.encoding.image_code import ImageCode

# From images of a batch, flattened, and random numbers to as many changed images.
Augment = str | Callable[[Float, np.random.RandomState], Any]
# Cosines along each axis for budgets up to a number of bytes. More leave fewer bytes to the
# landmarks; on MNIST in 12 kB, 10, 12 and 14 differ by 0.1 points on test rows.
COSINES_OF_BUDGETS = ((4096, 8), (8192, 10), (np.inf, 12))
# The same where no budget limits the model: more than for budgets, by choice, not measured.
DEFAULT_COSINES = 16


class ImageEncoder(TransformerMixin, BaseEstimator):
    """Turn images into their first cosines, those of the lowest frequencies.

    The map is fixed: it takes no bytes of a model, and is part of saved files and exports as a
    formula.

    Parameters
    ----------
    shape : tuple of int
        Height and width of the images, and number of channels if there are several, such as
        ``(28, 28)`` or ``(32, 32, 3)``. One of the sizes may be -1, as in :func:`numpy.reshape`: it
        follows from the number of columns.
    n_cosines : int or "auto", default="auto"
        Cosines along each axis; all where there are fewer pixels. "auto": inside the fit of an
        estimator, 8 for a budget of up to 4 kB, 10 up to 8 kB and 12 beyond; without a budget, and
        for the transformer by itself, 16.
    augment : None, "affine" or callable, default=None
        How images are changed at random in every batch while an estimator with `refine` learns from
        them; nothing else depends on it. "affine" suits digits and letters: each sixteenth of a
        batch goes through one of 150 random maps, drawn once: shifts of up to 1.5 pixels in 28,
        rotations of up to 10°, scaling by up to 8 %, shear of up to 0.1 and bilinear interpolation.
        There are fewer maps for images so large that the matrices of all would take more than a
        quarter of scikit-learn's `working_memory`. A callable takes the images of a batch, of shape
        (batch_size, n_features) in float32, and a :class:`numpy.random.RandomState`, and returns as
        many images. Runs are twice as long as without it.

    Attributes
    ----------
    code_ : ImageCode
        The function from pixels to code columns.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had names of columns.

    See Also
    --------
    TableEncoder : For tables.

    Notes
    -----
    A row is an image, flattened in C order: pixel (i, j) of channel c is column
    ``(i · width + j) · channels + c``. Each channel x becomes ``M_hᵀ x M_w``, where the columns of
    M are the first cosines of the orthonormal DCT-II, ``M_ij = √((1 + [j > 0]) / n) ·
    cos(π (i + ½) j / n)``. The result is flattened in the same way. With all cosines, distances
    between images stay the same. Sparse rows become dense, block by block; NaN and infinity are
    refused.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nysplus.encoding import ImageEncoder
    >>> X, _ = load_digits(return_X_y=True)
    >>> encoder = ImageEncoder((8, 8), n_cosines=4)
    >>> encoder.fit_transform(X).shape
    (1797, 16)
    """

    def __init__(
        self,
        shape: Sequence[int],
        n_cosines: int | str = "auto",
        augment: Augment | None = None,
    ) -> None:
        self.shape = shape
        self.n_cosines = n_cosines
        self.augment = augment

    def check(self) -> None:
        """Raise unless the parameters are known. Called before any work."""
        sizes = list(self.shape) if np.iterable(self.shape) else []
        known = len(sizes) in (2, 3) and all(is_count(s) and (s >= 1 or s == -1) for s in sizes)
        if not known or sizes.count(-1) > 1:
            raise ValueError(
                f"shape={self.shape!r} must be height and width of the images, such as (28, 28), "
                "and the number of channels if there are several, such as (32, 32, 3). One of them "
                "may be -1."
            )
        if isinstance(self.n_cosines, str):
            if self.n_cosines != "auto":
                raise ValueError(
                    f"n_cosines={self.n_cosines!r} is not known. Allowed are 'auto' or an integer "
                    "of at least 1."
                )
        else:
            check_count("n_cosines", self.n_cosines)
        if self.augment not in (None, "affine") and not callable(self.augment):
            raise ValueError(
                f"augment={self.augment!r} is not known. Allowed are None, 'affine', or a function "
                "of the images of a batch and a RandomState."
            )

    def code(self, n_features: int, n_bytes: float | None = None) -> ImageCode:
        """Return the code of images.

        Parameters
        ----------
        n_features : int
            Columns of the rows, which must be those of the images.
        n_bytes : float, optional
            The budget of a model, by default none.
        """
        k = self.n_cosines
        if isinstance(k, str):
            k = DEFAULT_COSINES
            if n_bytes is not None:
                k = next(number for most, number in COSINES_OF_BUDGETS if n_bytes <= most)
        return ImageCode(self._sizes(n_features), int(k))

    def _sizes(self, n_features: int) -> tuple[int, int, int]:
        """Return height, width and channels of images of a number of columns."""
        sizes = [int(size) for size in self.shape]
        known = int(np.prod([size for size in sizes if size > 0]))
        found = [size if size > 0 else n_features // known for size in sizes]
        if np.prod(found) != n_features or n_features == 0:
            allowed = f"a multiple of {known}" if -1 in sizes else str(known)
            raise ValueError(
                f"X has {n_features} features, and images of the shape {tuple(sizes)} have "
                f"{allowed}. Pass rows that are flattened images of this shape, or another shape "
                "to ImageEncoder."
            )
        height, width, channels = found if len(found) == 3 else [*found, 1]
        return height, width, channels

    # -- the transformer ---------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> ImageEncoder:
        """Check that rows have the columns of the images; nothing is learned.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : None
            Ignored.

        Returns
        -------
        self
        """
        self.check()
        X = check_rows(self, X, reset=True)
        self.code_ = self.code(X.shape[1])
        return self

    def transform(self, X: Any) -> Any:
        """Return the cosines of images.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_code_columns)
            float32.
        """
        check_is_fitted(self)
        return self.code_(check_rows(self, X, reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the code columns, such as "cosine 0 2" or "cosine 0 2 channel 1".

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        several = self.code_.shape[2] > 1
        names = [
            f"cosine {i} {j}" + (f" channel {c}" if several else "")
            for i, j, c in np.ndindex(self.code_.code_shape)
        ]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
