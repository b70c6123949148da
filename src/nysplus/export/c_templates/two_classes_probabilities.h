/* probabilities of both classes */
static inline void @_probabilities(const $row *x, float *probabilities)
{
    float score;
    @_scores(x, &score);
    const float odds = expf($twice * (score > 0.0f ? -score : score));
    const float smaller = odds / (1.0f + odds);
    probabilities[0] = score > 0.0f ? smaller : 1.0f - smaller;
    probabilities[1] = score > 0.0f ? 1.0f - smaller : smaller;
}
