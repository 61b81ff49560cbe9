/* Derivatives of a field's outputs by its points, appended to its graph: by reverse
 * over reverse, or as truncated Taylor series ("jets") in one forward pass.
 *
 * Both give the same columns. Every point must stay by itself: an operator that mixes
 * them has no derivatives a point, and is refused by name. */
#ifndef STI_PASS_DERIVATIVES_H
#define STI_PASS_DERIVATIVES_H

#include "op/jet_rule.h"
#include "pass/pass.h"

/* A column of what is asked for: an output, differentiated along coordinates in this
 * order. */
typedef struct sti_derivative {
    int8_t output, order;
    int8_t along[STI_JET_ORDER];
    bool laplacian; /* the sum of the second derivatives; order 0 */
    int32_t parent; /* row of the list with the last step left out; -1: order 0 */
} sti_derivative;

typedef struct sti_derivative_list {
    sti_derivative *row; /* [count]; parents before children */
    int64_t count;
    int outputs, coordinates, order;
    bool laplacian;
    int64_t nodes_max; /* of reverse over reverse; 0: STI_DERIVATIVES_NODES */
} sti_derivative_list;

/* Lists in breadth-first order. distinct: each mixed derivative once. all: one for
 * every order of differentiation, as repeated differentiation gives them, cut after
 * `most` rows (0: all of the order). STINT_E_USAGE: an order beyond the bounds of
 * kernel/jet/jet.h, more than STI_DERIVATIVES_MAX rows, or none. */
enum { STI_DERIVATIVES_MAX = 65536 };
stint_status sti_derivatives_distinct(int outputs, int coordinates, int order,
                                      sti_derivative_list *list_out);
stint_status sti_derivatives_all(int outputs, int coordinates, int order, int64_t most,
                                 sti_derivative_list *list_out);
/* Values, first derivatives, and the Laplacian of each output. */
stint_status sti_derivatives_laplacian(int outputs, int coordinates,
                                       sti_derivative_list *list_out);
/* A list of the caller's own: of the outputs themselves, and of what is added, with all
 * that it is a derivative of. STINT_E_USAGE as above; STINT_E_MEMORY. along is sorted.
 */
stint_status sti_derivatives_begin(int outputs, int coordinates,
                                   sti_derivative_list *list_out);
stint_status sti_derivatives_add(sti_derivative_list *list, int output, int order,
                                 const int8_t *along, int64_t *row_out);
void sti_derivatives_fini(sti_derivative_list *list);

/* Where a column lies in a run of the graph: factor times element offset + step * i of
 * `value` for point i. */
typedef struct sti_column {
    stint_value value;
    int64_t offset, step;
    float factor;
} sti_column;

/* Reverse over reverse grows exponentially with the order; what builds more nodes is
 * refused (STINT_E_USAGE), since passes over it would take minutes. */
enum { STI_DERIVATIVES_NODES = 100000 };

/* points [n, coordinates] an input, y [n, outputs] what was built of it; columns_out
 * [list->count]. Values become FETCH outputs of the graph. STINT_E_UNSUPPORTED names an
 * operator without a rule, or one that mixes points. */
stint_status sti_pass_derivatives(stint_graph *graph, stint_value points, stint_value y,
                                  const sti_derivative_list *list,
                                  sti_column *columns_out);
stint_status sti_pass_jet(stint_graph *graph, stint_value points, stint_value y,
                          const sti_derivative_list *list, sti_column *columns_out);

/* Columns of reverse over reverse that differ only in the order of differentiation read
 * one of them; the number of those that no longer need their own. */
int64_t sti_pass_symmetric(const sti_derivative_list *list, sti_column *columns);
/* Leave the graph: each value of the columns once. */
void sti_pass_fetch_columns(stint_graph *graph, const sti_column *columns,
                            int64_t count);
/* Handles after passes that merged or moved values: the columns' outputs as they are
 * now. */
void sti_pass_find_columns(const stint_graph *graph, sti_column *columns,
                           int64_t count);

/* Signs and factors folded into each other, products with ones and sums with zeros left
 * out. */
stint_status sti_pass_simplify(stint_graph *graph, sti_pass_note *note);
/* Scales and biases into the jets behind them. */
stint_status sti_pass_fuse_jets(stint_graph *graph, sti_pass_note *note);

/* Multiply-adds of all matrix products in one run. */
double sti_graph_multiply_adds(const stint_graph *graph);

#endif
