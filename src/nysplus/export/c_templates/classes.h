/* number of the class in @_classes: the first one of the highest score */
static inline int @_predict(const $row *x)
{
    float scores[@@_SCORES];
    int winner = 0;
    @_scores(x, scores);
    for (int c = 1; c < @@_SCORES; c++)
        if (scores[c] > scores[winner]) winner = c;
    return winner;
}

/* probabilities of all classes */
static inline void @_probabilities(const $row *x, float *probabilities)
{
    float largest, sum = 0.0f;
    @_scores(x, probabilities);
    largest = probabilities[0];
    for (int c = 1; c < @@_SCORES; c++)
        if (probabilities[c] > largest) largest = probabilities[c];
    for (int c = 0; c < @@_SCORES; c++) {
        probabilities[c] = expf($slope * (probabilities[c] - largest));
        sum += probabilities[c];
    }
    for (int c = 0; c < @@_SCORES; c++) probabilities[c] /= sum;
}
