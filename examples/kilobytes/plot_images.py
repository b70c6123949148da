"""
Images as their first cosines
=============================

Most of an image is in its low frequencies. ``ImageEncoder`` replaces pixels by their first
cosines, so that a landmark takes fewer bytes and a budget has room for more of them. The map is a
formula: it takes no bytes itself.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from nysplus import NystroemClassifier
from nysplus.encoding import ImageEncoder
from nysplus.plots import LandmarkImagesDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

# %%
# An image, and what is left of it with fewer cosines along each axis:

numbers = [2, 4, 6, 8]
fig, axes = plt.subplots(1, 5, figsize=(10, 2.6), layout="constrained")
axes[0].imshow(X[0].reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
axes[0].set_title("64 pixels", fontsize=13)
for ax, n in zip(axes[1:], numbers, strict=True):
    encoder = ImageEncoder((8, 8), n_cosines=n).fit(X)
    image = encoder.code_.images(encoder.transform(X[:1]))
    ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
    ax.set_title(f"{n} × {n} cosines", fontsize=13)
for ax in axes:
    ax.set_axis_off()

# %%
# The accuracy of models of 2 kB by the number of cosines:

for n in numbers:
    model = NystroemClassifier(
        budget="2kB", encoder=ImageEncoder((8, 8), n_cosines=n), random_state=0
    ).fit(X_train, y_train)
    accuracy = model.score(X_test, y_test)
    print(f"{n} × {n} cosines: {accuracy:.1%} with {len(model.landmarks_)} landmarks")

# %%
# Landmarks are drawn as images, whatever they are stored as.

model = NystroemClassifier(budget="2kB", encoder=ImageEncoder((8, 8), n_cosines=6), random_state=0)
LandmarkImagesDisplay.from_estimator(model.fit(X_train, y_train), max_images=20)
