/* What the parts of a triangular solve take on this host, and what a solve would take
 * by them. Costs steer which strategy is taken and never change a bit of an answer. */
#ifndef STI_SOLVE_TRSV_COST_H
#define STI_SOLVE_TRSV_COST_H

#include "solve/trsv_priv.h"

/* Seconds, of doubles, with operands near. */
typedef struct sti_trsv_costs {
    double entry_s, row_s;             /* single rows that do not wait for each other */
    double group_entry_s, group_row_s; /* rows of groups of eight, a row */
    double chain_s;                    /* a multiply-add that waits for the last one */
    double scatter_s; /* more, for a row whose b and x lie apart from the last one's */
    double link_s;    /* from the end of a row's chain to a row that reads it */
    double panel_s;   /* an entry of a panel */
    double push_s;    /* an entry that is pushed */
    double handoff_s; /* from one thread to another; 0: there is only one CPU */
    double near_bytes_per_s, far_bytes_per_s; /* read within the last cache, beyond */
    double far_bytes;                         /* size of that cache */
} sti_trsv_costs;

/* Those of this host: stored, or measured now in a tenth of a second and stored, as
 * kernel/machine/machine.h does. Where memory is short nothing is measured, which takes
 * some: typical ones then, if none are known. */
const sti_trsv_costs *sti_trsv_costs_host(bool memory_is_short);
/* Bytes that measuring takes, and gives back; 0: they are known. */
size_t sti_trsv_costs_bytes(void);

/* Seconds of one solve by one thread with rows as they lie (order NULL) or in an order;
 * grouped where eight of one level and length follow each other. */
double sti_trsv_predict_serial(const sti_trsv_costs *costs, const sti_trsv_desc *d,
                               const sti_sparse_natural *t,
                               const sti_trsv_order *order);
/* The same as rows lie, by a sample of them: for who plans few solves. */
double sti_trsv_predict_roughly(const sti_trsv_costs *costs, const sti_trsv_desc *d,
                                const sti_sparse_natural *t);
/* The same of panels, which the plan has. */
double sti_trsv_predict_panels(const sti_trsv_costs *costs, const sti_trsv *plan);
double sti_trsv_predict_push(const sti_trsv_costs *costs, const sti_sparse_natural *t);
/* The same of tasks and waits, which the plan has, on its threads; serial_s is what one
 * thread takes for the same rows. */
double sti_trsv_predict_tasks(const sti_trsv_costs *costs, const sti_trsv *plan,
                              double serial_s);

#endif
