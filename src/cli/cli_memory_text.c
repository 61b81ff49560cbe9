#include "cli/cli_memory_text.h"

#include <inttypes.h>

#include "base/shown.h"

enum { TOLD = 10 };

static void add_words(const stint_memory_text *m, sti_text *out)
{
    sti_text_printf(out,
                    "%" PRId64 " runs of %" PRId64 " of %" PRId64
                    " passages of %" PRId64 " tokens\n",
                    m->runs, m->members, m->passages, m->context);
    sti_text_printf(out, "loss of passages seen %.4f nats a token, not seen %.4f\n",
                    m->seen_loss, m->unseen_loss);
    sti_text_printf(out,
                    "memorised, from %g nats a token on: %" PRId64
                    ", by chance %.1f; without estimate: %" PRId64 "\n\n",
                    m->memorised_from, m->memorised, m->memorised_chance, m->undefined);
    sti_text_printf(out, "%8s %9s %7s %8s %8s\n", "passage", "memorised", "error",
                    "seen", "not seen");
    for (int64_t k = 0; k < m->told && k < TOLD; k++) {
        const stint_memory_passage *p = &m->passage[k];
        sti_text_printf(out, "%8" PRId64 " %9.4f %7.4f %8.4f %8.4f  ", p->index,
                        p->memorisation, p->error, p->seen, p->unseen);
        sti_text_add_shown(out, p->text, "");
        sti_text_add(out, "\n");
    }
    sti_text_printf(out, "page %s/memory.html\n", sti_shown(m->out));
}

static void json_passages(const stint_memory_text *m, sti_json *j)
{
    sti_json_begin_array(j, "most_memorised");
    for (int64_t k = 0; k < m->told; k++) {
        const stint_memory_passage *p = &m->passage[k];
        sti_json_begin_object(j, NULL);
        sti_json_int(j, "index", p->index);
        sti_json_int(j, "token", p->token);
        sti_json_float(j, "memorisation", p->memorisation);
        sti_json_float(j, "error", p->error);
        sti_json_float(j, "seen_loss", p->seen);
        sti_json_float(j, "unseen_loss", p->unseen);
        sti_json_text(j, "text", p->text);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
}

static void add_json(const stint_memory_text *m, sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_int(&j, "runs", m->runs);
    sti_json_int(&j, "passages", m->passages);
    sti_json_int(&j, "context", m->context);
    sti_json_int(&j, "members", m->members);
    sti_json_float(&j, "fraction", m->fraction);
    sti_json_float(&j, "seen_loss", m->seen_loss);
    sti_json_float(&j, "unseen_loss", m->unseen_loss);
    sti_json_float(&j, "memorised_from", m->memorised_from);
    sti_json_int(&j, "memorised", m->memorised);
    sti_json_float(&j, "memorised_by_chance", m->memorised_chance);
    sti_json_int(&j, "undefined", m->undefined);
    sti_json_int(&j, "runs_done", m->runs_done);
    sti_json_int(&j, "jobs", m->jobs);
    sti_json_float(&j, "seconds", m->seconds);
    sti_json_int(&j, "planned_peak_bytes", (int64_t)m->planned_peak_bytes);
    sti_json_known(&j, "peak_rss_bytes", (int64_t)m->peak_rss_bytes);
    sti_json_text(&j, "out", m->out);
    json_passages(m, &j);
    sti_json_end_object(&j);
}

stint_status sti_cli_memory_text_answer(sti_cli_call *call, const stint_memory_text *m)
{
    sti_text text = {0};
    if (call->common->json)
        add_json(m, &text);
    else
        add_words(m, &text);
    return sti_cli_answer(call, &text);
}
