/* Expressions over a field: what a loss, or a known solution, is written as.
 *
 *     u_xx + u_yy + 9*u - exp(-x^2)
 *
 * Names are coordinates (x), outputs with or without derivatives (u, u_xy), data in
 * capitals (U, R_x: of a picture, by differences of its pixels), normals of an outline
 * or mesh (nx), numbers and pi; then + - * / ^ with a number behind it, and functions
 * of one number. Commas part several. */
#ifndef STI_MODEL_FIELD_EXPRESSION_H
#define STI_MODEL_FIELD_EXPRESSION_H

#include "model/field_section.h"
#include "pass/derivatives.h"

enum {
    STI_EXPRESSION_NODES = 256,
    STI_EXPRESSIONS_MOST = 16,
    STI_EXPRESSION_TARGET_ORDER = 2 /* of differences of data */
};

typedef enum sti_expression_kind {
    STI_EXPRESSION_NUMBER,
    STI_EXPRESSION_COORDINATE,
    STI_EXPRESSION_OUTPUT, /* differentiated `order` times */
    STI_EXPRESSION_TARGET, /* likewise */
    STI_EXPRESSION_ADD,
    STI_EXPRESSION_SUBTRACT,
    STI_EXPRESSION_MULTIPLY,
    STI_EXPRESSION_DIVIDE,
    STI_EXPRESSION_NEGATE,
    STI_EXPRESSION_POWER, /* to `number` */
    STI_EXPRESSION_FUNCTION
} sti_expression_kind;

typedef struct sti_expression_node {
    sti_expression_kind kind;
    double number;
    int left, right; /* operands, -1: none */
    int index;       /* of a coordinate, an output, or a function */
    int8_t order, along[STI_JET_ORDER];
} sti_expression_node;

typedef struct sti_expression {
    sti_expression_node node[STI_EXPRESSION_NODES]; /* operands before what uses them */
    int count, root;
    bool has_output, has_target, has_normal;
    int target_order; /* highest of the data's differences */
} sti_expression;

typedef struct sti_expressions {
    sti_expression *expression; /* [count] */
    int count;
} sti_expressions;

/* Text NULL: none. key begins messages. STINT_E_USAGE: unknown names (the nearest is
 * offered) and whatever else does not parse, with the column. */
stint_status sti_expressions_parse(const char *key, const char *text,
                                   const sti_field_names *names,
                                   sti_expressions *expressions_out);
void sti_expressions_fini(sti_expressions *expressions);

/* The value at a point [coordinates], of an expression of coordinates alone. */
double sti_expression_value(const sti_expression *expression, const double *point);

/* What names stand for in a graph: values [n, 1]. */
typedef struct sti_expression_scope {
    stint_value points; /* [n, coordinates] */
    /* The column of a derivative of an output, or of the data. */
    stint_value (*output)(void *user, stint_graph *g, const sti_expression_node *node);
    stint_value (*target)(void *user, stint_graph *g, const sti_expression_node *node);
    void *user;
} sti_expression_scope;
/* Appends the expression, [n, 1]; -1 with the graph failed. */
stint_value sti_expression_build(stint_graph *g, const sti_expression *expression,
                                 const sti_expression_scope *scope);

#endif
