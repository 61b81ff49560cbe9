/* Top-k at its edges: rows apart, sums of two arrays, NaN that is refused, lists that
 * are joined, calls that are refused, and costs that may not change a result. */
#include "topk_oracle.h"

#include "base/memory.h"

static void rows_apart(void **unused)
{
    (void)unused;
    enum { ROWS = 13, N = 700, STRIDE = 711 };
    unsigned char *x = malloc(ROWS * STRIDE * 4);
    fill(STINT_TOPK_F32, NORMAL, ROWS * STRIDE, x);
    for (int threads = 1; threads <= 4; threads++)
        for (int sorted = 0; sorted < 2; sorted++) {
            stint_topk_desc d = {.rows = ROWS,
                                 .n = N,
                                 .stride = STRIDE,
                                 .k = 21,
                                 .index_base = 1000000000000,
                                 .sorted = sorted,
                                 .threads = threads};
            answer a = ask(&d, x, NULL);
            assert_int_equal(a.status, STINT_OK);
            for (int r = 0; r < ROWS; r++) {
                int64_t want[21];
                oracle(&d, x + (size_t)r * STRIDE * 4, want);
                for (int i = 0; i < 21; i++)
                    assert_int_equal(a.index[r * 21 + i], want[i] + d.index_base);
            }
            answer_free(&a);
        }
    free(x);
}

static void sums_of_two(void **unused)
{
    (void)unused;
    enum { N = 5000 };
    float *g = malloc(N * 4), *e = malloc(N * 4), *sum = malloc(N * 4);
    for (int round = 0; round < 6; round++) {
        fill(STINT_TOPK_F32, UNIFORM, N, (unsigned char *)g);
        fill(STINT_TOPK_F32, NORMAL, N, (unsigned char *)e);
        for (int i = 0; i < N; i++)
            sum[i] = g[i] + e[i];
        stint_topk_desc d = {.key = STINT_TOPK_ABS,
                             .n = round < 4 ? N : 65 - round,
                             .k = round < 4 ? 17 + round * 100 : 4 * round - 13,
                             .sorted = round % 2,
                             .part = round % 3 ? 0 : 999};
        int64_t want[1000];
        oracle(&d, (unsigned char *)sum, want);
        d.has_addend = true;
        for (int m = 0; m < STINT_TOPK_METHODS; m++) {
            d.method = (stint_topk_method)m;
            answer a = ask(&d, (unsigned char *)g, e);
            assert_int_equal(a.status, STINT_OK);
            for (int64_t i = 0; i < d.k; i++) {
                assert_int_equal(a.index[i], want[i]);
                assert_memory_equal(a.values + 4 * i, &sum[want[i]], 4);
            }
            answer_free(&a);
        }
    }
    free(g);
    free(e);
    free(sum);
}

static void refuse(stint_topk_desc d, stint_status want, const char *word_in_message)
{
    float x[4] = {1, 2, 3, 4};
    int64_t index[4];
    size_t bytes = 0;
    char memory[16];
    stint_status status = stint_topk_workspace_bytes(&d, &bytes);
    if (status == STINT_OK)
        status = stint_topk(&d, x, NULL, index, NULL, memory, sizeof memory);
    assert_int_equal(status, want);
    if (!strstr(stint_last_error(), word_in_message))
        fail_msg("'%s' does not say '%s'", stint_last_error(), word_in_message);
}

static void bad_input(void **unused)
{
    (void)unused;
    refuse((stint_topk_desc){.n = 4, .k = -1}, STINT_E_USAGE, "k -1");
    refuse((stint_topk_desc){.n = -4, .k = 1}, STINT_E_USAGE, "n -4");
    refuse((stint_topk_desc){.n = INT64_MAX, .k = 1}, STINT_E_USAGE, "address space");
    refuse((stint_topk_desc){.n = 4, .rows = INT64_MAX / 8, .k = 1}, STINT_E_USAGE,
           "address space");
    refuse((stint_topk_desc){.n = 4, .k = 1, .index_base = INT64_MAX}, STINT_E_USAGE,
           "address space");
    refuse((stint_topk_desc){.n = 4, .rows = 2, .stride = 3, .k = 1}, STINT_E_USAGE,
           "overlap");
    refuse((stint_topk_desc){.rows = -2, .n = 4, .k = 1}, STINT_E_USAGE, "rows -2");
    refuse((stint_topk_desc){.part = -3, .n = 4, .k = 1}, STINT_E_USAGE, "part -3");
    refuse((stint_topk_desc){.type = 12, .n = 4, .k = 1}, STINT_E_USAGE,
           "type 12, but stint_topk_type in stint/topk.h goes from 0 to 11");
    refuse((stint_topk_desc){.key = 3, .n = 4, .k = 1}, STINT_E_USAGE,
           "key 3, but stint_topk_key in stint/topk.h goes from 0 to 2");
    refuse((stint_topk_desc){.nan = 3, .n = 4, .k = 1}, STINT_E_USAGE,
           "nan 3, but stint_topk_nan in stint/topk.h goes from 0 to 2");
    refuse((stint_topk_desc){.method = 9, .n = 4, .k = 1}, STINT_E_USAGE,
           "method 9, but stint_topk_method in stint/topk.h goes from 0 to 6");
    refuse((stint_topk_desc){.threads = -1, .n = 4, .k = 1}, STINT_E_USAGE, "threads");
    refuse((stint_topk_desc){.exponent = 16, .n = 4, .k = 1}, STINT_E_USAGE,
           "exponent");
    refuse((stint_topk_desc){.type = STINT_TOPK_I8, .has_addend = true, .n = 4, .k = 1},
           STINT_E_USAGE, "f32");
    refuse((stint_topk_desc){.has_addend = true, .n = 4, .k = 1}, STINT_E_USAGE,
           "addend is NULL");
    refuse((stint_topk_desc){.n = 4, .k = 1}, STINT_E_USAGE, "workspace of 16 bytes");
    refuse((stint_topk_desc){.n = INT64_C(1) << 50, .k = INT64_C(1) << 33},
           STINT_E_UNSUPPORTED, "in parts");
    size_t bytes;
    int64_t index[4];
    stint_topk_desc d = {.n = 4, .k = 2};
    assert_int_equal(stint_topk_workspace_bytes(&d, &bytes), STINT_OK);
    void *memory = malloc(bytes);
    assert_int_equal(stint_topk(&d, NULL, NULL, index, NULL, memory, bytes),
                     STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "x is NULL"));
    const float x[4] = {1, 2, 3, 4};
    assert_int_equal(stint_topk(&d, x, NULL, NULL, NULL, memory, bytes), STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "index_out is NULL"));
    assert_int_equal(stint_topk(&d, x, NULL, index, NULL, NULL, bytes), STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "workspace of 0 bytes"));
    d.k = 0;
    assert_int_equal(stint_topk(&d, NULL, NULL, NULL, NULL, NULL, 0), STINT_OK);
    d = (stint_topk_desc){.n = 0, .k = 3};
    assert_int_equal(stint_topk(&d, NULL, NULL, NULL, NULL, NULL, 0), STINT_OK);
    free(memory);
}

/* The first NaN is named, whatever the method and however many there are. */
static void nan_is_named(void **unused)
{
    (void)unused;
    enum { N = 3000, ROWS = 3 };
    float *x = malloc(ROWS * N * 4);
    for (int m = 0; m < STINT_TOPK_METHODS; m++)
        for (int sign = 0; sign < 2; sign++)
            for (int key = 0; key < 3; key++) {
                fill(STINT_TOPK_F32, NORMAL, ROWS * N, (unsigned char *)x);
                for (int i = 2 * N - 7; i < 2 * N + 50; i++)
                    x[i] = sign ? -NAN : NAN;
                stint_topk_desc d = {.rows = ROWS,
                                     .n = N,
                                     .k = 5,
                                     .key = (stint_topk_key)key,
                                     .sorted = sign,
                                     .threads = 1 + m % 3,
                                     .method = (stint_topk_method)m};
                answer a = ask(&d, (unsigned char *)x, NULL);
                assert_int_equal(a.status, STINT_E_INPUT);
                if (!strstr(stint_last_error(), "row 1, index 2993"))
                    fail_msg("%s", stint_last_error());
                answer_free(&a);
            }
    free(x);
}

/* The first of two in short rows, whose keys are looked at by other loops. */
static void nan_of_short_rows(void **unused)
{
    (void)unused;
    enum { MOST = 300 };
    float x[MOST];
    for (int64_t n = 3; n <= MOST; n += 1 + n / 9)
        for (int64_t k = 1; k <= n; k += 1 + k / 2) {
            const int64_t first = below(n - 1),
                          second = first + 1 + below(n - first - 1);
            char words[64];
            stint_topk_desc d = {.n = n,
                                 .k = k,
                                 .key = (stint_topk_key)(k % 3),
                                 .index_base = 1000,
                                 .sorted = n % 2};
            fill(STINT_TOPK_F32, NORMAL, n, (unsigned char *)x);
            x[first] = -NAN;
            x[second] = NAN;
            answer a = ask(&d, (unsigned char *)x, NULL);
            assert_int_equal(a.status, STINT_E_INPUT);
            snprintf(words, sizeof words, "row 0, index %" PRId64 ";", 1000 + first);
            if (!strstr(stint_last_error(), words))
                fail_msg("%s: %s", describe(&d, NORMAL), stint_last_error());
            answer_free(&a);
        }
}

/* ---- several ranks ---- */

typedef struct rank_list {
    int64_t count;
    float values[64];
    int64_t index[64];
} rank_list;

/* A message on the wire: count winners, values then indices. Gives its bytes. */
static size_t send_list(const rank_list *from, unsigned char *wire)
{
    const size_t values = (size_t)from->count * 4, index = (size_t)from->count * 8;
    memcpy(wire, from->values, values);
    memcpy(wire + values, from->index, index);
    return values + index;
}

static void receive_list(const unsigned char *wire, int64_t count, rank_list *to)
{
    to->count = count;
    memcpy(to->values, wire, (size_t)count * 4);
    memcpy(to->index, wire + (size_t)count * 4, (size_t)count * 8);
}

static void join_into(const stint_topk_desc *d, rank_list *into, const rank_list *other)
{
    const rank_list own = *into;
    const stint_topk_list a = {own.count, own.values, own.index};
    const stint_topk_list b = {other->count, other->values, other->index};
    assert_int_equal(
        stint_topk_merge(d, &a, &b, into->index, into->values, &into->count), STINT_OK);
}

/* Contiguous shares of one array, merged to rank 0 by a binomial tree. */
static void ranks_by_a_tree(void **unused)
{
    (void)unused;
    enum { N = 20011, K = 50 };
    float *x = malloc(N * 4);
    for (int order = 0; order < SPECIAL; order++) {
        fill(STINT_TOPK_F32, (enum order)order, N, (unsigned char *)x);
        stint_topk_desc d = {.key = (stint_topk_key)(order % 3),
                             .nan = STINT_TOPK_NAN_FIRST,
                             .sorted = true,
                             .n = N,
                             .k = K};
        answer whole = ask(&d, (unsigned char *)x, NULL);
        for (int ranks = 1; ranks <= 8; ranks++) {
            rank_list list[8];
            size_t wire_bytes = 0;
            for (int r = 0; r < ranks; r++) {
                const int64_t begin = (int64_t)N * r / ranks;
                stint_topk_desc own = d;
                own.n = (int64_t)N * (r + 1) / ranks - begin;
                own.index_base = begin;
                answer a = ask(&own, (unsigned char *)(x + begin), NULL);
                list[r].count = K;
                memcpy(list[r].values, a.values, K * 4);
                memcpy(list[r].index, a.index, K * 8);
                answer_free(&a);
            }
            for (int step = 1; step < ranks; step *= 2)
                for (int r = 0; r + step < ranks; r += 2 * step) {
                    unsigned char wire[64 * 12];
                    rank_list got;
                    wire_bytes += send_list(&list[r + step], wire);
                    receive_list(wire, K, &got);
                    join_into(&d, &list[r], &got);
                }
            assert_memory_equal(list[0].values, whole.values, K * 4);
            assert_memory_equal(list[0].index, whole.index, K * 8);
            assert_int_equal(wire_bytes, (size_t)(ranks - 1) *
                                             stint_topk_list_bytes(STINT_TOPK_F32, K));
            assert_int_equal(stint_topk_list_bytes(STINT_TOPK_F32, K), K * 12);
        }
        answer_free(&whole);
    }
    free(x);
}

static void merge_refuses(void **unused)
{
    (void)unused;
    const stint_topk_desc d = {.k = 2};
    const stint_topk_list none = {0}, bad = {.count = 1};
    int64_t index[2], count = 9;
    float values[2];
    assert_int_equal(stint_topk_merge(&d, &none, &bad, index, values, &count),
                     STINT_E_USAGE);
    assert_int_equal(count, 9);
    assert_int_equal(stint_topk_merge(&d, &none, &none, index, values, &count),
                     STINT_OK);
    assert_int_equal(count, 0);
}

/* The plan adds no memory by the row: delegates and candidates only. */
static void workspace_is_small(void **unused)
{
    (void)unused;
    size_t bytes;
    stint_topk_desc d = {.n = 1 << 26, .k = 1024};
    assert_int_equal(stint_topk_workspace_bytes(&d, &bytes), STINT_OK);
    assert_true(bytes < (size_t)(d.n * 4) / 50);
    d.k = d.n / 4;
    assert_int_equal(stint_topk_workspace_bytes(&d, &bytes), STINT_OK);
    assert_true(bytes < (size_t)(d.n * 4) / 4);
}

/* Seconds that a row takes by these costs. */
static double predicted_s(const stint_topk_costs *costs)
{
    const stint_topk_desc d = {.n = 1 << 20, .k = 1000, .costs = costs};
    stint_topk_method method;
    int exponent;
    double seconds = -1;
    assert_int_equal(stint_topk_explain(&d, &method, &exponent, &seconds), STINT_OK);
    return seconds;
}

/* Whatever the costs, and with a folder that cannot be written, the result is the same;
 * a second look reads what the first one measured. */
static void costs_only_steer(void **unused)
{
    (void)unused;
    char folder[] = "/tmp/stint_topk_XXXXXX", path[128], before[128] = "";
    stint_topk_costs first, second;
    assert_non_null(mkdtemp(folder));
    const char *old = getenv("XDG_CACHE_HOME");
    snprintf(before, sizeof before, "%s", old ? old : "");
    setenv("XDG_CACHE_HOME", folder, 1);
    stint_topk_costs_host(&first);
    stint_topk_costs_host(&second);
    assert_true(predicted_s(&first) > 0 && predicted_s(&first) < 10);
    assert_memory_equal(&first, &second, sizeof first);
    snprintf(path, sizeof path, "%s/stint/topk-costs.txt", folder);
    FILE *file = fopen(path, "w");
    fputs("stint top-k costs 9\nsome other machine\n", file);
    fclose(file);
    stint_topk_costs_host(&second); /* measured again, not believed */
    assert_true(predicted_s(&second) > 0);
    remove(path);
    snprintf(path, sizeof path, "%s/stint", folder);
    remove(path);
    file = fopen(path, "w"); /* a file where the folder should be */
    fclose(file);
    stint_topk_costs_host(&second);
    assert_true(predicted_s(&second) > 0);
    remove(path);
    remove(folder);
    if (before[0])
        setenv("XDG_CACHE_HOME", before, 1);
    else
        unsetenv("XDG_CACHE_HOME");
    unsigned char *x = malloc(20000 * 4);
    int64_t want[900];
    fill(STINT_TOPK_F32, NORMAL, 20000, x);
    for (int i = 0; i < 20; i++) {
        stint_topk_costs odd;
        double *cost = (double *)&odd;
        for (size_t c = 0; c < sizeof odd / sizeof *cost; c++)
            cost[c] = pow(10, (double)below(5) - 2);
        stint_topk_desc d = {.n = 20000, .k = 1 + below(900), .costs = &odd};
        oracle(&d, x, want);
        check_row(&d, x, NORMAL, want);
    }
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_apart),       cmocka_unit_test(sums_of_two),
        cmocka_unit_test(bad_input),        cmocka_unit_test(nan_of_short_rows),
        cmocka_unit_test(nan_is_named),     cmocka_unit_test(ranks_by_a_tree),
        cmocka_unit_test(merge_refuses),    cmocka_unit_test(workspace_is_small),
        cmocka_unit_test(costs_only_steer),
    };
    return cmocka_run_group_tests_name("kernel/topk_edges", tests, NULL, NULL);
}
