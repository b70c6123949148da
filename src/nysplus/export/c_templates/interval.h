/* both ends of the intervals of all values, at a confidence of $confidence */
static inline void @_interval(const $row *x, `float` *low, `float` *high)
{
    @_scores(x, low);
    for (int c = 0; c < @@_SCORES; c++) {
        high[c] = low[c] + $bound;
        low[c] -= $bound;
    }
}
