/* a row of a table: of n levels, then of other levels, then of gaps */
static inline void @_lookup_$name(`float` *u, int i, $row x, const $stored *table, int n,
    int columns)
{
    const int row = @_gap(x) ? n + 1 : x >= 0 && x < n ? (int)x : n;
    for (int c = 0; c < columns; c++) @_add(u, i + c, (`float`)$cell);
}
