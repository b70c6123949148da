"""
From a CSV file to C
====================

A table with numbers, categories, missing values and dates becomes a model of 4 kB in one C
header. The program that includes it needs neither Python nor a table of levels: the header has
the code of all columns and the names of all levels.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from nysplus import NystroemClassifier
from nysplus.export import to_c

# %%
# A table of deliveries in a file; every tenth weight is missing:

folder = Path(tempfile.mkdtemp())
rng = np.random.RandomState(0)
n = 4000
ordered = pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.randint(0, 365 * 86400, n), unit="s")
table = pd.DataFrame(
    {
        "weight": np.round(np.exp(1 + rng.randn(n)), 2),
        "distance": np.round(40 * rng.rand(n) ** 2, 1),
        "vehicle": rng.choice(["bike", "van", "truck"], n, p=[0.5, 0.4, 0.1]),
        "ordered": ordered.strftime("%Y-%m-%d %H:%M:%S"),
    }
)
rush = np.where((ordered.hour >= 16) & (ordered.hour < 19), 2.0, 1.0)
heavy = (table["vehicle"] == "bike") & (table["weight"] > 8)
hours = table["distance"] * rush / table["vehicle"].map({"bike": 12, "van": 25, "truck": 20})
table["late"] = np.where(hours + heavy + 0.2 * rng.randn(n) > 1, "yes", "no")
table.loc[rng.rand(n) < 0.1, "weight"] = np.nan
table.to_csv(folder / "deliveries.csv", index=False)

# %%
# Read it, with dates as dates, and fit a model. Nothing is scaled or filled.

table = pd.read_csv(folder / "deliveries.csv", parse_dates=["ordered"])
train, test = train_test_split(table, test_size=1000, random_state=0)
model = NystroemClassifier(encoder="auto", budget="4kB", random_state=0).fit(train, "late")
print(f"accuracy {model.score(test, 'late'):.1%} in {model.model_bytes_} bytes")

# %%
# The header, and a program that reads rows from standard input. A missing value is ``NAN``, in
# any column. A level is a constant of an enum, such as ``LATE_VEHICLE_BIKE``;
# ``LATE_VEHICLE_OTHER`` is any level that the model does not know. A date is the number of
# seconds since 1970 in UTC. ``LATE_X_WEIGHT`` and its like are the positions of columns in ``x``.

to_c(model, folder / "late.h", name="late")
program = """
#include <stdio.h>
#include <stdlib.h>
#include "late.h"

static double number(const char *text)
{
    return text[0] == '-' && text[1] == 0 ? NAN : strtod(text, NULL);
}

static double level(const char *text)
{
    if (strcmp(text, "bike") == 0)
        return LATE_VEHICLE_BIKE;
    if (strcmp(text, "van") == 0)
        return LATE_VEHICLE_VAN;
    if (strcmp(text, "truck") == 0)
        return LATE_VEHICLE_TRUCK;
    return LATE_VEHICLE_OTHER;
}

int main(void)
{
    char weight[32], distance[32], vehicle[32], seconds[32];
    double x[LATE_FEATURES];
    while (scanf("%31s %31s %31s %31s", weight, distance, vehicle, seconds) == 4) {
        x[LATE_X_WEIGHT] = number(weight);
        x[LATE_X_DISTANCE] = number(distance);
        x[LATE_X_VEHICLE] = level(vehicle);
        x[LATE_X_ORDERED] = number(seconds);
        puts(late_classes[late_predict(x)]);
    }
    return 0;
}
"""
(folder / "main.c").write_text(program)

# %%
# Compile it, and compare it with Python on all test rows. Some of them have an unknown vehicle.

test = test.assign(vehicle=test["vehicle"].where(rng.rand(len(test)) < 0.95, "drone"))
compiler = shutil.which("gcc")
if compiler:
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Os"]
    subprocess.run([compiler, *flags, "main.c", "-lm", "-o", "late"], cwd=folder, check=True)
    seconds = (test["ordered"] - pd.Timestamp("1970-01-01")) // pd.Timedelta(seconds=1)
    rows = test.assign(ordered=seconds)[["weight", "distance", "vehicle", "ordered"]]
    text = rows.to_csv(sep=" ", na_rep="-", header=False, index=False)
    done = subprocess.run([folder / "late"], input=text, capture_output=True, check=True, text=True)
    agree = (np.array(done.stdout.split()) == model.predict(test)).mean()
    print(f"{agree:.2%} of the classes are those of Python")
    assert agree > 0.998  # ties may be decided differently

# %%
# The share of late deliveries by distance, in the file and as the model predicts it:

known = test[test["vehicle"] != "drone"]
bins = pd.cut(known["distance"], np.arange(0, 41, 5))
late = pd.DataFrame({"file": known["late"] == "yes", "model": model.predict(known) == "yes"})
shares = 100 * late.groupby(bins, observed=True).mean()
fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
middle = [interval.mid for interval in shares.index]
ax.plot(middle, shares["file"], "s--", color="#D55E00", label="in the file")
ax.plot(middle, shares["model"], "o-", color="#0072B2", label="predicted")
ax.set_xlabel("distance, km", fontsize=13)
ax.set_ylabel("late deliveries, %", fontsize=13)
ax.legend(fontsize=12)
