/* (v^exponent - 1) / exponent, given log(v) */
static inline $row @_powered($row logarithm, $row exponent)
{
    return exponent == 0 ? logarithm : expm1$f(exponent * logarithm) / exponent;
}

/* a power transform between two changes of unit; one that is not signed needs v > 0 */
static inline void @_power(`float` *u, int i, $row x, int has_sign, $row exponent, $row origin,
    $row unit, $row offset, $row scale, $row fill)
{
    if (@_gap(x)) x = fill;
    const $row v = (x - origin) * unit;
    const $row value = !has_sign ? @_powered(log$f(v), exponent)
        : v < 0 ? -@_powered(log1p$f(-v), 2 - exponent) : @_powered(log1p$f(v), exponent);
    @_add(u, i, (`float`)((value - offset) * scale));
}
