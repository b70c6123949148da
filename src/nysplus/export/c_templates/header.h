/* $model, exported by nysplus: $n_features features, $n_landmarks landmarks, $outputs.
 *
 *     scores = $sum,  $u
 *     k(u, z) = $formula
 *
 * Tables: $n_bytes bytes ($types).
$code * Stack: $stack bytes and a few scalars. C99, no heap, of libm $libm (-lm).
 * Sums are compensated: -ffast-math makes them less exact.
 * x has @@_FEATURES ${row}s, scores @@_SCORES. Nothing is written outside the outputs.
$why_double$inputs */
#ifndef @@_H
#define @@_H

$includes

$sizes
$constants$classes$tables
$helpers$scores
$predictions
#endif
