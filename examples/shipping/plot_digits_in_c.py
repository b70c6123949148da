"""
A digit recogniser in 16 kB of C
================================

``to_c`` writes a fitted model as one C99 header that allocates no memory and calls no library
function except ``expf``. Here it is compiled and run on the test rows, if there is a compiler.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from nysplus import NystroemClassifier
from nysplus.export import to_c

# %%
# The tables take at most 14 kB, which leaves 2 kB for the instructions.

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X.astype(np.float32), y, test_size=0.5, stratify=y, random_state=0
)
model = NystroemClassifier(budget="14kB", random_state=0).fit(X_train, y_train)
n, r = model.landmarks_.shape
print(f"{n} landmarks of {r} numbers, {model.model_bytes_} bytes of tables")

# %%
# The header, and a program that reads rows of 64 floats and prints the digit and its probability:

folder = Path(tempfile.mkdtemp())
header = to_c(model, folder / "digits.h", name="digits")
print(header[: header.index("#")])

program = """
#include <stdio.h>
#include "digits.h"

int main(void)
{
    float x[DIGITS_FEATURES], probabilities[DIGITS_CLASSES];
    while (fread(x, sizeof x, 1, stdin) == 1) {
        int winner = digits_predict(x);
        digits_probabilities(x, probabilities);
        printf("%d %.4f\\n", digits_classes[winner], (double)probabilities[winner]);
    }
    return 0;
}
"""
(folder / "digits.c").write_text(program)

# %%
# Without a compiler, Python's predictions are shown instead.

compiler = shutil.which("gcc")
if compiler:
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Os"]
    subprocess.run([compiler, *flags, "-c", "digits.c"], cwd=folder, check=True)
    subprocess.run([compiler, "digits.o", "-lm", "-o", "digits"], cwd=folder, check=True)
    done = subprocess.run(
        [folder / "digits"], input=X_test.tobytes(), capture_output=True, check=True
    )
    digits, probabilities = np.array(done.stdout.split(), dtype=float).reshape(-1, 2).T
    agree = (digits == model.predict(X_test)).mean()
    print(f"{agree:.2%} of the digits are those of Python")
    assert agree > 0.998  # ties may be decided differently
else:
    digits, probabilities = model.predict(X_test), model.predict_proba(X_test).max(axis=1)
print(f"{(digits == y_test).mean():.1%} of {len(y_test)} test rows")

# %%
# Tables and instructions of the compiled model together:

if compiler and shutil.which("size"):
    sizes = subprocess.run(
        ["size", folder / "digits.o"], capture_output=True, text=True, check=True
    )
    print(sizes.stdout.splitlines()[1].split()[0], "bytes")

# %%
# The test rows of which the program is least sure:

least = probabilities.argsort()[:10]
fig, axes = plt.subplots(2, 5, figsize=(9, 4.4), layout="constrained")
for ax, i in zip(axes.flat, least, strict=True):
    ax.imshow(X_test[i].reshape(8, 8), cmap="gray_r")
    verdict = "right" if digits[i] == y_test[i] else f"it is a {y_test[i]}"
    ax.set_title(f"{digits[i]:.0f} with {probabilities[i]:.0%}\n{verdict}", fontsize=12)
    ax.set_axis_off()
