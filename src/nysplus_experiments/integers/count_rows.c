/* Predicts the rows of stdin, two at most: one row more shows the instructions of a prediction. */
#include <unistd.h>
#include "nysplus.h"
static ROW x[2][NYSPLUS_FEATURES];
volatile int label;
int main(void)
{
    const long n = read(0, x, sizeof x) / (long)sizeof x[0];
    for (long i = 0; i < n; i++) label += nysplus_predict(x[i]);
    _exit(0);
}
