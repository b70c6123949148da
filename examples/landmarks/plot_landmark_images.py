"""
Landmarks as images
===================

Where rows are images, landmarks are images too: the ones that every new image is compared with.
The model can be read.
"""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from nysplus import NystroemClassifier
from nysplus.plots import ConfusionSharesDisplay, LandmarkImagesDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

# %%
# By default landmarks are centroids: means of similar images of one class. Above each is the
# class that the model predicts for it.

model = NystroemClassifier(30, random_state=0).fit(X_train, y_train)
print(f"{model.score(X_test, y_test):.1%} of test images, in {model.model_bytes_ / 1024:.1f} kB")
LandmarkImagesDisplay.from_estimator(model, (8, 8))

# %%
# Thirty images tell most digits apart. These are the ones that are confused:

ConfusionSharesDisplay.from_estimator(model, X_test, y_test)

# %%
# The paper's rule selects training images, the ones that a pilot model finds hard.

hard = NystroemClassifier(30, selection="negative-margin", random_state=0).fit(X_train, y_train)
LandmarkImagesDisplay.from_estimator(hard, (8, 8))
