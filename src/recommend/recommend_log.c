/* log.jsonl of a training of clicks: what the report is made of. */
#include <stdio.h>

#include "base/clock.h"
#include "recommend/recommend.h"

stint_status sti_recommend_log_begin(sti_recommend *r, bool resumed)
{
    const sti_learner *l = &r->learner;
    const stint_plan_result *plan = stint_session_describe(l->session);
    sti_json j = sti_json_log_begin(&r->log, "begin");
    sti_json_text(&j, "model", "dlrm");
    sti_json_text(&j, "version", stint_version());
    sti_json_float(&j, "unix_s", sti_clock_unix_s());
    sti_json_bool(&j, "resumed", resumed);
    sti_json_int(&j, "samples", l->clicks.samples);
    sti_json_int(&j, "train_samples", l->clicks.train);
    sti_json_int(&j, "numbers", l->clicks.dense);
    sti_json_int(&j, "fields", l->clicks.fields);
    sti_json_int(&j, "rows", l->clicks.rows);
    sti_json_int(&j, "width", l->model.width);
    sti_json_int(&j, "row_bytes", l->rows.layout.record_bytes);
    sti_json_int(&j, "cache_rows", l->rows.cached);
    sti_json_text(&j, "policy", sti_cache_policy_name(l->rows.policy));
    sti_json_int(&j, "rows_missed_planned", r->planned_missed);
    sti_json_int(&j, "batch", l->batch);
    sti_json_int(&j, "shards", l->shards);
    sti_json_int(&j, "steps", l->steps);
    sti_json_int(&j, "threads", plan->threads);
    sti_json_int(&j, "lanes", plan->lanes);
    sti_json_int(&j, "parameters", plan->parameters);
    sti_json_int(&j, "planned_peak_bytes", (int64_t)plan->peak_bytes);
    return sti_json_log_end(&r->log, &j);
}

stint_status sti_recommend_log_step(sti_recommend *r)
{
    const sti_learner *l = &r->learner;
    const double seconds = (double)r->train_ns * 1e-9;
    sti_row_counts c = {0};
    sti_json j = sti_json_log_begin(&r->log, "step");
    if (l->store)
        c = sti_row_store_counts(l->store);
    sti_json_int(&j, "step", stint_session_steps(l->session));
    sti_json_float(&j, "loss", l->last.loss);
    sti_json_float(&j, "lr", l->last.lr);
    sti_json_float(&j, "gradient_norm", l->last.gradient_norm);
    sti_json_float(&j, "examples_per_s",
                   seconds > 0 ? (double)(r->steps_here * l->batch) / seconds : 0);
    sti_json_int(&j, "rows_touched", c.rows_touched);
    sti_json_int(&j, "rows_missed", c.rows_missed);
    sti_json_int(&j, "pages_read", c.pages_read);
    sti_json_int(&j, "pages_written", c.pages_written);
    sti_json_float(&j, "seconds", sti_seconds_since(r->start_ns));
    return sti_json_log_end(&r->log, &j);
}

/* Rows are hashed at the end alone; till then what they do to the dense part shows. */
stint_status sti_recommend_log_state(sti_recommend *r, const char *weights_sha256)
{
    char sha[65], first[17], rows[17] = "0000000000000000";
    sti_json j = sti_json_log_begin(&r->log, "state");
    stint_session_state_sha256(r->learner.session, sha);
    snprintf(first, sizeof first, "%.16s", sha);
    if (weights_sha256)
        snprintf(rows, sizeof rows, "%.16s", weights_sha256);
    sti_json_int(&j, "step", stint_session_steps(r->learner.session));
    sti_json_text(&j, "sha256", weights_sha256 ? weights_sha256 : sha);
    sti_json_begin_object(&j, "tensors");
    sti_json_text(&j, "weights and moments", first);
    sti_json_text(&j, "rows", rows);
    sti_json_end_object(&j);
    return sti_json_log_end(&r->log, &j);
}

stint_status sti_recommend_log_end(sti_recommend *r, stint_status status,
                                   const stint_embed_result *result)
{
    sti_json j = sti_json_log_begin(&r->log, "end");
    sti_json_text(&j, "status", status == STINT_OK ? "ok" : stint_status_name(status));
    if (status != STINT_OK)
        sti_json_text(&j, "error", stint_last_error());
    if (result) {
        sti_json_float(&j, "test_auc", result->test.auc);
        sti_json_float(&j, "test_log_loss", result->test.log_loss);
        sti_json_float(&j, "test_accuracy", result->test.accuracy);
        sti_json_float(&j, "test_calibration", result->test.calibration);
        sti_json_float(&j, "train_loss", result->train_loss);
        sti_json_float(&j, "examples_per_s", result->examples_per_s);
        sti_json_int(&j, "rows_touched", result->rows_touched);
        sti_json_int(&j, "rows_missed", result->rows_missed);
        sti_json_int(&j, "rows_missed_planned", result->rows_missed_planned);
        sti_json_int(&j, "pages_read", result->pages_read);
        sti_json_int(&j, "pages_written", result->pages_written);
        sti_json_int(&j, "page_bytes", result->page_bytes);
        sti_json_float(&j, "seconds", result->seconds);
        sti_json_int(&j, "planned_peak_bytes", (int64_t)result->planned_peak_bytes);
        sti_json_int(&j, "peak_rss_bytes", (int64_t)result->peak_rss_bytes);
        sti_json_text(&j, "weights_sha256", result->weights_sha256);
    }
    return sti_json_log_end(&r->log, &j);
}
