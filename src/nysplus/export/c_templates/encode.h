/* $what of the raw numbers x */
static inline void @_encode(const $row *x, `float` *u)
{
$calls}
