#include "serve/server_models.h"

#include <math.h>

#include "serve/server.h"

static sti_model_place *place_of(sti_server *s, int model)
{
    return &s->models.place[model];
}

static size_t bytes_of(const sti_server *s, int model)
{
    return sti_served_weight_bytes(&s->model[model]);
}

size_t sti_models_plan(sti_server *s, size_t room)
{
    size_t all = 0, most = 0;
    for (int m = 0; m < s->tables.models; m++) {
        all += bytes_of(s, m);
        most = bytes_of(s, m) > most ? bytes_of(s, m) : most;
    }
    s->models.on_demand = all > room && s->tables.models > 1;
    s->models.most_bytes = !s->models.on_demand ? SIZE_MAX : room > most ? room : most;
    return s->models.on_demand ? s->models.most_bytes : all;
}

/* ---- what others ask; locked ---- */

static void want(sti_server *s, int model)
{
    sti_model_place *p = place_of(s, model);
    if (p->wanted || p->loading)
        return;
    p->wanted = true;
    s->models.turn[s->models.turns++] = model;
    (void)pthread_cond_signal(&s->models.wake);
}

bool sti_models_is_in(sti_server *s, int model)
{
    sti_model_place *p = place_of(s, model);
    p->used_s = sti_server_now();
    if (p->in && !p->leaves)
        return true;
    want(s, model);
    return false;
}

double sti_models_wait_s(const sti_server *s, int model, double now)
{
    const sti_model_place *p = &s->models.place[model];
    double wait = 0;
    if (p->in && !p->leaves)
        return 0;
    for (int m = 0; m < s->tables.models; m++) {
        const sti_model_place *q = &s->models.place[m];
        if (q->loading)
            wait += fmax(q->load_s - (now - q->begun_s), 0);
    }
    if (p->loading)
        return wait;
    for (int i = 0; i < s->models.turns && s->models.turn[i] != model; i++)
        wait += s->models.place[s->models.turn[i]].load_s;
    return wait + p->load_s;
}

void sti_models_park(sti_server *s, sti_pending *pending)
{
    sti_model_place *p = place_of(s, pending->query.model);
    pending->query.next = NULL;
    *p->last = &pending->query;
    p->last = &pending->query.next;
}

void sti_models_begun(sti_server *s, sti_pending *pending)
{
    pending->active = true;
    place_of(s, pending->query.model)->active++;
}

sti_query *sti_models_withdraw_all(sti_server *s)
{
    sti_query *all = NULL, **last = &all;
    for (int m = 0; m < s->tables.models; m++) {
        sti_model_place *p = place_of(s, m);
        if (!p->first)
            continue;
        *last = p->first;
        last = p->last;
        p->first = NULL;
        p->last = &p->first;
    }
    return all;
}
