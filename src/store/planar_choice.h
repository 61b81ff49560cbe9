/* Which layers of a compact model run in the fast form (pass/compact). */
#ifndef STI_STORE_PLANAR_CHOICE_H
#define STI_STORE_PLANAR_CHOICE_H

#include "graph/graph.h"
#include "store/compact_file.h"

/* Sets `planar` of the tensors that are weights of convolutions and dense layers of the
 * graph, whatever its number of images: where the sparse kernels are expected to be
 * faster (kernel/planar/planar_cost.h), geometric mean of one image and of sixteen at a
 * time, conversions between the layouts counted. By shape and zeros alone, so that the
 * choice, and with it every bit of a result, is the same wherever the file is written.
 * The first layer goes with the convolutions behind it. STINT_E_MEMORY. */
stint_status sti_planar_choose(const stint_graph *graph, sti_compact_tensor *tensors,
                               int64_t count);

#endif
