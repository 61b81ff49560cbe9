/* Top-k of the types that NumPy has beside float32: unsigned integers, and elements of
 * 64 and 16 bits, each ranked in its own type. */
#include "topk_oracle.h"

#include "base/memory.h"

static const stint_topk_type new_types[] = {
    STINT_TOPK_U32, STINT_TOPK_U8,  STINT_TOPK_F64, STINT_TOPK_I64,
    STINT_TOPK_U64, STINT_TOPK_I16, STINT_TOPK_U16};
enum { NEW_TYPES = sizeof new_types / sizeof new_types[0] };

static void types_by_every_method(void **unused)
{
    (void)unused;
    unsigned char *x = malloc(8 * 8192);
    for (int isa = 0; isa < STI_ISA_COUNT; isa++) {
        if (!sti_isa_force((sti_isa)isa))
            continue;
        for (int round = 0; round < 300; round++) {
            stint_topk_desc d = {.type = new_types[round % NEW_TYPES],
                                 .key = (stint_topk_key)below(3),
                                 .nan = 1 + (stint_topk_nan)below(2),
                                 .zeros_equal = below(2),
                                 .sorted = below(2),
                                 .n = 1 + below(below(2) ? 40 : 4000)};
            d.k = round % 5 == 0 ? 1 : round % 7 == 0 ? d.n : below(d.n + 2);
            const enum order order = (enum order)below(ORDERS);
            fill(d.type, order, d.n, x);
            check_methods(d, x, order);
        }
    }
    sti_isa_force(STI_ISA_AVX512);
    free(x);
}

/* Long enough that threads share a row, and that keys are gathered or are too many. */
static void long_rows_of_wide_types(void **unused)
{
    (void)unused;
    const int64_t n = 200000;
    unsigned char *x = malloc(8 * (size_t)n);
    int64_t *want = malloc((size_t)n * sizeof *want);
    static const enum order orders[] = {BITS, UNIFORM, EQUAL, TWO_VALUES, ASCENDING};
    for (int round = 0; round < 20; round++) {
        stint_topk_desc d = {.type = new_types[2 + round % 5],
                             .key = (stint_topk_key)(round % 3),
                             .nan = STINT_TOPK_NAN_LAST,
                             .sorted = round % 2,
                             .n = n};
        const int64_t k[] = {1, 100, 70000, n - 1};
        const enum order order = orders[round % 5];
        d.k = k[round % 4];
        fill(d.type, order, n, x);
        oracle(&d, x, want);
        for (int threads = 1; threads <= 4; threads += 1 + (threads == 2)) {
            d.threads = threads;
            check_row(&d, x, order, want);
        }
    }
    free(x);
    free(want);
}

/* float32 has no room between these, nor double between the integers. */
static void neighbours_stay_apart(void **unused)
{
    (void)unused;
    const double f[] = {16777216, 16777217, 3};
    const int64_t i[] = {INT64_MAX - 1, INT64_MAX, INT64_MIN, INT64_MIN + 1};
    const uint64_t u[] = {UINT64_MAX - 1, UINT64_MAX, 0, 1};
    const struct {
        stint_topk_desc d;
        const void *x;
        int64_t want[2];
    } cases[] = {
        {{.type = STINT_TOPK_F64, .n = 3, .k = 2, .sorted = true}, f, {1, 0}},
        {{.type = STINT_TOPK_I64, .n = 4, .k = 2, .sorted = true}, i, {1, 0}},
        {{.type = STINT_TOPK_I64, .key = 1, .n = 4, .k = 2, .sorted = true}, i, {2, 3}},
        {{.type = STINT_TOPK_I64, .key = 2, .n = 4, .k = 2, .sorted = true}, i, {2, 1}},
        {{.type = STINT_TOPK_U64, .n = 4, .k = 2, .sorted = true}, u, {1, 0}},
        {{.type = STINT_TOPK_U64, .key = 1, .n = 4, .k = 2, .sorted = true}, u, {2, 3}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        check_row(&cases[c].d, cases[c].x, (int)c, cases[c].want);
}

static void rows_of_wide_types(void **unused)
{
    (void)unused;
    enum { ROWS = 7, N = 50, STRIDE = 53, K = 5 };
    unsigned char x[8 * ROWS * STRIDE];
    for (int type = 2; type < NEW_TYPES; type++) {
        stint_topk_desc d = {.type = new_types[type],
                             .nan = STINT_TOPK_NAN_FIRST,
                             .sorted = true,
                             .rows = ROWS,
                             .n = N,
                             .stride = STRIDE,
                             .k = K,
                             .index_base = 1000,
                             .threads = 3};
        fill(d.type, BITS, ROWS * STRIDE, x);
        answer a = ask(&d, x, NULL);
        assert_int_equal(a.status, STINT_OK);
        for (int row = 0; row < ROWS; row++) {
            int64_t want[K];
            oracle(&d, x + (size_t)row * STRIDE * type_bytes[d.type], want);
            for (int i = 0; i < K; i++)
                assert_int_equal(a.index[row * K + i], want[i] + 1000);
        }
        answer_free(&a);
    }
}

/* Lists of shares joined are the list of everything. */
static void lists_of_wide_types(void **unused)
{
    (void)unused;
    enum { N = 600, K = 40 };
    unsigned char x[8 * N];
    for (int round = 0; round < 4 * NEW_TYPES; round++) {
        stint_topk_desc d = {.type = new_types[round % NEW_TYPES],
                             .key = (stint_topk_key)below(3),
                             .nan = STINT_TOPK_NAN_LAST,
                             .sorted = true,
                             .n = N,
                             .k = K};
        const size_t bytes = type_bytes[d.type];
        const int64_t cut = below(N + 1);
        fill(d.type, round % 2 ? SPECIAL : UNIFORM, N, x);
        int64_t want[K], joined[K], count;
        unsigned char values[8 * K];
        oracle(&d, x, want);
        stint_topk_desc first = d, rest = d;
        first.n = cut;
        rest.n = N - cut;
        rest.index_base = cut;
        answer a = ask(&first, x, NULL), b = ask(&rest, x + (size_t)cut * bytes, NULL);
        const stint_topk_list la = {cut < K ? cut : K, a.values, a.index};
        const stint_topk_list lb = {N - cut < K ? N - cut : K, b.values, b.index};
        assert_int_equal(stint_topk_merge(&d, &la, &lb, joined, values, &count),
                         STINT_OK);
        assert_int_equal(count, K);
        assert_int_equal(stint_topk_list_bytes(d.type, 3), 3 * (bytes + 8));
        for (int i = 0; i < K; i++) {
            assert_int_equal(joined[i], want[i]);
            assert_memory_equal(values + (size_t)i * bytes, x + (size_t)want[i] * bytes,
                                bytes);
        }
        answer_free(&a);
        answer_free(&b);
    }
}

static void wide_calls_refuse(void **unused)
{
    (void)unused;
    double x[400];
    int64_t index[4];
    size_t need;
    for (int i = 0; i < 400; i++)
        x[i] = i;
    x[250] = x[390] = -NAN;
    stint_topk_desc d = {
        .type = STINT_TOPK_F64, .rows = 2, .n = 200, .k = 4, .threads = 2};
    assert_int_equal(stint_topk_workspace_bytes(&d, &need), STINT_OK);
    void *workspace = malloc(need);
    assert_int_equal(stint_topk(&d, x, NULL, index, NULL, workspace, need - 1),
                     STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "workspace"));
    assert_int_equal(stint_topk(&d, NULL, NULL, index, NULL, workspace, need),
                     STINT_E_USAGE);
    int64_t both[8];
    assert_int_equal(stint_topk(&d, x, NULL, both, NULL, workspace, need),
                     STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "row 1, index 50"));
    d.has_addend = true;
    assert_int_equal(stint_topk(&d, x, NULL, both, NULL, workspace, need),
                     STINT_E_USAGE);
    d.has_addend = false;
    d.rows = -1;
    assert_int_equal(stint_topk(&d, x, NULL, both, NULL, workspace, need),
                     STINT_E_USAGE);
    d.rows = 1;
    d.k = 0;
    assert_int_equal(stint_topk(&d, NULL, NULL, NULL, NULL, NULL, 0), STINT_OK);
    d.n = INT64_C(1) << 61;
    d.k = INT64_C(1) << 54;
    assert_int_equal(stint_topk_workspace_bytes(&d, &need), STINT_E_USAGE);
    stint_topk_method method;
    int exponent;
    double seconds;
    d.n = 1000;
    d.k = 3;
    assert_int_equal(stint_topk_explain(&d, &method, &exponent, &seconds), STINT_OK);
    assert_int_equal(method, STINT_TOPK_RADIX);
    assert_true(seconds > 0 && seconds < 1 && exponent == 0);
    free(workspace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_by_every_method),
        cmocka_unit_test(long_rows_of_wide_types),
        cmocka_unit_test(neighbours_stay_apart),
        cmocka_unit_test(rows_of_wide_types),
        cmocka_unit_test(lists_of_wide_types),
        cmocka_unit_test(wide_calls_refuse),
    };
    return cmocka_run_group_tests_name("kernel/topk_types", tests, NULL, NULL);
}
