/* the features */
static inline void @_transform(const $row *x, `float` *features)
{
    @_scores(x, features);
}
