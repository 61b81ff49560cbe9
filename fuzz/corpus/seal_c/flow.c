#include <stdint.h>
#define N 4
typedef struct point { int8_t x; uint16_t y[2]; } point;
static const uint8_t table[N] = {1, 2, 3, 200};
static int g(const uint8_t t[N], int16_t k) {
    for (int i = 0; i < N; i++) { if (t[i] == k) continue; if (k > 9) break; k += t[i]; }
    return k;
}
int f(int8_t a, const uint8_t t[N], int out[2]) {
    point p = {a, {1, 2}};
    switch (a & 3) { case 0: p.x++; break; case 1: p.y[a & 1] = 7; default: p.x -= 2; }
#pragma stint bound 3
    while (a > 0) { a--; if (t[a & 3] > 5) return p.x; }
    out[a & 1] = g(t, p.x) / 3 + (a ? table[a & 3] : -1);
    return p.y[0] << (a & 7);
}
