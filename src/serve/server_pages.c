/* What others see of a server: metrics, and the plan. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/units.h"
#include "serve/server_texts.h"

/* ---- Prometheus ---- */

static void metric_head(sti_text *out, const char *name, const char *kind,
                        const char *help)
{
    sti_text_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
}

static void add_requests(const sti_server *s, sti_text *out)
{
    static const char *const results[] = {"served", "rejected", "late", "failed"};
    metric_head(out, "stint_requests_total", "counter", "requests by how they ended");
    for (int m = 0; m < s->tables.models; m++) {
        const sti_serve_counts *c = &s->counts[m];
        const int64_t n[] = {c->served, c->rejected, c->late, c->failed};
        for (int i = 0; i < 4; i++)
            sti_text_printf(
                out, "stint_requests_total{model=\"%s\",result=\"%s\"} %" PRId64 "\n",
                s->model[m].name, results[i], n[i]);
    }
}

static void add_latency(const sti_server *s, sti_text *out)
{
    const char *name = "stint_request_seconds";
    metric_head(
        out, name, "histogram",
        "time to the answer, or of a text to its first token, of requests served");
    for (int m = 0; m < s->tables.models; m++) {
        const sti_serve_counts *c = &s->counts[m];
        const char *model = s->model[m].name;
        int64_t sum = 0;
        for (int i = 0; i < STI_SERVE_RANGES - 1; i++)
            sti_text_printf(out, "%s_bucket{model=\"%s\",le=\"%g\"} %" PRId64 "\n",
                            name, model, 1e-3 * (double)(1 << i), sum += c->range[i]);
        sti_text_printf(out, "%s_bucket{model=\"%s\",le=\"+Inf\"} %" PRId64 "\n", name,
                        model, c->served);
        sti_text_printf(out, "%s_sum{model=\"%s\"} %.9g\n", name, model, c->latency_s);
        sti_text_printf(out, "%s_count{model=\"%s\"} %" PRId64 "\n", name, model,
                        c->served);
    }
}

static void add_texts(const sti_server *s, sti_text *out)
{
    static const char *const name[] = {"stint_tokens_total", "stint_texts",
                                       "stint_texts_waiting", "stint_pages_free",
                                       "stint_texts_set_back_total"};
    static const char *const help[] = {
        "tokens drawn", "texts that are drawn together", "texts that wait to be",
        "pages for keys and values that no text holds",
        "times that a text was set back for want of pages"};
    for (int i = 0; i < 5; i++) {
        metric_head(out, name[i], i % 4 == 0 ? "counter" : "gauge", help[i]);
        for (int m = 0; m < s->tables.models; m++) {
            const sti_texts *t = s->texts[m];
            if (!t)
                continue;
            const int64_t value[] = {s->tokens[m], t->state.texts, t->waits,
                                     t->state.free_pages, t->state.set_back};
            sti_text_printf(out, "%s{model=\"%s\"} %" PRId64 "\n", name[i],
                            s->model[m].name, value[i]);
        }
    }
}

static void add_loaded(const sti_server *s, sti_text *out)
{
    metric_head(out, "stint_model_loaded", "gauge", "is the model in memory");
    for (int m = 0; m < s->tables.models; m++)
        sti_text_printf(out, "stint_model_loaded{model=\"%s\"} %d\n", s->model[m].name,
                        s->models.place[m].in);
    metric_head(out, "stint_model_loads_total", "counter",
                "times that the model was loaded on demand");
    for (int m = 0; m < s->tables.models; m++)
        sti_text_printf(out, "stint_model_loads_total{model=\"%s\"} %" PRId64 "\n",
                        s->model[m].name, s->models.place[m].loads);
}

static void add_partitions(const sti_server *s, sti_text *out)
{
    metric_head(out, "stint_partition_busy_seconds_total", "counter",
                "time that a partition computed");
    for (int i = 0; i < s->workers; i++)
        sti_text_printf(
            out,
            "stint_partition_busy_seconds_total{partition=\"%d\",units=\"%d\"} %.9g\n",
            i, s->tables.size[s->worker[i].size], s->worker[i].busy_s);
}

void sti_server_metrics(sti_server *s, sti_text *out)
{
    add_requests(s, out);
    add_latency(s, out);
    if (s->text_models > 0)
        add_texts(s, out);
    if (s->models.on_demand)
        add_loaded(s, out);
    add_partitions(s, out);
    metric_head(out, "stint_recuts_total", "counter",
                "times that the machine was cut anew");
    sti_text_printf(out, "stint_recuts_total %" PRId64 "\n", s->recuts);
    metric_head(out, "stint_requests_waiting", "gauge", "requests that wait");
    sti_text_printf(out, "stint_requests_waiting %" PRId64 "\n",
                    sti_scheduler_waiting(s->scheduler));
    metric_head(out, "stint_resident_bytes", "gauge", "resident memory");
    sti_text_printf(out, "stint_resident_bytes %zu\n", sti_process_now_bytes());
}

/* ---- the plan ---- */

static void add_times(const sti_server *s, const sti_serve_model *m, const char *key,
                      const double *times, sti_json *j)
{
    const sti_served *of = &s->model[m - s->tables.model];
    sti_json_begin_array(j, key);
    for (int k = 0; k < s->tables.sizes; k++) {
        sti_json_begin_array(j, NULL);
        for (int i = 0; i < of->steps; i++)
            sti_json_float(j, NULL, times[k * m->batch_most + of->step[i] - 1]);
        sti_json_end_array(j);
    }
    sti_json_end_array(j);
}

/* The batches of a text model are rows of a step. */
static void explain_text(const sti_served_text *text, sti_json *j)
{
    sti_json_text(j, "kind", text ? "text" : "images");
    if (!text)
        return;
    sti_json_int(j, "context", text->facts.context);
    sti_json_int(j, "texts_max", text->desc.texts);
    sti_json_int(j, "pages", text->desc.pages);
    sti_json_int(j, "page_bytes", (int64_t)text->sizes.page_bytes);
}

static void explain_model(const sti_server *s, int number, sti_json *j)
{
    const sti_serve_model *m = &s->tables.model[number];
    const sti_paris_model *p = &s->plan.paris.model[number];
    sti_json_begin_object(j, NULL);
    sti_json_text(j, "name", m->name);
    sti_json_float(j, "sla_s", m->sla_s);
    sti_json_begin_array(j, "sizes");
    for (int k = 0; k < s->tables.sizes; k++)
        sti_json_int(j, NULL, s->tables.size[k]);
    sti_json_end_array(j);
    sti_json_begin_array(j, "batches");
    for (int i = 0; i < s->model[number].steps; i++)
        sti_json_int(j, NULL, s->model[number].step[i]);
    sti_json_end_array(j);
    sti_json_int(j, "weights_bytes",
                 (int64_t)sti_served_weight_bytes(&s->model[number]));
    sti_json_float(j, "load_s", s->models.place[number].load_s);
    explain_text(s->model[number].text, j);
    add_times(s, m, "p50_s", m->p50, j);
    add_times(s, m, "p95_s", m->p95, j);
    sti_json_begin_array(j, "knee");
    for (int k = 0; k < s->tables.sizes; k++)
        sti_json_int(j, NULL, p->knee[k]);
    sti_json_end_array(j);
    sti_json_begin_array(j, "segments");
    for (int k = 0; k < s->tables.sizes; k++) {
        sti_json_begin_array(j, NULL);
        sti_json_int(j, NULL, k ? p->knee[k - 1] + 1 : 1);
        sti_json_int(j, NULL, p->knee[k]);
        sti_json_end_array(j);
    }
    sti_json_end_array(j);
    sti_json_begin_array(j, "demand_s");
    for (int k = 0; k < s->tables.sizes; k++)
        sti_json_float(j, NULL, p->demand_s[k]);
    sti_json_end_array(j);
    sti_json_end_object(j);
}

void sti_server_explain(const sti_server *s, sti_text *out)
{
    sti_text cut = {0};
    sti_json j = {.out = out, .pretty = true};
    sti_serve_cut_text(&s->tables, &s->plan.cut, &cut);
    sti_json_begin_object(&j, NULL);
    sti_json_int(&j, "units", s->units);
    sti_json_text(&j, "cut", cut.data);
    sti_json_begin_object(&j, "counts");
    for (int k = 0; k < s->tables.sizes; k++) {
        char size[16];
        snprintf(size, sizeof size, "%d", s->tables.size[k]);
        sti_json_int(&j, size, s->plan.cut.count[k]);
    }
    sti_json_end_object(&j);
    sti_json_float(&j, "bound_per_s", s->plan.bound_per_s);
    sti_json_bool(&j, "sla_possible", true);
    sti_json_int(&j, "planned_peak_bytes", (int64_t)s->account.total_bytes);
    sti_json_bool(&j, "on_demand", s->models.on_demand);
    if (s->models.on_demand)
        sti_json_int(&j, "loaded_max_bytes", (int64_t)s->models.most_bytes);
    sti_json_begin_array(&j, "models");
    for (int m = 0; m < s->tables.models; m++)
        explain_model(s, m, &j);
    sti_json_end_array(&j);
    sti_json_end_object(&j);
    sti_text_add(out, "\n");
    sti_text_fini(&cut);
}
