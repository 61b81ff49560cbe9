#include "play/play_log.h"

#include <string.h>

#include "base/clock.h"

static void add_parts(sti_json *j, const stint_plan_result *plan)
{
    sti_json_begin_array(j, "parts");
    for (int i = 0; i < plan->part_count; i++) {
        sti_json_begin_object(j, NULL);
        sti_json_text(j, "name", plan->parts[i].name);
        sti_json_text(j, "detail", plan->parts[i].detail);
        sti_json_int(j, "bytes", (int64_t)plan->parts[i].bytes);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
}

stint_status sti_play_log_begin(sti_json_log *log, const sti_play *p, bool resumed)
{
    static const char *const methods[] = {"a2c", "vtrace", "ppo"};
    const stint_plan_result *plan = stint_session_describe(p->session);
    const stint_env_facts *facts = stint_env_describe(p->envs);
    sti_json j = sti_json_log_begin(log, "begin");
    sti_json_text(&j, "version", stint_version());
    sti_json_float(&j, "unix_s", sti_clock_unix_s());
    sti_json_bool(&j, "resumed", resumed);
    sti_json_text(&j, "kind", facts->kind);
    sti_json_text(&j, "rom", p->env.rom);
    sti_json_text(&j, "env_identity", facts->identity);
    sti_json_text(&j, "network", sti_agent_network_name(p->shape.network));
    sti_json_text(&j, "method", methods[p->agent.method]);
    sti_json_int(&j, "actions", p->shape.actions);
    sti_json_int(&j, "envs", p->env.envs);
    sti_json_int(&j, "horizon", p->agent.horizon);
    sti_json_int(&j, "every", p->agent.every);
    sti_json_int(&j, "groups", p->agent.groups);
    sti_json_int(&j, "lag", p->agent.lag);
    sti_json_int(&j, "shards", p->shards);
    sti_json_int(&j, "threads", plan->threads);
    sti_json_int(&j, "lanes", plan->lanes);
    sti_json_int(&j, "parameters", plan->parameters);
    sti_json_int(&j, "seed", (int64_t)p->seed);
    sti_json_int(&j, "planned_peak_bytes", (int64_t)plan->peak_bytes);
    add_parts(&j, plan);
    return sti_json_log_end(log, &j);
}

stint_status sti_play_log_update(sti_json_log *log, const sti_play *p,
                                 double frames_per_s, double seconds)
{
    const sti_returns returns = sti_rollout_returns(&p->rollout);
    const double ns = seconds > 0 ? seconds * 1e9 : 1;
    sti_json j = sti_json_log_begin(log, "update");
    sti_json_int(&j, "update", p->updates);
    sti_json_int(&j, "env_frames", p->rollout.counts.frames);
    sti_json_float(&j, "frames_per_s", frames_per_s);
    sti_json_float(&j, "loss", p->last.loss);
    sti_json_float(&j, "policy_loss", p->last.metric[STI_LEARN_POLICY_LOSS]);
    sti_json_float(&j, "value_loss", p->last.metric[STI_LEARN_VALUE_LOSS]);
    sti_json_float(&j, "entropy", p->last.metric[STI_LEARN_ENTROPY]);
    sti_json_float(&j, "gradient_norm", p->last.gradient_norm);
    sti_json_float(&j, "lr", p->last.lr);
    sti_json_int(&j, "episodes", p->rollout.counts.episodes);
    sti_json_float(&j, "return_mean", returns.mean);
    sti_json_float(&j, "return_low", returns.low);
    sti_json_float(&j, "return_high", returns.high);
    sti_json_float(&j, "policy_lag", sti_play_lag(p));
    sti_json_float(&j, "act_share", (double)p->rollout.act_ns / ns);
    sti_json_float(&j, "step_share", (double)p->rollout.step_ns / ns);
    sti_json_float(&j, "train_share", (double)p->train_ns / ns);
    sti_json_float(&j, "seconds", seconds);
    return sti_json_log_end(log, &j);
}

stint_status sti_play_log_best(sti_json_log *log, const sti_play *p)
{
    sti_json j = sti_json_log_begin(log, "best");
    sti_json_int(&j, "update", p->best.place.update);
    sti_json_float(&j, "return_mean", p->best.place.mean);
    return sti_json_log_end(log, &j);
}

stint_status sti_play_log_state(sti_json_log *log, const sti_play *p)
{
    char sha[65], first[17];
    sti_json j = sti_json_log_begin(log, "state");
    stint_session_state_sha256(p->session, sha);
    memcpy(first, sha, 16);
    first[16] = '\0';
    sti_json_int(&j, "step", p->updates);
    sti_json_text(&j, "sha256", sha);
    sti_json_begin_object(&j, "tensors");
    sti_json_text(&j, "weights and moments", first);
    sti_json_end_object(&j);
    return sti_json_log_end(log, &j);
}

stint_status sti_play_log_end(sti_json_log *log, stint_status status,
                              const stint_play_result *r)
{
    sti_json j = sti_json_log_begin(log, "end");
    sti_json_text(&j, "status", status == STINT_OK ? "ok" : stint_status_name(status));
    if (status != STINT_OK)
        sti_json_text(&j, "error", stint_last_error());
    if (r) {
        sti_json_int(&j, "updates", r->updates);
        sti_json_int(&j, "env_frames", r->env_frames);
        sti_json_float(&j, "frames_per_s", r->frames_per_s);
        sti_json_float(&j, "return_mean", r->return_mean);
        sti_json_float(&j, "return_low", r->return_low);
        sti_json_float(&j, "return_high", r->return_high);
        sti_json_int(&j, "model_update", r->model_update);
        sti_json_float(&j, "model_return_mean", r->model_return_mean);
        sti_json_float(&j, "seconds", r->seconds);
        sti_json_int(&j, "peak_rss_bytes", (int64_t)r->peak_rss_bytes);
        sti_json_text(&j, "weights_sha256", r->weights_sha256);
    }
    return sti_json_log_end(log, &j);
}
