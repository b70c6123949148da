/* sets code column i */
static inline void @_add(`float` *u, int i, `float` value)
{
    u[i] = value;
${linear}}
