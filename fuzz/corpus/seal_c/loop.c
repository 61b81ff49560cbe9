enum { A = 3, B };
unsigned long f(unsigned x, _Bool y) {
    unsigned long s = 0; int i = 0;
    do { s = s * 31 + (x % (i + 1)); y = !y && s > 4; } while (++i < B || y == 7);
    return sizeof(int[A]) + s ^ ~x >> 2;
}
