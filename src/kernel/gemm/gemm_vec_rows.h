/* Rows that become lanes of vectors, included by the gemm_vec_*.h. */
#ifndef STI_KERNEL_GEMM_VEC_ROWS_H
#define STI_KERNEL_GEMM_VEC_ROWS_H

#include <stdint.h>

/* Each vector has in a quarter of its lanes (a half of eight) rows four apart of p[i],
 * row i < 4. Few pointers, or the compiler makes one of every row. */
typedef struct vec_rows {
    const float *p[4];
    int64_t by4, by12; /* floats to the rows four and twelve on */
} vec_rows;

/* The empty asm keeps sums of these from becoming pointers of their own. */
static inline __attribute__((always_inline)) vec_rows vec_rows_at(const float *p,
                                                                  int64_t ld)
{
    vec_rows w = {.p = {p, p + ld, p + 2 * ld, p + 3 * ld}, .by4 = 4 * ld};
    w.by12 = 3 * w.by4;
    __asm__("" : "+r"(w.by4), "+r"(w.by12));
    return w;
}

static inline __attribute__((always_inline)) void vec_rows_on(vec_rows *w, int steps)
{
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        w->p[i] += steps;
        __asm__("" : "+r"(w->p[i]));
    }
}

#endif
