/* stint codec: pack a NumPy file within an error bound, unpack it, look at it, time it.
 */
#include <inttypes.h>
#include <math.h>
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

typedef struct codec_args {
    double bound;
    bool relative, dither;
    int64_t seed, threads, runs;
    int predictor;
    const char *out;
    sti_cli_common common;
} codec_args;

/* clang-format off */
#define CODEC_ROW(field, kind, standard, words)                                        \
    .type = (kind), .default_text = (standard),                                       \
    .offset = offsetof(codec_args, field), .flag = true, .help = (words)
#define CODEC_HOW_ROWS                                                                 \
    {.name = "bound", .letter = 'b', STI_OPTION_NO_BOUND, .unit = "B",                 \
     CODEC_ROW(bound, STI_OPTION_FLOAT, "0",                                           \
               "most that any value may change, above 0")},                            \
    {.name = "relative",                                                               \
     CODEC_ROW(relative, STI_OPTION_BOOL, "false",                                     \
               "the bound is a part of the range, largest less smallest value")},      \
    {.name = "dither",                                                                 \
     CODEC_ROW(dither, STI_OPTION_BOOL, "true",                                        \
               "errors uniform and independent of the values; --no-dither is smaller " \
               "by about a tenth of a bit a value")},                                  \
    {.name = "seed", .min = 0, .max = 9e18, .unit = "N",                               \
     CODEC_ROW(seed, STI_OPTION_INT, "0", "of the dither")},                           \
    {.name = "predictor", .choices = "auto|direct|left|plane|mean", .unit = "NAME",    \
     CODEC_ROW(predictor, STI_OPTION_CHOICE, "auto",                                   \
               "what is coded in place of a value; changes the size alone")}
#define CODEC_OUT_ROW(what)                                                            \
    {.name = "out", .letter = 'o', .unit = "FILE",                                     \
     CODEC_ROW(out, STI_OPTION_PATH, "", what)}
/* clang-format on */

static const sti_option pack_rows[] = {
    CODEC_HOW_ROWS,
    CODEC_OUT_ROW("the packed file"),
    STI_CLI_THREADS_ROW(codec_args),
    STI_CLI_COMMON_ROWS(codec_args),
};
static const sti_option unpack_rows[] = {
    CODEC_OUT_ROW("the NumPy file"),
    STI_CLI_THREADS_ROW(codec_args),
    STI_CLI_COMMON_ROWS(codec_args),
};
static const sti_option info_rows[] = {STI_CLI_COMMON_ROWS(codec_args)};
static const sti_option bench_rows[] = {
    CODEC_HOW_ROWS,
    {.name = "runs",
     .min = 1,
     .max = 1000,
     .unit = "N",
     CODEC_ROW(runs, STI_OPTION_INT, "5", "the fastest of so many counts")},
    STI_CLI_THREADS_ROW(codec_args),
    STI_CLI_COMMON_ROWS(codec_args),
};

/* An array with what is needed to pack it. */
typedef struct codec_task {
    sti_cli_call *call;
    const codec_args *args;
    const char *path;
    sti_npy npy;
    void *copy; /* where the file's own place is not aligned */
    const void *x;
    bool wide; /* doubles */
    int64_t count;
    stint_codec_desc desc;
    void *workspace, *block;
    size_t workspace_bytes, capacity;
    stint_codec_result result;
} codec_task;

static void task_fini(codec_task *t)
{
    sti_free(t->copy);
    sti_free(t->workspace);
    sti_free(t->block);
    sti_npy_close(&t->npy);
}

static stint_status check_npy(const codec_task *t)
{
    const sti_npy *npy = &t->npy;
    if (npy->kind != 'f' || (npy->item_bytes != 4 && npy->item_bytes != 8))
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: elements '%c%d'; float32 and float64 ('f4', 'f8') can be "
                        "packed; x.astype('float32') converts",
                        t->path, npy->kind, npy->item_bytes);
    if (npy->rank < 1 || npy->rank > STINT_CODEC_RANK)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: %d axes; 1 to %d can be packed (x.reshape helps)", t->path,
                        npy->rank, STINT_CODEC_RANK);
    return STINT_OK;
}

static double value_at(const codec_task *t, int64_t i)
{
    return t->wide ? ((const double *)t->x)[i] : (double)((const float *)t->x)[i];
}

/* The bound becomes absolute: a part of max - min of the finite values. */
static void scale_bound(codec_task *t)
{
    double low = (double)INFINITY, high = -low;
    for (int64_t i = 0; i < t->count; i++) {
        const double x = value_at(t, i);
        if (isfinite(x)) {
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
    }
    /* No range, no change: a value of 2^24 steps is kept exactly, and so is a zero. */
    if (high > low)
        t->desc.bound *= high - low;
    else if (t->count > 0 && low != 0 && isfinite(low))
        t->desc.bound = fabs(low) * 0x1p-25;
}

static stint_status open_array(codec_task *t)
{
    stint_status status = STINT_OK;
    if (t->args->bound == 0)
        return sti_fail(STINT_E_USAGE,
                        "wants --bound B, above 0: the most that any value may change, "
                        "or with --relative the part of the values' range");
    if (!(t->args->bound > 0))
        return sti_fail(STINT_E_USAGE,
                        "--bound %s: the most that a value may change is wanted, a "
                        "number above 0",
                        sti_float_text(t->args->bound));
    status = sti_npy_open(t->path, &t->npy);
    if (status == STINT_OK)
        status = check_npy(t);
    if (status != STINT_OK)
        return status;
    t->count = t->npy.count;
    t->x = t->npy.data;
    t->wide = t->npy.item_bytes == 8;
    if ((uintptr_t)t->npy.data % (size_t)t->npy.item_bytes != 0) {
        t->copy = sti_alloc_array(t->count, (size_t)t->npy.item_bytes, "codec.copy");
        if (!t->copy)
            return STINT_E_MEMORY;
        memcpy(t->copy, t->npy.data, (size_t)t->count * (size_t)t->npy.item_bytes);
        t->x = t->copy;
    }
    t->desc =
        (stint_codec_desc){.rank = t->npy.rank,
                           .bound = t->args->bound,
                           .dither = t->args->dither,
                           .seed = (uint64_t)t->args->seed,
                           .predictor = (stint_codec_predictor)t->args->predictor};
    memcpy(t->desc.dim, t->npy.dim, sizeof t->desc.dim);
    if (t->args->relative)
        scale_bound(t);
    return sti_threads_choose((int)t->args->threads, &t->desc.threads, NULL);
}

static stint_status make_room(codec_task *t)
{
    stint_status status =
        (t->wide ? stint_codec_f64_workspace_bytes
                 : stint_codec_workspace_bytes)(&t->desc, &t->workspace_bytes);
    if (status == STINT_OK)
        status = (t->wide ? stint_codec_f64_max_bytes
                          : stint_codec_max_bytes)(&t->desc, &t->capacity);
    if (status != STINT_OK)
        return status;
    t->workspace = sti_alloc(t->workspace_bytes, "codec.workspace");
    t->block = sti_alloc(t->capacity, "codec.block");
    return t->workspace && t->block ? STINT_OK : STINT_E_MEMORY;
}

static stint_status pack_array(codec_task *t)
{
    if (t->wide)
        return stint_codec_f64_pack(&t->desc, t->x, t->block, t->capacity, t->workspace,
                                    t->workspace_bytes, &t->result);
    return stint_codec_pack(&t->desc, t->x, NULL, t->block, t->capacity, t->workspace,
                            t->workspace_bytes, &t->result);
}

static size_t value_bytes(bool wide)
{
    return wide ? sizeof(double) : sizeof(float);
}

static double ratio_of(size_t bytes, int64_t count, bool wide)
{
    return (double)count * (double)value_bytes(wide) / (double)bytes;
}

static void add_result(sti_json *j, const codec_task *t)
{
    const stint_codec_result *r = &t->result;
    sti_json_int(j, "bytes", (int64_t)r->bytes);
    sti_json_float(j, "ratio", ratio_of(r->bytes, t->count, t->wide));
    sti_json_float(j, "bound", t->desc.bound);
    sti_json_float(j, "max_error", r->max_error);
    sti_json_int(j, "values", t->count);
    sti_json_int(j, "zeros", r->zeros);
    sti_json_int(j, "outliers", r->outliers);
    sti_json_int(j, "raw", r->raw);
    sti_json_text(j, "predictor", stint_codec_predictor_name(r->predictor));
    sti_json_int(j, "contexts", r->contexts);
}

/* A block of fewer is its head for a good part, which is no reason to give. */
enum { FEW_VALUES = 1000 };

/* Why a block is hardly smaller than the values. A value becomes a number of steps of
 * 2 * bound; from 2^21 of them on it is kept exactly, and so is what is no number. */
static void say_why_no_gain(const codec_task *t)
{
    const double reach = 0x1p22 * t->desc.bound;
    double largest = 0;
    int64_t far = 0, no_number = 0;
    if (t->count < FEW_VALUES || ratio_of(t->result.bytes, t->count, t->wide) > 1.1)
        return;
    for (int64_t i = 0; i < t->count; i++) {
        const double x = fabs(value_at(t, i));
        no_number += !isfinite(x);
        far += isfinite(x) && x >= reach;
        largest = isfinite(x) && x > largest ? x : largest;
    }
    if (far > t->count / 20)
        sti_cli_say(t->call,
                    "nothing gained: %s of %s values are 2^21 steps (of twice the "
                    "bound) or more from zero, and such are kept exactly; --bound "
                    "%.2g halves the file at least",
                    sti_count_text(far), sti_count_text(t->count), largest * 0x1p-14);
    else if (no_number > t->count / 20)
        sti_cli_say(t->call,
                    "nothing gained: %s of %s values are NaN or infinite, and such are "
                    "kept exactly",
                    sti_count_text(no_number), sti_count_text(t->count));
    else
        sti_cli_say(t->call, "nothing gained: within this bound neighbours tell little "
                             "of a value; a larger one packs more");
}

static stint_status answer_packed(const codec_task *t)
{
    const stint_codec_result *r = &t->result;
    if (!t->call->common->json) {
        sti_cli_say(t->call,
                    "%s: %s, 1/%.2f of the values' %s; %.3f bits a value, largest "
                    "error %s of %s",
                    t->args->out, sti_bytes_text(r->bytes),
                    ratio_of(r->bytes, t->count, t->wide),
                    sti_bytes_text((size_t)t->count * value_bytes(t->wide)),
                    t->count ? 8.0 * (double)r->bytes / (double)t->count : 0.0,
                    sti_float_text(r->max_error), sti_float_text(t->desc.bound));
        say_why_no_gain(t);
        return STINT_OK;
    }
    sti_text text = {0};
    sti_json j;
    say_why_no_gain(t);
    sti_cli_json_begin(&j, &text);
    sti_json_text(&j, "out", t->args->out);
    add_result(&j, t);
    sti_json_end_object(&j);
    return sti_cli_answer(t->call, &text);
}

static stint_status want_out(const codec_args *args)
{
    return args->out ? STINT_OK
                     : sti_fail(STINT_E_USAGE, "wants -o FILE, where to write to");
}

static stint_status pack_run(sti_cli_call *call)
{
    codec_task t = {.call = call, .args = call->args, .path = call->operands[0]};
    stint_status status = want_out(t.args);
    if (status == STINT_OK)
        status = sti_cli_check_out(t.path, t.args->out);
    if (status == STINT_OK)
        status = open_array(&t);
    if (status == STINT_OK)
        status = make_room(&t);
    if (status == STINT_OK)
        status = pack_array(&t);
    if (status == STINT_OK)
        status = sti_file_write(t.args->out, t.block, t.result.bytes);
    if (status == STINT_OK)
        status = answer_packed(&t);
    task_fini(&t);
    return status;
}

/* ---- from packed files ---- */

typedef struct packed_file {
    const char *path;
    void *block;
    size_t bytes;
    bool wide; /* doubles */
    stint_codec_info info;
} packed_file;

static stint_status open_packed(packed_file *f)
{
    stint_status status = sti_file_read(f->path, SIZE_MAX / 2, &f->block, &f->bytes);
    if (status != STINT_OK)
        return status;
    f->wide = stint_codec_is_f64(f->block, f->bytes);
    status = (f->wide ? stint_codec_f64_info_read
                      : stint_codec_info_read)(f->block, f->bytes, &f->info);
    if (status == STINT_OK && f->info.bytes != f->bytes)
        status = sti_fail(STINT_E_INPUT, "packed block: %zu bytes follow its end",
                          f->bytes - f->info.bytes);
    if (status == STINT_OK && f->info.masked)
        status = sti_fail(STINT_E_UNSUPPORTED,
                          "packed block: wants a mask, which only programs have");
    return status == STINT_OK ? status : sti_fail_context(status, "%s", f->path);
}

static stint_status unpack_file(const packed_file *f, int64_t threads, void **x_out)
{
    stint_codec_desc desc = {.rank = f->info.rank};
    size_t bytes;
    memcpy(desc.dim, f->info.dim, sizeof desc.dim);
    stint_status status = sti_threads_choose((int)threads, &desc.threads, NULL);
    if (status == STINT_OK)
        status = stint_codec_workspace_bytes(&desc, &bytes);
    if (status != STINT_OK)
        return status;
    void *workspace = sti_alloc(bytes, "codec.workspace");
    *x_out = workspace
                 ? sti_alloc_array(f->info.count, value_bytes(f->wide), "codec.values")
                 : NULL;
    status = STINT_E_MEMORY;
    if (*x_out && f->wide)
        status =
            stint_codec_f64_unpack(&desc, f->block, f->bytes, *x_out, workspace, bytes);
    else if (*x_out)
        status = stint_codec_unpack(&desc, f->block, f->bytes, NULL, *x_out, workspace,
                                    bytes);
    sti_free(workspace);
    return status == STINT_E_INPUT ? sti_fail_context(status, "%s", f->path) : status;
}

static stint_status unpack_run(sti_cli_call *call)
{
    const codec_args *args = call->args;
    packed_file f = {.path = call->operands[0]};
    void *x = NULL;
    stint_status status = want_out(args);
    if (status == STINT_OK)
        status = sti_cli_check_out(f.path, args->out);
    if (status == STINT_OK)
        status = open_packed(&f);
    if (status == STINT_OK)
        status = unpack_file(&f, args->threads, &x);
    if (status == STINT_OK)
        status =
            sti_npy_write(args->out, f.wide ? "<f8" : "<f4", f.info.rank, f.info.dim, x,
                          (size_t)f.info.count * value_bytes(f.wide));
    if (status == STINT_OK && call->common->json) {
        sti_text text = {0};
        sti_json j;
        sti_cli_json_begin(&j, &text);
        sti_json_text(&j, "out", args->out);
        sti_json_int(&j, "values", f.info.count);
        sti_json_float(&j, "bound", f.info.bound);
        sti_json_end_object(&j);
        status = sti_cli_answer(call, &text);
    } else if (status == STINT_OK) {
        sti_cli_say(call, "%s: %s values, each within %s", args->out,
                    sti_count_text(f.info.count), sti_float_text(f.info.bound));
    }
    sti_free(x);
    sti_free(f.block);
    return status;
}

static void add_info(const stint_codec_info *info, bool wide, sti_text *out)
{
    sti_text_add(out, "shape      ");
    for (int i = 0; i < info->rank; i++)
        sti_text_printf(out, i ? " x %" PRId64 : "%" PRId64, info->dim[i]);
    sti_text_printf(out, " %s\nbytes      %s, 1/%.2f of the values' %s\n",
                    wide ? "float64" : "float32", sti_count_text((int64_t)info->bytes),
                    ratio_of(info->bytes, info->count, wide),
                    sti_bytes_text((size_t)info->count * value_bytes(wide)));
    sti_text_printf(out, "bound      %s", sti_float_text(info->bound));
    sti_text_printf(out, ", largest error %s\n", sti_float_text(info->max_error));
    sti_text_printf(out, "dither     %s\n", info->dither ? "yes" : "no");
    sti_text_printf(out, "predictor  %s, %d context%s\n",
                    stint_codec_predictor_name(info->predictor), info->contexts,
                    sti_s(info->contexts));
    sti_text_printf(out,
                    "values     %s: %s zero%s, %s outlier%s kept exactly, %s in parts "
                    "kept raw\n",
                    sti_count_text(info->count), sti_count_text(info->zeros),
                    sti_s(info->zeros), sti_count_text(info->outliers),
                    sti_s(info->outliers), sti_count_text(info->raw));
}

static stint_status answer_info(sti_cli_call *call, const packed_file *f)
{
    const stint_codec_info *info = &f->info;
    sti_text text = {0};
    sti_json j;
    if (!call->common->json) {
        add_info(info, f->wide, &text);
        return sti_cli_print(&text);
    }
    sti_cli_json_begin(&j, &text);
    sti_json_begin_array(&j, "shape");
    for (int i = 0; i < info->rank; i++)
        sti_json_int(&j, NULL, info->dim[i]);
    sti_json_end_array(&j);
    sti_json_int(&j, "bytes", (int64_t)info->bytes);
    sti_json_float(&j, "bound", info->bound);
    sti_json_float(&j, "max_error", info->max_error);
    sti_json_bool(&j, "dither", info->dither);
    sti_json_text(&j, "predictor", stint_codec_predictor_name(info->predictor));
    sti_json_int(&j, "contexts", info->contexts);
    sti_json_int(&j, "zeros", info->zeros);
    sti_json_int(&j, "outliers", info->outliers);
    sti_json_int(&j, "raw", info->raw);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

static stint_status info_run(sti_cli_call *call)
{
    packed_file f = {.path = call->operands[0]};
    stint_status status = open_packed(&f);
    if (status == STINT_OK)
        status = answer_info(call, &f);
    sti_free(f.block);
    return status;
}

/* ---- bench ---- */

typedef struct codec_times {
    double pack_s, unpack_s;
} codec_times;

static stint_status time_runs(codec_task *t, codec_times *times)
{
    stint_status status = STINT_OK;
    void *y = sti_alloc_array(t->count, value_bytes(t->wide), "codec.values");
    *times = (codec_times){(double)INFINITY, (double)INFINITY};
    if (!y)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < t->args->runs && status == STINT_OK; i++) {
        int64_t start = sti_clock_ns();
        status = pack_array(t);
        times->pack_s = fmin(times->pack_s, sti_seconds_since(start));
        start = sti_clock_ns();
        if (status == STINT_OK && t->wide)
            status = stint_codec_f64_unpack(&t->desc, t->block, t->result.bytes, y,
                                            t->workspace, t->workspace_bytes);
        else if (status == STINT_OK)
            status = stint_codec_unpack(&t->desc, t->block, t->result.bytes, NULL, y,
                                        t->workspace, t->workspace_bytes);
        times->unpack_s = fmin(times->unpack_s, sti_seconds_since(start));
    }
    sti_free(y);
    return status;
}

static stint_status answer_times(codec_task *t, const codec_times *times)
{
    const double gb = (double)t->count * (double)value_bytes(t->wide) * 1e-9;
    sti_text text = {0};
    sti_json j;
    if (!t->call->common->json) {
        sti_text_printf(&text,
                        "%.3f bits a value, 1/%.2f; packs %.2f GB/s, unpacks %.2f GB/s "
                        "with %d thread%s\n",
                        8.0 * (double)t->result.bytes / (double)t->count,
                        ratio_of(t->result.bytes, t->count, t->wide),
                        gb / times->pack_s, gb / times->unpack_s, t->desc.threads,
                        sti_s(t->desc.threads));
        return sti_cli_print(&text);
    }
    sti_cli_json_begin(&j, &text);
    add_result(&j, t);
    sti_json_float(&j, "pack_gb_per_s", gb / times->pack_s);
    sti_json_float(&j, "unpack_gb_per_s", gb / times->unpack_s);
    sti_json_int(&j, "threads", t->desc.threads);
    sti_json_end_object(&j);
    return sti_cli_answer(t->call, &text);
}

static stint_status bench_run(sti_cli_call *call)
{
    codec_task t = {.call = call, .args = call->args, .path = call->operands[0]};
    codec_times times;
    stint_status status = open_array(&t);
    if (status == STINT_OK && t.count == 0)
        status = sti_fail(STINT_E_INPUT, "%s: has no values to time", t.path);
    if (status == STINT_OK)
        status = make_room(&t);
    if (status == STINT_OK)
        status = time_runs(&t, &times);
    if (status == STINT_OK)
        status = answer_times(&t, &times);
    task_fini(&t);
    return status;
}

#define CODEC_COMMAND(word, rows_of)                                                 \
    .name = "codec " #word, .min_operands = 1, .max_operands = 1, .run = word##_run, \
    STI_CLI_ARGS(rows_of, codec_args)

const sti_cli_command sti_cmd_codec_pack = {
    CODEC_COMMAND(pack, pack_rows),
    .summary = "pack a NumPy file so that no value changes by more than a bound",
    .operands = "FILE.npy|FILE.npz:NAME",
    .example = "stint codec pack activations.npy --bound 0.01 -o activations.stq\n"
               "stint codec pack field.npy --bound 1e-3 --relative -o field.stq",
    .about = "float32 or float64, one to four axes, the last one channels: made for "
             "activations of "
             "networks. Zeros stay zeros; NaN, infinities and values that cannot be "
             "held to the bound are kept bit for bit."};

const sti_cli_command sti_cmd_codec_unpack = {
    CODEC_COMMAND(unpack, unpack_rows),
    .summary = "unpack what codec pack wrote into a NumPy file", .operands = "FILE",
    .example = "stint codec unpack activations.stq -o activations.npy",
    .about = "Checks every checksum first; a damaged file leaves no output."};

const sti_cli_command sti_cmd_codec_info = {
    CODEC_COMMAND(info, info_rows), .summary = "say what is in a packed file",
    .operands = "FILE", .example = "stint codec info activations.stq",
    .about = "Shape, bound, largest error that occurred, and how it was coded."};

const sti_cli_command sti_cmd_codec_bench = {
    CODEC_COMMAND(bench, bench_rows),
    .summary = "time packing and unpacking of a NumPy file, without writing",
    .operands = "FILE.npy",
    .example = "stint codec bench activations.npy --bound 0.01 -j 1",
    .about = "Size and GB of float32 a second in both directions."};
