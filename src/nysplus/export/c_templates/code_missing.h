/* one number for gaps, another one for all else */
static inline void @_missing(`float` *u, int i, $row x, `float` present, `float` missing)
{
    const `float` value = @_gap(x) ? missing : present;
    if (value != `0.0`) @_add(u, i, value);
}
