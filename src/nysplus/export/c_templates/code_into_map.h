/* adds code column i times its row of P */
static inline void @_add(`float` *u, int i, `float` value)
{
    for (int j = 0; j < @@_RANK; j++) u[j] += value * $entry;
${linear}}
