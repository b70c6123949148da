/* sets feature i */
static inline void @_add(int32_t *u, int16_t i, int16_t feature)
{
    u[i] = feature;
}
