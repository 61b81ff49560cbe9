/* Resampling: exact where it must be, and near a straightforward computation in
 * doubles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "media/resize.h"

static void resize(int in_h, int in_w, int out_h, int out_w, int channels,
                   const uint8_t *src, uint8_t *dst)
{
    size_t n = sti_resize_scratch_bytes(in_h, in_w, out_h, out_w, channels);
    void *scratch = malloc(n); /* exactly: sanitizers see a byte too many */
    assert_non_null(scratch);
    sti_resize_u8(in_h, in_w, out_h, out_w, channels, src, dst, scratch);
    free(scratch);
}

static double triangle(double x)
{
    x = x < 0 ? -x : x;
    return x < 1 ? 1 - x : 0;
}

/* One axis of the reference: [out] weights over [in], row by row. */
static void reference_weights(int in, int out, double *w)
{
    double scale = (double)in / out, radius = scale > 1 ? scale : 1;
    for (int o = 0; o < out; o++) {
        double sum = 0, centre = (o + 0.5) * scale;
        for (int i = 0; i < in; i++)
            sum += w[o * in + i] = triangle((i + 0.5 - centre) / radius);
        for (int i = 0; i < in; i++)
            w[o * in + i] /= sum;
    }
}

static void agrees_with_reference(void **state)
{
    static const int cases[][4] = {{8, 8, 8, 8},     {8, 8, 16, 16}, {16, 16, 8, 8},
                                   {7, 13, 5, 32},   {40, 3, 1, 3},  {1, 1, 9, 9},
                                   {33, 64, 32, 32}, {60, 60, 7, 50}};
    (void)state;
    static uint8_t src[64 * 64 * 3], dst[64 * 64 * 3];
    static double wy[64 * 64], wx[64 * 64];
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof src; i++)
        src[i] = (uint8_t)((x = x * 1664525u + 1013904223u) >> 24);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const int *s = cases[k];
        resize(s[0], s[1], s[2], s[3], 3, src, dst);
        reference_weights(s[0], s[2], wy);
        reference_weights(s[1], s[3], wx);
        for (int i = 0; i < s[2] * s[3] * 3; i++) {
            int c = i % 3, ox = i / 3 % s[3], oy = i / 3 / s[3];
            double sum = 0;
            for (int y = 0; y < s[0]; y++)
                for (int xx = 0; xx < s[1]; xx++)
                    sum += wy[oy * s[0] + y] * wx[ox * s[1] + xx] *
                           src[(y * s[1] + xx) * 3 + c];
            double off = sum - dst[i];
            if (off > 1.1 || off < -1.1)
                fail_msg("case %zu at %d: %f, wanted %f", k, i, (double)dst[i], sum);
        }
    }
}

static void flat_and_equal_stay(void **state)
{
    (void)state;
    uint8_t src[25 * 3], dst[49 * 3];
    memset(src, 201, sizeof src);
    resize(5, 5, 7, 7, 3, src, dst);
    for (size_t i = 0; i < sizeof dst; i++)
        assert_int_equal(dst[i], 201);
    for (size_t i = 0; i < sizeof src; i++)
        src[i] = (uint8_t)(i * 3);
    resize(5, 5, 5, 5, 3, src, dst);
    assert_memory_equal(src, dst, sizeof src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_reference),
        cmocka_unit_test(flat_and_equal_stay),
    };
    return cmocka_run_group_tests_name("data_resize", tests, NULL, NULL);
}
