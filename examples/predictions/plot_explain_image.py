"""
Explain the predictions of images
=================================

The Shapley values of pixels show which part of an image raises or lowers the score of each class.
With an RBF kernel on pixels they are exact.
"""

# %%
# Digits of 8 × 8 pixels
# ----------------------

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from nysplus import NystroemClassifier
from nysplus.encoding import ImageEncoder
from nysplus.explain import shapley_values
from nysplus.plots import ShapleyImagesDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = NystroemClassifier(100, gamma="auto", random_state=0).fit(X_train, y_train)
print(f"accuracy on test images: {model.score(X_test, y_test):.3f}")

# %%
# The background is twenty training images. Vermilion pixels speak for the class, blue ones against
# it: black pixels count as well as white ones.

shown = [int((y_test == digit).argmax()) for digit in (3, 4, 7)]
explanation = shapley_values(model, X_test[shown], X_train[:20])
print("exact:", explanation.exact)
ShapleyImagesDisplay.from_values(explanation)

# %%
# An image that is wrong
# ----------------------
# The class of the highest score, and the true class.

wrong = int((model.predict(X_test) != y_test).argmax())
predicted, true = str(model.predict(X_test[wrong : wrong + 1])[0]), str(y_test[wrong])
print(f"predicted {predicted}, true class {true}")
ShapleyImagesDisplay.from_estimator(
    model, X_test[wrong : wrong + 1], X_train[:20], outputs=[predicted, true]
)

# %%
# Behind a map that mixes pixels
# ------------------------------
# A model of the images' first cosines is no product over pixels. Its Shapley values are means over
# random permutations, and have standard errors.

small = NystroemClassifier(60, encoder=ImageEncoder((8, 8)), random_state=0).fit(X_train, y_train)
sampled = shapley_values(small, X_test[shown[:1]], X_train[:20], random_state=0)
print("exact:", sampled.exact, f"largest standard error: {sampled.standard_error.max():.4f}")
ShapleyImagesDisplay.from_values(sampled)
