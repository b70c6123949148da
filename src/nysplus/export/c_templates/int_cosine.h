/* cosine of turn / 4n of a circle, by the table of a quarter turn */
static inline int16_t @_cosine(const int16_t *table, int16_t turn, int16_t n)
{
    if (turn > 2 * n) turn = (int16_t)(4 * n - turn);
    return turn > n ? (int16_t)-@@_SHORT(table + 2 * n - turn) : @@_SHORT(table + turn);
}

/* entries 0 ... n - 1 of cosine j; the table ends with the constant of j = 0 */
static inline void @_cosines(const int16_t *table, int16_t n, int16_t j, int16_t *cosines)
{
    int16_t turn = j;
    for (int16_t i = 0; i < n; i++) {
        cosines[i] = j ? @_cosine(table, turn, n) : @@_SHORT(table + n + 1);
        turn = (int16_t)(turn + 2 * j);
        if (turn >= 4 * n) turn = (int16_t)(turn - 4 * n);
    }
}
