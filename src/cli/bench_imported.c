/* stint bench step of an imported network: runs of it, warm, operator by operator. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "base/rng.h"
#include "base/shown.h"
#include "base/units.h"
#include "cli/cli_imported.h"
#include "train/profile.h"

typedef struct bench_figures {
    double best_s, median_s;
    int64_t runs;
    size_t planned_bytes, peak_bytes;
} bench_figures;

/* Numbers from -2 to 2; whole numbers are 0 and 1, which any table has rows for. */
static void fill_port(const sti_imported *m, const sti_lowered_port *port,
                      int64_t which)
{
    void *data = sti_imported_data(m, port);
    const int64_t count = stint_shape_count(&port->shape);
    const bool floats =
        port->shape.dtype == STINT_F32 && port->type != STI_EXCHANGE_BOOL;
    uint32_t word[4];
    for (int64_t i = 0; data && i < count; i++) {
        if (i % 4 == 0)
            sti_random4(1, STI_STREAM_TEST, (uint64_t)which, (uint64_t)i, word);
        if (floats)
            ((float *)data)[i] = 4 * sti_uniform(word[i % 4]) - 2;
        else if (port->shape.dtype == STINT_F32)
            ((float *)data)[i] = (float)(word[i % 4] & 1);
        else
            ((int32_t *)data)[i] = (int32_t)(word[i % 4] & 1);
    }
}

static int compare_double(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static stint_status time_runs(sti_imported *m, bench_figures *f)
{
    const sti_team team = {.threads = m->threads};
    double *seconds = sti_alloc_array(f->runs, sizeof *seconds, "bench.times");
    if (!seconds)
        return STINT_E_MEMORY;
    sti_imported_run(m, &team);
    for (int64_t i = 0; i < f->runs; i++) {
        const int64_t start = sti_clock_ns();
        sti_imported_run(m, &team);
        seconds[i] = (double)(sti_clock_ns() - start) * 1e-9;
    }
    qsort(seconds, (size_t)f->runs, sizeof *seconds, compare_double);
    f->best_s = seconds[0];
    f->median_s = seconds[f->runs / 2];
    f->peak_bytes = sti_process_peak_bytes();
    sti_free(seconds);
    return STINT_OK;
}

static stint_status profile_runs(sti_imported *m, int64_t runs, sti_profile *profile)
{
    sti_machine machine;
    stint_status st = sti_profile_begin(profile, m->plan->graph, 1, 1, m->threads);
    if (st != STINT_OK)
        return st;
    const int64_t start = sti_clock_ns();
    for (int64_t i = 0; i < runs; i++)
        sti_imported_run_timed(m, &(sti_team){.threads = m->threads}, profile->node_ns);
    profile->step_ns = sti_clock_ns() - start;
    profile->steps = profile->runs = runs;
    st = sti_machine_now(&machine);
    return st == STINT_OK ? sti_profile_end(profile, &machine) : st;
}

static void add_json(const sti_imported *m, const bench_figures *f,
                     const sti_profile *p, sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_float(&j, "best_s", f->best_s);
    sti_json_float(&j, "median_s", f->median_s);
    sti_json_int(&j, "runs", f->runs);
    sti_json_int(&j, "threads", m->threads);
    sti_json_int(&j, "parameters", m->lowered.parameters);
    sti_json_int(&j, "planned_peak_bytes", (int64_t)f->planned_bytes);
    sti_json_known(&j, "peak_rss_bytes", (int64_t)f->peak_bytes);
    sti_json_text(&j, "cpu", sti_cpu_name());
    sti_json_text(&j, "isa", sti_isa_name(sti_isa_now()));
    sti_profile_json(p, &j);
    sti_json_end_object(&j);
}

static void add_words(const sti_imported *m, const bench_figures *f,
                      const sti_profile *p, sti_text *out)
{
    sti_text_printf(out, "%s, %s, runs of %s on random inputs\n\n", sti_cpu_name(),
                    sti_isa_name(sti_isa_now()), sti_shown(m->path));
    sti_profile_words(p, out);
    sti_text_printf(out,
                    "%.2f ms (median of %" PRId64 " run%s; best %.2f ms), peak memory "
                    "%s, planned %s\n",
                    f->median_s * 1e3, f->runs, sti_s(f->runs), f->best_s * 1e3,
                    sti_cli_peak_text(f->peak_bytes), sti_bytes_text(f->planned_bytes));
}

stint_status sti_cli_imported_bench(sti_cli_call *call, int64_t runs)
{
    sti_imported *m = NULL;
    sti_account account = {0};
    sti_profile profile = {0};
    sti_text text = {0};
    bench_figures f = {.runs = runs};
    int64_t threads = sti_cli_imported_threads(call);
    stint_status st;
    STI_TRY(sti_imported_open(call->operands[0], &m));
    sti_imported_keep(m, true);
    STI_TRY(sti_cli_imported_account(m, &threads, 0, &account));
    f.planned_bytes = account.total_bytes;
    STI_TRY(sti_imported_begin(m));
    for (int64_t i = 0; i < m->lowered.inputs; i++)
        fill_port(m, &m->lowered.input[i], i);
    STI_TRY(time_runs(m, &f));
    STI_TRY(profile_runs(m, runs, &profile));
    if (call->common->json)
        add_json(m, &f, &profile, &text);
    else
        add_words(m, &f, &profile, &text);
    st = sti_cli_answer(call, &text);
out:
    sti_profile_fini(&profile);
    sti_imported_close(m);
    return st;
}
