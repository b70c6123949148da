/* whether a number is NAN: its bits tell it, whatever -ffast-math makes of comparisons */
static inline int @_gap($row x)
{
    $bits bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & $all) > $infinity;
}
