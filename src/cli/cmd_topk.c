/* stint topk: the k best elements of a NumPy file, with their positions. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/npy.h"
#include "base/team.h"
#include "base/units.h"
#include "cli/cli.h"
#include "net/net.h"
#include "net/topk_ranks.h"

typedef struct topk_args {
    int64_t k, threads;
    int key, nan, method, type;
    bool rows, sorted, zeros_equal;
    size_t part_bytes;
    const char *out, *values;
    sti_cli_common common;
} topk_args;

#define TOPK_ROW(field, kind, standard, words)                                        \
    .type = (kind), .default_text = (standard), .offset = offsetof(topk_args, field), \
    .flag = true, .help = (words)

enum { COUNT_ROW };

static const sti_option topk_rows[] = {
    [COUNT_ROW] = {.name = "count",
                   .letter = 'k',
                   .min = 0,
                   .max = 9e18,
                   .unit = "K",
                   TOPK_ROW(k, STI_OPTION_INT, "10",
                            "how many of the best; all, where there are fewer")},
    {.name = "key",
     .choices = "max|min|abs",
     .unit = "KEY",
     TOPK_ROW(key, STI_OPTION_CHOICE, "max", "what is best: the largest x, -x or |x|")},
    {.name = "rows",
     TOPK_ROW(rows, STI_OPTION_BOOL, "false",
              "the best of each row (along the last axis), not of the whole array")},
    {.name = "sorted",
     TOPK_ROW(sorted, STI_OPTION_BOOL, "false",
              "best first; otherwise by ascending index")},
    {.name = "nan",
     .choices = "error|first|last",
     .unit = "WHERE",
     TOPK_ROW(nan, STI_OPTION_CHOICE, "error",
              "refuse NaN, or rank all of them alike, before or behind the numbers")},
    {.name = "zeros-equal",
     TOPK_ROW(zeros_equal, STI_OPTION_BOOL, "false", "-0 ranks as +0, not below it")},
    {.name = "type",
     .choices = "auto|bf16",
     .unit = "TYPE",
     TOPK_ROW(type, STI_OPTION_CHOICE, "auto",
              "bf16: the file's 2-byte elements are bfloat16, which NumPy has no name "
              "for")},
    {.name = "out",
     .letter = 'o',
     .unit = "INDEX.npy",
     TOPK_ROW(out, STI_OPTION_PATH, "",
              "write the 64-bit indices here instead of printing them")},
    {.name = "values",
     .unit = "VALUES.npy",
     TOPK_ROW(values, STI_OPTION_PATH, "", "write the values here too")},
    {.name = "method",
     .choices = "auto|pack|delegate|beta|threshold|radix|narrow",
     .unit = "NAME",
     TOPK_ROW(method, STI_OPTION_CHOICE, "auto",
              "how to go about it; changes the time, never the result")},
    {.name = "part",
     .unit = "SIZE",
     TOPK_ROW(part_bytes, STI_OPTION_BYTES, "auto",
              "bytes of a row looked at together; less takes less memory")},
    STI_CLI_THREADS_ROW(topk_args),
    STI_CLI_COMMON_ROWS(topk_args),
};

typedef struct topk_task {
    sti_cli_call *call;
    const topk_args *args;
    const char *path;
    sti_npy npy;
    stint_topk_desc desc;
    stint_topk_costs costs;
    int64_t winners; /* a row */
    size_t item_bytes;
    int64_t *index;
    void *values;
    double seconds;
    stint_net *net; /* NULL: this process alone */
} topk_task;

/* NumPy's names of the types. */
static const struct topk_type {
    char kind;
    int bytes;
    const char *descr;
} topk_types[STINT_TOPK_TYPES] = {
    [STINT_TOPK_F32] = {'f', 4, "<f4"}, [STINT_TOPK_F16] = {'f', 2, "<f2"},
    [STINT_TOPK_BF16] = {0, 2, "<u2"},  [STINT_TOPK_I32] = {'i', 4, "<i4"},
    [STINT_TOPK_I8] = {'i', 1, "|i1"},  [STINT_TOPK_U32] = {'u', 4, "<u4"},
    [STINT_TOPK_U8] = {'u', 1, "|u1"},  [STINT_TOPK_F64] = {'f', 8, "<f8"},
    [STINT_TOPK_I64] = {'i', 8, "<i8"}, [STINT_TOPK_U64] = {'u', 8, "<u8"},
    [STINT_TOPK_I16] = {'i', 2, "<i2"}, [STINT_TOPK_U16] = {'u', 2, "<u2"},
};

static stint_status choose_type(topk_task *t)
{
    const sti_npy *npy = &t->npy;
    if (t->args->type == 1) {
        if (npy->item_bytes != 2 || !strchr("uiV", npy->kind))
            return sti_fail(
                STINT_E_INPUT,
                "%s: elements '%c%d' cannot be bfloat16; those are saved as "
                "u2, i2 or V2",
                t->path, npy->kind, npy->item_bytes);
        t->desc.type = STINT_TOPK_BF16;
        return STINT_OK;
    }
    const char kind = npy->kind == 'b' ? 'u' : npy->kind; /* bool: 0 and 1 */
    for (int type = 0; type < STINT_TOPK_TYPES; type++)
        if (topk_types[type].kind == kind &&
            topk_types[type].bytes == npy->item_bytes) {
            t->desc.type = (stint_topk_type)type;
            return STINT_OK;
        }
    return sti_fail(
        STINT_E_UNSUPPORTED,
        "%s: elements '%c%d'; f2, f4, f8, signed and unsigned integers of 1, 2, 4 and "
        "8 bytes and b1 can be ranked (and bfloat16 with --type bf16)",
        t->path, npy->kind, npy->item_bytes);
}

static stint_status describe_task(topk_task *t)
{
    const sti_npy *npy = &t->npy;
    const topk_args *args = t->args;
    stint_status status = choose_type(t);
    if (status != STINT_OK)
        return status;
    if (args->rows && t->net)
        return sti_fail(STINT_E_USAGE,
                        "--rows with several processes: only one row can "
                        "be shared out; start one process");
    if (args->rows && npy->rank == 0)
        return sti_fail(STINT_E_USAGE, "%s: a single number has no rows", t->path);
    const int64_t last = args->rows ? npy->dim[npy->rank - 1] : npy->count;
    t->item_bytes = (size_t)npy->item_bytes;
    t->desc.n = last;
    t->desc.rows = args->rows && last > 0 ? npy->count / last : 1;
    t->desc.k = args->k;
    t->desc.key = (stint_topk_key)args->key;
    t->desc.nan = (stint_topk_nan)args->nan;
    t->desc.method = (stint_topk_method)args->method;
    t->desc.sorted = args->sorted;
    t->desc.zeros_equal = args->zeros_equal;
    const size_t part = args->part_bytes / t->item_bytes;
    t->desc.part = part > (1U << 30) ? 1 << 30 : (int64_t)part;
    if (args->part_bytes > 0 && part == 0)
        t->desc.part = 1;
    stint_topk_costs_host(&t->costs);
    t->desc.costs = &t->costs;
    t->winners = t->desc.k < last ? t->desc.k : last;
    /* Rows of length 0: how many there are is known from the other axes alone. */
    if (args->rows && last == 0)
        t->desc.rows = 0;
    return sti_threads_choose((int)args->threads, &t->desc.threads, NULL);
}

/* The default is nobody's wish: who has fewer than ten elements hears nothing. */
static void warn_of_few(const topk_task *t)
{
    if (t->desc.k <= t->desc.n || t->call->set.origin[COUNT_ROW] == STI_FROM_DEFAULT ||
        stint_net_rank(t->net) > 0)
        return;
    sti_log(STINT_LOG_WARNING,
            "%s: -k %" PRId64 " asks for more than the %" PRId64 " element%s of %s; "
            "as many are given",
            t->path, t->desc.k, t->desc.n, sti_s(t->desc.n),
            t->args->rows ? "a row" : "the array");
}

/* Every rank has its part of the file; all get the winners. */
static stint_status select_over_ranks(topk_task *t)
{
    const int64_t rank = stint_net_rank(t->net), ranks = stint_net_ranks(t->net);
    const int64_t begin = t->desc.n / ranks * rank + t->desc.n % ranks * rank / ranks;
    const int64_t end =
        t->desc.n / ranks * (rank + 1) + t->desc.n % ranks * (rank + 1) / ranks;
    stint_topk_desc own = t->desc;
    int64_t count = 0;
    own.n = end - begin;
    own.index_base = begin;
    t->index = sti_alloc_array(t->winners + 1, sizeof *t->index, "topk.index");
    t->values = sti_alloc_array(t->winners + 1, t->item_bytes, "topk.values");
    stint_status status = sti_comm_agree(
        sti_net_comm(t->net), t->index && t->values ? STINT_OK : STINT_E_MEMORY);
    const int64_t start = sti_clock_ns();
    if (status == STINT_OK)
        status =
            sti_topk_ranks(sti_net_comm(t->net), &own,
                           (const char *)t->npy.data + (size_t)begin * t->item_bytes,
                           t->index, t->values, &count);
    t->seconds = sti_seconds_since(start);
    return status == STINT_E_INPUT ? sti_fail_context(status, "%s", t->path) : status;
}

static stint_status select_winners(topk_task *t)
{
    size_t bytes;
    stint_status status = stint_topk_workspace_bytes(&t->desc, &bytes);
    if (status != STINT_OK)
        return status;
    const int64_t count = t->desc.rows * t->winners;
    void *workspace = sti_alloc(bytes, "topk.workspace");
    t->index = sti_alloc_array(count, sizeof *t->index, "topk.index");
    t->values = sti_alloc_array(count, t->item_bytes, "topk.values");
    status = STINT_E_MEMORY;
    if (workspace && t->index && t->values) {
        const int64_t start = sti_clock_ns();
        status = STINT_OK;
        if (count > 0)
            status = stint_topk(&t->desc, t->npy.data, NULL, t->index, t->values,
                                workspace, bytes);
        t->seconds = sti_seconds_since(start);
    }
    sti_free(workspace);
    return status == STINT_E_INPUT ? sti_fail_context(status, "%s", t->path) : status;
}

/* ---- answers ---- */

static double half_value(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31;
    uint32_t bits = sign | (exponent + 112) << 23 | (uint32_t)(h & 1023) << 13;
    float f;
    if (exponent == 0) { /* denormal */
        f = (float)(h & 1023) * 0x1p-24F;
        return (double)(sign ? -f : f);
    }
    if (exponent == 31)
        bits = sign | 0x7F800000u | (uint32_t)(h & 1023) << 13;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

/* A winner's value: whole as it is, everything else as a double, which holds it. */
typedef struct topk_value {
    bool is_float, is_unsigned;
    double number;
    int64_t whole;
    uint64_t size;
} topk_value;

static topk_value value_at(const topk_task *t, int64_t i)
{
    union {
        float f;
        double d;
        int64_t i64;
        uint64_t u64;
        int32_t i32;
        uint32_t u32;
        int16_t i16;
        uint16_t u16;
        int8_t i8;
        uint8_t u8;
    } v;
    memcpy(&v, (const char *)t->values + (size_t)i * t->item_bytes, t->item_bytes);
    switch (t->desc.type) {
    case STINT_TOPK_F16:
        return (topk_value){.is_float = true, .number = half_value(v.u16)};
    case STINT_TOPK_BF16:
        v.u32 = (uint32_t)v.u16 << 16;
        break;
    case STINT_TOPK_F64:
        return (topk_value){.is_float = true, .number = v.d};
    case STINT_TOPK_I64:
        return (topk_value){.whole = v.i64};
    case STINT_TOPK_U64:
        return (topk_value){.is_unsigned = true, .size = v.u64};
    case STINT_TOPK_I32:
        return (topk_value){.whole = v.i32};
    case STINT_TOPK_U32:
        return (topk_value){.whole = v.u32};
    case STINT_TOPK_I16:
        return (topk_value){.whole = v.i16};
    case STINT_TOPK_U16:
        return (topk_value){.whole = v.u16};
    case STINT_TOPK_I8:
        return (topk_value){.whole = v.i8};
    case STINT_TOPK_U8:
        return (topk_value){.whole = v.u8};
    case STINT_TOPK_F32:
    case STINT_TOPK_TYPES:
        break;
    }
    return (topk_value){.is_float = true, .number = (double)v.f};
}

static void add_json_value(sti_json *j, topk_value v)
{
    if (v.is_float)
        sti_json_float(j, NULL, v.number);
    else if (v.is_unsigned)
        sti_json_uint(j, NULL, v.size);
    else
        sti_json_int(j, NULL, v.whole);
}

static void add_value(sti_text *text, topk_value v)
{
    if (v.is_float)
        sti_text_printf(text, "%s\n", sti_float_text(v.number));
    else if (v.is_unsigned)
        sti_text_printf(text, "%" PRIu64 "\n", v.size);
    else
        sti_text_printf(text, "%" PRId64 "\n", v.whole);
}

static stint_status write_files(const topk_task *t)
{
    int64_t dim[STI_NPY_RANK] = {t->winners};
    int rank = 1;
    const int64_t count = t->desc.rows * t->winners;
    if (t->args->rows) {
        rank = t->npy.rank;
        memcpy(dim, t->npy.dim, sizeof dim);
        dim[rank - 1] = t->winners;
    }
    stint_status status = STINT_OK;
    if (t->args->out)
        status = sti_npy_write(t->args->out, "<i8", rank, dim, t->index,
                               (size_t)count * sizeof *t->index);
    if (status == STINT_OK && t->args->values)
        status =
            sti_npy_write(t->args->values,
                          t->npy.kind == 'b' ? "|b1" : topk_types[t->desc.type].descr,
                          rank, dim, t->values, (size_t)count * t->item_bytes);
    return status;
}

static stint_status answer_json(const topk_task *t, const char *method)
{
    sti_text text = {0};
    sti_json j;
    const int64_t count = t->desc.rows * t->winners;
    sti_cli_json_begin(&j, &text);
    sti_json_int(&j, "rows", t->desc.rows);
    sti_json_int(&j, "n", t->desc.n);
    sti_json_int(&j, "k", t->winners);
    sti_json_text(&j, "method", method);
    sti_json_float(&j, "seconds", t->seconds);
    sti_json_text(&j, "out", t->args->out);
    sti_json_text(&j, "values_out", t->args->values);
    if (!t->args->out) {
        sti_json_begin_array(&j, "index");
        for (int64_t i = 0; i < count; i++)
            sti_json_int(&j, NULL, t->index[i]);
        sti_json_end_array(&j);
        sti_json_begin_array(&j, "values");
        for (int64_t i = 0; i < count; i++)
            add_json_value(&j, value_at(t, i));
        sti_json_end_array(&j);
    }
    sti_json_end_object(&j);
    return sti_cli_answer(t->call, &text);
}

/* "index value" a line, after the row's number with --rows. */
static stint_status print_winners(const topk_task *t)
{
    sti_text text = {0};
    for (int64_t i = 0; i < t->desc.rows * t->winners; i++) {
        if (t->args->rows)
            sti_text_printf(&text, "%" PRId64 "\t", i / t->winners);
        sti_text_printf(&text, "%" PRId64 "\t", t->index[i]);
        add_value(&text, value_at(t, i));
    }
    return sti_cli_print(&text);
}

static stint_status answer_task(topk_task *t)
{
    stint_topk_method method = STINT_TOPK_AUTO;
    int exponent = 0;
    double predicted = 0;
    stint_status status = stint_topk_explain(&t->desc, &method, &exponent, &predicted);
    if (status == STINT_OK)
        status = write_files(t);
    if (status != STINT_OK)
        return status;
    const char *name = stint_topk_method_name(method);
    if (t->call->common->json)
        return answer_json(t, name);
    if (t->call->common->verbose)
        sti_cli_say(t->call,
                    "%" PRId64 " of %" PRId64 " in %" PRId64
                    " rows by %s, block exponent %d, in %s (predicted %s)",
                    t->winners, t->desc.n, t->desc.rows, name, exponent,
                    sti_time_text(t->seconds),
                    sti_time_text(predicted * (double)t->desc.rows));
    return t->args->out ? STINT_OK : print_winners(t);
}

/* No answer takes the place of the array, nor of another answer. */
static stint_status check_outputs(const topk_task *t)
{
    const char *const outputs[] = {t->args->out, t->args->values};
    stint_status status = STINT_OK;
    for (int i = 0; i < 2 && status == STINT_OK; i++)
        status = sti_cli_check_out(t->path, outputs[i]);
    if (status != STINT_OK)
        return status;
    if (outputs[0] && outputs[1] && sti_path_is_same(outputs[0], outputs[1]))
        return sti_fail(STINT_E_USAGE, "--out and --values are both %s", outputs[0]);
    return STINT_OK;
}

static stint_status run_task(topk_task *t)
{
    stint_status status = check_outputs(t);
    if (status == STINT_OK)
        status = sti_npy_open(t->path, &t->npy);
    if (status == STINT_OK)
        status = describe_task(t);
    if (t->net)
        status = sti_comm_agree(sti_net_comm(t->net), status);
    if (status == STINT_OK) {
        warn_of_few(t);
        status = t->net ? select_over_ranks(t) : select_winners(t);
    }
    if (status == STINT_OK && stint_net_rank(t->net) == 0)
        status = answer_task(t);
    sti_free(t->index);
    sti_free(t->values);
    sti_npy_close(&t->npy);
    return status;
}

static stint_status topk_run(sti_cli_call *call)
{
    topk_task t = {.call = call, .args = call->args, .path = call->operands[0]};
    stint_status status =
        stint_net_join(&(stint_net_desc){.purpose = call->command->name}, &t.net);
    if (status != STINT_OK)
        return status;
    return sti_cli_leave(call, t.net, run_task(&t));
}

const sti_cli_command sti_cmd_topk = {
    .name = "topk",
    .summary = "find the best elements of a NumPy file, with their positions",
    .operands = "FILE.npy|FILE.npz:NAME",
    .example = "stint topk gradient.npy -k 1000 --key abs --out index.npy\n"
               "stint topk logits.npy -k 50 --rows --sorted --out best.npy",
    .about = "Exact: at equal keys the lowest index wins, whatever the number of "
             "threads. Elements are ranked in their own type: f2, f4, f8, signed and "
             "unsigned integers, b1. The file is mapped, so it may be larger than "
             "memory; one that is big-endian or in Fortran order, and an array of a "
             ".npz (FILE.npz:NAME), is copied into memory. Without "
             "--out, index and value are printed, a line each. Under mpirun every "
             "process reads its part of the file; rank 0 answers.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(topk_rows, topk_args),
    .run = topk_run,
};
