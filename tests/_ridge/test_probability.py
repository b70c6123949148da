from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from nysplus._ridge.probability import SLOPES, Scaling, ScalingLoss, fit_scaling
from nysplus._rows.target_codes import ClassCode, LabelCode
from nysplus._rows.targets import ClassTargets, IndicatorTargets


def draw(P, rng):
    """Classes drawn from the rows of P."""
    return (rng.rand(len(P), 1) > P.cumsum(axis=1)[:, :-1]).sum(axis=1)


def toy(rng, n_rows, n_classes, slope=4.0):
    """Scores within ±1 and classes drawn from the probabilities that a slope gives them."""
    scores = rng.uniform(-1, 1, (n_rows, 1 if n_classes == 2 else n_classes))
    P = Scaling(slope, False).probabilities(scores)
    return scores, ClassTargets(draw(P, rng), n_classes), P


def smoothed_loss(slope, F, codes, weight):
    """The loss of the docstring, one row at a time, with repeated rows counted."""
    share, total = 1 / (1 + weight.sum()), 0.0
    for f, code, w in zip(F, codes, weight, strict=True):
        target = (1 - share) * f[code] + share * f.mean()
        largest = (slope * f).max()
        total += w * (largest + np.log(np.exp(slope * f - largest).sum()) - slope * target)
    return total


def calibration_error(P, codes, n_bins=10):
    order = np.argsort(P.max(axis=1))
    hits, top = (P.argmax(axis=1) == codes)[order], P.max(axis=1)[order]
    bins = zip(np.array_split(hits, n_bins), np.array_split(top, n_bins), strict=True)
    return np.mean([abs(h.mean() - t.mean()) for h, t in bins])


@pytest.mark.parametrize("slope", [0.01, 1.0, 7.0, 50.0])
def test_the_derivatives_are_those_of_the_loss(rng, slope):
    F, codes, weight = rng.randn(30, 4), rng.randint(4, size=30), rng.randint(3, size=30) * 1.0
    step = 1e-5 * slope
    high, low = (smoothed_loss(slope + s, F, codes, weight) for s in (step, -step))
    loss = ScalingLoss.of(F, codes, weight)
    first, second = loss.derivatives(slope)
    np.testing.assert_allclose(first, (high - low) / (2 * step), rtol=1e-6)
    high, low = (loss.derivatives(slope + s)[0] for s in (step, -step))
    np.testing.assert_allclose(second, (high - low) / (2 * step), rtol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3, 8])
def test_the_slope_is_where_the_loss_is_smallest(rng, n_classes):
    scores, targets, _ = toy(rng, 200, n_classes)
    weight = rng.randint(4, size=200) * 1.0
    F = np.hstack([-scores, scores]) if n_classes == 2 else scores
    best = minimize_scalar(
        smoothed_loss,
        args=(F, targets.codes, weight),
        bounds=(0, 50),
        method="bounded",
        options={"xatol": 1e-9},
    )
    np.testing.assert_allclose(fit_scaling(scores, targets, weight).slope, best.x, rtol=1e-6)


@pytest.mark.parametrize("spread", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("noise", [0.01, 0.3, 3.0])
def test_the_derivative_vanishes_at_the_slope(rng, spread, noise):
    """From scores that hardly say anything to classes that are separable."""
    targets = ClassTargets(rng.randint(4, size=300), 4)
    scores = np.clip(spread * (targets.coded() + noise * rng.randn(300, 4)), -1, 1)
    slope, weight = fit_scaling(scores, targets, np.ones(300)).slope, np.ones(300)
    assert SLOPES[0] < slope < SLOPES[1]
    first, second = ScalingLoss.of(scores, targets.codes, weight).derivatives(slope)
    assert abs(first) < 1e-9 * slope * second


@pytest.mark.parametrize("n_classes", [2, 5])
def test_known_probabilities_are_found_again(rng, n_classes):
    scores, targets, P = toy(rng, 20_000, n_classes, slope=3.0)
    scaling = fit_scaling(scores, targets, np.ones(20_000))
    assert scaling.slope == pytest.approx(3.0, rel=0.03)
    found = scaling.probabilities(scores)
    np.testing.assert_allclose(found, P, atol=0.01)
    assert calibration_error(found, targets.codes) < 0.015
    # the measure itself tells right slopes from wrong ones
    assert calibration_error(Scaling(9.0, False).probabilities(scores), targets.codes) > 0.05


def test_known_probabilities_of_labels_are_found_again(rng):
    scores = rng.uniform(-1, 1, (10_000, 3))
    P = 1 / (1 + np.exp(-4.0 * scores))
    targets = IndicatorTargets(np.where(rng.rand(*P.shape) < P, 1.0, -1.0))
    scaling = fit_scaling(scores, targets, np.ones(10_000))
    assert scaling.slope == pytest.approx(2.0, rel=0.03)
    np.testing.assert_allclose(scaling.probabilities(scores), P, atol=0.01)


ONE_UP = np.nextafter(0.3, 1)
ADVERSARIAL = np.array(
    [
        [0.0, 0.0, 0.0],
        [-0.0, 0.0, -0.0],
        [0.3, ONE_UP, 0.3],
        [0.3, 0.3, ONE_UP],
        [ONE_UP, 0.3, 0.3],
        [-0.3, -ONE_UP, -0.3],
        [0.0, 5e-324, 0.0],
        [-5e-324, 0.0, -0.0],
        [1e300, -1e300, 1e300],
        [1.7e308, -1.7e308, 1.6e308],
        [-1.7e308, -1.7e308, -1.6e308],
        [1e-17, 2e-17, 3e-17],
        [1.0, 1.0 + 1e-15, -1.0],
        [-5.0, 0.4, ONE_UP + 0.1],
        [-np.pi, 1e3, 1e3 + 1e-9],
    ]
)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("slope", [*SLOPES, 0.7, 5.0, 123.4])
@pytest.mark.parametrize("n_classes", [3, 4, 30])
def test_the_likeliest_class_is_the_predicted_one(rng, slope, n_classes, dtype):
    others = rng.choice(ADVERSARIAL.ravel(), (400, n_classes))
    # all but equal scores of many classes
    close = 0.2 + rng.randint(3, size=(400, n_classes)) * np.spacing(0.2)
    rows = np.hstack([ADVERSARIAL, np.full((len(ADVERSARIAL), n_classes - 3), -1.7e308)])
    with np.errstate(over="ignore", under="ignore"):
        scores = np.vstack([rows, others, close]).astype(dtype)
    scores = np.clip(scores, np.finfo(dtype).min, np.finfo(dtype).max)
    P = Scaling(slope, False).probabilities(scores)
    assert P.dtype == np.float64
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    classes = np.arange(n_classes)
    np.testing.assert_array_equal(P.argmax(axis=1), ClassCode(classes).decode(scores))


@pytest.mark.parametrize("slope", [*SLOPES, 0.7, 5.0, 123.4])
def test_two_classes_and_labels_agree_at_one_half(rng, slope):
    tiny = np.spacing(1.0) * rng.randn(500)
    f = np.concatenate([ADVERSARIAL.ravel(), -ADVERSARIAL.ravel(), tiny, 10.0 ** -np.arange(300)])
    P = Scaling(slope, False).probabilities(f[:, None])
    np.testing.assert_array_equal(P.argmax(axis=1), ClassCode(np.arange(2)).decode(f[:, None]))
    np.testing.assert_array_equal(P[:, 1] > 0.5, f > 0)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    scores = f[: 2 * (len(f) // 2)].reshape(-1, 2)
    labels = Scaling(slope, True).probabilities(scores)
    np.testing.assert_array_equal(labels > 0.5, LabelCode(2).decode(scores))
    np.testing.assert_array_equal(labels.ravel(), P[: scores.size, 1])


def test_one_score_is_the_form_of_two_classes(rng):
    f = rng.randn(50, 1)
    P = Scaling(3.0, False).probabilities(f)
    np.testing.assert_array_equal(P, Scaling(3.0, False).probabilities(np.hstack([-f, f])))
    np.testing.assert_allclose(P[:, 1], 1 / (1 + np.exp(-6.0 * f[:, 0])), rtol=1e-12)


def test_larger_scores_never_have_smaller_probabilities(rng):
    scores = rng.randn(200, 6)
    P = Scaling(2.0, False).probabilities(scores)
    ranked = np.take_along_axis(P, scores.argsort(axis=1), axis=1)
    assert (np.diff(ranked, axis=1) > 0).all()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_weights_equal_repeated_rows(rng, n_classes):
    scores, targets, _ = toy(rng, 150, n_classes)
    weight = rng.randint(4, size=150)
    rows = np.repeat(np.arange(150), weight)
    weighted = fit_scaling(scores, targets, weight * 1.0)
    repeated = fit_scaling(scores[rows], targets.take(rows), np.ones(len(rows)))
    assert weighted.slope == pytest.approx(repeated.slope, rel=1e-9)


def test_weights_of_labels_equal_repeated_rows(rng):
    scores, Y = rng.randn(80, 3), rng.choice([-1.0, 1.0], (80, 3))
    Y[:40] = np.where(scores[:40] > 0, 1.0, -1.0)
    weight = rng.randint(4, size=80)
    rows = np.repeat(np.arange(80), weight)
    weighted = fit_scaling(scores, IndicatorTargets(Y), weight * 1.0)
    repeated = fit_scaling(scores[rows], IndicatorTargets(Y[rows]), np.ones(len(rows)))
    assert SLOPES[0] < weighted.slope < SLOPES[1]
    assert weighted.slope == pytest.approx(repeated.slope, rel=1e-9)


@pytest.mark.parametrize("n_rows", [2, 20, 2000])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_separable_rows_err_like_one_of_them(n_rows, n_classes):
    """The error that perfect scores are given is the one that no error in N rows suggests."""
    targets = ClassTargets(np.arange(n_rows) % n_classes, n_classes)
    scores = targets.coded()
    P = fit_scaling(scores, targets, np.ones(n_rows)).probabilities(scores)
    error = 1 - P[np.arange(n_rows), targets.codes]
    np.testing.assert_allclose(error, (1 - 1 / n_classes) / (n_rows + 1), rtol=1e-6)


def test_a_few_wild_scores_change_little(rng):
    scores, targets, _ = toy(rng, 1000, 4)
    calm = fit_scaling(scores, targets, np.ones(1000))
    wild = scores.copy()
    wild[:3] *= 1e10
    found = fit_scaling(wild, targets, np.ones(1000))
    assert found.slope == pytest.approx(calm.slope, rel=0.05)


def test_scores_that_say_nothing_or_lie_give_even_odds(rng):
    codes = rng.randint(3, size=60)
    targets, weight = ClassTargets(codes, 3), np.ones(60)
    none = ClassTargets(codes[:0], 3)
    useless = [
        fit_scaling(np.repeat(rng.randn(60, 1), 3, axis=1), targets, weight),
        fit_scaling(-targets.coded(), targets, weight),
        fit_scaling(rng.randn(60, 3), targets, np.zeros(60)),
        fit_scaling(np.zeros((0, 3)), none, np.zeros(0)),
    ]
    for scaling in useless:
        assert scaling.slope == SLOPES[0]
        P = scaling.probabilities(targets.coded())
        np.testing.assert_allclose(P, 1 / 3, atol=1e-3)
        np.testing.assert_array_equal(P.argmax(axis=1), codes)


def test_rows_of_weight_zero_and_classes_without_rows_are_no_matter(rng):
    scores, targets, _ = toy(rng, 100, 3)
    weight = (targets.codes != 2) * 1.0
    kept = weight > 0
    found = fit_scaling(scores, targets, weight)
    expected = fit_scaling(scores[kept], targets.take(np.flatnonzero(kept)), weight[kept])
    assert found.slope == pytest.approx(expected.slope, rel=1e-9)
    assert found.probabilities(scores).shape == (100, 3)


def test_the_unit_of_small_weights_is_no_matter(rng):
    scores, targets, _ = toy(rng, 100, 3)
    weight = rng.uniform(0.1, 1.0, 100)
    found = fit_scaling(scores, targets, weight)
    assert fit_scaling(scores, targets, 1e-6 * weight).slope == pytest.approx(found.slope)


@pytest.mark.parametrize("large", [2.0, 1e6])
def test_scores_beyond_the_targets_count_as_the_targets(large, rng):
    """Leave-one-out scores of rows that are nearly interpolated can be of any size."""
    scores, codes = rng.uniform(-1, 1, (50, 1)), rng.randint(0, 2, 50)
    scores[:2, 0] = 1.0, -1.0
    codes[:2] = 0, 1
    targets, weight = ClassTargets(codes, 2), np.ones(50)
    expected = fit_scaling(scores, targets, weight).slope
    scores[:2] *= large
    assert fit_scaling(scores, targets, weight).slope == expected
