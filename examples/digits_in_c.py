"""A digit recogniser in 16 kB of C: fit a model, export it, compile it and classify digits.

Writes a header and a program, compiles them and runs the program on the test rows.

    python examples/digits_in_c.py [--rows 3] [--out build/demo]
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from nysplus import NystroemClassifier
from nysplus.export import to_c

COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
# Size of the tables; the remaining 2 of 16 kB are for the instructions.
BUDGET = "14kB"

# Reads rows of 64 floats, prints the predicted digit of each row and draws the first rows.
PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
#include "digits.h"

int main(int count, char **arguments)
{
    long drawn = count > 1 ? strtol(arguments[1], NULL, 10) : 0;
    float x[DIGITS_FEATURES], probabilities[DIGITS_CLASSES];
    while (fread(x, sizeof x, 1, stdin) == 1) {
        int winner = digits_predict(x);
        printf("%d\\n", digits_classes[winner]);
        if (drawn-- <= 0) continue;
        digits_probabilities(x, probabilities);
        for (int i = 0; i < DIGITS_FEATURES; i++) {
            int shade = x[i] < 3 ? 0 : x[i] < 8 ? 1 : x[i] < 13 ? 2 : 3;
            fprintf(stderr, "%c%c%s", " .+#"[shade], " .+#"[shade], i % 8 == 7 ? "\\n" : "");
        }
        fprintf(stderr, "a %d with probability %.2f\\n\\n", digits_classes[winner],
                (double)probabilities[winner]);
    }
    return 0;
}
"""


def fit() -> tuple[NystroemClassifier, np.ndarray, np.ndarray]:
    """Return a model of at most 14 kB, and the test rows with their digits."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X.astype(np.float32), y, test_size=0.5, stratify=y, random_state=0
    )
    model = NystroemClassifier(budget=BUDGET, refine=True, random_state=0, verbose=1)
    return model.fit(X_train, y_train), X_test, y_test


def build(model: NystroemClassifier, folder: Path) -> Path:
    """Write the header and the program, compile them, and return the executable."""
    folder.mkdir(parents=True, exist_ok=True)
    to_c(model, folder / "digits.h", name="digits")
    (folder / "digits.c").write_text(PROGRAM)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Os"]
    subprocess.run([COMPILER, *flags, "-c", "digits.c"], cwd=folder, check=True)
    subprocess.run([COMPILER, "digits.o", "-lm", "-o", "digits"], cwd=folder, check=True)
    return folder / "digits"


def classify(program: Path, X: np.ndarray, drawn: int = 0) -> np.ndarray:
    """Return the digits that the program predicts; it draws the first rows."""
    done = subprocess.run(
        [program.resolve(), str(drawn)], input=X.tobytes(), stdout=subprocess.PIPE, check=True
    )
    return np.array(done.stdout.split(), dtype=int)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=3, help="digits to draw")
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="folder of the files")
    arguments = parser.parse_args()
    if COMPILER is None:
        parser.exit(1, "There is no C compiler. Install cc, gcc or clang.\n")
    model, X_test, y_test = fit()
    found = classify(build(model, arguments.out), X_test, arguments.rows)
    n, r = model.landmarks_.shape
    print(f"{n} landmarks of {r} numbers each, {model.model_bytes_} bytes of tables")
    if shutil.which("size"):
        text = subprocess.run(
            ["size", arguments.out / "digits.o"], capture_output=True, text=True, check=True
        ).stdout
        print(f"{text.splitlines()[1].split()[0]} bytes of tables and instructions in the object")
    print(f"accuracy on {len(y_test)} test rows: {100 * np.mean(found == y_test):.2f} % in C,")
    print(f"{100 * model.score(X_test, y_test):.2f} % in Python")


if __name__ == "__main__":
    main()
