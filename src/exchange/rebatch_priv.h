/* What following a batch shares with the rules of the operators (rebatch_rules.c). */
#ifndef STI_EXCHANGE_REBATCH_PRIV_H
#define STI_EXCHANGE_REBATCH_PRIV_H

#include "exchange/rebatch.h"

/* A name of the network: a tensor, or what the run makes. */
typedef struct sti_batch_value {
    const char *name;
    int rank;
    int64_t dim[STI_EXCHANGE_RANK]; /* in the batch of the file */
    int64_t tensor;                 /* row of the graph; -1: made by the run */
    int64_t maker;                  /* node that makes it; -1: none does */
} sti_batch_value;

/* A tensor of the classifier, and the axis of it that has the length of the classes. */
typedef struct sti_class_tensor {
    int64_t tensor;
    int axis;
} sti_class_tensor;

enum { STI_CLASS_TENSORS = 16 };

struct sti_rebatch {
    sti_exchange_graph *g;
    const char *name;
    sti_batch_value *value; /* [values], by name */
    int64_t values, room;
    bool *behind; /* [nodes]: the classifier is before it, or it */
    /* Axes that a Reshape leaves for the batch, and which of them is taken, [nodes]. */
    int8_t *ways, *way;
    sti_class_tensor head[STI_CLASS_TENSORS];
    int heads;          /* 0: no classifier was found */
    const char *scores; /* before a softmax */
    int64_t batch, classes;
    sti_arena *arena;
};

/* One walk over the nodes. */
typedef struct sti_batch_flow {
    const sti_rebatch *r;
    sti_exchange_graph *out;
    int8_t *axis;   /* [values]: of the batch; -1: none */
    int64_t *outer; /* [values]: elements of the axis for each of which it lies anew */
    int64_t batch, classes;
    int64_t at;        /* node at work */
    int64_t own_outer; /* of its operands with samples; results get the same */
    const sti_exchange_node *node;
    sti_exchange_node copy; /* of it, to be changed; appended when its rule is done */
} sti_batch_flow;

/* Values in the order of their names, as they are to be found. */
void sti_batch_sort(sti_rebatch *r);
/* NULL: no such name. */
const sti_batch_value *sti_batch_find(const sti_rebatch *r, const char *name);
/* The value of operand i; NULL: it is left out. And the axis of its batch; -1: none. */
const sti_batch_value *sti_batch_operand(const sti_batch_flow *f, int i);
int sti_batch_axis(const sti_batch_flow *f, int i);
/* Set that of result i, and of all results; with f->own_outer. */
void sti_batch_set(sti_batch_flow *f, int i, int axis);
void sti_batch_set_all(sti_batch_flow *f, int axis);
/* Whole numbers of operand i or the attribute, *count -1: neither is there. */
const int64_t *sti_batch_list(const sti_batch_flow *f, int i, const char *attr,
                              int64_t *count);
/* STINT_E_UNSUPPORTED "node 'N' (Op): WHY". */
stint_status sti_batch_refuse(const sti_batch_flow *f, const char *why);
/* Operand i becomes this list. */
stint_status sti_batch_put_list(sti_batch_flow *f, int i, const int64_t *list,
                                int64_t count);
/* Operand i becomes itself, of length 1 along an axis, for each sample. */
stint_status sti_batch_put_each(sti_batch_flow *f, int i, int axis);
/* Length of the batch's axis in the batch that is built. */
int64_t sti_batch_length(const sti_batch_flow *f, int64_t length);

/* The first output's scores and, if there is one, the classifier before them
 * (rebatch_classifier.c). STINT_E_UNSUPPORTED: no such output. */
stint_status sti_batch_find_classifier(sti_rebatch *r);
stint_status sti_batch_no_scores(const sti_rebatch *r);
/* Is the operator one of these, whose last is NULL? */
bool sti_batch_is_among(const char *op, const char *const *names);

typedef stint_status sti_batch_rule(sti_batch_flow *f);
/* NULL: what the operator does to a batch is not known. */
sti_batch_rule *sti_batch_rule_of(const char *op);

#endif
