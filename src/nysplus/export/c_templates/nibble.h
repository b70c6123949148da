/* integer i of a table of 4 bits each, the even ones in the lower half of a byte */
static inline int @_nibble(const uint8_t *table, int i)
{
    return ((table[i >> 1] >> ((i & 1) * 4)) & 15) - 7;
}
