/* integer i of a table of 2 to 7 bits each, the lowest bits first; it ends in the same byte as it
 * begins in, or in the next one */
static inline int @_bits(const uint8_t *table, int i, int bits)
{
    const uint32_t first = (uint32_t)i * (uint32_t)bits, last = first + (uint32_t)bits - 1u;
    const uint32_t word = table[first >> 3] | ((uint32_t)table[last >> 3] << 8);
    return (int)((word >> (first & 7u)) & ((1u << bits) - 1u)) - ((1 << (bits - 1)) - 1);
}
