/* share of training rows that are less strange: near 1 for foreign rows */
static inline `float` @_novelty(const $row *x)
{
${projecting}    `float` largest = `0.0`, novelty = `1.0`;
    for (int i = 0; i < @@_LANDMARKS; i++) {
${start}        for (int j = 0; j < @@_RANK; j++) {
            const `float` z = $coordinate;
${terms}        }
${final}        const `float` k = $value;
        if (k > largest) largest = k;
    }
    if (largest >= @_similarities[0]) novelty = @_novelties[0];
    else
        for (int i = 1; i < $n_levels; i++)
            if (largest >= @_similarities[i]) {
                const `float` above = @_similarities[i - 1] - largest;
                const `float` step = above / (@_similarities[i - 1] - @_similarities[i]);
                novelty = @_novelties[i - 1] + step * (@_novelties[i] - @_novelties[i - 1]);
                break;
            }
${along}    return novelty;
}
