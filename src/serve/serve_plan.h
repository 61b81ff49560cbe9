/* How a machine is cut and who answers, from what a user asks for. */
#ifndef STI_SERVE_SERVE_PLAN_H
#define STI_SERVE_SERVE_PLAN_H

#include "serve/elsa.h"

typedef struct sti_serve_options {
    const char *cut;         /* "auto", "paris", or sizes */
    int policy, admit, late; /* sti_serve_policy; deadline, all; drop, serve */
    int64_t batch_max;       /* 1: nothing is merged */
    double batch_delay_s;
} sti_serve_options;

/* A plan on tables, which it borrows. */
typedef struct sti_serve_plan {
    sti_paris paris;
    sti_serve_cut cut;
    sti_scheduler_desc scheduler; /* points into the plan */
    double bound_per_s;           /* NaN: no solver of linear programmes is installed */
} sti_serve_plan;

/* A warning is logged where auto falls back on PARIS's cut. The plan must not move. */
stint_status sti_serve_plan_make(const sti_serve_options *options,
                                 const sti_serve_tables *tables, sti_serve_plan *plan);

#endif
