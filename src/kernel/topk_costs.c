/* What a machine's loops cost, measured once a host and kept in the user's cache. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "kernel/topk_key.h"

enum {
    FAR_COUNT = 8 << 20,  /* f32: 32 MiB, beyond the caches of a core */
    NEAR_COUNT = 1 << 16, /* 256 KiB, within them */
    LIST_COUNT = 1 << 14,
    PROBES = 4096,
    REPEATS = 5,
    LEAST_NS = 5000000 /* of repeats: a core may be slow for a millisecond or two */
};

typedef struct bench {
    sti_topk_view view;
    const sti_topk_ops *ops;
    uint32_t *x, *d;
    uint64_t *list, *spare;
    uint32_t counts[STI_TOPK_BINS];
    int64_t *index;
    uint32_t lo;     /* bound of a sift */
    int64_t n, size; /* elements of a pass, of a block */
    int exponent;
    volatile int64_t result; /* so that no work is left out */
} bench;

typedef void bench_fn(bench *b);

/* Best of a few runs, in nanoseconds of this thread: other work on the machine would
 * steer every later call. */
static double best_ns(bench_fn *fn, bench *b)
{
    int64_t best = INT64_MAX, all = 0;
    for (int i = 0; i < REPEATS || all < LEAST_NS; i++) {
        const int64_t start = sti_clock_thread_ns();
        fn(b);
        const int64_t ns = sti_clock_thread_ns() - start;
        best = ns < best ? ns : best;
        all += ns + 1;
    }
    return (double)sti_topk_max(best, 1);
}

static int64_t scrambled(int64_t i)
{
    return (int64_t)(((uint64_t)i * UINT64_C(0x9E3779B97F4A7C15)) >> 32);
}

static void run_delegates(bench *b)
{
    b->ops->delegates(&b->view, b->exponent, 0, b->n >> b->exponent, b->d);
}

static void run_delegates2(bench *b)
{
    b->ops->delegates2(&b->view, b->exponent, 0, b->n >> b->exponent, b->d,
                       b->d + NEAR_COUNT / 2);
}

static void run_sift(bench *b)
{
    int64_t none = 0;
    b->result = b->ops->collect(&b->view, 0, b->n, b->lo, UINT32_MAX, b->list, &none);
}

static void run_emit(bench *b)
{
    b->result = b->ops->emit(&b->view, 0, b->n, b->lo, 0, b->index, NULL);
}

static void run_select(bench *b)
{
    int64_t none = 0;
    sti_topk_run run = {.at = b->list};
    const sti_topk_cutter cutter = {b->spare, LIST_COUNT, b->counts};
    run.count = b->ops->collect(&b->view, 0, LIST_COUNT, 0, UINT32_MAX, b->list, &none);
    b->result = (int64_t)sti_topk_cut(&cutter, &run, 1, LIST_COUNT / 16);
}

/* About one winner a block, as blocks that are gone back to have. */
static void run_blocks(bench *b)
{
    int64_t none = 0;
    for (int64_t i = 0; i < PROBES; i++) {
        const int64_t at = scrambled(i) % (FAR_COUNT / b->size) * b->size;
        b->result += b->ops->collect(&b->view, at, at + b->size, b->lo, UINT32_MAX,
                                     b->list, &none);
    }
}

static void run_sample(bench *b)
{
    for (int64_t i = 0; i < PROBES; i++)
        b->d[i] = sti_topk_key_at(&b->view, scrambled(i) % FAR_COUNT);
    b->result = sti_topk_kth(b->d, PROBES, PROBES / 16, b->counts);
}

static void run_histogram(bench *b)
{
    b->ops->histogram(&b->view, 0, b->n, 0, UINT32_MAX, 21, b->counts);
}

/* Uniform in [-1, 1): what order and values are hardly matters to the loops. */
static void fill_far(bench *b)
{
    for (int64_t i = 0; i < FAR_COUNT; i++) {
        const float f = (float)(int32_t)scrambled(i) * 0x1p-31f;
        memcpy(&b->x[i], &f, sizeof f);
    }
}

static void measure_passes(bench *b, stint_topk_costs *c)
{
    const double near_lines = NEAR_COUNT / 16.0;
    b->n = FAR_COUNT;
    b->exponent = 12;
    c->read_far = best_ns(run_delegates, b) / (FAR_COUNT / 16.0);
    b->n = NEAR_COUNT;
    c->read_near = best_ns(run_delegates, b) / near_lines;
    b->exponent = 4;
    c->delegate = best_ns(run_delegates, b) / near_lines - c->read_near;
    const double small = best_ns(run_delegates2, b);
    b->exponent = 12;
    c->beta_near = best_ns(run_delegates2, b) / near_lines;
    c->beta = small / near_lines - c->beta_near;
    b->lo = sti_topk_key_of(0x3F7AE148, STI_TOPK_F32, &b->view.map); /* 0.98 */
    c->sift = best_ns(run_sift, b) / near_lines;
    b->lo = sti_topk_key_of(0x3F000000, STI_TOPK_F32, &b->view.map); /* 0.5 */
    c->emit = (best_ns(run_emit, b) - c->sift * near_lines) / (NEAR_COUNT / 4);
    c->histogram = best_ns(run_histogram, b) / NEAR_COUNT;
    c->select = best_ns(run_select, b) / LIST_COUNT;
}

static void measure_probes(bench *b, stint_topk_costs *c)
{
    b->size = 16;
    b->lo = sti_topk_key_of(0x3F600000, STI_TOPK_F32, &b->view.map); /* 1 - 2 / 16 */
    const double one = best_ns(run_blocks, b) / PROBES;
    b->size = 1024;
    b->lo = sti_topk_key_of(0x3F7F8000, STI_TOPK_F32, &b->view.map); /* 1 - 2 / 1024 */
    const double many = best_ns(run_blocks, b) / PROBES;
    c->line = (many - one) / 63;
    c->block = one - c->line;
    c->sample = best_ns(run_sample, b) / PROBES;
}

enum { COST_COUNT = 12 };

static double *cost_at(stint_topk_costs *c, int at, const char **name_out)
{
    static const char *const names[COST_COUNT] = {
        "read_near", "read_far", "delegate", "beta_near", "beta", "select",
        "block",     "line",     "sample",   "sift",      "emit", "histogram"};
    double *const fields[COST_COUNT] = {&c->read_near, &c->read_far, &c->delegate,
                                        &c->beta_near, &c->beta,     &c->select,
                                        &c->block,     &c->line,     &c->sample,
                                        &c->sift,      &c->emit,     &c->histogram};
    *name_out = names[at];
    return fields[at];
}

/* A machine under load may give differences below zero, and a pass that does more in
 * less time; costs are positive, and more work costs no less. */
static void make_sound(stint_topk_costs *c)
{
    c->beta_near = fmax(c->beta_near, c->read_near);
    const char *name;
    for (int i = 0; i < COST_COUNT; i++) {
        double *cost = cost_at(c, i, &name);
        if (!(*cost >= 0.05))
            *cost = 0.05;
    }
}

stint_status stint_topk_costs_measure(stint_topk_costs *costs_out)
{
    const stint_topk_desc desc = {.type = STINT_TOPK_F32};
    stint_topk_costs costs;
    stint_status status = STINT_E_MEMORY;
    bench *b = sti_alloc(sizeof *b, "topk.costs");
    if (!b)
        return STINT_E_MEMORY;
    b->x = sti_alloc_array(FAR_COUNT, sizeof *b->x, "topk.costs");
    b->d = sti_alloc_array(NEAR_COUNT, sizeof *b->d, "topk.costs");
    b->list = sti_alloc_array(NEAR_COUNT, sizeof *b->list, "topk.costs");
    b->spare = sti_alloc_array(LIST_COUNT, sizeof *b->spare, "topk.costs");
    b->index = sti_alloc_array(NEAR_COUNT, sizeof *b->index, "topk.costs");
    if (b->x && b->d && b->list && b->spare && b->index) {
        b->ops = sti_topk_ops_now(STI_TOPK_F32);
        b->view = (sti_topk_view){.form = STI_TOPK_F32,
                                  .map = sti_topk_map_make(&desc, STI_TOPK_F32),
                                  .x = (const unsigned char *)b->x,
                                  .n = FAR_COUNT};
        fill_far(b);
        measure_passes(b, &costs);
        measure_probes(b, &costs);
        make_sound(&costs);
        *costs_out = costs;
        status = STINT_OK;
    }
    sti_free(b->x);
    sti_free(b->d);
    sti_free(b->list);
    sti_free(b->spare);
    sti_free(b->index);
    sti_free(b);
    return status;
}

/* ---- the cache ---- */

#define COSTS_TITLE "stint top-k costs 7"

static void write_head(sti_text *text)
{
    sti_text_printf(text, COSTS_TITLE "\n%s, %s\n", sti_cpu_name(),
                    sti_isa_name(sti_isa_now()));
}

/* "read_near 1.25" a line, after a head that must be this machine's. */
static bool parse_costs(char *text, stint_topk_costs *costs)
{
    sti_text head = {0};
    write_head(&head);
    bool good = !head.failed && strncmp(text, head.data, head.length) == 0;
    char *rest = good ? text + head.length : text;
    for (int i = 0; good && i < COST_COUNT; i++) {
        const char *name;
        double *cost = cost_at(costs, i, &name);
        const size_t length = strlen(name);
        char *end = strchr(rest, '\n');
        good = end && strncmp(rest, name, length) == 0 && rest[length] == ' ';
        if (!good)
            break;
        *end = '\0';
        good = sti_parse_float(rest + length + 1, cost) == STINT_OK && *cost > 0 &&
               *cost < 1e6;
        rest = end + 1;
    }
    sti_text_fini(&head);
    return good;
}

static bool read_costs(const char *path, stint_topk_costs *costs)
{
    void *text;
    size_t bytes;
    if (!sti_path_is_file(path) ||
        sti_file_read(path, 65536, &text, &bytes) != STINT_OK)
        return false;
    const bool good = parse_costs(text, costs);
    sti_free(text);
    return good;
}

static void write_costs(const char *folder, const char *path, stint_topk_costs *costs)
{
    sti_text text = {0};
    write_head(&text);
    for (int i = 0; i < COST_COUNT; i++) {
        const char *name;
        const double *cost = cost_at(costs, i, &name);
        sti_text_printf(&text, "%s %s\n", name, sti_float_text(*cost));
    }
    /* A folder that cannot be written is no error: the costs are measured again. */
    if (!text.failed && sti_dir_create(folder) == STINT_OK)
        (void)sti_file_write(path, text.data, text.length);
    sti_text_fini(&text);
}

void stint_topk_costs_host(stint_topk_costs *costs_out)
{
    char folder[2048], path[2100];
    const bool cached = sti_cache_path("", folder, sizeof folder) &&
                        sti_cache_path("topk-costs.txt", path, sizeof path);
    if (cached && read_costs(path, costs_out))
        return;
    if (stint_topk_costs_measure(costs_out) != STINT_OK)
        stint_topk_costs_default(costs_out);
    else if (cached)
        write_costs(folder, path, costs_out);
}
