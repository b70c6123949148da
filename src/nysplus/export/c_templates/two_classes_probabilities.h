/* probabilities of both classes */
static inline void @_probabilities(const $row *x, `float` *probabilities)
{
    `float` score;
    @_scores(x, &score);
    const `float` odds = `exp`($twice * (score > `0.0` ? -score : score));
    const `float` smaller = odds / (`1.0` + odds);
    probabilities[0] = score > `0.0` ? smaller : `1.0` - smaller;
    probabilities[1] = score > `0.0` ? `1.0` - smaller : smaller;
}
