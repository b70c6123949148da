/* the kernel in units of 1 / $largest, by a table with $steps steps in each octave of the sum */
static inline int16_t @_kernel(uint32_t sum)
{
    uint8_t shift = $least_shift, cut = 0;
    uint16_t step = 0;
    for (uint32_t above = sum >> $above; above; above >>= 1) {
        shift++;
        step = (uint16_t)(step + $steps);
    }
    step = (uint16_t)(step + (sum >> shift));
    const uint32_t here = (uint16_t)@@_SHORT(@_kernel_table + step);
    const uint32_t later = (uint16_t)@@_SHORT(@_kernel_table + step + 1);
    if (shift > $rest_bits) cut = (uint8_t)(shift - $rest_bits);
    const uint32_t rest = (sum & (((uint32_t)1 << shift) - 1u)) >> cut;
    return (int16_t)(here - (((here - later) * rest) >> (shift - cut)));
}
