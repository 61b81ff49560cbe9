/* Compact files of a network whose weights lie in memory. */
#ifndef STI_STORE_COMPACT_NETWORK_H
#define STI_STORE_COMPACT_NETWORK_H

#include "model/network.h"
#include "store/compact_file.h"

/* Thin factors whose product a weight is, to the bit (sti_weight_multiply). */
typedef struct sti_compact_factors {
    const char *name; /* of the weight */
    int64_t rank;
    const float *left, *right; /* [rows, rank], [rank, columns] */
} sti_compact_factors;

/* All borrowed. */
typedef struct sti_compact_source {
    const sti_tensor_file *file; /* of a model, whose texts are the compact one's */
    const sti_network *network;
    void *params, *states;              /* blocks of the network */
    const sti_compact_factors *factors; /* [factor_count] */
    int factor_count;
} sti_compact_source;

/* The compact file of a network, every weight in the form that is seen of it, with the
 * hash of these weights among its texts. path NULL: nothing is written, and *bytes_out
 * is what it would take. value_bits_out [values of the graph], or NULL: what each
 * parameter and state takes of it. Errors as sti_compact_write. */
stint_status sti_compact_network(const sti_compact_source *source, const char *path,
                                 int64_t *bytes_out, double *value_bits_out);

/* The form of one tensor and its scales, which are in the arena. left NULL: it is no
 * product. */
stint_status sti_compact_describe(sti_arena *arena, int rank, const int64_t *dim,
                                  const float *x, const sti_compact_factors *factors,
                                  sti_weight *weight_out);

#endif
