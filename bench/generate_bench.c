/* Tokens a second of one stream of text (GPT-2 124M unless told otherwise, random
 * weights) against the bandwidth of memory, which bounds it: every token reads every
 * weight once. Bandwidth is that of a loop of vector loads over as many bytes on the
 * same threads, in three ways to fetch ahead in turn; a token and a pass of reading
 * alternate, so that what else the machine does meets both, and the better of the
 * passes before and after counts.
 * usage: generate_bench [threads tokens depth width vocabulary model] */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/memory.h"
#include "base/team.h"
#include "generate_bench_model.h"

enum { ROUNDS_MAX = 64 };

/* ---- bandwidth ---- */

typedef struct reading {
    const float *data;
    int64_t piece; /* floats of a piece */
    int ahead;     /* lines fetched ahead; 0: the processor's own way */
    float sum[1024];
} reading;

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static float sum_wide(const float *x, int64_t n,
                                                         int ahead)
{
    __m512 acc[8];
    for (int v = 0; v < 8; v++)
        acc[v] = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += 128)
        for (int v = 0; v < 8; v++) {
            if (ahead)
                _mm_prefetch((const char *)(x + i + (v + ahead) * 16), _MM_HINT_T0);
            acc[v] = _mm512_add_ps(acc[v], _mm512_loadu_ps(x + i + v * 16));
        }
    for (int v = 1; v < 8; v++)
        acc[0] = _mm512_add_ps(acc[0], acc[v]);
    return _mm512_reduce_add_ps(acc[0]);
}
#endif

static float sum_plain(const float *x, int64_t n)
{
    float acc[16] = {0};
    for (int64_t i = 0; i < n; i += 16)
        for (int v = 0; v < 16; v++)
            acc[v] += x[i + v];
    return acc[0] + acc[7];
}

static void read_piece(void *arg, int64_t piece, int worker)
{
    reading *r = arg;
    const float *x = r->data + piece * r->piece;
    (void)worker;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        r->sum[piece] = sum_wide(x, r->piece, r->ahead);
        return;
    }
#endif
    r->sum[piece] = sum_plain(x, r->piece);
}

/* Bytes a second. */
static double read_once(const sti_team *team, reading *r, size_t bytes, int ahead)
{
    const int64_t pieces = 256;
    r->piece = (int64_t)(bytes / sizeof(float)) / pieces / 128 * 128;
    r->ahead = ahead;
    const int64_t start = sti_clock_ns();
    sti_team_run(team, pieces, read_piece, r);
    const double seconds = sti_seconds_since(start);
    return (double)(r->piece * pieces) * sizeof(float) / seconds;
}

/* ---- the bench ---- */

int main(int argc, char **argv)
{
    int64_t arg[5] = {2, 24, 12, 768, 50257};
    for (int i = 1; i < argc && i <= 5; i++)
        arg[i - 1] = atoll(argv[i]);
    const int64_t rounds = arg[1] < ROUNDS_MAX ? arg[1] : ROUNDS_MAX;
    const sti_team team = {(int)arg[0]};
    uint32_t state = 1;
    const sti_weight_source source = {&state, by_rows, random_runs};
    const sti_decoder_desc desc = {
        .name = argc > 6 ? argv[6] : "gpt",
        .model = {.depth = arg[2], .width = arg[3], .vocabulary = arg[4]},
        .context = CONTEXT,
        .capacity = CONTEXT,
        .threads = team.threads};
    sti_decoder *d = NULL;
    need(sti_decoder_create(&desc, &source, &d));
    const size_t peak = sti_process_peak_bytes();
    const size_t bytes = sti_decoder_token_bytes(&desc);
    reading r = {.data = sti_alloc(bytes + 65536, "bench")};
    sti_alloc_huge_pages((void *)(uintptr_t)r.data);
    memset((void *)(uintptr_t)r.data, 0, bytes + 65536);
    int32_t prompt[PROMPT] = {0}, token = 0;
    const int64_t start = sti_clock_ns();
    sti_decoder_run(d, prompt, PROMPT, 0, NULL);
    const double prompt_s = sti_seconds_since(start);
    double speed[ROUNDS_MAX], bandwidth[ROUNDS_MAX], share[ROUNDS_MAX];
    double before = read_once(&team, &r, bytes, 0);
    const int ahead[] = {16, 0, 64};
    for (int64_t i = 0; i < rounds; i++) {
        speed[i] = 1 / draw(d, PROMPT + i, arg[4], &token);
        const double after = read_once(&team, &r, bytes, ahead[i % 3]);
        bandwidth[i] = after > before ? after : before;
        share[i] = speed[i] * (double)bytes / bandwidth[i];
        before = after;
    }
    qsort(speed, (size_t)rounds, sizeof *speed, compare);
    qsort(bandwidth, (size_t)rounds, sizeof *bandwidth, compare);
    qsort(share, (size_t)rounds, sizeof *share, compare);
    const double most = bandwidth[rounds - 1] / (double)bytes;
    printf("%d threads: %.1f tokens/s (median %.1f), memory allows %.1f (%.1f MB a "
           "token, %.2f GB/s): %.0f %% of it, median of neighbours %.0f %%; prompt of "
           "%d %.0f tokens/s; peak resident %.0f MiB\n",
           team.threads, speed[rounds - 1], speed[rounds / 2], most,
           (double)bytes * 1e-6, bandwidth[rounds - 1] * 1e-9,
           100 * speed[rounds - 1] / most, 100 * share[rounds / 2], (int)PROMPT,
           PROMPT / prompt_s, (double)peak / 1048576.0);
    sti_decoder_destroy(d);
    sti_free((void *)(uintptr_t)r.data);
    return 0;
}
