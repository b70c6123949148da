/* k(u, Z) A + b, an integer for each output */
static inline void @_scores(const $row *x, int32_t *scores)
{
    int32_t u[@@_RANK];
    uint32_t row = 0, coefficients = 0; /* bits before landmark i in its tables */
${features}    for (int16_t j = 0; j < @@_RANK; j++) {
        const int32_t v = @_scaled($sum, @@_SHORT(@_coordinate_factor + j), $shift);
        u[j] = @_clip(v + @@_LONG(@_coordinate_summand + j), -$bound, $bound);
    }
    for (int16_t c = 0; c < @@_SCORES; c++) scores[c] = 0;
    for (int16_t i = 0; i < @@_LANDMARKS; i++) {
        @_reader entry = @_from(@_landmarks, row);
        uint32_t sum = 0;
        for (int16_t j = 0; j < @@_RANK && sum < ${limit}u; j++) {
            const int32_t z = @_next_$landmark_bits(&entry) * (int32_t)@@_SHORT(@_landmark_step + j);
            const $difference t = ($difference)(u[j] - ((z + $half) >> $step_shift));
            sum += $term;
        }
        if (sum < ${limit}u) {
            const int16_t k = @_kernel(sum);
            entry = @_from(@_dual_coef, coefficients);
            for (int16_t c = 0; c < @@_SCORES; c++)
                scores[c] += (int32_t)k * @_next_$coefficient_bits(&entry);
        }
        row += (uint32_t)@@_RANK * $landmark_bits;
        coefficients += (uint32_t)@@_SCORES * $coefficient_bits;
    }
    for (int16_t c = 0; c < @@_SCORES; c++)
        scores[c] = @_scaled(scores[c], @@_SHORT(@_dual_coef_factor + c), $score_shift)
            + @@_LONG(@_intercept + c);
}
