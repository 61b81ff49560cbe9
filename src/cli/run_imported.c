/* stint run of an imported network: inputs from NumPy files, outputs to one. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/npy.h"
#include "base/shown.h"
#include "base/units.h"
#include "cli/cli_imported.h"
#include "cli/cli_run.h"
#include "cli/run_pictures.h"

/* ---- inputs ---- */

static double number_at(const sti_npy *npy, int64_t i)
{
    const char *at = (const char *)npy->data + (size_t)i * (size_t)npy->item_bytes;
    union {
        float f;
        double d;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint64_t u;
    } v = {.u = 0};
    memcpy(&v, at, (size_t)npy->item_bytes);
    if (npy->kind == 'f')
        return npy->item_bytes == 4 ? (double)v.f : v.d;
    if (npy->kind != 'i')
        return (double)v.u;
    return npy->item_bytes == 1   ? (double)v.i8
           : npy->item_bytes == 2 ? (double)v.i16
           : npy->item_bytes == 4 ? (double)v.i32
                                  : (double)v.i64;
}

static bool is_number(const sti_npy *npy)
{
    if (npy->kind == 'f')
        return npy->item_bytes == 4 || npy->item_bytes == 8;
    return (npy->kind == 'i' || npy->kind == 'u' || npy->kind == 'b') &&
           npy->item_bytes <= 8;
}

static stint_status check_array(const sti_npy *npy, const char *file,
                                const sti_lowered_port *port)
{
    bool fits = npy->rank == port->shape.rank;
    for (int i = 0; fits && i < npy->rank; i++)
        fits = npy->dim[i] == port->shape.dim[i];
    if (!is_number(npy))
        return sti_fail(STINT_E_INPUT,
                        "%s: elements of kind '%c' and %d bytes are not "
                        "read here; wanted float32, float64 or whole "
                        "numbers",
                        sti_shown(file), npy->kind, npy->item_bytes);
    if (fits)
        return STINT_OK;
    sti_text shape = {0};
    sti_exchange_shape_text(npy->rank < STI_EXCHANGE_RANK ? npy->rank
                                                          : STI_EXCHANGE_RANK,
                            npy->dim, &shape);
    const stint_status st =
        sti_fail(STINT_E_INPUT,
                 "%s: shape %s; the input '%.80s' wants %s (another one: "
                 "import again with --shape)",
                 sti_shown(file), shape.data ? shape.data : "[]", sti_shown(port->name),
                 sti_shape_text(&port->shape));
    sti_text_fini(&shape);
    return st;
}

static stint_status fill(sti_imported *m, const sti_lowered_port *port,
                         const char *file)
{
    sti_npy npy = {0};
    stint_status st = sti_npy_open(file, &npy);
    if (st != STINT_OK)
        return st;
    void *to = sti_imported_data(m, port);
    st = check_array(&npy, file, port);
    for (int64_t i = 0; st == STINT_OK && to && i < npy.count; i++) {
        const double v = number_at(&npy, i);
        if (port->shape.dtype == STINT_F32) {
            ((float *)to)[i] = port->type == STI_EXCHANGE_BOOL ? v != 0.0 : (float)v;
        } else if (v >= -2147483648.0 && v <= 2147483647.0) {
            ((int32_t *)to)[i] = (int32_t)v;
        } else {
            st = sti_fail(STINT_E_INPUT,
                          "%s: element %" PRId64 " does not fit into 32 bits",
                          sti_shown(file), i);
        }
    }
    sti_npy_close(&npy);
    return st;
}

static const sti_lowered_port *port_named(const sti_imported *m, const char *name,
                                          size_t length)
{
    for (int64_t i = 0; i < m->lowered.inputs; i++)
        if (strlen(m->lowered.input[i].name) == length &&
            memcmp(m->lowered.input[i].name, name, length) == 0)
            return &m->lowered.input[i];
    return NULL;
}

/* Each input once, from NAME=FILE; a name may hold '=', a file not in front of it. */
static stint_status fill_inputs(sti_cli_call *call, sti_imported *m)
{
    const sti_run_args *args = call->args;
    const char **words = NULL;
    int64_t count = 0, filled = 0;
    stint_status st = sti_option_split(call->arena, args->input, &words, &count);
    bool *seen = sti_arena_alloc(call->arena, (size_t)m->lowered.inputs + 1);
    if (st == STINT_OK && !seen)
        st = STINT_E_MEMORY;
    for (int64_t i = 0; i < count && st == STINT_OK; i++) {
        const char *equals = strrchr(words[i], '=');
        const sti_lowered_port *port =
            equals ? port_named(m, words[i], (size_t)(equals - words[i])) : NULL;
        if (m->lowered.inputs == 0)
            return sti_fail(STINT_E_USAGE, "--input %s: this network has no inputs",
                            sti_shown(words[i]));
        if (!port)
            return sti_fail(
                STINT_E_USAGE,
                "--input %s: wanted NAME=FILE with the name of an input, as "
                "'%.80s'",
                sti_shown(words[i]), sti_shown(m->lowered.input[0].name));
        filled += !seen[port - m->lowered.input];
        seen[port - m->lowered.input] = true;
        st = fill(m, port, equals + 1);
    }
    for (int64_t i = 0;
         st == STINT_OK && i < m->lowered.inputs && filled < m->lowered.inputs; i++)
        if (!seen[i])
            return sti_fail(STINT_E_USAGE,
                            "the input '%.80s' %s is not given: --input %s=FILE.npy",
                            sti_shown(m->lowered.input[i].name),
                            sti_shape_text(&m->lowered.input[i].shape),
                            sti_shown(m->lowered.input[i].name));
    return st;
}

/* What the inputs that are given take to be read; 0: of one that is not known. */
static size_t reading_bytes(sti_cli_call *call)
{
    const sti_run_args *args = call->args;
    const char **words = NULL;
    int64_t count = 0;
    size_t most = 0;
    if (sti_option_split(call->arena, args->input, &words, &count) != STINT_OK)
        return 0;
    for (int64_t i = 0; i < count; i++) {
        const char *equals = strrchr(words[i], '=');
        const size_t bytes = equals ? sti_npy_reading_bytes(equals + 1) : 0;
        if (bytes == 0)
            return 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* ---- outputs ---- */

/* The elements as NumPy has them: a copy but for f32. */
static stint_status make_array(sti_arena *arena, const sti_imported *m,
                               const sti_lowered_port *port, sti_npz_array *a)
{
    const void *from = sti_imported_data(m, port);
    const int64_t count = stint_shape_count(&port->shape);
    const bool words = port->shape.dtype == STINT_I32,
               truth = port->type == STI_EXCHANGE_BOOL;
    *a = (sti_npz_array){.name = port->name,
                         .descr = truth   ? "|b1"
                                  : words ? "<i8"
                                          : "<f4",
                         .rank = port->shape.rank,
                         .dim = port->shape.dim,
                         .data = from,
                         .n_bytes = (size_t)count * (truth   ? 1
                                                     : words ? 8
                                                             : 4)};
    if (!truth && !words)
        return STINT_OK;
    void *to = sti_arena_alloc(arena, a->n_bytes);
    if (!to)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < count; i++)
        if (words)
            ((int64_t *)to)[i] = ((const int32_t *)from)[i];
        else
            ((uint8_t *)to)[i] = ((const float *)from)[i] != 0.0f;
    a->data = to;
    return STINT_OK;
}

static stint_status write_outputs(sti_cli_call *call, const sti_imported *m)
{
    const sti_run_args *args = call->args;
    const int64_t count = m->lowered.outputs;
    sti_npz_array *arrays =
        sti_arena_alloc(call->arena, (size_t)count * sizeof *arrays + 1);
    stint_status st = arrays ? STINT_OK : STINT_E_MEMORY;
    for (int64_t i = 0; i < count && st == STINT_OK; i++)
        st = make_array(call->arena, m, &m->lowered.output[i], &arrays[i]);
    return st == STINT_OK ? sti_npz_write(args->out, arrays, count) : st;
}

/* ---- the command ---- */

/* What libraries of pictures take while they decode. */
#define PICTURES_BYTES ((size_t)3 << 20)

/* A few words on each output where no file is wanted. */
static void add_outputs_words(const sti_imported *m, sti_text *out)
{
    for (int64_t i = 0; i < m->lowered.outputs; i++) {
        const sti_lowered_port *p = &m->lowered.output[i];
        const int64_t count = stint_shape_count(&p->shape);
        const void *data = sti_imported_data(m, p);
        sti_text_printf(out, "%s %s:", sti_shown(p->name), sti_shape_text(&p->shape));
        for (int64_t k = 0; k < count && k < 8; k++)
            sti_text_printf(out, " %.6g",
                            p->shape.dtype == STINT_I32
                                ? (double)((const int32_t *)data)[k]
                                : (double)((const float *)data)[k]);
        sti_text_add(out, count > 8 ? " ...\n" : "\n");
    }
}

static stint_status answer(sti_cli_call *call, const sti_imported *m, double seconds,
                           const sti_account *account)
{
    sti_text text = {0};
    if (call->common->json) {
        sti_json j;
        sti_cli_json_begin(&j, &text);
        sti_cli_imported_ports_json(&j, "outputs", m->lowered.output,
                                    m->lowered.outputs);
        sti_json_float(&j, "seconds", seconds);
        sti_json_int(&j, "threads", m->threads);
        sti_json_int(&j, "planned_peak_bytes", (int64_t)account->total_bytes);
        sti_json_known(&j, "peak_rss_bytes", (int64_t)sti_process_peak_bytes());
        sti_json_end_object(&j);
    } else {
        const sti_run_args *args = call->args;
        if (!args->out)
            add_outputs_words(m, &text);
        sti_cli_say(call, "%.2f ms; peak %s, planned %s", seconds * 1e3,
                    sti_cli_peak_text(sti_process_peak_bytes()),
                    sti_bytes_text(account->total_bytes));
    }
    return sti_cli_answer(call, &text);
}

stint_status sti_run_imported(sti_cli_call *call, const char *path)
{
    const sti_run_args *args = call->args;
    sti_imported *m = NULL;
    sti_account account = {0};
    int64_t threads = args->threads, begin_ns = 0;
    double seconds = 0.0;
    if (sti_run_has_prompt(args) || args->samples > 0)
        return sti_fail(STINT_E_USAGE,
                        "%s: an imported network; it takes --input NAME=FILE.npy, or "
                        "picture files, no prompt and no --samples",
                        sti_shown(path));
    if (call->operand_count > 1 && args->input)
        return sti_fail(STINT_E_USAGE,
                        "--input and picture files: give one of the two");
    stint_status st = args->out ? sti_cli_check_out(path, args->out) : STINT_OK;
    if (st == STINT_OK)
        st = sti_imported_open(path, &m);
    if (st == STINT_OK && args->memory_bytes == 0 && sti_run_names_classes(call, m))
        sti_imported_keep(m, true); /* for many runs */
    if (st == STINT_OK)
        st = sti_cli_imported_account(m, &threads, reading_bytes(call), &account);
    if (st == STINT_OK && call->operand_count > 1)
        sti_account_add(&account, "pictures", "decoders and pixels",
                        PICTURES_BYTES + 2 * sti_imported_work_bytes(m));
    if (st == STINT_OK)
        st = sti_account_check(&account, args->memory_bytes, NULL);
    if (st == STINT_OK)
        st = sti_imported_begin(m);
    if (st == STINT_OK && sti_run_names_classes(call, m)) {
        st = sti_run_classes(call, m);
        sti_imported_close(m);
        return st;
    }
    if (st == STINT_OK)
        st = call->operand_count > 1 ? sti_run_fill_pictures(call, m)
                                     : fill_inputs(call, m);
    if (st == STINT_OK) {
        const sti_team team = {(int)threads};
        begin_ns = sti_clock_ns();
        sti_imported_run(m, &team);
        seconds = (double)(sti_clock_ns() - begin_ns) * 1e-9;
        if (args->out)
            st = write_outputs(call, m);
    }
    if (st == STINT_OK)
        st = answer(call, m, seconds, &account);
    sti_imported_close(m);
    return st;
}
