/* What a field is to satisfy: expressions that are to be zero over sets of points. The
 * loss is the sum of their mean squares, each times the weight of its set. */
#ifndef STI_MODEL_FIELD_TERMS_H
#define STI_MODEL_FIELD_TERMS_H

#include "model/field_expression.h"
#include "op/draw_points.h"
#include "stint/model.h"

typedef struct sti_field_box {
    float low[STI_FIELD_COORDINATES], high[STI_FIELD_COORDINATES];
} sti_field_box;

typedef struct sti_field_terms {
    sti_expressions set[STI_TERMS]; /* count 0: no such set */
    sti_expressions exact;          /* count: outputs, or 0 */
    sti_field_box domain;
    bool any; /* of the sets */
} sti_field_terms;

/* STINT_E_USAGE: an expression that does not parse, or (but for exact) is without an
 * output; data in sets that have none; an exact solution that is not one of
 * coordinates for each output; a domain that is none. Nothing is left to be freed then.
 */
stint_status sti_field_terms_parse(const sti_field_values *values,
                                   const sti_field_names *names,
                                   sti_field_terms *terms_out);
void sti_field_terms_fini(sti_field_terms *terms); /* a zeroed one is fine */

/* Do expressions of the data ask for normals? Then a picture is its outline. */
bool sti_field_has_normals(const sti_field_terms *terms);
/* Highest order of the data's differences that expressions ask for; 0: none. */
int sti_field_target_order(const sti_field_terms *terms);
/* Column of the data's difference along[order] (sorted) of an output. */
int sti_field_target_column(const sti_field_names *names, int output, int order,
                            const int8_t *along);

/* What the loss is built over. points, targets: the data's inputs, or -1: none. images
 * of `batch` points a step, by which the points of the other sets are shared out. */
typedef struct sti_field_loss {
    const char *name;
    const stint_field_desc *field;
    const sti_field_values *values;
    const sti_field_names *names;
    stint_value points, targets;
    int64_t images, batch;
} sti_field_loss;
/* Appends the loss, a scalar; ways_out [STI_TERMS]. Derivatives are found as values->by
 * says: STI_FIELD_BY_AUTO counts both ways and takes the one of fewer multiply-adds. */
stint_status sti_field_loss_build(stint_graph *g, const sti_field_loss *loss,
                                  sti_field_way *ways_out, stint_value *loss_out);

#endif
