/* adds feature i times its row of P */
static inline void @_add(int32_t *u, int16_t i, $feature feature)
{
    @_reader entry = @_from(@_projection, (uint32_t)i * @@_RANK * $bits);
    for (int16_t j = 0; j < @@_RANK; j++) u[j] += (int32_t)feature * @_next_$bits(&entry);
}
