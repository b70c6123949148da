/* a column for each of n levels, and for gaps if these have one */
static inline void @_one_hot(`float` *u, int i, $row x, int n, int gaps)
{
    if (@_gap(x)) {
        if (gaps) @_add(u, i + n, `1.0`);
    } else if (x >= 0 && x < n && x == ($row)(int)x) {
        @_add(u, i + (int)x, `1.0`);
    }
}
