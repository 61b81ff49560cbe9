/* What a machine's loops cost, measured once a host and kept in the user's cache. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "kernel/topk/topk_key.h"

enum {
    FAR_COUNT = 8 << 20,  /* f32: 32 MiB, beyond the caches of a core */
    NEAR_COUNT = 1 << 16, /* 256 KiB, within them */
    LIST_COUNT = 1 << 14,
    PROBES = 4096,
    ROUNDS = 40
};

typedef struct bench {
    sti_topk_view view;
    const sti_topk_ops *ops;
    uint32_t *x, *d;
    uint64_t *list, *spare;
    uint32_t counts[STI_TOPK_BINS];
    int64_t *index;
    uint32_t lo;     /* bound of a scan */
    int64_t n, size; /* elements of a pass, of a block */
    int exponent;
    volatile int64_t result; /* so that no work is left out */
} bench;

typedef void bench_fn(bench *b);

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
                       (uint16_t *)(void *)(b->d + NEAR_COUNT / 2), NULL);
}

static void run_scan(bench *b)
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
    for (int64_t i = 0; i < PROBES; i++) {
        const int64_t at = scrambled(i) % (FAR_COUNT / b->size) * b->size;
        b->result += b->ops->rare(&b->view, at, at + b->size, b->lo, b->list);
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

/* What is timed, and on what. */
typedef enum probe {
    READ_FAR,
    READ_NEAR,
    SMALL_BLOCKS,
    SMALL_TWO,
    LARGE_TWO,
    SCAN,
    EMIT,
    HISTOGRAM,
    SELECT,
    BACK_ONE,
    BACK_MANY,
    SAMPLE,
    PROBE_COUNT
} probe;

static const struct {
    bench_fn *run;
    int64_t n, size;
    int exponent;
    uint32_t lo; /* bits of the bound */
} probes[PROBE_COUNT] = {
    [READ_FAR] = {run_delegates, FAR_COUNT, 0, 12, 0},
    [READ_NEAR] = {run_delegates, NEAR_COUNT, 0, 12, 0},
    [SMALL_BLOCKS] = {run_delegates, NEAR_COUNT, 0, 4, 0},
    [SMALL_TWO] = {run_delegates2, NEAR_COUNT, 0, 4, 0},
    [LARGE_TWO] = {run_delegates2, NEAR_COUNT, 0, 12, 0},
    [SCAN] = {run_scan, NEAR_COUNT, 0, 0, 0x3F7AE148}, /* 0.98 */
    [EMIT] = {run_emit, NEAR_COUNT, 0, 0, 0x3F000000}, /* 0.5 */
    [HISTOGRAM] = {run_histogram, NEAR_COUNT, 0, 0, 0},
    [SELECT] = {run_select, 0, 0, 0, 0},
    [BACK_ONE] = {run_blocks, 0, 16, 0, 0x3F600000},    /* 1 - 2 / 16 */
    [BACK_MANY] = {run_blocks, 0, 1024, 0, 0x3F7F8000}, /* 1 - 2 / 1024 */
    [SAMPLE] = {run_sample, 0, 0, 0, 0},
};

static double time_probe(bench *b, probe p)
{
    b->n = probes[p].n;
    b->size = probes[p].size;
    b->exponent = probes[p].exponent;
    b->lo = sti_topk_key_of(probes[p].lo, STI_TOPK_F32, &b->view.map);
    const int64_t start = sti_clock_thread_ns();
    probes[p].run(b);
    return (double)sti_topk_max(sti_clock_thread_ns() - start, 1);
}

/* Least times of all in nanoseconds of this thread, taken in turn over a third of a
 * second: a core or a memory that is slow for some time is so for all of them, and what
 * steers is how they compare. What fits the nearer caches is brought there first. */
static void time_probes(bench *b, double best_ns[PROBE_COUNT])
{
    for (int p = 0; p < PROBE_COUNT; p++)
        best_ns[p] = HUGE_VAL;
    for (int round = 0; round < ROUNDS; round++)
        for (int p = 0; p < PROBE_COUNT; p++) {
            const bool near = probes[p].n == NEAR_COUNT;
            for (int again = 0; again <= near; again++)
                best_ns[p] = fmin(best_ns[p], time_probe(b, (probe)p));
        }
}

static void measure(bench *b, sti_topk_costs *c)
{
    const double near_lines = NEAR_COUNT / 16.0;
    double ns[PROBE_COUNT];
    time_probes(b, ns);
    c->read_far = ns[READ_FAR] / (FAR_COUNT / 16.0);
    c->read_near = ns[READ_NEAR] / near_lines;
    c->delegate = ns[SMALL_BLOCKS] / near_lines - c->read_near;
    c->delegate2_near = ns[LARGE_TWO] / near_lines;
    c->delegate2 = ns[SMALL_TWO] / near_lines - c->delegate2_near;
    c->scan = ns[SCAN] / near_lines;
    c->emit = (ns[EMIT] - ns[SCAN]) / (NEAR_COUNT / 4);
    c->histogram = ns[HISTOGRAM] / NEAR_COUNT;
    c->select = ns[SELECT] / LIST_COUNT;
    const double one = ns[BACK_ONE] / PROBES;
    c->line = (ns[BACK_MANY] / PROBES - one) / 63;
    c->block = one - c->line;
    c->sample = ns[SAMPLE] / PROBES;
}

enum { COST_COUNT = 12 };

static double *cost_at(sti_topk_costs *c, int at, const char **name_out)
{
    static const char *const names[COST_COUNT] = {
        "read_near", "read_far", "delegate", "delegate2_near",
        "delegate2", "select",   "block",    "line",
        "sample",    "scan",     "emit",     "histogram"};
    double *const fields[COST_COUNT] = {
        &c->read_near, &c->read_far, &c->delegate, &c->delegate2_near,
        &c->delegate2, &c->select,   &c->block,    &c->line,
        &c->sample,    &c->scan,     &c->emit,     &c->histogram};
    *name_out = names[at];
    return fields[at];
}

/* A machine under load may give differences below zero, and a pass that does more in
 * less time; costs are positive, and more work costs no less. */
static void make_sound(sti_topk_costs *c)
{
    c->delegate2_near = fmax(c->delegate2_near, c->read_near);
    const char *name;
    for (int i = 0; i < COST_COUNT; i++) {
        double *cost = cost_at(c, i, &name);
        if (!(*cost >= 0.05))
            *cost = 0.05;
    }
}

static_assert(sizeof(sti_topk_costs) <= sizeof(stint_topk_costs), "costs fit");

static void give(const sti_topk_costs *costs, stint_topk_costs *costs_out)
{
    *costs_out = (stint_topk_costs){{0}};
    memcpy(costs_out, costs, sizeof *costs);
}

void stint_topk_costs_default(stint_topk_costs *costs_out)
{
    sti_topk_costs costs;
    sti_topk_costs_builtin(&costs);
    give(&costs, costs_out);
}

stint_status stint_topk_costs_measure(stint_topk_costs *costs_out)
{
    const stint_topk_desc desc = {.type = STINT_TOPK_F32};
    sti_topk_costs costs;
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
        measure(b, &costs);
        make_sound(&costs);
        give(&costs, costs_out);
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

#define COSTS_TITLE "stint top-k costs 9"

static void write_head(sti_text *text)
{
    sti_text_printf(text, COSTS_TITLE "\n%s, %s\n", sti_cpu_name(),
                    sti_isa_name(sti_isa_now()));
}

/* "read_near 1.25" a line, after a head that must be this machine's. */
static bool parse_costs(char *text, sti_topk_costs *costs)
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

static bool read_costs(const char *path, sti_topk_costs *costs)
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

static void write_costs(const char *folder, const char *path, sti_topk_costs *costs)
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
    sti_topk_costs costs;
    const bool cached = sti_cache_path("", folder, sizeof folder) &&
                        sti_cache_path("topk-costs.txt", path, sizeof path);
    if (cached && read_costs(path, &costs)) {
        give(&costs, costs_out);
        return;
    }
    if (stint_topk_costs_measure(costs_out) != STINT_OK) {
        stint_topk_costs_default(costs_out);
        return;
    }
    costs = sti_topk_costs_of(costs_out);
    if (cached)
        write_costs(folder, path, &costs);
}
