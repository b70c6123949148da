/* A program that predicts one row: its size is that of a header on a microcontroller. */
#include "nysplus.h"
ROW x[NYSPLUS_FEATURES];
volatile int label;
int main(void)
{
    label = nysplus_predict(x);
    for (;;) {}
}
