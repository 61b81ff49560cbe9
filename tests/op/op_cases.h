/* One list of operator cases for every mode: result against a loop in double, first and
 * second gradients against central differences of that loop, the same bits on every
 * instruction set and number of threads, PyTorch, and the check that every row of
 * sti_ops[] is covered by some case (every_row_is_covered in
 * tests/pass/op_gradient_test.c: it sees rows of gradients, too, so it needs the pass).
 *
 * A case builds a piece of graph from inputs and says the same thing once more in
 * double. To add an operator, add a case (or several) to a list: op_cases_basic.h,
 * op_cases_nn.h or op_cases_text.h. */
#ifndef TESTS_OP_OP_CASES_H
#define TESTS_OP_OP_CASES_H

#include <math.h>

#include "base/rng.h"
#include "op/op.h"

#define OP_MAX_IN 6

/* How an input is drawn. */
typedef enum op_draw {
    OP_NORMAL,     /* about [-2, 2], bell-shaped */
    OP_POSITIVE,   /* [0.5, 2.5] */
    OP_AWAY,       /* 0.2 <= |x| <= 1.7: away from a kink at zero */
    OP_DISTINCT,   /* a permutation of multiples of 0.01 about zero: no near ties */
    OP_LABELS,     /* i32, 0 .. last dimension of input 0 - 1 */
    OP_SOME_LABELS /* the same, one in four is -1 */
} op_draw;

typedef struct op_tensor {
    stint_shape shape;
    int64_t count;
    double *data;
} op_tensor;

/* What random operators see in every run of a case. */
static const sti_step op_step = {.seed = 42, .step = 3, .shard = 1};

typedef struct op_case op_case;
struct op_case {
    const char *name; /* unique, "conv2d 3x3 stride 2" */
    int n_in;
    /* Dimensions, comma-separated: a number, a letter, or both: "2C" is 2 times C. A
     * letter is drawn once a case and seed: H, W in 5..9, L in 1..600, others in 1..6.
     * "" is a scalar. */
    const char *shape[OP_MAX_IN];
    op_draw draw[OP_MAX_IN];
    unsigned grad; /* bit i: the gradient of input i is checked */
    double loose;  /* factor on all tolerances; 0: 1 */

    /* Append the operators; returns the one f32 value to look at. x: the inputs. */
    stint_value (*build)(stint_graph *g, const stint_value *x, const op_case *c);
    /* The same in double. out->shape and count are set, data is zeroed. Integer inputs
     * come as doubles. */
    void (*reference)(const op_case *c, const op_tensor *in, op_tensor *out);

    int64_t i[6]; /* whatever build and reference need */
    double f[5];

    /* Python expression for PyTorch over x0, x1, ... (torch, F and the helpers of
     * pytorch_compare.py are in scope; no double quotes). NULL: no counterpart. */
    const char *torch;
};

#include "op/op_cases_basic.h"
#include "op/op_cases_bayes.h"
#include "op/op_cases_clicks.h"
#include "op/op_cases_distill.h"
#include "op/op_cases_exchange.h"
#include "op/op_cases_nn.h"
#include "op/op_cases_play.h"
#include "op/op_cases_text.h"

#include "op/op_cases_bf16.h" /* by the references of the others */

typedef struct op_case_list {
    const op_case *cases;
    int count;
} op_case_list;

static const op_case_list op_case_lists[] = {
    {op_cases_basic, sizeof op_cases_basic / sizeof *op_cases_basic},
    {op_cases_nn, sizeof op_cases_nn / sizeof *op_cases_nn},
    {op_cases_text, sizeof op_cases_text / sizeof *op_cases_text},
    {op_cases_bf16, sizeof op_cases_bf16 / sizeof *op_cases_bf16},
    {op_cases_bayes, sizeof op_cases_bayes / sizeof *op_cases_bayes},
    {op_cases_distill, sizeof op_cases_distill / sizeof *op_cases_distill},
    {op_cases_clicks, sizeof op_cases_clicks / sizeof *op_cases_clicks},
    {op_cases_exchange, sizeof op_cases_exchange / sizeof *op_cases_exchange},
    {op_cases_play, sizeof op_cases_play / sizeof *op_cases_play},
};
#define OP_CASE_LISTS ((int)(sizeof op_case_lists / sizeof *op_case_lists))

#endif
