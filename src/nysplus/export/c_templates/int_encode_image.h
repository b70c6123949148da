/* adds the cosines of an image x of $height x $width x $channels integers to the sums u of the map:
 * along the height, then along the width */
static inline void @_encode(const $row *x, int32_t *u)
{
    int16_t t[$n_wide], cosines[$longest];
    for (int16_t a = 0; a < $first; a++) {
        @_cosines(@_cosines_$height, $height, a, cosines);
        for (int16_t j = 0; j < $line; j++) {
            int32_t sum = $height_half;
            for (int16_t i = 0; i < $height; i++)
                sum += (int32_t)cosines[i] * $pixel;
            t[a * $line + j] = (int16_t)(sum >> $height_shift);
        }
    }
    for (int16_t b = 0; b < $second; b++) {
        @_cosines(@_cosines_$width, $width, b, cosines);
        for (int16_t a = 0; a < $first; a++)
            for (int16_t c = 0; c < $channels; c++) {
                int32_t sum = $width_half;
                for (int16_t j = 0; j < $width; j++)
                    sum += (int32_t)cosines[j] * t[a * $line + j * $channels + c];
                @_add(u, (int16_t)((a * $second + b) * $channels + c), (int16_t)(sum >> $width_shift));
            }
    }
}
