/* $what of an image x of $height x $width x $channels numbers: cosines along the height, then
 * along the width */
static inline void @_encode(const $row *x, `float` *u)
{
    `float` t[$n_wide], v[$n_high];
    for (int i = 0; i < $n_wide; i++) t[i] = `0.0`;
    for (int a = 0; a < $first; a++)
        for (int i = 0; i < $height; i++) {
            const `float` cosine = @_cosine(i, a, $height, $height_norm);
            for (int j = 0; j < $line; j++)
                t[a * $line + j] += cosine * (`float`)x[(long)i * $line + j];
        }
    for (int b = 0; b < $second; b++) {
        for (int a = 0; a < $n_high; a++) v[a] = `0.0`;
        for (int j = 0; j < $width; j++) {
            const `float` cosine = @_cosine(j, b, $width, $width_norm);
            for (int a = 0; a < $first; a++)
                for (int c = 0; c < $channels; c++)
                    v[a * $channels + c] += cosine * t[a * $line + j * $channels + c];
        }
        for (int a = 0; a < $first; a++)
            for (int c = 0; c < $channels; c++)
                @_add(u, (a * $second + b) * $channels + c, v[a * $channels + c]);
    }
}
