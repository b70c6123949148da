/* factor of the kernel in coordinate j */
static inline `float` @_factor(const `float` *u, int j, `float` z)
{
${start}${terms}    return $value;
}

/* exact Shapley values of the scores, against the rows of @_background:
 * values[j * @@_SCORES + c] of feature j and score c. Their sum over j is the score minus
 * the mean score of the background. O(LANDMARKS BACKGROUND NODES FEATURES) */
static inline void @_explain(const $row *x, `float` *values)
{
${projecting}    `float` p[@@_RANK], q[@@_RANK], before[@@_RANK], part[@@_RANK];
    for (int j = 0; j < @@_RANK * @@_SCORES; j++) values[j] = `0.0`;
    for (int i = 0; i < @@_LANDMARKS; i++) {
        for (int j = 0; j < @@_RANK; j++) {
            p[j] = @_factor(u, j, $coordinate);
            part[j] = `0.0`;
        }
        for (int b = 0; b < @@_BACKGROUND; b++) {
            for (int j = 0; j < @@_RANK; j++)
                q[j] = @_factor(@_background + b * @@_RANK, j, $coordinate);
            for (int n = 0; n < @@_NODES; n++) {
                const `float` t = @_nodes[n];
                `float` product = @_weights[n];
                for (int j = 0; j < @@_RANK; j++) {
                    before[j] = product;
                    product *= q[j] + t * (p[j] - q[j]);
                }
                product = `1.0`;
                for (int j = @@_RANK - 1; j >= 0; j--) {
                    part[j] += (p[j] - q[j]) * before[j] * product;
                    product *= q[j] + t * (p[j] - q[j]);
                }
            }
        }
        for (int j = 0; j < @@_RANK; j++)
            for (int c = 0; c < @@_SCORES; c++)
                values[j * @@_SCORES + c] += part[j] * $coefficient;
    }
    for (int j = 0; j < @@_RANK; j++)
        for (int c = 0; c < @@_SCORES; c++)
            values[j * @@_SCORES + c] *= $scale;
}
