/* the predicted values */
static inline void @_predict(const $row *x, `float` *y)
{
    @_scores(x, y);
}
