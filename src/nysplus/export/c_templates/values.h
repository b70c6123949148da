/* the predicted values */
static inline void @_predict(const float *x, float *y)
{
    @_scores(x, y);
}
