/* the prediction set at a confidence of $confidence: 1 for each class in it, else 0; returns their number */
static inline int @_set(const $row *x, unsigned char *in_set)
{
    `float` probabilities[@@_CLASSES];
    int n = 0;
    @_probabilities(x, probabilities);
    for (int c = 0; c < @@_CLASSES; c++) {
        in_set[c] = `1.0` - probabilities[c] <= $bound;
        n += in_set[c];
    }
    return n;
}
