/* number of the class in @_classes */
static inline int @_predict(const $row *x)
{
    `float` score;
    @_scores(x, &score);
    return score > `0.0`;
}
