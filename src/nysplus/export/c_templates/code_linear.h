/* a number in a unit */
static inline void @_linear(`float` *u, int i, $row x, $row offset, $row scale, $row fill)
{
    if (@_gap(x)) x = fill;
    @_add(u, i, (`float`)((x - offset) * scale));
}
