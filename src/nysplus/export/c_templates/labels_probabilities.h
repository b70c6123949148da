/* probability of each label */
static inline void @_probabilities(const $row *x, `float` *probabilities)
{
    @_scores(x, probabilities);
    for (int c = 0; c < @@_SCORES; c++)
        probabilities[c] = `1.0` / (`1.0` + `exp`(-$twice * probabilities[c]));
}
