static inline double @_root(double v)
{
    uint64_t bits;
    double root;
    if (!(v > 1e-300)) return 0.0;
    if (v > 1e300) v = 1e300;
    memcpy(&bits, &v, sizeof bits);
    bits = (bits >> 1) + 0x1ff7a3bea91d9b1bu;
    memcpy(&root, &bits, sizeof root);
    for (int step = 0; step < 4; step++) root = 0.5 * (root + v / root);
    return root;
}
