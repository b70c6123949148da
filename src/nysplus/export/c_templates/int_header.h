/* $model, exported by nysplus: $n_features features, $n_landmarks landmarks, $outputs.
 * Integer arithmetic: no floating point, no division, no product of more than 32 bits, no heap.
 *
 *     scores = k(u, Z) A + b,  $u
 *     k(u, z) = $formula
 *
$inputs$agreement *
 * A score is its integer / 2^@@_SCORE_BITS.
 * No sum exceeds 32 bits, whatever the row: the bounds were computed with the tables.
 * Tables: $n_bytes bytes ($types).
 * Stack: $stack bytes and a few scalars.
 * On AVR the tables are in flash memory, unless @@_IN_RAM is defined. C99.
 */
#ifndef @@_H
#define @@_H

#include <stdint.h>

#if defined(__AVR__) && !defined(@@_IN_RAM)
#include <avr/pgmspace.h>
#define @@_FLASH PROGMEM
#define @@_BYTE(address) pgm_read_byte(address)
#define @@_SHORT(address) ((int16_t)pgm_read_word(address))
#define @@_LONG(address) ((int32_t)pgm_read_dword(address))
#else
#define @@_FLASH
#define @@_BYTE(address) (*(address))
#define @@_SHORT(address) (*(address))
#define @@_LONG(address) (*(address))
#endif

$sizes
/* right shifts of negative numbers must round down */
typedef char @_shifts_round_down[(-1 >> 1) == -1 ? 1 : -1];

$classes$tables
$helpers$scores
$predictions
#endif
