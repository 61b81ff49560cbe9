#include "cli/cli_serve.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/units.h"

static double per_s(const sti_serve_result *r, int64_t count)
{
    return r->seconds > 0 ? (double)count / r->seconds : 0;
}

void sti_cli_serve_words(const sti_serve_result *r, const char *kind, sti_text *out)
{
    sti_text_printf(out,
                    "%s: %" PRId64 " sent in %s: %" PRId64 " served (%.1f/s), %" PRId64
                    " of them in time; %" PRId64 " rejected, %" PRId64
                    " given up as late, %" PRId64 " failed\n",
                    kind, r->sent, sti_time_text(r->seconds), r->served,
                    per_s(r, r->served), r->in_time, r->rejected, r->late, r->failed);
    if (r->served > 0)
        sti_text_printf(
            out, "latency: half within %s, 95 of 100 within %s, 99 within %s\n",
            sti_time_text(r->p50_s), sti_time_text(r->p95_s), sti_time_text(r->p99_s));
    sti_text_printf(out, "not served in time: %.2f %%\n", 100 * r->violations);
    for (int p = 0; p < r->partitions; p++) {
        const sti_serve_partition *part = &r->partition[p];
        sti_text_printf(
            out, "  %d unit%s: busy %.0f %%, %" PRId64 " batches of %.2f images\n",
            part->units, sti_s(part->units),
            r->seconds > 0 ? 100 * part->busy_s / r->seconds : 0, part->batches,
            part->batches ? part->mean_batch : 0);
    }
}

void sti_cli_serve_json(const sti_serve_result *r, const char *kind, sti_json *j)
{
    sti_json_text(j, "kind", kind);
    sti_json_int(j, "sent", r->sent);
    sti_json_int(j, "served", r->served);
    sti_json_int(j, "in_time", r->in_time);
    sti_json_int(j, "rejected", r->rejected);
    sti_json_int(j, "late", r->late);
    sti_json_int(j, "failed", r->failed);
    sti_json_float(j, "p50_s", r->p50_s);
    sti_json_float(j, "p95_s", r->p95_s);
    sti_json_float(j, "p99_s", r->p99_s);
    sti_json_float(j, "wait_mean_s", r->wait_mean_s);
    sti_json_float(j, "violations", r->violations);
    sti_json_float(j, "seconds", r->seconds);
    sti_json_begin_array(j, "partitions");
    for (int p = 0; p < r->partitions; p++) {
        const sti_serve_partition *part = &r->partition[p];
        sti_json_begin_object(j, NULL);
        sti_json_int(j, "units", part->units);
        sti_json_int(j, "batches", part->batches);
        sti_json_int(j, "images", part->images);
        sti_json_float(j, "busy_s", part->busy_s);
        sti_json_float(j, "mean_batch", part->mean_batch);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
}
