/* entry i of cosine j of n numbers; norm is the root of 2 / n */
static inline `float` @_cosine(long i, long j, long n, `float` norm)
{
    const long turn = (2 * i + 1) * j % (4 * n); /* of 4 n in a circle */
    return norm * (j ? `cos`(`1.5707963267948966` * (`float`)turn / (`float`)n) : `0.7071067811865476`);
}
