/* stint tune gemm: the order of loops that is fastest here for one matrix product. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/team.h"
#include "base/units.h"
#include "cli/cli.h"
#include "kernel/loop/loop_tune.h"

typedef struct tune_args {
    int64_t threads, top;
    int dtype;
    double seconds;
    const char *string;
    bool exhaustive, trans_a, trans_b, keep;
    sti_cli_common common;
} tune_args;

static const sti_option tune_rows[] = {
    STI_CLI_THREADS_ROW(tune_args),
    {.name = "dtype",
     .type = STI_OPTION_CHOICE,
     .default_text = "f32",
     .choices = "f32",
     .offset = offsetof(tune_args, dtype),
     .flag = true,
     .help = "type of the numbers"},
    {.name = "top",
     .type = STI_OPTION_INT,
     .default_text = "5",
     .min = 1,
     .max = 10000,
     .offset = offsetof(tune_args, top),
     .flag = true,
     .unit = "N",
     .help = "measure so many of the strings that the model likes best"},
    {.name = "exhaustive",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     .offset = offsetof(tune_args, exhaustive),
     .flag = true,
     .help = "measure every candidate and print the best of them"},
    {.name = "string",
     .type = STI_OPTION_TEXT,
     .default_text = "",
     .offset = offsetof(tune_args, string),
     .flag = true,
     .unit = "TEXT",
     .help = "measure this string beside the one kept, as \"aBCbc 56x64x512 b4 c8\""},
    {.name = "trans_a",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     .offset = offsetof(tune_args, trans_a),
     .flag = true,
     .flag_name = "trans-a",
     .help = "A is stored transposed, [k, m]"},
    {.name = "trans_b",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     .offset = offsetof(tune_args, trans_b),
     .flag = true,
     .flag_name = "trans-b",
     .help = "B is stored transposed, [n, k]"},
    {.name = "seconds",
     .type = STI_OPTION_FLOAT,
     .default_text = "0.1",
     .min = 0.001,
     .max = 60,
     .offset = offsetof(tune_args, seconds),
     .flag = true,
     .unit = "S",
     .help = "time spent on measuring each string"},
    {.name = "keep",
     .type = STI_OPTION_BOOL,
     .default_text = "true",
     .offset = offsetof(tune_args, keep),
     .flag = true,
     .help = "keep the winner for training on this host"},
    STI_CLI_COMMON_ROWS(tune_args),
};

typedef struct tuning {
    sti_cli_call *call;
    const tune_args *args;
    sti_gemm_shape shape;
    int threads;
    sti_loop_choice *choices;
    int count, measured;
    double plain_s;
    char before[STI_LOOP_GEMM_TEXT]; /* kept already and measured beside a given one */
    const char *kept;     /* "" for the way without a string, NULL: nothing */
    stint_status keeping; /* what was measured is told in any case */
} tuning;

static stint_status read_size(const char *word, const char *name, int64_t *size_out)
{
    stint_status status = sti_parse_int(word, size_out);
    if (status == STINT_OK && (*size_out < 1 || *size_out > 1 << 20))
        status =
            sti_fail(STINT_E_USAGE, "%s is %s, must be 1 to %d", name, word, 1 << 20);
    return status;
}

static stint_status read_shape(tuning *t)
{
    char **word = t->call->operands;
    sti_gemm_shape *s = &t->shape;
    stint_status status = read_size(word[0], "M", &s->m);
    if (status == STINT_OK)
        status = read_size(word[1], "N", &s->n);
    if (status == STINT_OK)
        status = read_size(word[2], "K", &s->k);
    s->trans_a = t->args->trans_a;
    s->trans_b = t->args->trans_b;
    s->lda = s->trans_a ? s->m : s->k;
    s->ldb = s->trans_b ? s->k : s->n;
    s->ldc = s->n;
    if (status == STINT_OK)
        status = sti_threads_choose((int)t->args->threads, &t->threads, NULL);
    return status;
}

static stint_status add_choice(tuning *t, const sti_machine *machine, const char *text)
{
    sti_loop_gemm gemm;
    sti_loop_trace trace = {0};
    sti_loop_choice *choice = &t->choices[t->count];
    stint_status status = sti_loop_gemm_bind(text, &t->shape, t->threads, &gemm);
    if (status != STINT_OK)
        return status;
    strcpy(choice->text, text); /* bound, so it fits */
    status = sti_loop_gemm_predict(machine, &gemm, &trace, &choice->predicted_s);
    sti_loop_trace_fini(&trace);
    t->measured = ++t->count;
    return status;
}

/* The one string that was asked for, beside the one that it may replace. */
static stint_status take_given(tuning *t, const sti_machine *machine)
{
    const char *given = t->args->string;
    t->choices = sti_alloc_array(2, sizeof *t->choices, "tune.choices");
    if (!t->choices)
        return STINT_E_MEMORY;
    const stint_status status = add_choice(t, machine, given);
    if (status != STINT_OK || !t->args->keep ||
        !sti_loop_store_find(&t->shape, t->threads, t->before) ||
        strcmp(t->before, given) == 0)
        t->before[0] = '\0';
    return t->before[0] ? add_choice(t, machine, t->before) : status;
}

static stint_status take_candidates(tuning *t, const sti_machine *machine)
{
    const stint_status status =
        sti_loop_gemm_rank(machine, &t->shape, t->threads, &t->choices, &t->count);
    t->measured =
        t->args->exhaustive || t->args->top > t->count ? t->count : (int)t->args->top;
    return status;
}

static const sti_loop_choice *choice_of(const tuning *t, const char *text)
{
    int i = 0;
    while (i + 1 < t->count && strcmp(t->choices[i].text, text) != 0)
        i++;
    return &t->choices[i];
}

/* A string is worth its scratch from two percent on. */
static bool is_faster(const tuning *t, const sti_loop_choice *choice)
{
    return choice->measured_s < 0.98 * t->plain_s;
}

/* A given string that does not win says nothing of all others, of which the best may be
 * kept already. */
static stint_status keep_winner(tuning *t)
{
    const bool faster = is_faster(t, &t->choices[0]);
    const bool given_wins =
        faster && t->args->string && strcmp(t->choices[0].text, t->args->string) == 0;
    if (!t->args->keep || (t->args->string && !given_wins))
        return STINT_OK;
    t->kept = faster ? t->choices[0].text : "";
    return sti_loop_store_keep(&t->shape, t->threads, t->kept);
}

static double gflops(const tuning *t, double seconds)
{
    const sti_gemm_shape *s = &t->shape;
    return 2e-9 * (double)s->m * (double)s->n * (double)s->k / seconds;
}

static int rows_shown(const tuning *t)
{
    return t->args->top < t->measured ? (int)t->args->top : t->measured;
}

static void add_kept(const tuning *t, sti_text *out)
{
    if (!t->args->keep)
        sti_text_add(out, "nothing kept, as asked\n");
    else if (t->keeping != STINT_OK)
        sti_text_add(out, "nothing kept\n"); /* why is said at the end */
    else if (!t->kept && is_faster(t, choice_of(t, t->args->string)))
        sti_text_printf(out,
                        "nothing kept: '%s', which is kept already, is the faster\n",
                        t->before);
    else if (!t->kept)
        sti_text_add(out,
                     "nothing kept: the string does not beat the way without one by "
                     "two percent\n");
    else if (t->kept[0])
        sti_text_printf(out, "kept for this shape: '%s', %.2f times as fast%s%s%s\n",
                        t->kept, t->plain_s / t->choices[0].measured_s,
                        t->before[0] ? ", in place of '" : "", t->before,
                        t->before[0] ? "'" : "");
    else
        sti_text_add(out, "kept for this shape: the way without a string, which no "
                          "string beats by two percent\n");
}

static void add_words(const tuning *t, sti_text *out)
{
    const sti_gemm_shape *s = &t->shape;
    sti_text_printf(out,
                    "gemm f32 %" PRId64 " x %" PRId64 " x %" PRId64
                    "%s%s, %d thread%s; %d candidate%s, %d measured\n\n"
                    "%-34s %12s %12s %9s\n",
                    s->m, s->n, s->k, s->trans_a ? ", A transposed" : "",
                    s->trans_b ? ", B transposed" : "", t->threads, sti_s(t->threads),
                    t->count, sti_s(t->count), t->measured, "loops", "predicted ms",
                    "measured ms", "GFLOP/s");
    for (int i = 0; i < rows_shown(t); i++)
        sti_text_printf(out, "%-34s %12.4f %12.4f %9.1f\n", t->choices[i].text,
                        t->choices[i].predicted_s * 1e3, t->choices[i].measured_s * 1e3,
                        gflops(t, t->choices[i].measured_s));
    sti_text_printf(out, "%-34s %12s %12.4f %9.1f\n\n", "without a string", "",
                    t->plain_s * 1e3, gflops(t, t->plain_s));
    add_kept(t, out);
}

static void add_json(const tuning *t, sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_text(&j, "cpu", sti_cpu_name());
    sti_json_text(&j, "isa", sti_isa_name(sti_isa_now()));
    sti_json_int(&j, "m", t->shape.m);
    sti_json_int(&j, "n", t->shape.n);
    sti_json_int(&j, "k", t->shape.k);
    sti_json_int(&j, "threads", t->threads);
    sti_json_int(&j, "candidates", t->count);
    sti_json_begin_array(&j, "choices");
    for (int i = 0; i < rows_shown(t); i++) {
        sti_json_begin_object(&j, NULL);
        sti_json_text(&j, "loops", t->choices[i].text);
        sti_json_float(&j, "predicted_s", t->choices[i].predicted_s);
        sti_json_float(&j, "measured_s", t->choices[i].measured_s);
        sti_json_end_object(&j);
    }
    sti_json_end_array(&j);
    sti_json_float(&j, "without_s", t->plain_s);
    sti_json_text(&j, "kept", t->keeping == STINT_OK ? t->kept : NULL);
    sti_json_end_object(&j);
}

static stint_status tune(tuning *t)
{
    sti_machine machine;
    const sti_team team = {t->threads};
    stint_status status = t->args->keep ? sti_loop_store_check() : STINT_OK;
    if (status == STINT_OK)
        status = sti_machine_now(&machine);
    if (status == STINT_OK)
        status =
            t->args->string ? take_given(t, &machine) : take_candidates(t, &machine);
    if (status == STINT_OK)
        status = sti_loop_gemm_measure(&team, &t->shape, t->choices, t->measured,
                                       t->args->seconds, &t->plain_s);
    if (status == STINT_OK)
        t->keeping = keep_winner(t);
    return status;
}

static stint_status tune_run(sti_cli_call *call)
{
    tuning t = {.call = call, .args = call->args};
    sti_text text = {0};
    stint_status status = read_shape(&t);
    if (status == STINT_OK)
        status = tune(&t);
    if (status == STINT_OK) {
        if (call->common->json)
            add_json(&t, &text);
        else
            add_words(&t, &text);
        status = sti_cli_answer(call, &text);
        status = status == STINT_OK ? t.keeping : status;
    }
    sti_free(t.choices);
    return status;
}

const sti_cli_command sti_cmd_tune_gemm = {
    .name = "tune gemm",
    .summary = "find the fastest order of loops for a matrix product",
    .operands = "M N K",
    .example = "stint tune gemm 768 256 3072\n"
               "stint tune gemm 128 1000 4096 --threads 1 --exhaustive",
    .about =
        "C [M, N] = A [M, K] B [K, N]. A model ranks some hundred strings (loop order, "
        "blocks, tiles, what the threads share; see docs/loops.md), the best of them "
        "are "
        "measured, and the winner is kept in $XDG_CACHE_HOME/stint or ~/.cache/stint. "
        "Training uses it for every product of that shape. Results never depend on it.",
    .min_operands = 3,
    .max_operands = 3,
    STI_CLI_ARGS(tune_rows, tune_args),
    .run = tune_run,
};
