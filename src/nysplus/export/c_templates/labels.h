/* 1 for each label that applies, else 0 */
static inline void @_predict(const $row *x, int *labels)
{
    `float` scores[@@_SCORES];
    @_scores(x, scores);
    for (int c = 0; c < @@_SCORES; c++) labels[c] = scores[c] > `0.0`;
}
