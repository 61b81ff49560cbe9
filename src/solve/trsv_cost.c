/* Costs of this host, measured and stored. */
#include "solve/trsv_cost.h"

#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/units.h"

#define TITLE "stint trsv 5\n"

enum { ROWS = 2048, NEAR = 256, LONG = 16, REPEATS = 7 };
/* Doubles from one row's b to the next one's where rows are out of order: another page
 * and another line of the cache. */
enum { APART = 520 };
#define FAR_BYTES ((size_t)64 << 20) /* beyond any cache, the largest block here */

/* ---- measuring ---- */

typedef struct bench {
    int32_t *start, *column, *place;
    double *value, *diagonal, *b, *x;
    sti_sparse_triangle t;
} bench;

static void bench_fini(bench *b)
{
    sti_free(b->start);
    sti_free(b->column);
    sti_free(b->place);
    sti_free(b->value);
    sti_free(b->diagonal);
    sti_free(b->b);
    sti_free(b->x);
}

static bool bench_init(bench *b)
{
    const int64_t rows = NEAR + ROWS;
    b->start = sti_alloc_array(rows + 1, sizeof *b->start, "trsv.bench");
    b->column = sti_alloc_array(ROWS * LONG, sizeof *b->column, "trsv.bench");
    b->place = sti_alloc_array(rows, sizeof *b->place, "trsv.bench");
    b->value = sti_alloc_array(ROWS * LONG, sizeof *b->value, "trsv.bench");
    b->diagonal = sti_alloc_array(rows, sizeof *b->diagonal, "trsv.bench");
    b->b = sti_alloc_array(rows, sizeof *b->b, "trsv.bench");
    b->x = sti_alloc_array(2 * rows, sizeof *b->x, "trsv.bench");
    if (!b->start || !b->column || !b->place || !b->value || !b->diagonal || !b->b ||
        !b->x)
        return false;
    for (int64_t i = 0; i < rows; i++) {
        b->place[i] = (int32_t)i;
        b->diagonal[i] = 1.5;
        b->b[i] = b->x[i] = 1;
    }
    for (int64_t e = 0; e < ROWS * LONG; e++)
        b->value[e] = 0.01;
    b->t = (sti_sparse_triangle){b->start, b->column, b->value, b->diagonal, b->place};
    return true;
}

/* Rows of one length that read rows from the first ones, or each the one before. */
static void shape(bench *b, int length, bool chained)
{
    for (int64_t i = 0; i < ROWS; i++)
        for (int k = 0; k < length; k++) {
            uint32_t w[4];
            sti_random4(1, STI_STREAM_MATRIX, (uint64_t)i, (uint64_t)k, w);
            b->column[i * length + k] =
                chained ? (int32_t)(NEAR + i - 1) : (int32_t)sti_below(w[0], NEAR);
        }
    for (int64_t i = 0; i <= ROWS; i++)
        b->start[NEAR + i] = (int32_t)(i * length);
}

/* Seconds a row: the least of some runs. */
static double time_rows(bench *b, int length, bool chained, bool grouped)
{
    const sti_sparse_kernels *k = sti_sparse_f64();
    double best = INFINITY;
    shape(b, length, chained);
    for (int run = 0; run < REPEATS; run++) {
        const int64_t start = sti_clock_ns();
        (grouped ? k->groups : k->rows)(&b->t, NEAR, NEAR + ROWS, b->b, b->x,
                                        b->x + NEAR + ROWS);
        best = fmin(best, sti_seconds_since(start) / ROWS);
    }
    return fmax(best, 1e-11);
}

/* Seconds more that a row takes where b and x are read and written far apart. */
static double time_scattered(bench *b)
{
    const sti_sparse_kernels *k = sti_sparse_f64();
    const int64_t count = (int64_t)(NEAR + ROWS) * APART;
    double *from = sti_alloc_array(count, sizeof *from, "trsv.bench");
    double *to = sti_alloc_array(count, sizeof *to, "trsv.bench");
    const double together = time_rows(b, 4, false, true);
    double best = INFINITY;
    for (int64_t i = 0; i < NEAR + ROWS; i++)
        b->place[i] = (int32_t)(i * APART);
    for (int run = 0; from && to && run < REPEATS; run++) {
        const int64_t start = sti_clock_ns();
        k->groups(&b->t, NEAR, NEAR + ROWS, from, b->x, to);
        best = fmin(best, sti_seconds_since(start) / ROWS);
    }
    for (int64_t i = 0; i < NEAR + ROWS; i++)
        b->place[i] = (int32_t)i;
    sti_free(from);
    sti_free(to);
    return isfinite(best) ? fmax(best - together, 1e-11) : 5e-9;
}

/* One row of very many entries: each waits for the last. */
static double time_chain(bench *b)
{
    const sti_sparse_kernels *k = sti_sparse_f64();
    double best = INFINITY;
    shape(b, LONG, false);
    b->start[NEAR] = 0;
    b->start[NEAR + 1] = ROWS * LONG;
    for (int run = 0; run < REPEATS; run++) {
        const int64_t start = sti_clock_ns();
        k->rows(&b->t, NEAR, NEAR + 1, b->b, b->x, b->x + NEAR + ROWS);
        best = fmin(best, sti_seconds_since(start) / (ROWS * LONG));
    }
    return fmax(best, 1e-11);
}

static double time_panel(bench *b)
{
    const sti_sparse_kernels *k = sti_sparse_f64();
    const sti_sparse_panel panel = {.first = 0, .width = 8, .count = ROWS};
    double best = INFINITY;
    for (int32_t i = 0; i < ROWS; i++)
        b->column[i] = 8 + i;
    for (int run = 0; run < REPEATS; run++) {
        const int64_t start = sti_clock_ns();
        k->panels(1, &panel, b->column, b->value, NULL, b->x);
        best = fmin(best, sti_seconds_since(start) / (8 * ROWS));
    }
    return fmax(best, 1e-11);
}

static double time_push(bench *b)
{
    const sti_sparse_kernels *k = sti_sparse_f64();
    int64_t start64[ROWS / 8 + NEAR + 1] = {0};
    int32_t count[ROWS / 8 + NEAR] = {0};
    double best = INFINITY;
    shape(b, 8, false);
    for (int64_t i = 0; i < ROWS / 8; i++) {
        count[NEAR + i] = 8;
        start64[NEAR + i + 1] = (i + 1) * 8;
    }
    const sti_sparse_natural t = {.n = NEAR + ROWS / 8,
                                  .start = start64,
                                  .column = b->column,
                                  .count = count,
                                  .value = b->value,
                                  .unit = true};
    for (int run = 0; run < REPEATS; run++) {
        const int64_t start = sti_clock_ns();
        k->push(&t, b->x, 1);
        best = fmin(best, sti_seconds_since(start) / ROWS);
    }
    return fmax(best, 1e-11);
}

/* ---- two threads ---- */

enum { ROUNDS = 200 };
enum { NOBODY, ONE, BOTH, GIVEN_UP };

typedef struct rally {
    sti_trsv_progress side[2];
    atomic_int met;
    double best;
} rally;

/* The first side waits for the other but for a while: a machine may be too busy. */
static bool meet(rally *r)
{
    int alone = NOBODY;
    if (!atomic_compare_exchange_strong(&r->met, &alone, ONE))
        return alone == ONE && atomic_compare_exchange_strong(&r->met, &alone, BOTH);
    for (int spin = 0; spin < 1000000; spin++)
        if (atomic_load(&r->met) == BOTH)
            return true;
    alone = ONE;
    return !atomic_compare_exchange_strong(&r->met, &alone, GIVEN_UP);
}

/* Each side answers the other. */
static void rally_piece(void *arg, int64_t side, int worker)
{
    rally *r = arg;
    (void)worker;
    if (!meet(r))
        return;
    for (int run = 0; run < REPEATS; run++) {
        const int64_t start = sti_clock_ns();
        for (int i = 1; i <= ROUNDS; i++) {
            const long long mine = 2 * (run * ROUNDS + i) - (side == 0);
            if (side == 1)
                while (atomic_load_explicit(&r->side[0].done, memory_order_acquire) <
                       mine - 1)
                    ;
            atomic_store_explicit(&r->side[side].done, mine, memory_order_release);
            if (side == 0)
                while (atomic_load_explicit(&r->side[1].done, memory_order_acquire) <
                       mine + 1)
                    ;
        }
        if (side == 0)
            r->best = fmin(r->best, sti_seconds_since(start) / (2 * ROUNDS));
    }
}

/* 0: there is one CPU. *busy_out: the threads did not meet, and this is a guess. */
static double time_handoff(bool *busy_out)
{
    rally r = {.best = INFINITY};
    uint8_t allowed[STI_CPUS_MOST / 8];
    int cpus = 0;
    sti_cpus_allowed(allowed);
    for (int i = 0; i < STI_CPUS_MOST; i++)
        cpus += allowed[i / 8] >> i % 8 & 1;
    if (cpus < 2)
        return 0;
    sti_team_take(&(sti_team){2}, 2, rally_piece, &r);
    *busy_out = !isfinite(r.best);
    return *busy_out ? 1.5e-7 : r.best;
}

/* ---- memory ---- */

static double time_reading(size_t bytes)
{
    const size_t count = bytes / sizeof(double);
    double *x = sti_alloc(bytes, "trsv.bench");
    double best = INFINITY;
    volatile double kept = 0;
    if (!x)
        return 1e10;
    for (size_t i = 0; i < count; i++)
        x[i] = 1;
    for (int run = 0; run < 3; run++) {
        const int64_t start = sti_clock_ns();
        double sum[8] = {0};
        for (size_t i = 0; i < count; i += 8)
            for (int k = 0; k < 8; k++)
                sum[k] += x[i + k];
        kept = kept + sum[0] + sum[7];
        best = fmin(best, sti_seconds_since(start));
    }
    sti_free(x);
    return (double)bytes / best;
}

/* From which size on reading is nearer to the far rate: what a virtual machine may use
 * of a shared cache is less than the size that the system tells. */
static double cache_bytes(double near, double far)
{
    size_t bytes = (size_t)8 << 20;
    while (bytes < (size_t)16 << 20 && time_reading(bytes) > sqrt(near * far))
        bytes *= 2;
    return (double)bytes;
}

/* False: a figure is a guess, not to be kept. */
static bool measure(sti_trsv_costs *c)
{
    bool busy = false;
    bench b = {0};
    if (bench_init(&b)) {
        const double two = time_rows(&b, 2, false, false);
        const double many = time_rows(&b, LONG, false, false);
        const double two_grouped = time_rows(&b, 2, false, true);
        const double many_grouped = time_rows(&b, LONG, false, true);
        c->entry_s = fmax((many - two) / (LONG - 2), 1e-11);
        c->row_s = fmax(two - 2 * c->entry_s, 1e-11);
        c->group_entry_s = fmax((many_grouped - two_grouped) / (LONG - 2), 1e-11);
        c->group_row_s = fmax(two_grouped - 2 * c->group_entry_s, 1e-11);
        c->scatter_s = time_scattered(&b);
        c->chain_s = time_chain(&b);
        c->link_s = fmax(time_rows(&b, 1, true, false) - c->chain_s, 1e-11);
        c->panel_s = time_panel(&b);
        c->push_s = time_push(&b);
        c->handoff_s = time_handoff(&busy);
        c->near_bytes_per_s = time_reading((size_t)4 << 20);
        c->far_bytes_per_s = time_reading(FAR_BYTES);
        c->far_bytes = cache_bytes(c->near_bytes_per_s, c->far_bytes_per_s);
    }
    bench_fini(&b);
    return !busy && c->far_bytes > 0;
}

/* ---- storing ---- */

typedef struct figure {
    const char *name;
    size_t offset;
} figure;

#define FIGURE(field)                           \
    {                                           \
#field, offsetof(sti_trsv_costs, field) \
    }

static const figure figures[] = {FIGURE(entry_s),          FIGURE(row_s),
                                 FIGURE(group_entry_s),    FIGURE(group_row_s),
                                 FIGURE(chain_s),          FIGURE(link_s),
                                 FIGURE(scatter_s),        FIGURE(panel_s),
                                 FIGURE(push_s),           FIGURE(handoff_s),
                                 FIGURE(near_bytes_per_s), FIGURE(far_bytes_per_s),
                                 FIGURE(far_bytes)};

enum { FIGURES = sizeof figures / sizeof *figures };

static double *figure_of(sti_trsv_costs *costs, int i)
{
    return (double *)(void *)((char *)costs + figures[i].offset);
}

static void write_costs(sti_trsv_costs *costs, sti_text *out)
{
    sti_text_printf(out, TITLE "%s, %s\n", sti_cpu_name(), sti_isa_name(sti_isa_now()));
    for (int i = 0; i < FIGURES; i++)
        sti_text_printf(out, "%s %.6g\n", figures[i].name, *figure_of(costs, i));
}

/* Text that write_costs made, on this machine, with sane figures. */
static bool parse(const char *text, sti_trsv_costs *costs)
{
    sti_text head = {0};
    sti_text_printf(&head, TITLE "%s, %s\n", sti_cpu_name(),
                    sti_isa_name(sti_isa_now()));
    bool good = !head.failed && strncmp(text, head.data, head.length) == 0;
    text += good ? head.length : 0;
    for (int i = 0; good && i < FIGURES; i++) {
        const size_t length = strlen(figures[i].name);
        double value = 0;
        int used = 0;
        good =
            strncmp(text, figures[i].name, length) == 0 &&
            sscanf(text + length, " %lf%n", &value, &used) == 1 && value >= 0 &&
            value < 1e18 &&
            (value > 0 || figures[i].offset == offsetof(sti_trsv_costs, handoff_s)) &&
            text[length + used] == '\n';
        *figure_of(costs, i) = value;
        text += length + used + 1;
    }
    sti_text_fini(&head);
    return good;
}

static bool read_stored(const char *path, sti_trsv_costs *costs)
{
    void *text;
    size_t bytes;
    if (!sti_path_is_file(path) ||
        sti_file_read(path, 65536, &text, &bytes) != STINT_OK)
        return false;
    const bool good = parse(text, costs);
    if (!good)
        sti_log(STINT_LOG_WARNING, "%s is ignored and written anew", path);
    sti_free(text);
    return good;
}

/* A folder that cannot be written is no error: the host is measured again. */
static void store(char *path, sti_trsv_costs *costs)
{
    sti_text text = {0};
    char *slash = strrchr(path, '/');
    write_costs(costs, &text);
    *slash = '\0';
    stint_status st = text.failed ? STINT_E_MEMORY : sti_dir_create(path);
    *slash = '/';
    if (st == STINT_OK)
        st = sti_file_write(path, text.data, text.length);
    if (st != STINT_OK)
        sti_log(STINT_LOG_INFO, "%s is not written: %s", path, stint_last_error());
    sti_text_fini(&text);
}

static sti_trsv_costs host[STI_ISA_COUNT];
static bool known[STI_ISA_COUNT];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* About a server's core of the 2020s. */
static const sti_trsv_costs typical = {.entry_s = 4e-10,
                                       .row_s = 6e-10,
                                       .group_entry_s = 3e-10,
                                       .group_row_s = 1e-9,
                                       .chain_s = 1.1e-9,
                                       .scatter_s = 5e-9,
                                       .link_s = 6e-9,
                                       .panel_s = 1.1e-10,
                                       .push_s = 1.2e-9,
                                       .handoff_s = 1.5e-7,
                                       .near_bytes_per_s = 7e10,
                                       .far_bytes_per_s = 2e10,
                                       .far_bytes = 1.6e7};

/* What is stored of this host, if that has not been read. False: it is to be measured.
 */
static bool find_known(int isa, char *path, size_t path_bytes, bool *named_out)
{
    char name[64];
    (void)snprintf(name, sizeof name, "trsv-%s.txt", sti_isa_name(sti_isa_now()));
    *named_out = sti_cache_path(name, path, path_bytes);
    if (!known[isa] && *named_out)
        known[isa] = read_stored(path, &host[isa]);
    return known[isa];
}

size_t sti_trsv_costs_bytes(void)
{
    char path[2048];
    bool named;
    pthread_mutex_lock(&mutex);
    const bool found = find_known((int)sti_isa_now(), path, sizeof path, &named);
    pthread_mutex_unlock(&mutex);
    return found ? 0 : FAR_BYTES + ((size_t)1 << 20);
}

const sti_trsv_costs *sti_trsv_costs_host(bool memory_is_short)
{
    const int isa = (int)sti_isa_now();
    char path[2048];
    bool named;
    pthread_mutex_lock(&mutex);
    if (!find_known(isa, path, sizeof path, &named) && !memory_is_short) {
        const bool sure = measure(&host[isa]);
        if (named && sure)
            store(path, &host[isa]);
        known[isa] = true;
    }
    const sti_trsv_costs *found = known[isa] ? &host[isa] : &typical;
    pthread_mutex_unlock(&mutex);
    return found;
}
