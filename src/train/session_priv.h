/* Inside of a session (stint/session.h): session.c builds and runs it, session_plan.c
 * chooses lanes and rewrites, session_file.c writes and reads it. */
#ifndef STI_TRAIN_SESSION_PRIV_H
#define STI_TRAIN_SESSION_PRIV_H

#include "stint/session.h"
#include "train/lr_schedule.h"
#include "train/step_engine.h"
#include "train/step_plan.h"

struct stint_session {
    sti_network net;
    sti_step_engine *engine;
    sti_step_plan plan;
    sti_optimizer_values optimizer;
    sti_schedule schedule;
    uint64_t seed;
    int64_t step;
    stint_value input[STINT_SESSION_MOST], metric[STINT_SESSION_MOST];
    int inputs, metrics;
    stint_value gradient[STINT_SESSION_MOST]; /* of inputs, that are handed out */
    int taken;
    stint_fill_fn *fill;
    stint_take_fn *take;
    void *user;
    sti_step_engine_desc desc;
};

/* Finds the inputs by name; each of the graph must be among them. STINT_E_INPUT. */
stint_status sti_session_find_inputs(const stint_graph *graph, const char *const *names,
                                     int count, stint_value *values_out);
/* The value of an output by name, after passes. */
stint_value sti_session_find_output(const stint_graph *graph, const char *name);

/* Lanes and rewrites for run.memory, into session->plan, net and desc. others: bytes of
 * the caller's. */
stint_status sti_session_choose(stint_session *session, const stint_session_desc *desc);

#endif
