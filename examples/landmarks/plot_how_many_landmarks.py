"""
How many landmarks?
===================

More landmarks make a larger, slower and usually better model. ``landmark_curve`` shows how much
better on held-out rows, and recommends the smallest number that is as good as the best within the
noise.
"""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from nysplus import LandmarkCurveDisplay, NystroemClassifier, landmark_curve

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

curve = landmark_curve(X_train, y_train, random_state=0)
print(curve)

# %%
# The band is one standard error of the held-out rows to each side. The upper axis has the size of
# the model in kilobytes.

LandmarkCurveDisplay(curve).plot()

# %%
# The curve held out some of the training rows. The final model is fitted to all of them, and the
# test rows are used once.

model = NystroemClassifier(curve.recommended, random_state=0).fit(X_train, y_train)
print(f"{curve.recommended} landmarks, {model.model_bytes_ / 1024:.1f} kB")
print(f"{model.score(X_test, y_test):.1%} of the test rows")

# %%
# ``n_components="auto"`` chooses a number inside the fit, also for rows that are not in memory.

automatic = NystroemClassifier("auto", random_state=0).fit(X_train, y_train)
print(len(automatic.landmarks_), "landmarks")
