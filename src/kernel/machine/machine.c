/* Measuring the machine. Every figure is the best of several short runs: what disturbs
 * a run only ever makes it slower. */
#include "kernel/machine/machine.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/team.h"
#include "kernel/gemm/brgemm.h"
#include "kernel/gemm/gemm_tile.h"
#include "kernel/lane/dispatch.h"
#include "kernel/machine/machine_priv.h"

enum {
    RUNS = 8,
    RATE_RUNS = 32, /* a core takes a while to reach its full clock */
    RUN_NS = 8000000,
    FAR_BYTES = 1 << 28,
    LLC_BYTES = 1 << 24 /* surely beyond the second level, surely within the last */
};

/* One thing to time: gives the work it did, in flop or bytes. */
typedef struct task task;
struct task {
    const sti_machine_kernels *kernels;
    double (*rate)(int64_t rounds);
    const char *x;
    int64_t bytes;
    const sti_team *team;
    char *spare; /* what may be written */
    double (*work)(const task *t, int64_t rounds);
};

static volatile uint64_t sink;

static double work_rate(const task *t, int64_t rounds)
{
    return t->rate(rounds);
}

static double work_read(const task *t, int64_t rounds)
{
    for (int64_t i = 0; i < rounds; i++)
        sink = t->kernels->read(t->x, t->bytes);
    return (double)t->bytes * (double)rounds;
}

static void read_piece(void *arg, int64_t piece, int worker)
{
    const task *t = arg;
    const int64_t each = t->bytes / t->team->threads / 1024 * 1024;
    (void)worker;
    sink = t->kernels->read(t->x + piece * each, each);
}

static double work_read_all(const task *t, int64_t rounds)
{
    task copy = *t;
    for (int64_t i = 0; i < rounds; i++)
        sti_team_run(t->team, t->team->threads, read_piece, &copy);
    const int64_t each = t->bytes / t->team->threads / 1024 * 1024;
    return (double)each * t->team->threads * (double)rounds;
}

static void empty_piece(void *arg, int64_t piece, int worker)
{
    (void)arg, (void)piece, (void)worker;
}

static double work_fork(const task *t, int64_t rounds)
{
    for (int64_t i = 0; i < rounds; i++)
        sti_team_run(t->team, t->team->threads, empty_piece, NULL);
    return (double)rounds;
}

/* Work a second: rounds grow until a run is long enough for the clock. */
static double measure(const task *t)
{
    int64_t rounds = 1;
    double best = 0;
    const int runs = t->work == work_rate ? RATE_RUNS : RUNS;
    for (int run = 0; run < runs;) {
        const int64_t start = sti_clock_ns();
        const double work = t->work(t, rounds);
        const int64_t ns = sti_clock_ns() - start;
        if (work <= 0)
            return 0;
        if (ns < RUN_NS / 2 && rounds < INT64_C(1) << 40) {
            rounds = ns > 1000 ? rounds * RUN_NS / ns + 1 : rounds * 16;
            continue;
        }
        const double rate = work / ((double)(ns > 0 ? ns : 1) * 1e-9);
        best = rate > best ? rate : best;
        run++;
    }
    return best;
}

enum { TILE_M = 56, TILE_N = 32, TILE_K = 256, TILE_SHORT = 16 };

static double work_tile(const task *t, int64_t rounds)
{
    const float *a = (const float *)(const void *)t->x, *b = a + TILE_M * TILE_K;
    float c[TILE_M * TILE_N];
    const sti_brgemm g = {.m = TILE_M,
                          .n = TILE_N,
                          .k = t->bytes,
                          .lda = TILE_K,
                          .ldb = TILE_N,
                          .ldc = TILE_N};
    for (int64_t i = 0; i < rounds; i++)
        sti_brgemm_stride_f32(&g, 1, a, b, 0, 0, c);
    return (double)rounds;
}

static double work_pack(const task *t, int64_t rounds)
{
    const float *from = (const float *)(const void *)t->x;
    float *to = (float *)(void *)t->spare;
    const int64_t rows = t->bytes / 4 / TILE_K;
    for (int64_t i = 0; i < rounds; i++)
        sti_gemm_kernels_now()->pack(from, TILE_K, rows, TILE_K, TILE_N, to);
    return (double)t->bytes * (double)rounds;
}

/* Two lengths of k tell the rate from what a tile costs beside. */
static void measure_tiles(sti_machine *m, task t)
{
    t.work = work_tile;
    t.bytes = TILE_K;
    const double whole_s = 1 / measure(&t);
    t.bytes = TILE_SHORT;
    const double short_s = 1 / measure(&t);
    const double each_s = (whole_s - short_s) / (TILE_K - TILE_SHORT);
    const double beside_s = short_s - TILE_SHORT * each_s;
    m->tile_flop_per_s = 2.0 * TILE_M * TILE_N / (each_s > 0 ? each_s : whole_s);
    m->tile_s = (beside_s > 1e-9 ? beside_s : 1e-9) / (TILE_M / 14.0);
    t.work = work_pack;
    t.bytes = m->l2_bytes / 4 / 1024 * 1024;
    m->pack_bytes_per_s = measure(&t);
}

static int64_t cache_bytes(int name, int64_t otherwise)
{
    const long bytes = sysconf(name);
    return bytes > 0 ? bytes : otherwise;
}

static void find_sizes(sti_machine *m)
{
#if defined(_SC_LEVEL1_DCACHE_SIZE)
    m->l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32 << 10);
    m->l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, 256 << 10);
    m->llc_bytes = cache_bytes(_SC_LEVEL3_CACHE_SIZE, m->l2_bytes);
#else
    m->l1_bytes = 32 << 10;
    m->l2_bytes = 256 << 10;
    m->llc_bytes = 8 << 20;
#endif
}

/* The largest power of two that is still read more like the cache than like memory. */
static int64_t behaves_like_cache(const sti_machine *m, task t)
{
    const double middle = (m->llc_bytes_per_s + m->dram_bytes_per_s) / 2;
    int64_t size = LLC_BYTES;
    for (t.bytes = 2 * size; t.bytes < FAR_BYTES; t.bytes *= 2) {
        if (measure(&t) < middle)
            break;
        size = t.bytes;
    }
    return size < m->llc_bytes ? size : m->llc_bytes;
}

static void measure_reads(sti_machine *m, task t)
{
    t.work = work_read;
    t.bytes = m->l1_bytes / 2 / 1024 * 1024;
    m->l1_bytes_per_s = measure(&t);
    t.bytes = m->l2_bytes / 2 / 1024 * 1024;
    m->l2_bytes_per_s = measure(&t);
    t.bytes = LLC_BYTES;
    m->llc_bytes_per_s = measure(&t);
    t.bytes = FAR_BYTES;
    m->dram_bytes_per_s = measure(&t);
    m->llc_bytes = behaves_like_cache(m, t);
    t.bytes = FAR_BYTES;
    t.work = work_read_all;
    m->dram_all_bytes_per_s = measure(&t);
}

static void touch(char *x, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 512)
        x[i + 3] = 0x3f; /* floats of 0 and 0.5 */
}

stint_status sti_machine_measure(sti_machine *machine_out)
{
    sti_machine m = {0};
    sti_team team = {1};
    const sti_machine_kernels *kernels = STI_KERNELS_NOW(sti_machine_kernels);
    task t = {.kernels = kernels, .team = &team, .work = work_rate};
    if (sti_threads_choose(0, &team.threads, NULL) != STINT_OK)
        team.threads = 1; /* a bad wish is refused elsewhere */
    m.threads = team.threads;
    find_sizes(&m);
    char *far = sti_alloc(FAR_BYTES, "machine.far");
    if (!far)
        return STINT_E_MEMORY;
    touch(far, FAR_BYTES);
    t.rate = kernels->f32;
    m.f32_flop_per_s = measure(&t);
    t.rate = kernels->bf16;
    m.bf16_flop_per_s = measure(&t);
    t.rate = kernels->int8;
    m.int8_op_per_s = measure(&t);
    t.x = far;
    measure_reads(&m, t);
    t.spare = far + FAR_BYTES / 2;
    measure_tiles(&m, t);
    sti_free(far);
    t.work = work_fork;
    m.fork_s = 1 / measure(&t);
    *machine_out = m;
    return STINT_OK;
}
