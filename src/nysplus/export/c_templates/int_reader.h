/* reads the integers of a table one after the other */
typedef struct {
    const uint8_t *byte;
    uint16_t word;
    uint8_t n_bits;
} @_reader;

static inline @_reader @_from(const uint8_t *table, uint32_t bit)
{
    @_reader reader;
    reader.byte = table + (bit >> 3);
    reader.word = (uint16_t)(@@_BYTE(reader.byte) >> (bit & 7u));
    reader.n_bits = (uint8_t)(8u - (bit & 7u));
    reader.byte++;
    return reader;
}
