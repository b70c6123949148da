/* the next integer of $bits bits */
static inline int16_t @_next_$bits(@_reader *reader)
{
    if (reader->n_bits < $bits) {
        reader->word = (uint16_t)(reader->word | ((uint32_t)@@_BYTE(reader->byte) << reader->n_bits));
        reader->byte++;
        reader->n_bits = (uint8_t)(reader->n_bits + 8u);
    }
    const int16_t code = (int16_t)(reader->word & ${mask}u);
    reader->word = (uint16_t)(reader->word >> $bits);
    reader->n_bits = (uint8_t)(reader->n_bits - $bits);
    return (int16_t)(code - $middle);
}
