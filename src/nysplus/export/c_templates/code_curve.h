/* values at n + 1 knots, with lines between them */
static inline void @_curve_$name(`float` *u, int i, $row x, const $stored *knots, int n, int gap,
    const $stored_values *values)
{
    int k = 0;
    if (@_gap(x)) x = ($row)$at_gap;
    while (k < n && x >= $next) k++;
    const $number low = $here;
    `float` value = (`float`)$value;
    if (k < n && x > low) {
        const $number high = $next;
        const `float` later = (`float`)$next_value;
        value += (later - value) * (`float`)((x - low) / (high - low));
    }
    @_add(u, i, value);
}
