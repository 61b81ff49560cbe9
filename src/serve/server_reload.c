/* Models loaded anew while the server serves: the new file is opened, checked and run
 * once beside the old weights, which it then takes the place of between two batches.
 * What is wrong with it leaves the old weights in use. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "base/finite.h"
#include "base/json.h"
#include "serve/server_texts.h"

/* Weights that were written into a network's graph cannot be written over. */
static bool is_compact(const sti_served *m)
{
    return sti_model_network_in_use(m->file).constant != NULL;
}

static stint_status check_same(const sti_served *old, const sti_served *fresh)
{
    const sti_data_norm *a = &old->file->norm, *b = &fresh->file->norm;
    const size_t bytes = (size_t)old->channels * sizeof(float);
    if (is_compact(old) || is_compact(fresh))
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: compact files are loaded at the start "
                        "only; begin the server again",
                        old->name);
    if (old->height != fresh->height || old->width != fresh->width ||
        old->channels != fresh->channels || old->classes != fresh->classes ||
        sti_network_agree(&old->network[0], &fresh->network[0]) != STINT_OK ||
        sti_served_kept_bytes(old) != sti_served_kept_bytes(fresh))
        return sti_fail(STINT_E_INPUT,
                        "%s: the new file is of another network, image "
                        "size or number of classes",
                        old->name);
    if (memcmp(a->mean, b->mean, bytes) != 0 ||
        memcmp(a->deviation, b->deviation, bytes) != 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: the new file has another normalisation of "
                        "images; begin the server again",
                        old->name);
    return STINT_OK;
}

/* One image of zeros must have finite answers. */
static stint_status try_once(sti_served *fresh)
{
    sti_runner *runner = NULL;
    stint_status st = sti_runner_create(fresh, 1, 0, 1, &runner);
    if (st == STINT_OK) {
        float *x = sti_runner_input(runner, 0, 1);
        memset(x, 0,
               (size_t)(fresh->height * fresh->width * fresh->channels) * sizeof *x);
        sti_runner_run(runner, 0, 1);
        if (sti_first_not_finite(sti_runner_logits(runner, 0, 1), fresh->classes) >= 0)
            st = sti_model_not_finite(fresh->file);
    }
    sti_runner_destroy(runner);
    return st;
}

static bool any_runs(const sti_server *s)
{
    for (int i = 0; i < s->workers; i++)
        if (s->worker[i].running)
            return true;
    return false;
}

/* Between two batches of all partitions. */
static void take_over(sti_server *s, sti_served *old, sti_served *fresh)
{
    const struct timespec moment = {0, 200000};
    (void)pthread_rwlock_wrlock(&s->files);
    (void)pthread_mutex_lock(&s->lock);
    s->paused = true;
    while (any_runs(s)) {
        (void)pthread_mutex_unlock(&s->lock);
        (void)nanosleep(&moment, NULL);
        (void)pthread_mutex_lock(&s->lock);
    }
    if (s->models.place[old - s->model].in)
        sti_served_take_weights(old, fresh);
    else
        sti_served_take_file(old, fresh);
    s->paused = false;
    sti_workers_wake(s, -1);
    (void)pthread_mutex_unlock(&s->lock);
    (void)pthread_rwlock_unlock(&s->files);
}

/* Texts that have begun end with the weights that they began with; those that wait, and
 * come, have the new ones. */
static void take_texts(sti_server *s, int model, sti_served_text *fresh,
                       sti_texts *texts)
{
    (void)pthread_rwlock_wrlock(&s->files);
    (void)pthread_mutex_lock(&s->lock);
    s->leaving[model] = s->texts[model];
    s->model[model].text = fresh;
    s->texts[model] = texts;
    sti_texts_move_waiting(s->leaving[model], texts);
    sti_texts_offer(texts);
    (void)pthread_mutex_unlock(&s->lock);
    (void)pthread_rwlock_unlock(&s->files);
}

static stint_status reload_text(sti_server *s, int model)
{
    const sti_served *old = &s->model[model];
    sti_served_text *fresh = NULL;
    sti_texts *texts = NULL;
    stint_status st;
    if (s->leaving[model])
        return sti_fail(STINT_E_MEMORY,
                        "%s: texts of the weights before these are drawn still; load "
                        "again when they have ended",
                        old->name);
    STI_TRY(sti_served_text_open(old->path, old->name, old->text->desc.texts, s->cpus,
                                 &fresh));
    STI_TRY(sti_served_text_set_pages(fresh, old->text->desc.pages));
    STI_TRY(sti_served_text_agree(old->text, fresh));
    STI_TRY(sti_served_text_load(fresh));
    STI_TRY(sti_served_text_try(fresh));
    if (!s->models.place[model].in)
        sti_served_text_unload(fresh);
    STI_TRY(sti_texts_create(s, model, fresh, &texts));
    take_texts(s, model, fresh, texts);
    fresh = NULL;
    sti_log(STINT_LOG_INFO, "%s: loaded, weights %.12s", old->name, old->text->version);
out:
    sti_served_text_destroy(fresh);
    return st;
}

static stint_status reload(sti_server *s, int model)
{
    static const sti_partition_kind one[] = {{.threads = 1}};
    sti_served *old = &s->model[model];
    sti_served fresh = {.steps = 0};
    stint_status st;
    if (!s->reloads)
        return sti_fail(STINT_E_MEMORY,
                        "%s: --memory has no room for new weights beside the old; "
                        "begin the server again",
                        old->name);
    if (old->text)
        return reload_text(s, model);
    STI_TRY(sti_served_open(old->path, old->name, 1, one, 1, old->keeps, &fresh));
    if (fresh.text)
        STI_TRY(sti_fail(STINT_E_INPUT, "%s: the new file is a text model", old->name));
    STI_TRY(check_same(old, &fresh));
    STI_TRY(sti_served_load(&fresh));
    STI_TRY(try_once(&fresh));
    take_over(s, old, &fresh);
    sti_log(STINT_LOG_INFO, "%s: loaded, weights %.12s", old->name,
            old->file->weights_sha256);
out:
    sti_served_fini(&fresh);
    return st;
}

/* A model that is asked to be loaded comes, if it was not in. */
static void bring_in(sti_server *s, int model)
{
    (void)pthread_mutex_lock(&s->lock);
    (void)sti_models_is_in(s, model);
    (void)pthread_mutex_unlock(&s->lock);
}

/* Whoever asked over HTTP is told. */
static void tell(sti_http_request *r, const sti_server *s, int model, stint_status st)
{
    char version[13];
    sti_json j = {.out = &r->answer};
    snprintf(version, sizeof version, "%.12s", sti_served_version(&s->model[model]));
    r->status = st == STINT_OK              ? 200
                : st == STINT_E_UNSUPPORTED ? 501
                : st == STINT_E_MEMORY      ? 503
                                            : 400;
    sti_json_begin_object(&j, NULL);
    sti_json_text(&j, "model_version", version);
    if (st != STINT_OK)
        sti_json_text(&j, "error", stint_last_error());
    sti_json_end_object(&j);
    sti_http_answer(r);
}

void sti_server_reload(sti_server *server, bool all)
{
    for (int m = 0; m < server->tables.models; m++) {
        (void)pthread_mutex_lock(&server->lock);
        sti_http_request *r = server->load[m];
        server->load[m] = NULL;
        (void)pthread_mutex_unlock(&server->lock);
        if (!all && !r)
            continue;
        (void)pthread_mutex_lock(&server->models.loading);
        const stint_status st = reload(server, m);
        (void)pthread_mutex_unlock(&server->models.loading);
        if (r && st == STINT_OK)
            bring_in(server, m);
        if (st != STINT_OK)
            sti_log(STINT_LOG_WARNING, "%s; the old weights stay in use",
                    stint_last_error());
        if (r)
            tell(r, server, m, st);
    }
}
