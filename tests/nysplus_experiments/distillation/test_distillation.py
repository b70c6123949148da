"""Shares of a teacher's lead, and the measurement of a small table."""

from __future__ import annotations

import pytest

pytest.importorskip("pandas", reason="pandas is not installed")

from nysplus_experiments.distillation import page, students
from nysplus_experiments.harness import records
from nysplus_experiments.harness.raw_tables import SYNTHETIC


def row(table, teacher, seed, *scores, kept="student"):
    numbers = (0.9, 0.9, 80.0, 90.0, 16_000, 10.0, 5.0, 1000, 400, 300)
    # scores of rows without a twin
    new = [score / 2 for score in scores]
    return students.Student(table, teacher, seed, *scores, *new, kept, *numbers)


# teacher, fitted to y, student, kept
ROWS = [
    row("splice", "svm", 0, 92.0, 90.0, 91.5, 91.5),
    row("splice", "svm", 1, 92.0, 91.0, 90.5, 91.0, kept="fitted"),
    row("splice", "forest", 0, 90.2, 90.0, 90.1, 90.1),
    row("concrete", "svm", 0, 0.40, 0.50, 0.48, 0.48),
]


@pytest.fixture
def found():
    return page.cases(records.frame(ROWS, students.Student)).set_index(["table", "teacher"])


def test_gaps_are_points_or_shares_of_an_error(found):
    case = found.loc["splice", "svm"]
    assert (case.gap, case.gain, case.recovered) == pytest.approx((1.5, 0.75, 0.5))
    assert (case.students, case.seeds, case.ahead) == (1, 2, True)
    assert not found.loc["splice", "forest"].ahead
    case = found.loc["concrete", "svm"]
    assert (case.gap, case.gain, case.recovered) == pytest.approx((20.0, 4.0, 0.2))


def test_rows_without_a_twin_have_gaps_of_their_own():
    found = page.cases(records.frame(ROWS, students.Student), new=True)
    case = found.set_index(["table", "teacher"]).loc["splice", "svm"]
    assert (case.gap, case.student_gain, case.gain) == pytest.approx((0.75, 0.25, 0.375))


def test_tables_have_a_line_for_each_case(found):
    found = found.reset_index()
    _, _, *lines = page.table_of(found[~found["regression"]]).splitlines()
    first, second = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    assert first[:7] == ["splice", "SVC / SVR", "90.50", "92.00", "91.00", "91.25", "1 of 2"]
    assert first[7:] == ["+0.75 [-8.78, +10.28]", "50 %", "80.00", "90.00"]
    assert second[1] == "random forest"
    assert second[6:9] == ["1 of 1", "+0.10", "–"]
    _, _, *lines = page.summary(found).splitlines()
    assert [line.split(" | ")[2:] for line in lines[:2]] == [
        ["1", "+1.50", "+0.50", "+0.75", "1 of 1 |"],
        ["1", "+20.00", "+4.00", "+4.00", "0 of 1 |"],
    ]
    assert lines[-1].endswith("| – |")


@pytest.mark.slow
def test_a_student_is_measured():
    measured = students.measure_student(SYNTHETIC, "svm", 0)
    assert measured.bytes <= 16_384
    assert measured.kept_score in (measured.student_score, measured.fitted_score)
    assert measured.student_agreement > measured.fitted_agreement
