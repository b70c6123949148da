/* Predicts ROWS rows REPEATS times, prints the seconds of each pass, writes the last scores. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <time.h>
#include "nysplus.h"
static float rows[ROWS][NYSPLUS_FEATURES], scores[ROWS][NYSPLUS_SCORES];
int main(void)
{
    if (fread(rows, sizeof rows, 1, stdin) != 1) return 1;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        struct timespec start, stop;
        clock_gettime(CLOCK_MONOTONIC, &start);
        for (int i = 0; i < ROWS; i++) nysplus_scores(rows[i], scores[i]);
        clock_gettime(CLOCK_MONOTONIC, &stop);
        const double seconds = (double)(stop.tv_sec - start.tv_sec);
        fprintf(stderr, "%.9f\n", seconds + 1e-9 * (double)(stop.tv_nsec - start.tv_nsec));
    }
    fwrite(scores, sizeof scores, 1, stdout);
    return 0;
}
