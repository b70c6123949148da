/* v * m / 2^shift, rounded down: with |v| <= 2^30, |v| <= 2^(15 + shift) and |m| < 2^15, both parts
 * of the product fit in 32 bits */
static inline int32_t @_scaled(int32_t v, int16_t m, uint8_t shift)
{
    const int32_t high = (v >> 15) * m, low = (v & 32767) * m;
    if (shift < 15) return high * ((int32_t)1 << (15 - shift)) + (low >> shift);
    return (high + (low >> 15)) >> (shift - 15);
}

static inline int32_t @_clip(int32_t v, int32_t low, int32_t high)
{
    return v < low ? low : v > high ? high : v;
}
