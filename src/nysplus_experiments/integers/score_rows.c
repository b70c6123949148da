/* Writes the integer scores of each row of stdin, and the label of one row in ten. */
#include <stdio.h>
#include "nysplus.h"
int main(void)
{
    static ROW x[NYSPLUS_FEATURES];
    static int32_t out[NYSPLUS_SCORES + 1];
    for (long i = 0; fread(x, sizeof x, 1, stdin) == 1; i++) {
        nysplus_scores(x, out);
        out[NYSPLUS_SCORES] = i % 10 ? -1 : nysplus_predict(x);
        fwrite(out, sizeof out, 1, stdout);
    }
    return 0;
}
