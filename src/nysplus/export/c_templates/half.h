/* the number whose float16 bits are given */
static inline float @_half(uint16_t half)
{
    const uint32_t exponent = (half >> 10) & 0x1fu, fraction = half & 0x3ffu;
    float value = (float)fraction * 5.9604644775390625e-8f;
    if (exponent > 0) {
        const uint32_t bits = ((exponent + 112u) << 23) | (fraction << 13);
        memcpy(&value, &bits, sizeof value);
    }
    return half & 0x8000u ? -value : value;
}
