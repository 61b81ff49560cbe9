/* Rows written by index: large ones that are cut into pieces, against one element after
 * the other in the order of the updates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/embedding/scatter.h"

typedef struct shape {
    int64_t rows, inner, count;
} shape;

static float number(int64_t i)
{
    return (float)(i * 7919 % 1009) / 256.0f - 2.0f;
}

static float one(sti_scatter_kind kind, float old, float given)
{
    if (kind == STI_SCATTER_ADD)
        return old + given;
    if (kind == STI_SCATTER_MULTIPLY)
        return old * given;
    if (kind == STI_SCATTER_MAX)
        return given > old ? given : old;
    if (kind == STI_SCATTER_MIN)
        return given < old ? given : old;
    return given;
}

static void compare(const shape *s, sti_scatter_kind kind)
{
    static const int threads[] = {1, 2, 3, 8};
    const int64_t n = s->rows * s->inner, m = s->count * s->inner;
    float *x = malloc((size_t)(3 * n + m) * sizeof *x), *want = x + n, *got = want + n,
          *updates = got + n;
    int32_t *index = malloc((size_t)s->count * sizeof *index);
    assert_true(x && index);
    for (int64_t i = 0; i < n; i++)
        want[i] = x[i] = number(i);
    for (int64_t i = 0; i < m; i++)
        updates[i] = number(i + 17);
    for (int64_t i = 0; i < s->count; i++) { /* some twice, below 0, beyond the rows */
        index[i] = (int32_t)(i * 104729 % (s->rows + 3) - (i % 5 == 0 ? s->rows : 0));
        const int64_t at = index[i] < 0 ? index[i] + s->rows : index[i];
        for (int64_t k = 0; at >= 0 && at < s->rows && k < s->inner; k++)
            want[at * s->inner + k] =
                one(kind, want[at * s->inner + k], updates[i * s->inner + k]);
    }
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        const sti_team team = {threads[i]};
        memset(got, 0x55, (size_t)n * sizeof *got);
        sti_scatter_32(&team, kind, s->rows, s->inner, s->count, index, x, updates,
                       got);
        assert_memory_equal(got, want, (size_t)n * sizeof *got);
    }
    sti_scatter_32(&sti_team_serial, kind, s->rows, s->inner, s->count, index, x,
                   updates, x);
    assert_memory_equal(x, want, (size_t)n * sizeof *got);
    free(index);
    free(x);
}

static void pieces(void **state)
{
    static const shape shapes[] = {
        {300007, 1, 41000}, {40001, 3, 50000}, {7, 2500, 20}, {5, 1, 9}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kind = 0; kind < STI_SCATTER_KINDS; kind++)
            compare(&shapes[i], (sti_scatter_kind)kind);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pieces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
