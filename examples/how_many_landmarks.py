"""Choose the number of landmarks for scikit-learn's digits: a table, a figure and a final fit.

Run ``python examples/how_many_landmarks.py [--out build/demo]``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from nysplus import LandmarkCurveDisplay, NystroemClassifier, landmark_curve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="folder of the figure")
    arguments = parser.parse_args()
    matplotlib.use("agg")  # write a file, open no window
    X, y = load_digits(return_X_y=True)
    # the curve holds out some training rows; the test rows are used once, at the end
    X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

    curve = landmark_curve(X_train, y_train, random_state=0)
    print(curve)

    model = NystroemClassifier(curve.recommended, random_state=0).fit(X_train, y_train)
    print(f"\n{curve.recommended} landmarks, fitted to all training rows:")
    print(f"{model.score(X_test, y_test):.4f} on test rows, {model.model_bytes_ / 1024:.1f} kB")

    path = arguments.out / "how_many_landmarks.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    LandmarkCurveDisplay(curve).plot().figure_.savefig(path, dpi=150)
    print(f"Figure: {path}")


if __name__ == "__main__":
    main()
