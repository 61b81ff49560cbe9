/* A field's network with its derivatives, for one tile of points.
 *
 * The room field/ asks trained fields. Other rooms use stint/field.h alone. */
#ifndef STI_FIELD_FIELD_NET_H
#define STI_FIELD_FIELD_NET_H

#include "infer/lanes.h"
#include "pass/derivatives.h"
#include "stint/field.h"
#include "store/model_file.h"

typedef struct sti_field_net {
    sti_network net;     /* planned for one thread; images: points of the tile */
    sti_column *columns; /* [list->count] */
    /* Nodes as built and after each rewriting. */
    int64_t built, dead_code, common_subexpression, simplify, symmetric, chain;
    double multiply_adds; /* of a tile */
    bool jets;
} sti_field_net;

/* counts: also count nodes after each rewriting, of reverse over reverse on a copy of
 * the graph. */
stint_status sti_field_net_build(const stint_model_file *model,
                                 const sti_derivative_list *list, bool jets,
                                 int64_t tile, bool counts, sti_field_net *net_out);
void sti_field_net_fini(sti_field_net *net); /* a zeroed one is fine */
/* Bytes that a thread works in: arena and results. */
size_t sti_field_net_arena_bytes(const sti_field_net *net);
size_t sti_field_net_weights_bytes(const sti_field_net *net);

/* The list that is asked for. Errors as of pass/derivatives.h. */
stint_status sti_field_list(const stint_model_file *model, const stint_field_ask *ask,
                            sti_derivative_list *list_out);
/* STINT_E_INPUT unless it is a field; of two coordinates, where flat. */
stint_status sti_field_check(const stint_model_file *model, bool flat);
/* STINT_E_INPUT unless it is a field of two coordinates, STINT_E_USAGE for a picture
 * with a side that is not of 1 to 16384 pixels. */
stint_status sti_field_check_drawn(const stint_model_file *model, int64_t width,
                                   int64_t height);

struct sti_field_pipeline;

/* What is chosen: the way, the tile, and a network for it. */
typedef struct sti_field_choice {
    sti_derivative_list list;
    sti_field_net net;
    struct sti_field_pipeline *pipeline; /* where one was asked for */
    stint_field_plan_result plan;
} sti_field_choice;
/* counts as above. On failure sti_field_choice_fini is still to be called. */
stint_status sti_field_choose(const stint_model_file *model, const stint_field_ask *ask,
                              bool counts, sti_field_choice *choice);
void sti_field_choice_fini(sti_field_choice *choice);

/* Rows of results handed out in the order of the points: `count` points' columns
 * [count, outputs]. */
typedef stint_status sti_field_take_fn(void *user, const float *rows, int64_t count);
/* Points first .. first + count - 1 into out [count, coordinates]. */
typedef stint_status sti_field_give_fn(void *user, int64_t first, int64_t count,
                                       float *out);
typedef struct sti_field_stream {
    int64_t points;
    double scale; /* see stint_field_ask */
    sti_field_give_fn *give;
    sti_field_take_fn *take;
    void *user;
} sti_field_stream;
stint_status sti_field_run(const stint_model_file *model,
                           const sti_field_choice *choice,
                           const sti_field_stream *stream);

#endif
