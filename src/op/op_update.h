/* Parameters that change while the graph runs. */
#ifndef STI_OP_OP_UPDATE_H
#define STI_OP_OP_UPDATE_H

#include "graph/graph.h"
#include "kernel/optimizer/optimizer.h"

/* What was seen of a run's gradients. Update nodes of a graph run one after another. */
typedef struct sti_update_seen {
    double squares; /* sum of squares of all of them, tensor by tensor */
    bool failed;    /* one was not finite: it and those after it were not applied */
} sti_update_seen;

typedef struct sti_update_step {
    sti_optimizer_rule rule;
    char *moment[2]; /* blocks; NULL where the rule has none */
    sti_update_seen *seen;
} sti_update_step;

/* in: a gradient, and the parameter that it is of, which changes: the node must be the
 * last to read it. out: nothing that anybody reads. The rule of the step is applied,
 * whichever of the three the node is; they are three so that a plan tells them apart.
 */
typedef struct sti_update_attr {
    int64_t moment;          /* bytes before the parameter's in each block */
    int64_t count;           /* channels that the gradient is of; 0: all */
    const int32_t *channels; /* [count], borrowed: as sti_output's */
    int32_t axis, decays;
} sti_update_attr;
extern const sti_op sti_op_sgd_update, sti_op_adam_update, sti_op_rmsprop_update;

/* The rule on a parameter of this shape, all of it or attr's channels. */
void sti_update_param(const sti_team *team, const sti_optimizer_rule *rule,
                      const sti_update_attr *attr, const stint_shape *shape,
                      float *param, const float *gradient, char *const moment[2]);

#endif
