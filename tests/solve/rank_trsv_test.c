/* Triangular solves by ranks that are threads, held against the serial loop, bit by
 * bit; with memory that they share, and by messages. */
#include "solve/rank_trsv.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/rng.h"

/* Ranks that are threads wait for each other by turns: fewer rows where each access is
 * looked at. */
#if defined(__SANITIZE_THREAD__)
enum { N = 256, RANKS = 2 };
#else
enum { N = 1200, RANKS = 4 };
#endif
enum { MOST = 8, COLUMNS = 11, WIDTH = N / 4, GRID = 0 };

static int32_t column[N][MOST], count[N], level[N];
static int32_t first[N], last[N]; /* columns of a row */
static double value[N][MOST], diagonal[N];
static double b[N * COLUMNS], wanted[N * COLUMNS];
static float b32[N * COLUMNS], wanted32[N * COLUMNS];
static int64_t levels;
static uint64_t drawn;

static uint32_t draw(uint32_t below)
{
    uint32_t w[4];
    sti_random4(3, STI_STREAM_TEST, drawn++, 0, w);
    return sti_below(w[0], below);
}

/* Does a row read the one that is so far back? */
static bool reads(uint32_t reach, int32_t p, int32_t back)
{
    if (reach == GRID)
        return back == WIDTH || (back == 1 && p % WIDTH > 0);
    return draw(reach < 16 ? 2 : reach / 6) == 0;
}

/* A triangle; reach: how far back rows look, or a grid's. */
static void make_matrix(uint32_t reach, bool upper)
{
    levels = 0;
    for (int32_t p = 0; p < N; p++) {
        const int32_t i = upper ? N - 1 - p : p;
        int32_t deep = -1;
        count[i] = 0;
        const int32_t far = reach == GRID ? WIDTH : (int32_t)reach;
        for (int32_t c = p > far ? p - far : 0; c < p && count[i] < MOST; c++)
            if (reads(reach, p, p - c)) {
                const int32_t j = upper ? N - 1 - c : c;
                column[i][count[i]] = j;
                value[i][count[i]++] = (double)draw(1000) / 1000 - 0.5;
                deep = level[j] > deep ? level[j] : deep;
            }
        first[i] = count[i] > 0 ? column[i][0] : -1;
        last[i] = count[i] > 0 ? column[i][count[i] - 1] : -1;
        diagonal[i] = 1 + (double)draw(1000) / 500;
        level[i] = deep + 1;
        levels = level[i] + 1 > levels ? level[i] + 1 : levels;
    }
}

/* Entries stand in the order of substitution already. */
static void solve_serially(bool upper)
{
    for (int64_t k = 0; k < N * COLUMNS; k++) {
        b[k] = (double)draw(1000) / 500 - 1;
        b32[k] = (float)b[k];
    }
    for (int32_t p = 0; p < N; p++)
        for (int64_t c = 0; c < COLUMNS; c++) {
            const int32_t i = upper ? N - 1 - p : p;
            double sum = b[i * COLUMNS + c];
            float sum32 = b32[i * COLUMNS + c];
            for (int32_t k = 0; k < count[i]; k++) {
                const int64_t j = column[i][k] * (int64_t)COLUMNS + c;
                sum = fma(-value[i][k], wanted[j], sum);
                sum32 = fmaf(-(float)value[i][k], wanted32[j], sum32);
            }
            wanted[i * COLUMNS + c] = sum / diagonal[i];
            wanted32[i * COLUMNS + c] = sum32 / (float)diagonal[i];
        }
}

/* The rows that a rank asks for, columns ascending, the diagonal among them. */
static stint_status give_rows(void *user, const int32_t *local, const int32_t *names,
                              int64_t own, sti_csr *out)
{
    const bool upper = *(const bool *)user;
    int64_t at = 0;
    *out = (sti_csr){.rows = own, .columns = N};
    out->start = sti_alloc_array(own + 1, sizeof *out->start, "test");
    out->column = sti_alloc_array(own * (MOST + 1), sizeof *out->column, "test");
    out->value = sti_alloc_array(own * (MOST + 1), sizeof *out->value, "test");
    for (int64_t k = 0; k < own; k++) {
        const int32_t i = names[k];
        if (local[i] != k)
            return STINT_E_BUG;
        if (upper) {
            out->column[at] = i;
            out->value[at++] = diagonal[i];
        }
        for (int32_t e = 0; e < count[i]; e++) {
            const int32_t from = upper ? count[i] - 1 - e : e;
            out->column[at] = column[i][from];
            out->value[at++] = value[i][from];
        }
        if (!upper) {
            out->column[at] = i;
            out->value[at++] = diagonal[i];
        }
        out->start[k + 1] = at;
    }
    return STINT_OK;
}

typedef struct seat {
    sti_rank_trsv_desc d;
    int64_t messages, bytes;
    sti_rank_trsv_info info;
    int wrong;
} seat;

static int compare(const seat *s, int64_t columns, const double *x64, const float *x32)
{
    int wrong = 0;
    for (int64_t i = 0; i < N; i++)
        for (int64_t c = 0; c < columns; c++)
            wrong +=
                s->d.single
                    ? memcmp(&x32[i * columns + c], &wanted32[i * COLUMNS + c], 4) != 0
                    : memcmp(&x64[i * columns + c], &wanted[i * COLUMNS + c], 8) != 0;
    return wrong;
}

static void run_rank(seat *s, sti_rank_trsv *plan)
{
    const int64_t columns = s->d.columns;
    const size_t real = s->d.single ? 4 : 8;
    double *x = calloc(N * COLUMNS, sizeof *x),
           *side = calloc(N * COLUMNS, sizeof *side);
    for (int64_t i = 0; i < N; i++)
        for (int64_t c = 0; c < columns; c++)
            if (s->d.single)
                ((float *)side)[i * columns + c] = b32[i * COLUMNS + c];
            else
                side[i * columns + c] = b[i * COLUMNS + c];
    for (int run = 0; run < 4; run++) {
        const bool spread = run % 2 == 1;
        const sti_comm_counts before = sti_comm_count(s->d.comm);
        memset(x, 0, sizeof *x * N * COLUMNS);
        s->wrong += sti_rank_trsv_solve(plan, columns, side, x, spread) != STINT_OK;
        const sti_comm_counts after = sti_comm_count(s->d.comm);
        if (!spread) {
            s->messages += after.messages_sent - before.messages_sent;
            s->bytes += after.bytes_sent - before.bytes_sent;
            s->wrong +=
                sti_rank_trsv_gather(plan, real * (size_t)columns, x) != STINT_OK;
        }
        s->wrong += compare(s, columns, x, (const float *)(const void *)x);
    }
    free(x);
    free(side);
}

static void *sit(void *arg)
{
    seat *s = arg;
    sti_rank_trsv *plan = NULL;
    if (sti_rank_trsv_create(&s->d, &plan) != STINT_OK) {
        s->wrong = 1;
        return NULL;
    }
    s->info = *sti_rank_trsv_info_of(plan);
    run_rank(s, plan);
    s->wrong += sti_comm_barrier(s->d.comm) != STINT_OK;
    sti_rank_trsv_destroy(plan);
    return NULL;
}

static void check(int ranks, sti_rank_trsv_desc d)
{
    sti_comm *comms[RANKS];
    pthread_t threads[RANKS];
    static seat seats[RANKS];
    int64_t messages = 0, bytes = 0;
    d.n = N;
    d.level = level;
    d.levels = levels;
    d.count = count;
    d.reach = (sti_stretch_reach){first, last};
    d.rows = give_rows;
    d.rows_user = &d.upper;
    assert_int_equal(sti_comm_create_local(ranks, comms), STINT_OK);
    for (int r = 0; r < ranks; r++) {
        seats[r] = (seat){.d = d};
        seats[r].d.comm = comms[r];
        assert_int_equal(pthread_create(&threads[r], NULL, sit, &seats[r]), 0);
    }
    for (int r = 0; r < ranks; r++)
        pthread_join(threads[r], NULL);
    for (int r = 0; r < ranks; r++) {
        assert_int_equal(seats[r].wrong, 0);
        messages += seats[r].messages;
        bytes += seats[r].bytes;
        sti_comm_destroy(comms[r]);
    }
    /* Two solves were counted. */
    assert_int_equal(messages, 2 * seats[0].info.messages);
    assert_int_equal(bytes, 2 * seats[0].info.bytes);
    assert_true(d.share ? messages == 0 : ranks == 1 || messages > 0);
    /* No message an entry, and a share of the rows each. */
    assert_true(messages <=
                3 * (d.columns + 7) / 8 * seats[0].info.tasks * (ranks - 1));
    for (int r = 0; d.tasks >= 8 && r < ranks; r++)
        assert_true(seats[r].info.own_rows < N / ranks + N / 4);
}

static void ranks_have_the_bits_of_the_serial_loop(void **state)
{
    static const uint32_t reaches[] = {3, 200, GRID};
    (void)state;
    for (int k = 0; k < 3; k++)
        for (int upper = 0; upper < 2; upper++) {
            make_matrix(reaches[k], upper);
            solve_serially(upper);
            for (int ranks = 2; ranks <= RANKS; ranks += 2)
                for (int form = 0; form < 4; form++)
                    check(ranks,
                          (sti_rank_trsv_desc){
                              .upper = upper,
                              .share = form % 2 == 0,
                              .single = form == 2,
                              .threads = 1, /* ranks are threads of one process */
                              .tasks = form == 3 ? 0 : 8 * (form + 1),
                              .columns = form == 1 ? COLUMNS : 1});
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_have_the_bits_of_the_serial_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
