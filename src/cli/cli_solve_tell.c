/* What stint solve says of a solve and of a plan. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/cli_solve.h"

/* ---- the answer ---- */

const void *sti_solve_side(const sti_solve_task *t)
{
    return t->desc.single ? (const void *)t->b32 : t->b;
}

void *sti_solve_answer(const sti_solve_task *t)
{
    return t->desc.single ? (void *)t->x32 : t->x;
}

stint_status sti_solve_alloc(sti_solve_task *t)
{
    const int64_t count = t->n * t->columns;
    t->x = sti_alloc_array(count, sizeof *t->x, "solve.x");
    t->seconds = sti_alloc_array(t->args->solves, sizeof *t->seconds, "solve.seconds");
    if (!t->x || !t->seconds)
        return STINT_E_MEMORY;
    if (!t->desc.single)
        return STINT_OK;
    t->b32 = sti_alloc_array(count, sizeof *t->b32, "solve.b");
    t->x32 = sti_alloc_array(count, sizeof *t->x32, "solve.x");
    if (!t->b32 || !t->x32)
        return STINT_E_MEMORY;
    for (int64_t k = 0; k < count; k++)
        t->b32[k] = (float)t->b[k];
    return STINT_OK;
}

void sti_solve_find_error(sti_solve_task *t)
{
    for (int64_t k = 0; t->desc.single && k < t->n * t->columns; k++)
        t->x[k] = (double)t->x32[k];
    for (int64_t i = 0; t->ones && i < t->n; i++)
        if (!(fabs(t->x[i] - 1) <= t->error))
            t->error = fabs(t->x[i] - 1);
    for (int64_t k = 0; t->solved == STINT_OK && k < t->n * t->columns; k++)
        if (!isfinite(t->x[k]))
            t->solved =
                sti_fail(STINT_E_FAILED,
                         "row %" PRId64 " of the answer is beyond the largest %s",
                         k / t->columns + 1, t->desc.single ? "float" : "double");
}

/* ---- while it is solved ---- */

static void on_iteration(void *user, int64_t iteration, double relative)
{
    sti_solve_task *t = user;
    char note[96];
    (void)snprintf(note, sizeof note, "iteration %lld, residual %.2e",
                   (long long)iteration, relative);
    sti_progress_update(&t->bar, iteration, note);
    if (t->history.point && relative > 0)
        sti_series_add(&t->history, &(sti_series_point){.x = (double)iteration,
                                                        .value = {log10(relative)}});
}

stint_status sti_solve_watch(sti_solve_task *t)
{
    t->desc.progress = on_iteration;
    t->desc.progress_user = t;
    return t->args->report && !sti_series_init(&t->history) ? STINT_E_MEMORY : STINT_OK;
}

void sti_solve_begin_bar(sti_solve_task *t)
{
    sti_progress_begin(&t->bar, "solve", NULL,
                       t->choice.method == STI_METHOD_TRSV ? 1 : t->args->iterations,
                       t->call->common->quiet);
}

/* ---- what is told ---- */

static void hash_answer(const sti_solve_task *t, char hex[65])
{
    const size_t count = (size_t)(t->n * t->columns);
    sti_sha256 hash;
    sti_sha256_init(&hash);
    sti_sha256_add(&hash, sti_solve_answer(t),
                   count * (t->desc.single ? sizeof(float) : sizeof(double)));
    sti_sha256_hex(&hash, hex);
}

static void add_json(const sti_solve_task *t, sti_text *out)
{
    const sti_system_info *i = &t->info;
    const bool planned = i->trsv.threads > 0;
    char hex[65];
    sti_json j;
    hash_answer(t, hex);
    sti_cli_json_begin(&j, out);
    sti_json_int(&j, "n", t->n);
    sti_json_int(&j, "nonzeros", t->nonzeros);
    sti_json_text(&j, "kind", sti_matrix_kind_names[i->kind]);
    sti_json_text(&j, "method", sti_method_names[i->method]);
    sti_json_text(&j, "precond", sti_precond_names[i->precond]);
    sti_json_text(&j, "strategy",
                  planned ? sti_trsv_strategy_names[i->trsv.strategy] : NULL);
    sti_json_known(&j, "tasks", i->trsv.tasks);
    sti_json_known(&j, "levels", i->trsv.levels);
    sti_json_int(&j, "threads", t->desc.threads);
    sti_json_int(&j, "ranks", t->ranks);
    sti_json_text(&j, "device", t->desc.device ? "cuda" : "cpu");
    sti_json_bool(&j, "converged", t->solved == STINT_OK);
    sti_json_int(&j, "iterations", t->iterations);
    sti_json_float(&j, "residual", t->residual.relative);
    sti_json_float(&j, "backward_error", t->residual.backward);
    if (t->ones)
        sti_json_float(&j, "error", t->error);
    sti_json_float(&j, "analysis_s", i->analysis_s);
    sti_json_float(&j, "factor_s", i->factor_s);
    sti_json_float(&j, "solve_s", t->solve_s);
    sti_json_float(&j, "predicted_s", i->predicted_s);
    sti_json_int(&j, "planned_peak_bytes", (int64_t)t->account.total_bytes);
    sti_json_known(&j, "peak_rss_bytes", (int64_t)sti_process_peak_bytes());
    sti_json_int(&j, "messages", t->messages);
    sti_json_int(&j, "bytes_sent", t->bytes_sent);
    if (t->ranks > 1) {
        sti_json_int(&j, "planned_messages", t->planned_messages);
        sti_json_int(&j, "planned_bytes", t->planned_bytes);
        sti_json_int(&j, "matrix_bytes", (int64_t)t->matrix_bytes);
    }
    sti_json_text(&j, "x_sha256", hex);
    sti_json_end_object(&j);
}

static void add_words(const sti_solve_task *t, sti_text *out)
{
    const sti_system_info *i = &t->info;
    sti_text_printf(out, "%s: %s rows, %s entries, %s; %s", t->call->operands[0],
                    sti_count_text(t->n), sti_count_text(t->nonzeros),
                    sti_matrix_kind_names[i->kind], sti_method_names[i->method]);
    if (i->precond != STI_PRECOND_NONE)
        sti_text_printf(out, " with %s", sti_precond_names[i->precond]);
    if (i->trsv.threads > 0)
        sti_text_printf(out, ", %s on %d thread%s",
                        sti_trsv_strategy_names[i->trsv.strategy], i->trsv.threads,
                        sti_s(i->trsv.threads));
    if (t->desc.device)
        sti_text_printf(out, " on a CUDA device");
    if (i->method != STI_METHOD_TRSV)
        sti_text_printf(out, "; %" PRId64 " iteration%s", t->iterations,
                        sti_s(t->iterations));
    sti_text_printf(out, "\nresidual %.2e, backward error %.2e", t->residual.relative,
                    t->residual.backward);
    if (t->ones)
        sti_text_printf(out, ", error %.2e", t->error);
    sti_text_printf(out, "; analysis %s, ", sti_time_text(i->analysis_s));
    sti_text_printf(out, "factors %s, ", sti_time_text(i->factor_s));
    sti_text_printf(out, "a solve %s\n", sti_time_text(t->solve_s));
}

stint_status sti_solve_tell(sti_solve_task *t)
{
    sti_text text = {0};
    if (t->call->common->json)
        add_json(t, &text);
    else
        add_words(t, &text);
    return sti_cli_answer(t->call, &text);
}

/* A plan that does not fit is told, too, and then refused. */
stint_status sti_solve_tell_plan(const sti_solve_task *t, stint_status fits)
{
    const sti_account *a = &t->account;
    sti_text text = {0};
    sti_json j;
    if (t->call->common->json) {
        sti_cli_json_begin(&j, &text);
        sti_json_text(&j, "method", sti_method_names[t->choice.method]);
        sti_json_text(&j, "precond", sti_precond_names[t->choice.precond]);
        sti_json_int(&j, "peak_bytes", (int64_t)a->total_bytes);
        sti_json_int(&j, "smallest_bytes", (int64_t)t->least_bytes);
        sti_json_bool(&j, "fits", fits == STINT_OK);
        sti_cli_parts_json(a, &j);
        if (t->ranks > 1) {
            sti_json_int(&j, "ranks", t->ranks);
            sti_json_int(&j, "messages", t->planned_messages);
            sti_json_int(&j, "bytes_sent", t->planned_bytes);
        }
        sti_json_end_object(&j);
    } else {
        for (int i = 0; i < a->count; i++)
            sti_text_printf(&text, "%-9s %10s  %s\n", a->parts[i].name,
                            sti_bytes_text(a->parts[i].bytes), a->parts[i].detail);
        sti_text_printf(&text, "peak      %10s  at most",
                        sti_bytes_text(a->total_bytes));
        sti_text_printf(&text, "; smallest %s\n", sti_bytes_text(t->least_bytes));
        if (t->ranks > 1)
            sti_text_printf(&text,
                            "%d ranks send %" PRId64 " message%s, %s, in a solve\n",
                            t->ranks, t->planned_messages, sti_s(t->planned_messages),
                            sti_bytes_text((size_t)t->planned_bytes));
    }
    const stint_status st = sti_cli_answer(t->call, &text);
    return fits != STINT_OK ? fits : st;
}
