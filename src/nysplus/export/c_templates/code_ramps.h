/* a column for each of n bins between knots: full below x, in part around x, empty above x */
static inline void @_ramps_$name(`float` *u, int i, $row x, const $stored *knots, int n, int gap,
    `float` height)
{
    $number low = $first;
    if (@_gap(x)) x = ($row)$at_gap;
    for (int k = 0; k < n && x > low; k++) {
        const $number high = $next;
        @_add(u, i + k, x < high ? height * (`float`)((x - low) / (high - low)) : height);
        low = high;
    }
}
