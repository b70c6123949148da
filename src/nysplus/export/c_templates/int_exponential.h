/* 2^(-sum / 2^$level) in units of 1 / $largest, by a table of one octave */
static inline int16_t @_kernel(uint32_t sum)
{
    const uint8_t octave = (uint8_t)(sum >> $level);
    const uint8_t step = (uint8_t)((sum >> $rest_bits) & ${step_mask}u);
    const uint32_t here = (uint16_t)@@_SHORT(@_kernel_table + step);
    const uint32_t later = (uint16_t)@@_SHORT(@_kernel_table + step + 1);
    const uint32_t rest = sum & ${rest_mask}u;
    const uint32_t value = here - (((here - later) * rest) >> $rest_bits);
    return (int16_t)((value + (((uint32_t)1 << octave) >> 1)) >> octave);
}
