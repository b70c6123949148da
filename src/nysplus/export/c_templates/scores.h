/* $sum, a number for each output */
static inline void @_scores(const $row *x, `float` *scores)
{
${projecting}${linear}    `float` lost[@@_SCORES]; /* by rounding the sums: it goes into the next term */
    for (int c = 0; c < @@_SCORES; c++) scores[c] = lost[c] = `0.0`;
    for (int i = 0; i < @@_LANDMARKS; i++) {
${start}        for (int j = 0; j < @@_RANK; j++) {
            const `float` z = $coordinate;
${terms}        }
${final}        const `float` k = $value;
        for (int c = 0; c < @@_SCORES; c++) {
            const `float` term = k * $coefficient - lost[c];
            const `float` next = scores[c] + term;
            lost[c] = (next - scores[c]) - term;
            scores[c] = next;
        }
    }
    for (int c = 0; c < @@_SCORES; c++) scores[c] = $score;
}
