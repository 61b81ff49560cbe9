/* stint plan, of a recipe that trains an agent. */
#include <inttypes.h>

#include "base/fail.h"
#include "base/units.h"
#include "cli/cli_play.h"
#include "cli/cli_stock.h"

static void plan_json(const sti_cli_call *call, const stint_play_plan *p, sti_text *out)
{
    const stint_plan_result *m = &p->memory;
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_text(&j, "recipe", call->recipe_name);
    sti_json_int(&j, "peak_bytes", (int64_t)m->peak_bytes);
    sti_json_bool(&j, "fits", m->fits);
    sti_json_int(&j, "budget_bytes", (int64_t)m->budget_bytes);
    sti_json_int(&j, "smallest_bytes", (int64_t)m->smallest_bytes);
    sti_json_float(&j, "frames_per_s", p->frames_per_s);
    sti_json_text(&j, "limit", p->limit);
    sti_json_int(&j, "envs", p->envs);
    sti_json_int(&j, "horizon", p->horizon);
    sti_json_int(&j, "every", p->every);
    sti_json_int(&j, "groups", p->groups);
    sti_json_int(&j, "threads", m->threads);
    sti_json_int(&j, "lanes", m->lanes);
    sti_json_int(&j, "shards", m->shards);
    sti_json_int(&j, "parameters", m->parameters);
    sti_json_begin_array(&j, "parts");
    for (int i = 0; i < m->part_count; i++) {
        sti_json_begin_object(&j, NULL);
        sti_json_text(&j, "name", m->parts[i].name);
        sti_json_text(&j, "detail", m->parts[i].detail);
        sti_json_int(&j, "bytes", (int64_t)m->parts[i].bytes);
        sti_json_end_object(&j);
    }
    sti_json_end_array(&j);
    sti_json_float(&j, "slowdown", m->slowdown);
    sti_json_end_object(&j);
}

static void plan_words(const stint_play_plan *p, sti_text *out)
{
    const stint_plan_result *m = &p->memory;
    sti_text_printf(out,
                    "%" PRId64 " environments in %" PRId64 " group%s, horizon %" PRId64
                    ", an update every %" PRId64 " step%s; %s parameters\n\n",
                    p->envs, p->groups, sti_s(p->groups), p->horizon, p->every,
                    sti_s(p->every), sti_count_text(m->parameters));
    for (int i = 0; i < m->part_count; i++)
        sti_text_printf(out, "  %-18s %11s  %s\n", m->parts[i].name,
                        sti_bytes_text(m->parts[i].bytes), m->parts[i].detail);
    sti_text_printf(out, "  %-18s %11s\n", "peak", sti_bytes_text(m->peak_bytes));
    if (m->fits)
        sti_text_printf(out, "\n%.0f frames/s, limited by %s\n", p->frames_per_s,
                        p->limit[0] == 't'   ? "learning (train)"
                        : p->limit[0] == 's' ? "the consoles (step)"
                                             : "acting (act)");
    else
        sti_text_printf(out, "\nDoes not fit %s\n", sti_bytes_text(m->budget_bytes));
}

stint_status sti_cli_play_plan(sti_cli_call *call)
{
    stint_play_plan plan;
    sti_text text = {0};
    sti_cli_say_recipe(call);
    stint_status st = stint_play_plan_of(call->recipe, &plan);
    if (st != STINT_OK)
        return st;
    if (call->common->json)
        plan_json(call, &plan, &text);
    else
        plan_words(&plan, &text);
    st = sti_cli_answer(call, &text);
    if (st == STINT_OK && !plan.memory.fits)
        st = sti_fail(STINT_E_BUDGET,
                      "the run needs %s, --memory allows %s; the least that would do "
                      "is --memory %s, and fewer env.envs take less",
                      sti_bytes_text(plan.memory.peak_bytes),
                      sti_bytes_text(plan.memory.budget_bytes),
                      sti_enough_text(plan.memory.smallest_bytes));
    stint_plan_fini(&plan.memory);
    return st;
}
