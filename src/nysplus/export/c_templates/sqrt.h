static inline float @_sqrt(float v)
{
    uint32_t bits;
    float root;
    if (!(v > 1e-30f)) return 0.0f;
    if (v > 1e30f) v = 1e30f;
    memcpy(&bits, &v, sizeof bits);
    bits = (bits >> 1) + 0x1fbd1df5u;
    memcpy(&root, &bits, sizeof root);
    for (int step = 0; step < 3; step++) root = 0.5f * (root + v / root);
    return root;
}
