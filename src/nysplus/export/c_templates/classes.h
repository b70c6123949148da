/* number of the class in @_classes: the first one of the highest score */
static inline int @_predict(const $row *x)
{
    `float` scores[@@_SCORES];
    int winner = 0;
    @_scores(x, scores);
    for (int c = 1; c < @@_SCORES; c++)
        if (scores[c] > scores[winner]) winner = c;
    return winner;
}
