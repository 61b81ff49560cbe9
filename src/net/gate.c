#include "net/gate.h"

bool sti_gate_has(const sti_gate *gate, int64_t at)
{
    return gate ? gate->final_from(gate->user) <= at : at >= 0;
}

void sti_gate_take(sti_gate *gate, int64_t at)
{
    if (!gate || at >= gate->taken)
        return;
    gate->take(gate->user, at, gate->taken);
    gate->taken = at;
}

typedef struct wanted {
    const sti_gate *gate;
    int64_t at;
} wanted;

static bool has_wanted(void *user)
{
    const wanted *w = user;
    return sti_gate_has(w->gate, w->at);
}

stint_status sti_gate_wait(sti_gate *gate, sti_comm *comm, int64_t at,
                           const sti_comm_request *requests, int count)
{
    wanted w = {.gate = gate, .at = at};
    return sti_comm_wait_news(comm, requests, count, has_wanted, &w);
}

stint_status sti_gate_need(sti_gate *gate, sti_comm *comm, int64_t at)
{
    const stint_status st = gate ? sti_gate_wait(gate, comm, at, NULL, 0) : STINT_OK;
    if (st == STINT_OK)
        sti_gate_take(gate, at);
    return st;
}
