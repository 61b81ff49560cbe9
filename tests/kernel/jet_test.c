/* Jets against nested series in long double that share no code with the kernels: f is
 * composed with a polynomial by Horner's rule over its derivatives at the value, and
 * the coefficients are multiplied by the definition. Bits over instruction sets. */
#include "kernel/jet/jet.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "base/rng.h"

enum { VALUES = 83, ORDER_MOST = 6 };
#define PI 3.14159265358979323846264338327950288L

typedef long double real;

static float *noise(int64_t n, uint64_t id, float low, float high)
{
    float *p = sti_alloc_array(n, sizeof *p, "test");
    assert_non_null(p);
    for (int64_t i = 0; i < n; i++) {
        uint32_t w[4];
        sti_random4(7, STI_STREAM_TEST, id, (uint64_t)i, w);
        p[i] = low + (high - low) * sti_uniform(w[0]);
    }
    return p;
}

/* c [rows] = a b, by the definition. */
static void multiply(const sti_jet_table *t, const real *a, const real *b, real *c)
{
    for (int i = 0; i < t->rows; i++) {
        c[i] = 0;
        for (int j = 0; j < t->rows; j++) {
            int rest[STI_JET_VARIABLES];
            bool within = true;
            for (int v = 0; v < STI_JET_VARIABLES; v++) {
                rest[v] = t->index[i][v] - t->index[j][v];
                within = within && rest[v] >= 0;
            }
            if (within)
                c[i] += a[j] * b[sti_jet_row(t, rest)];
        }
    }
}

/* Taylor coefficients of f at x, to the order, as a series in one variable: each from
 * numeric power series of its definition. */
static void univariate(sti_jet_kind kind, real x, int order, real *out)
{
    real e[ORDER_MOST + 1], s[ORDER_MOST + 1], factorial = 1;
    for (int k = 0; k <= order; k++) {
        factorial *= k ? (real)k : 1;
        e[k] = expl(x) / factorial;
        if (kind == STI_JET_SIN)
            out[k] = sinl(x + (real)k * PI / 2) / factorial;
        else if (kind == STI_JET_COS)
            out[k] = cosl(x + (real)k * PI / 2) / factorial;
        else if (kind == STI_JET_EXP)
            out[k] = e[k];
        else if (kind == STI_JET_LOG)
            out[k] = k ? -powl(-1 / x, k) / (real)k : logl(x);
        else if (kind == STI_JET_RECIPROCAL)
            out[k] = powl(-1, k) * powl(x, -1 - k);
        else if (kind == STI_JET_SQRT)
            out[k] = k ? out[k - 1] * (0.5L - (real)(k - 1)) / ((real)k * x) : sqrtl(x);
        else if (kind == STI_JET_SQUARE)
            out[k] = k == 0 ? x * x : k == 1 ? 2 * x : k == 2 ? 1 : 0;
        else if (kind == STI_JET_RELU)
            out[k] = x > 0 ? (k == 0 ? x : k == 1 ? 1 : 0) : 0;
    }
    /* sigmoid = e / (1 + e), as a quotient of series. */
    for (int k = 0; k <= order; k++) {
        s[k] = e[k];
        for (int j = 1; j <= k; j++)
            s[k] -= e[j] * s[k - j];
        s[k] /= 1 + e[0];
    }
    for (int k = 0; k <= order; k++) {
        if (kind == STI_JET_SIGMOID)
            out[k] = s[k];
        else if (kind == STI_JET_SOFTPLUS)
            out[k] = k ? s[k - 1] / (real)k : logl(1 + expl(x));
        else if (kind == STI_JET_SILU)
            out[k] = x * s[k] + (k ? s[k - 1] : 0);
    }
    if (kind == STI_JET_TANH) { /* tanh x = 2 sigmoid(2 x) - 1 */
        univariate(STI_JET_SIGMOID, 2 * x, order, out);
        for (int k = 0; k <= order; k++)
            out[k] = 2 * out[k] * powl(2, k) - (k == 0);
    }
}

/* f of the series u: f_0 + du (f_1 + du (f_2 + ...)). */
static void compose(const sti_jet_table *t, const real *f, const real *u, real *y)
{
    real du[STI_JET_ROWS], next[STI_JET_ROWS];
    memcpy(du, u, (size_t)t->rows * sizeof *du);
    du[0] = 0;
    memset(y, 0, (size_t)t->rows * sizeof *y);
    for (int k = t->order; k >= 0; k--) {
        multiply(t, du, y, next);
        memcpy(y, next, (size_t)t->rows * sizeof *y);
        y[0] += f[k];
    }
}

static void reference(const sti_jet_table *t, sti_jet_kind kind, const real *u, real *y)
{
    real f[ORDER_MOST + 1], v[STI_JET_ROWS], w[STI_JET_ROWS];
    if (kind == STI_JET_GELU) { /* u sigmoid(2 sqrt(2 / pi) (u + 0.044715 u^3)) */
        multiply(t, u, u, v);
        multiply(t, v, u, w);
        for (int a = 0; a < t->rows; a++)
            v[a] = 2 * sqrtl(2 / PI) * (u[a] + 0.044715L * w[a]);
        univariate(STI_JET_SIGMOID, v[0], t->order, f);
        compose(t, f, v, w);
        multiply(t, u, w, y);
        return;
    }
    univariate(kind, u[0], t->order, f);
    compose(t, f, u, y);
}

static void check_kind(sti_jet_kind kind, int variables, int order, int x_rows)
{
    const sti_jet_table *t = sti_jet_table_of(variables, order);
    const bool positive =
        kind == STI_JET_LOG || kind == STI_JET_SQRT || kind == STI_JET_RECIPROCAL;
    float *x = noise((int64_t)x_rows * VALUES, kind * 7u + (unsigned)x_rows, -1, 1);
    float *y = noise((int64_t)t->rows * VALUES, 1, 0, 1);
    for (int i = 0; i < VALUES && positive; i++)
        x[i] = 0.75f + fabsf(x[i]);
    const float bias[VALUES] = {0.25f};
    const sti_jet_call call = {.table = t,
                               .kind = kind,
                               .x_rows = x_rows,
                               .n = VALUES,
                               .width = VALUES,
                               .factor = 1.5f};
    sti_jet_unary_f32(&(sti_team){2}, &call, x, bias, y);
    real size = 0, error = 0;
    for (int i = 0; i < VALUES; i++) {
        real u[STI_JET_ROWS] = {0}, want[STI_JET_ROWS];
        for (int a = 0; a < x_rows; a++)
            u[a] = 1.5L * ((real)x[a * VALUES + i] + (a == 0 ? (real)bias[i] : 0));
        reference(t, kind, u, want);
        for (int a = 0; a < t->rows; a++) {
            const real d = (real)y[a * VALUES + i] - want[a];
            size += want[a] * want[a];
            error += d * d;
        }
    }
    if (!(sqrtl(error / size) < 2e-6L))
        printf("kind %d, %d variables, order %d, %d rows: error %Lg\n", (int)kind,
               variables, order, x_rows, sqrtl(error / size));
    assert_true(sqrtl(error / size) < 2e-6L);
    sti_free(x);
    sti_free(y);
}

static void functions_agree(void **state)
{
    (void)state;
    for (int kind = 0; kind < STI_JET_KINDS; kind++) {
        check_kind((sti_jet_kind)kind, 1, 5, 6);
        check_kind((sti_jet_kind)kind, 2, 4, 3); /* a first layer's rows */
        check_kind((sti_jet_kind)kind, 2, 3, 10);
        check_kind((sti_jet_kind)kind, 3, 3, 20);
        check_kind((sti_jet_kind)kind, 4, 2, 15);
        check_kind((sti_jet_kind)kind, 2, 0, 1);
    }
}

static void products_agree(void **state)
{
    const sti_jet_table *t = sti_jet_table_of(2, 4);
    float *a = noise(3 * VALUES, 1, -1, 1), *b = noise(15 * VALUES, 2, -1, 1);
    float *z = noise(15 * VALUES, 3, -1, 1);
    (void)state;
    sti_jet_mul_f32(&(sti_team){2}, t, VALUES, 3, a, 15, b, z);
    for (int i = 0; i < VALUES; i++) {
        real u[STI_JET_ROWS] = {0}, v[STI_JET_ROWS] = {0}, want[STI_JET_ROWS];
        for (int r = 0; r < 15; r++) {
            u[r] = r < 3 ? (real)a[r * VALUES + i] : 0;
            v[r] = (real)b[r * VALUES + i];
        }
        multiply(t, u, v, want);
        for (int r = 0; r < 15; r++)
            assert_true(fabsl((real)z[r * VALUES + i] - want[r]) < 1e-6L);
    }
    sti_free(a);
    sti_free(b);
    sti_free(z);
}

/* The gradient is the transpose of the product's own matrix, whose columns are products
 * of b with series of one coefficient; the same bits everywhere. */
static void product_gradients_agree(void **state)
{
    (void)state;
    for (int order = 3; order <= STI_JET_LAPLACIAN; order += STI_JET_LAPLACIAN - 3) {
        const sti_jet_table *t = sti_jet_table_of(2, order);
        const sti_isa saved = sti_isa_now();
        float *dz = noise(t->rows * VALUES, 1, -1, 1), *b = noise(3 * VALUES, 2, -1, 1);
        float *da = noise(t->rows * VALUES, 3, -1, 1), *z = noise(t->rows, 4, -1, 1);
        float *other = noise(t->rows * VALUES, 5, -1, 1);
        sti_jet_mul_grad_f32(&(sti_team){2}, t, VALUES, dz, 3, b, t->rows, da);
        for (int i = 0; i < VALUES; i++)
            for (int j = 0; j < t->rows; j++) {
                float unit[STI_JET_ROWS] = {0}, factor[3];
                real want = 0;
                unit[j] = 1;
                for (int r = 0; r < 3; r++)
                    factor[r] = b[r * VALUES + i];
                sti_jet_mul_f32(&(sti_team){1}, t, 1, t->rows, unit, 3, factor, z);
                for (int r = 0; r < t->rows; r++)
                    want += (real)dz[r * VALUES + i] * (real)z[r];
                assert_true(fabsl((real)da[j * VALUES + i] - want) < 2e-6L);
            }
        for (int isa = STI_ISA_REF; isa <= STI_ISA_AVX512; isa++) {
            if (!sti_isa_force((sti_isa)isa))
                continue;
            sti_jet_mul_grad_f32(&(sti_team){3}, t, VALUES, dz, 3, b, t->rows, other);
            assert_memory_equal(da, other, (size_t)t->rows * VALUES * sizeof *da);
        }
        sti_isa_force(saved);
        sti_free(dz);
        sti_free(b);
        sti_free(da);
        sti_free(z);
        sti_free(other);
    }
}

/* The Laplacian's table has the sums of the rows of order 2. */
static void laplacians_agree(void **state)
{
    (void)state;
    for (int kind = 0; kind < STI_JET_KINDS; kind++) {
        const sti_jet_table *whole = sti_jet_table_of(3, 2);
        const sti_jet_table *few = sti_jet_table_of(3, STI_JET_LAPLACIAN);
        float *x = noise(10 * VALUES, 9, 0.5f, 1), *y = noise(10 * VALUES, 1, 0, 1);
        float *short_x = noise(5 * VALUES, 1, 0, 1), *z = noise(5 * VALUES, 1, 0, 1);
        assert_int_equal(few->rows, 5);
        memcpy(short_x, x, 4 * VALUES * sizeof *x);
        for (int i = 0; i < VALUES; i++) /* u_xx, u_yy, u_zz are rows 4, 7 and 9 */
            short_x[4 * VALUES + i] =
                x[4 * VALUES + i] + x[7 * VALUES + i] + x[9 * VALUES + i];
        sti_jet_call call = {.table = whole,
                             .kind = (sti_jet_kind)kind,
                             .x_rows = 10,
                             .n = VALUES,
                             .width = VALUES,
                             .factor = 1};
        sti_jet_unary_f32(&(sti_team){1}, &call, x, NULL, y);
        call.table = few;
        call.x_rows = 5;
        sti_jet_unary_f32(&(sti_team){1}, &call, short_x, NULL, z);
        for (int i = 0; i < VALUES; i++) {
            const float want =
                y[4 * VALUES + i] + y[7 * VALUES + i] + y[9 * VALUES + i];
            assert_memory_equal(&z[i], &y[i], sizeof *z);
            assert_true(fabsf(z[4 * VALUES + i] - want) <= 4e-6f * (1 + fabsf(want)));
        }
        sti_free(x);
        sti_free(y);
        sti_free(short_x);
        sti_free(z);
    }
}

static void bits_are_the_same(void **state)
{
    const sti_jet_table *t = sti_jet_table_of(2, 3);
    const sti_isa saved = sti_isa_now();
    (void)state;
    for (int kind = 0; kind < STI_JET_KINDS; kind++) {
        float *x = noise(10 * VALUES, 4, 0.25f, 2);
        float *y = noise(10 * VALUES, 1, 0, 1), *z = noise(10 * VALUES, 2, 0, 1);
        const sti_jet_call call = {.table = t,
                                   .kind = (sti_jet_kind)kind,
                                   .x_rows = 10,
                                   .n = VALUES,
                                   .width = VALUES,
                                   .factor = 30};
        sti_isa_force(STI_ISA_REF);
        sti_jet_unary_f32(&(sti_team){1}, &call, x, NULL, y);
        for (int isa = STI_ISA_REF; isa <= STI_ISA_AVX512; isa++) {
            if (!sti_isa_force((sti_isa)isa))
                continue;
            sti_jet_unary_f32(&(sti_team){3}, &call, x, NULL, z);
            assert_memory_equal(y, z, 10 * VALUES * sizeof *y);
        }
        sti_isa_force(saved);
        sti_free(x);
        sti_free(y);
        sti_free(z);
    }
}

static void rows_are_counted(void **state)
{
    (void)state;
    assert_int_equal(sti_jet_rows(2, 3), 10);
    assert_int_equal(sti_jet_rows(4, 4), 70);
    assert_int_equal(sti_jet_rows(4, 7), 0); /* 330: beyond the bound */
    assert_int_equal(sti_jet_rows(2, 12), 0);
    assert_int_equal(sti_jet_rows(3, STI_JET_LAPLACIAN), 5);
    assert_int_equal(sti_jet_table_of(4, 6)->rows, 210);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_agree),  cmocka_unit_test(products_agree),
        cmocka_unit_test(laplacians_agree), cmocka_unit_test(bits_are_the_same),
        cmocka_unit_test(rows_are_counted), cmocka_unit_test(product_gradients_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
