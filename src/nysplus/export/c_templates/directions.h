    /* squared length along the directions in which training rows vary least; gaps are means */
    `float` square = `0.0`;
    for (int r = 0; r < $n_directions; r++) {
        `float` along = `0.0`;
        for (int j = 0; j < @@_FEATURES; j++) {
            const `float` v = (`float`)(x[j] - @_direction_center[j]);
            if (v == v) along += v * @_direction_weights[j * $n_directions + r];
        }
        square += along * along;
    }
    for (int i = $n_levels - 1; i >= 0; i--)
        if (!(square <= @_direction_distances[i])) {
            `float` rank = @_novelties[i];
            if (i + 1 < $n_levels) {
                const `float` step = @_direction_distances[i + 1] - @_direction_distances[i];
                rank += (square - @_direction_distances[i]) / step
                        * (@_novelties[i + 1] - @_novelties[i]);
            }
            if (rank > novelty) novelty = rank;
            break;
        }
