/* cosine and sine of a number that goes round; zeros for gaps */
static inline void @_circle(`float` *u, int i, $row x, $row origin, $row period)
{
    if (@_gap(x)) return;
    const $row turns = (x - origin) / period;
    const `float` angle = `6.283185307179586` * (`float`)(turns - floor$f(turns));
    @_add(u, i, `cos`(angle));
    @_add(u, i + 1, `sin`(angle));
}
