/* Writes the scores of N_ROWS rows to the serial port of an ATmega328P, as hexadecimal numbers, after
 * the cycles that they took. */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/pgmspace.h>
#include <avr/sleep.h>
#include "nysplus.h"
#include "rows.h"
static ROW x[NYSPLUS_FEATURES];
static SCORE scores[NYSPLUS_SCORES];
static volatile uint16_t overflows;
ISR(TIMER1_OVF_vect) { overflows++; }
static void put(char c)
{
    while (!(UCSR0A & (1 << UDRE0))) {}
    UDR0 = (uint8_t)c;
}
static void hex(uint32_t v)
{
    for (int8_t i = 28; i >= 0; i -= 4) {
        const uint8_t digit = (v >> i) & 15;
        put((char)(digit < 10 ? '0' + digit : 'a' + digit - 10));
    }
    put(' ');
}
int main(void)
{
    UCSR0B = 1 << TXEN0;
    TIMSK1 = 1 << TOIE1;
    sei();
    for (uint8_t i = 0; i < N_ROWS; i++) {
        for (uint16_t j = 0; j < NYSPLUS_FEATURES; j++) x[j] = (ROW)pgm_read_byte(&rows[i][j]);
        TCNT1 = 0;
        overflows = 0;
        TCCR1B = 1;
        nysplus_scores(x, scores);
        const uint16_t count = TCNT1;
        TCCR1B = 0;
        hex(((uint32_t)overflows << 16) | count);
        for (uint8_t c = 0; c < NYSPLUS_SCORES; c++) hex((uint32_t)(int32_t)scores[c]);
        put('\n');
    }
    cli();
    sleep_enable();
    sleep_cpu();
    return 0;
}
