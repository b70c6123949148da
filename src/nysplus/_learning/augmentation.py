"""Images that are changed at random in every batch of a training run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._holdout import Positions
from nysplus._learning.setup import TrainingSetup
from nysplus._rows.blocks import Blocks, RowBlocks
from nysplus._rows.projected import project
from nysplus._runtime.memory import working_bytes
from nysplus._typing import Float
from nysplus.encoding.image_code import ImageCode
from nysplus.encoding.image_encoder import Augment


@dataclass(frozen=True)
class AffineRules:
    """Numbers of the random affine maps of "affine".

    Attributes
    ----------
    n_maps : int
        Drawn once; other numbers were not tried.
    shift : float
        In sides of the image: 1.5 pixels of 28.
    degrees, scale, shear : float
        All are drawn uniformly between minus and plus these numbers. On MNIST they are as good as
        smaller ones, or better.
    n_parts : int
        Parts of a batch, each with a map of its own: more of them make batches more alike, and
        products of fewer rows slower.
    memory_share : float
        Share of the working memory that the matrices of the maps may take; there are fewer maps
        for large images.
    """

    n_maps: int = 150
    shift: float = 1.5 / 28.0
    degrees: float = 10.0
    scale: float = 0.08
    shear: float = 0.1
    n_parts: int = 16
    memory_share: float = 0.25


AFFINE_RULES = AffineRules()


@dataclass(frozen=True)
class Augmentation:
    """Images as given, how they are changed, and how training rows follow from them.

    Attributes
    ----------
    images : RowBlocks
        With the row numbers of the training rows.
    augment : "affine" or callable
    code : ImageCode
    center : ndarray or None
        Subtracted from the code.
    rules : AffineRules
    """

    images: RowBlocks
    augment: Augment
    code: ImageCode
    center: Float | None = None
    rules: AffineRules = AFFINE_RULES

    @property
    def affordable(self) -> int:
        """Number of rows that fit in a quarter of the working memory, where they are not in it."""
        if isinstance(self.images, Blocks):
            return self.images.n_rows
        return max(1, working_bytes() // 4 // (self.images.dtype.itemsize * self.code.n_inputs))

    def applied(
        self, setup: TrainingSetup, positions: Positions, rng: np.random.RandomState
    ) -> TrainingSetup:
        """Return a setup whose batches are changed images (see :meth:`batches`)."""
        batches = self.batches(setup, positions, rng)
        return replace(setup, rows=replace(setup.rows, augmented=batches))

    def batches(
        self, setup: TrainingSetup, positions: Positions, rng: np.random.RandomState
    ) -> AugmentedRows:
        """Return a source of changed rows.

        Parameters
        ----------
        setup : TrainingSetup
            Of the rows at `positions`.
        positions : ndarray of int
        rng : RandomState
        """
        if isinstance(self.images, Blocks):
            X, rows = self.images.X, positions
        else:
            X, rows = self.images.gather(positions).X, np.arange(len(positions))
        changed: Callable[[Float, np.random.RandomState], Float]
        if callable(self.augment):
            changed = ChangedImages(self.augment, self.code)
        else:
            changed = AffineImages.draw(self.code, rng, self.rules)
        return AugmentedRows(X, rows, changed, self.center, setup.mean, setup.unit)


@dataclass(frozen=True)
class AugmentedRows:
    """Training rows of changed images.

    Attributes
    ----------
    X : ndarray or CSR matrix
        Images.
    rows : ndarray of int
        Row numbers of the training rows in X.
    coded : callable
        From images in float32, and random numbers, to the code of changed images.
    center : ndarray or None
    mean, unit : ndarray
        Of the training rows.
    """

    X: Any
    rows: Positions
    coded: Callable[[Float, np.random.RandomState], Float]
    center: Float | None
    mean: Float
    unit: Float

    def __call__(self, some: Positions, rng: np.random.RandomState) -> Float:
        """Return the training rows at some positions, changed, in float32."""
        images = self.X[self.rows[some]]
        images = images.toarray() if sp.issparse(images) else images
        code = self.coded(images.astype(np.float32, copy=False), rng)
        rows = (project(code, None, self.center) - self.mean) / self.unit
        standardised: Float = rows.astype(np.float32)
        return standardised


@dataclass(frozen=True)
class ChangedImages:
    """The code of images that a user's function has changed.

    Attributes
    ----------
    augment : callable
        From images, flattened, and random numbers to as many images.
    code : ImageCode
    """

    augment: Callable[[Float, np.random.RandomState], Any]
    code: ImageCode

    def __call__(self, images: Float, rng: np.random.RandomState) -> Float:
        """Return the code of changed images."""
        changed = np.asarray(self.augment(images, rng))
        if changed.shape != images.shape:
            raise ValueError(
                f"augment has returned an array of the shape {changed.shape} for images of the "
                f"shape {images.shape}. It must return as many images, flattened as it gets them."
            )
        return self.code(changed)


@dataclass(frozen=True)
class AffineImages:
    """The code of images behind random affine maps.

    Attributes
    ----------
    maps : ndarray of shape (n_maps, h · w, k · k)
        Each is an affine map of a channel, followed by its cosines.
    n_channels, n_parts : int
    """

    maps: npt.NDArray[np.float32]
    n_channels: int
    n_parts: int

    @classmethod
    def draw(cls, code: ImageCode, rng: np.random.RandomState, rules: AffineRules) -> AffineImages:
        """Draw affine maps, as many as the rules ask for and the working memory allows."""
        height, width, channels = code.shape
        along_height, along_width = code.axes
        cosines = np.kron(along_height, along_width)
        allowed = int(rules.memory_share * working_bytes() // (4 * cosines.size))
        maps: npt.NDArray[np.float32] = np.empty(
            (max(1, min(rules.n_maps, allowed)), *cosines.shape), dtype=np.float32
        )
        for each in maps:
            M, shift = _random_affine(rng, rules)
            each[:] = resampling(height, width, M, shift * [height, width]).T @ cosines
        return cls(maps, channels, rules.n_parts)

    def __call__(self, images: Float, rng: np.random.RandomState) -> Float:
        """Return the code of changed images: one matrix product for each part of them."""
        n_pixels, n_cosines = self.maps.shape[1:]
        planes = images.reshape(len(images), n_pixels, self.n_channels).transpose(0, 2, 1)
        parts = np.array_split(planes, self.n_parts)
        chosen = rng.randint(len(self.maps), size=self.n_parts)
        code = np.concatenate(
            [
                part.reshape(-1, n_pixels) @ self.maps[m]
                for part, m in zip(parts, chosen, strict=True)
            ]
        )
        code = code.reshape(len(images), self.n_channels, n_cosines).transpose(0, 2, 1)
        return code.reshape(len(images), -1)


def _random_affine(rng: np.random.RandomState, rules: AffineRules) -> tuple[Float, Float]:
    """Return the matrix of a random affine map of the plane, and its shift in sides of images."""
    angle = np.deg2rad(rng.uniform(-rules.degrees, rules.degrees))
    turned = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    sheared = np.array([[1.0, rng.uniform(-rules.shear, rules.shear)], [0.0, 1.0]])
    scale = 1.0 + rng.uniform(-rules.scale, rules.scale, 2)
    return turned @ sheared * scale, rng.uniform(-rules.shift, rules.shift, 2)


def resampling(height: int, width: int, M: Float, shift: Float) -> sp.csr_matrix:
    """Return the matrix R of an affine map of images: Rx is the changed image x, flattened.

    Pixel p of the changed image, about the centre, is the image at ``Mp + shift``, interpolated
    between four pixels. Beyond the border the image goes on as it is there.

    Parameters
    ----------
    height, width : int
    M : ndarray of shape (2, 2)
    shift : ndarray of shape (2,)
        Down and to the right, in pixels.
    """
    size = np.array([height, width])
    center = (size - 1) / 2.0
    pixels = np.indices((height, width)).reshape(2, -1).T
    source = np.clip((pixels - center) @ M.T + shift + center, 0.0, size - 1.0)
    low = np.floor(source).astype(np.intp)
    share = source - low
    R = sp.csr_matrix((len(pixels), len(pixels)))
    for down in (0, 1):
        for right in (0, 1):
            i, j = np.minimum(low + np.array([down, right]), size - 1).T
            by = np.abs(1 - down - share[:, 0]) * np.abs(1 - right - share[:, 1])
            R = R + sp.csr_matrix((by, (np.arange(len(pixels)), i * width + j)), R.shape)
    return R
