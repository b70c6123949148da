/* 1 for each label that applies, else 0 */
static inline void @_predict(const $row *x, int *labels)
{
    float scores[@@_SCORES];
    @_scores(x, scores);
    for (int c = 0; c < @@_SCORES; c++) labels[c] = scores[c] > 0.0f;
}

/* probability of each label */
static inline void @_probabilities(const $row *x, float *probabilities)
{
    @_scores(x, probabilities);
    for (int c = 0; c < @@_SCORES; c++)
        probabilities[c] = 1.0f / (1.0f + expf(-$twice * probabilities[c]));
}
