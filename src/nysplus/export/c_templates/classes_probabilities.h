/* probabilities of all classes */
static inline void @_probabilities(const $row *x, `float` *probabilities)
{
    `float` largest, sum = `0.0`;
    @_scores(x, probabilities);
    largest = probabilities[0];
    for (int c = 1; c < @@_SCORES; c++)
        if (probabilities[c] > largest) largest = probabilities[c];
    for (int c = 0; c < @@_SCORES; c++) {
        probabilities[c] = `exp`($slope * (probabilities[c] - largest));
        sum += probabilities[c];
    }
    for (int c = 0; c < @@_SCORES; c++) probabilities[c] /= sum;
}
