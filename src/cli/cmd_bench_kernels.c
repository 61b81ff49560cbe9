/* stint bench gemm, stint bench conv: rates of the kernels that training stands on. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "base/rng.h"
#include "base/team.h"
#include "base/units.h"
#include "cli/cli.h"
#include "kernel/conv/conv.h"
#include "kernel/gemm/gemm.h"
#include "kernel/gemm/gemm_i8.h"

typedef struct kernel_args {
    int64_t threads;
    double seconds;
    int dtype; /* of bench gemm: DTYPE_F32, DTYPE_INT8 */
    sti_cli_common common;
} kernel_args;

enum { DTYPE_F32, DTYPE_INT8 };

#define SECONDS_ROW                                                         \
    {                                                                       \
        .name = "seconds", .type = STI_OPTION_FLOAT, .default_text = "0.2", \
        .min = 0.001, .max = 60, .offset = offsetof(kernel_args, seconds),  \
        .flag = true, .unit = "S", .help = "time spent on each case"        \
    }

static const sti_option kernel_rows[] = {
    STI_CLI_THREADS_ROW(kernel_args),
    SECONDS_ROW,
    STI_CLI_COMMON_ROWS(kernel_args),
};

static const sti_option gemm_rows[] = {
    STI_CLI_THREADS_ROW(kernel_args),
    SECONDS_ROW,
    {.name = "dtype",
     .type = STI_OPTION_CHOICE,
     .default_text = "f32",
     .choices = "f32|int8",
     .offset = offsetof(kernel_args, dtype),
     .flag = true,
     .unit = "TYPE",
     .help = "f32, or 8-bit operands (unsigned, signed) with 32-bit sums"},
    STI_CLI_COMMON_ROWS(kernel_args),
};

enum { RUNS_MAX = 1000 };

typedef struct timing {
    int64_t ns[RUNS_MAX], best_ns, median_ns;
    int runs;
} timing;

typedef void work_fn(void *user);

static int compare_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* One run to warm up, then runs until the time is spent. */
static void time_work(work_fn *work, void *user, double seconds, timing *t)
{
    work(user);
    int64_t start = sti_clock_ns();
    for (t->runs = 0;
         t->runs < RUNS_MAX && (t->runs < 3 || sti_seconds_since(start) < seconds);
         t->runs++) {
        int64_t before = sti_clock_ns();
        work(user);
        t->ns[t->runs] = sti_clock_ns() - before;
    }
    qsort(t->ns, (size_t)t->runs, sizeof t->ns[0], compare_ns);
    t->best_ns = t->ns[0] > 0 ? t->ns[0] : 1;
    t->median_ns = t->ns[t->runs / 2] > 0 ? t->ns[t->runs / 2] : 1;
}

static float *random_floats(int64_t count)
{
    float *x = sti_alloc_array(count, sizeof *x, "bench.operand");
    uint32_t word[4];
    for (int64_t i = 0; x && i < count; i += 4) {
        sti_random4(1, STI_STREAM_TEST, 0, (uint64_t)i, word);
        for (int k = 0; k < 4 && i + k < count; k++)
            x[i + k] = sti_uniform(word[k]) - 0.5f;
    }
    return x;
}

/* ---- the table ---- */

typedef struct table {
    sti_cli_call *call;
    sti_team team;
    timing time;
    sti_text text;
    sti_json json;
} table;

static stint_status table_begin(table *t, sti_cli_call *call)
{
    const kernel_args *args = call->args;
    *t = (table){.call = call};
    stint_status status =
        sti_threads_choose((int)args->threads, &t->team.threads, NULL);
    if (status != STINT_OK)
        return status;
    if (call->common->json) {
        sti_cli_json_begin(&t->json, &t->text);
        sti_json_text(&t->json, "cpu", sti_cpu_name());
        sti_json_text(&t->json, "isa", sti_isa_name(sti_isa_now()));
        sti_json_int(&t->json, "threads", t->team.threads);
        sti_json_begin_array(&t->json, "cases");
        return STINT_OK;
    }
    sti_text_printf(&t->text, "%s, %s, %d thread%s\n%-44s %10s %10s %9s %8s\n",
                    sti_cpu_name(), sti_isa_name(sti_isa_now()), t->team.threads,
                    sti_s(t->team.threads), "case", "best us", "median us", "GFLOP/s",
                    "scratch");
    return sti_cli_print(&t->text);
}

static stint_status table_row(table *t, const char *name, double flop,
                              size_t scratch_bytes)
{
    const timing *time = &t->time;
    double rate = flop / (double)time->best_ns;
    if (!t->call->common->json) {
        sti_text_printf(&t->text, "%-44s %10.1f %10.1f %9.1f %8s\n", name,
                        (double)time->best_ns * 1e-3, (double)time->median_ns * 1e-3,
                        rate, sti_bytes_text(scratch_bytes));
        return sti_cli_print(&t->text);
    }
    sti_json_begin_object(&t->json, NULL);
    sti_json_text(&t->json, "case", name);
    sti_json_int(&t->json, "runs", time->runs);
    sti_json_float(&t->json, "best_s", (double)time->best_ns * 1e-9);
    sti_json_float(&t->json, "median_s", (double)time->median_ns * 1e-9);
    sti_json_float(&t->json, "gflop_per_s", rate);
    sti_json_int(&t->json, "scratch_bytes", (int64_t)scratch_bytes);
    sti_json_end_object(&t->json);
    return STINT_OK;
}

static stint_status table_end(table *t, stint_status status)
{
    if (status != STINT_OK || !t->call->common->json) {
        sti_text_fini(&t->text);
        return status;
    }
    sti_json_end_array(&t->json);
    sti_json_end_object(&t->json);
    return sti_cli_answer(t->call, &t->text);
}

/* ---- gemm ---- */

typedef struct gemm_case {
    const sti_team *team;
    int64_t m, n, k;
    bool int8;
    void *a, *b, *c, *scratch;
    size_t scratch_bytes;
} gemm_case;

static sti_gemm_shape f32_shape(const gemm_case *g)
{
    return (sti_gemm_shape){
        .m = g->m, .n = g->n, .k = g->k, .lda = g->k, .ldb = g->n, .ldc = g->n};
}

static sti_gemm_i8_shape int8_shape(const gemm_case *g)
{
    return (sti_gemm_i8_shape){
        .m = g->m, .n = g->n, .k = g->k, .lda = g->k, .ldb = g->n, .ldc = g->n};
}

static void gemm_work(void *user)
{
    const gemm_case *g = user;
    const sti_gemm_shape shape = f32_shape(g);
    const sti_gemm_i8_shape shape8 = int8_shape(g);
    if (g->int8)
        sti_gemm_i8(g->team, &shape8, g->a, g->b, g->c, g->scratch);
    else
        sti_gemm_f32(g->team, &shape, g->a, g->b, NULL, g->c, g->scratch);
}

/* Any values will do for bytes: those of random floats. */
static void gemm_alloc(gemm_case *g, int threads)
{
    const sti_gemm_shape shape = f32_shape(g);
    const sti_gemm_i8_shape shape8 = int8_shape(g);
    const int64_t each = g->int8 ? 4 : 1;
    g->a = random_floats((g->m * g->k + each - 1) / each);
    g->b = random_floats((g->k * g->n + each - 1) / each);
    g->c = random_floats(g->m * g->n);
    g->scratch_bytes = g->int8 ? sti_gemm_i8_scratch_bytes(&shape8, threads)
                               : sti_gemm_scratch_bytes(&shape, threads);
    g->scratch = sti_alloc(g->scratch_bytes, "bench.scratch");
}

static stint_status bench_gemm(table *t, const int64_t size[3])
{
    const kernel_args *args = t->call->args;
    char name[64];
    gemm_case g = {.team = &t->team,
                   .m = size[0],
                   .n = size[1],
                   .k = size[2],
                   .int8 = args->dtype == DTYPE_INT8};
    stint_status status = STINT_E_MEMORY;
    gemm_alloc(&g, t->team.threads);
    if (g.a && g.b && g.c && g.scratch) {
        time_work(gemm_work, &g, args->seconds, &t->time);
        snprintf(name, sizeof name, "m %" PRId64 "  n %" PRId64 "  k %" PRId64, g.m,
                 g.n, g.k);
        status = table_row(t, name, 2.0 * (double)g.m * (double)g.n * (double)g.k,
                           g.scratch_bytes);
    }
    sti_free(g.a);
    sti_free(g.b);
    sti_free(g.c);
    sti_free(g.scratch);
    return status;
}

enum { SIZE_MAX_EACH = 1 << 24 };

static stint_status gemm_size(const char *text, int64_t size[3])
{
    const char *p = text;
    for (int i = 0; i < 3; i++) {
        int64_t value = 0;
        while (*p >= '0' && *p <= '9' && value <= SIZE_MAX_EACH)
            value = 10 * value + (*p++ - '0');
        size[i] = value;
        if (value < 1 || value > SIZE_MAX_EACH || *p != (i < 2 ? 'x' : '\0'))
            return sti_fail(STINT_E_USAGE,
                            "'%s' is no size; wanted MxNxK, each 1 to %d, for example "
                            "256x1000x2048",
                            text, SIZE_MAX_EACH);
        p++;
    }
    return STINT_OK;
}

/* Blocks, square ones, a tall one as in 1x1 convolutions, a classifier. */
static const int64_t gemm_usual[][3] = {
    {64, 64, 64},    {256, 256, 256},  {512, 512, 512},   {1024, 1024, 1024},
    {32768, 64, 64}, {32768, 16, 144}, {128, 4096, 4096}, {128, 1000, 2048}};

static stint_status gemm_run(sti_cli_call *call)
{
    const int usual = (int)(sizeof gemm_usual / sizeof *gemm_usual);
    const int count = call->operand_count > 0 ? call->operand_count : usual;
    int64_t size[3];
    table t;
    stint_status status = STINT_OK;
    for (int i = 0; status == STINT_OK && i < call->operand_count; i++)
        status = gemm_size(call->operands[i], size);
    if (status != STINT_OK)
        return status;
    status = table_begin(&t, call);
    for (int i = 0; status == STINT_OK && i < count; i++) {
        if (call->operand_count > 0)
            status = gemm_size(call->operands[i], size);
        if (status == STINT_OK)
            status = bench_gemm(&t, call->operand_count > 0 ? size : gemm_usual[i]);
    }
    return table_end(&t, status);
}

/* ---- conv ---- */

typedef struct conv_case {
    const sti_team *team;
    sti_conv_shape shape;
    sti_conv_plan plan[3]; /* forward, backward data, backward weight */
    int direction;
    float *x, *w, *y;
    void *scratch;
} conv_case;

static void conv_work(void *user)
{
    conv_case *c = user;
    const sti_conv_plan *plan = &c->plan[c->direction];
    if (plan->direction == STI_CONV_FORWARD)
        sti_conv_forward_f32(c->team, plan, c->x, c->w, NULL, c->y, c->scratch);
    else if (plan->direction == STI_CONV_BACKWARD_DATA)
        sti_conv_backward_data_f32(c->team, plan, c->y, c->w, c->x, c->scratch);
    else
        sti_conv_backward_weight_f32(c->team, plan, c->x, c->y, c->w, NULL, c->scratch);
}

/* Plans of all directions; the scratch of any. */
static size_t conv_plan(conv_case *c)
{
    size_t bytes = 0;
    for (int i = 0; i < 3; i++) {
        c->plan[i] =
            sti_conv_plan_f32(&c->shape, (sti_conv_direction)i, c->team->threads);
        if (c->plan[i].scratch_bytes > bytes)
            bytes = c->plan[i].scratch_bytes;
    }
    return bytes;
}

static stint_status conv_directions(table *t, conv_case *c, size_t scratch_bytes)
{
    static const char *const words[] = {"forward", "data", "weight"};
    const kernel_args *args = t->call->args;
    stint_status status = STINT_OK;
    for (c->direction = 0; c->direction < 3 && status == STINT_OK; c->direction++) {
        char name[96];
        const sti_conv_shape *s = &c->shape;
        time_work(conv_work, c, args->seconds, &t->time);
        snprintf(name, sizeof name,
                 "%" PRId64 "x%" PRId64 "x%" PRId64 " %" PRId64 "->%" PRId64 " %" PRId64
                 "x%" PRId64 "/%" PRId64 " %s",
                 s->n, s->h, s->w, s->ci, s->co, s->kh, s->kw, s->stride,
                 words[c->direction]);
        status = table_row(t, name, sti_conv_flop(s), scratch_bytes);
    }
    return status;
}

static stint_status bench_conv(table *t, const sti_conv_shape *given)
{
    conv_case c = {.team = &t->team, .shape = *given};
    sti_conv_shape *s = &c.shape;
    s->oh = sti_conv_out_length(s->h, s->kh, s->stride, s->pad);
    s->ow = sti_conv_out_length(s->w, s->kw, s->stride, s->pad);
    c.x = random_floats(s->n * s->h * s->w * s->ci);
    c.w = random_floats(s->kh * s->kw * s->ci / s->groups * s->co);
    c.y = random_floats(s->n * s->oh * s->ow * s->co);
    const size_t scratch_bytes = conv_plan(&c);
    c.scratch = sti_alloc(scratch_bytes, "bench.scratch");
    stint_status status = STINT_E_MEMORY;
    if (c.x && c.w && c.y && c.scratch)
        status = conv_directions(t, &c, scratch_bytes);
    sti_free(c.x);
    sti_free(c.w);
    sti_free(c.y);
    sti_free(c.scratch);
    return status;
}

static stint_status conv_run(sti_cli_call *call)
{
    /* Convolutions of ResNet-20 on 32 pixels, ResNet-18 and -50 on 224, and one
     * depthwise. */
    static const sti_conv_shape cases[] = {
        {32, 32, 32, 3, 16, 3, 3, 1, 1, 1, 0, 0, false},
        {32, 32, 32, 16, 16, 3, 3, 1, 1, 1, 0, 0, false},
        {32, 32, 32, 16, 32, 3, 3, 2, 1, 1, 0, 0, false},
        {32, 16, 16, 32, 32, 3, 3, 1, 1, 1, 0, 0, false},
        {32, 8, 8, 64, 64, 3, 3, 1, 1, 1, 0, 0, false},
        {4, 224, 224, 3, 64, 7, 7, 2, 3, 1, 0, 0, false},
        {4, 56, 56, 64, 64, 3, 3, 1, 1, 1, 0, 0, false},
        {4, 28, 28, 512, 128, 1, 1, 1, 0, 1, 0, 0, false},
        {4, 14, 14, 256, 256, 3, 3, 1, 1, 1, 0, 0, false},
        {4, 7, 7, 512, 512, 3, 3, 1, 1, 1, 0, 0, false},
        {32, 28, 28, 96, 96, 3, 3, 1, 1, 96, 0, 0, false},
    };
    table t;
    stint_status status = table_begin(&t, call);
    for (size_t i = 0; status == STINT_OK && i < sizeof cases / sizeof cases[0]; i++)
        status = bench_conv(&t, &cases[i]);
    return table_end(&t, status);
}

const sti_cli_command sti_cmd_bench_gemm = {
    .name = "bench gemm",
    .summary = "measure matrix products",
    .operands = "[MxNxK...]",
    .example = "stint bench gemm -j 1 512x512x512",
    .about = "Best and median time of each case, the rate at the best, and the scratch "
             "that a call needs. C is M by N, the sum is over K.",
    .min_operands = 0,
    .max_operands = -1,
    STI_CLI_ARGS(gemm_rows, kernel_args),
    .run = gemm_run,
};

const sti_cli_command sti_cmd_bench_conv = {
    .name = "bench conv",
    .summary = "measure convolutions and their two gradients",
    .operands = "",
    .example = "stint bench conv -j 1",
    .about = "Cases are images x height x width, channels in -> out, window / stride.",
    .min_operands = 0,
    .max_operands = 0,
    STI_CLI_ARGS(kernel_rows, kernel_args),
    .run = conv_run,
};
