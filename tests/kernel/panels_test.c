/* Products with a packed matrix have the bits of the order that gemm.h states, for any
 * number of rows, instruction set and thread count; packing by rows and by columns
 * agree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/memory.h"
#include "gemm_model.h"
#include "kernel/gemm/panels.h"

typedef struct panels_case {
    int64_t m, k, n;
    bool bias;
} panels_case;

static const panels_case cases[] = {
    {1, 1, 1, false},    {1, 7, 64, true},     {1, 130, 65, false},
    {3, 40, 200, true},  {64, 33, 70, true},   {29, 16, 16, false},
    {1, 12300, 5, true}, {15, 8200, 3, false}, {2, 4097, 66, false},
    {1, 0, 65, true},    {17, 0, 3, false},
};

typedef struct panels_data {
    const float *x, *w; /* [m, ldx], [k, n] */
    int64_t ldx, n, row, column;
} panels_data;

static float x_of(const void *arg, int64_t k)
{
    const panels_data *d = arg;
    return d->x[d->row * d->ldx + k];
}

static float w_of(const void *arg, int64_t k)
{
    const panels_data *d = arg;
    return d->w[k * d->n + d->column];
}

/* In pieces, so that first and last ones are seen. */
static void pack(const panels_case *c, const float *w, bool columns, sti_panels *p)
{
    float *turned = model_floats(c->k * c->n);
    for (int64_t i = 0; i < c->k; i++)
        for (int64_t j = 0; j < c->n; j++)
            turned[j * c->k + i] = w[i * c->n + j];
    const int64_t step = columns ? 64 : 5, count = columns ? c->n : c->k;
    for (int64_t at = 0; at < count; at += step) {
        const int64_t some = count - at < step ? count - at : step;
        if (columns)
            sti_panels_pack_columns(p, at, some, turned + at * c->k);
        else
            sti_panels_pack_rows(p, at, some, w + at * c->n);
    }
    model_free(turned);
}

static void check_case(const panels_case *c, const sti_panels *p, const float *x,
                       const float *w, const float *bias, const float *want)
{
    const int64_t ldx = c->k + 3, ldy = c->n + 2;
    float *column = model_floats(c->k), *y = model_floats(c->m * ldy);
    for (int threads = 1; threads <= 3; threads++) {
        model_fill(&(model_rng){9}, y, c->m * ldy);
        sti_panels_product_f32(&(sti_team){threads}, p, c->m, x, ldx, bias, y, ldy);
        for (int64_t r = 0; r < c->m; r++) {
            const int64_t bad = model_differ(want + r * c->n, y + r * ldy, c->n);
            if (bad >= 0)
                fail_msg("[%d, %d] x [%d, %d]: output %d of row %d: %.9g, wanted %.9g",
                         (int)c->m, (int)c->k, (int)c->k, (int)c->n, (int)bad, (int)r,
                         (double)y[r * ldy + bad], (double)want[r * c->n + bad]);
        }
    }
    sti_panels_column(p, c->n - 1, column);
    for (int64_t i = 0; i < c->k; i++)
        assert_memory_equal(&column[i], &w[i * c->n + c->n - 1], sizeof(float));
    model_free(column);
    model_free(y);
}

static void run_case(const panels_case *c, model_rng *rng)
{
    const int64_t ldx = c->k + 3;
    float *x = model_floats(c->m * ldx), *w = model_floats(c->k * c->n);
    float *bias = model_floats(c->n), *want = model_floats(c->m * c->n);
    sti_panels p = {.k = c->k, .n = c->n};
    p.data = sti_alloc_array(sti_panels_floats(c->k, c->n), sizeof(float), "test");
    model_fill(rng, x, c->m * ldx);
    model_fill(rng, w, c->k * c->n);
    model_fill(rng, bias, c->n);
    panels_data d = {.x = x, .w = w, .ldx = ldx, .n = c->n};
    for (d.row = 0; d.row < c->m; d.row++)
        for (d.column = 0; d.column < c->n; d.column++)
            want[d.row * c->n + d.column] =
                model_epilogue(model_sum(x_of, w_of, &d, c->k, 0.0F),
                               c->bias ? &bias[d.column] : NULL, false);
    for (int isa = STI_ISA_REF; isa < STI_ISA_COUNT; isa++) {
        if (!sti_isa_force((sti_isa)isa))
            continue;
        for (int columns = 0; columns < 2; columns++) {
            pack(c, w, columns, &p);
            check_case(c, &p, x, w, c->bias ? bias : NULL, want);
        }
    }
    sti_free(p.data);
    model_free(x);
    model_free(w);
    model_free(bias);
    model_free(want);
}

static void products_have_the_promised_bits(void **state)
{
    (void)state;
    model_rng rng = {17};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        run_case(&cases[i], &rng);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_have_the_promised_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
