/* The parser, by recursive descent, and the values of expressions. */
#include "model/field_expression.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/units.h"
#include "model/field_function.h"

enum { NESTING_MOST = 64, WORD = 64 };

typedef struct parser {
    const char *key, *text, *at;
    const sti_field_names *names;
    sti_expression *e;
    int nesting;
    stint_status status;
} parser;

static int column_of(const parser *p, const char *at)
{
    return (int)(at - p->text) + 1;
}

static int refuse(parser *p, const char *at, const char *what)
{
    if (p->status == STINT_OK)
        p->status = sti_fail(STINT_E_USAGE, "%s: column %d: %s in '%.80s'", p->key,
                             column_of(p, at), what, p->text);
    return -1;
}

static int add_node(parser *p, const sti_expression_node *node)
{
    if (p->status != STINT_OK)
        return -1;
    if (p->e->count == STI_EXPRESSION_NODES)
        return refuse(p, p->at, "too long an expression");
    p->e->node[p->e->count] = *node;
    return p->e->count++;
}

static int add_operation(parser *p, sti_expression_kind kind, int left, int right)
{
    return add_node(p,
                    &(sti_expression_node){.kind = kind, .left = left, .right = right});
}

static void skip_blanks(parser *p)
{
    while (*p->at == ' ' || *p->at == '\t')
        p->at++;
}

static bool take(parser *p, char c)
{
    skip_blanks(p);
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

/* ---- names ---- */

static void add_upper(char *out, const char *name)
{
    for (; *name; name++)
        *out++ = (char)toupper((unsigned char)*name);
    *out = '\0';
}

static int unknown_name(parser *p, const char *at, const char *word)
{
    const char *known[STI_FIELD_COORDINATES + 2 * STI_FIELD_OUTPUTS + 32];
    char upper[STI_FIELD_OUTPUTS][STI_FIELD_NAME], what[256];
    int count = 0;
    for (int i = 0; i < p->names->coordinates; i++)
        known[count++] = p->names->coordinate[i];
    for (int i = 0; i < p->names->outputs; i++) {
        add_upper(upper[i], p->names->output[i]);
        known[count++] = p->names->output[i];
        known[count++] = upper[i];
    }
    for (int i = 0; sti_field_function_name(i); i++)
        known[count++] = sti_field_function_name(i);
    const char *near = sti_text_nearest(word, known, count);
    if (near && strcmp(near, word) == 0)
        snprintf(what, sizeof what, "'%s' is a function: write %s(...)", word, word);
    else if (near)
        snprintf(what, sizeof what, "no '%s'; did you mean '%s'?", word, near);
    else
        snprintf(what, sizeof what,
                 "no '%s' among the coordinates, outputs, data and functions", word);
    return refuse(p, at, what);
}

static int index_in(const char *word, const char (*names)[STI_FIELD_NAME], int count,
                    bool upper)
{
    for (int i = 0; i < count; i++) {
        char name[STI_FIELD_NAME];
        snprintf(name, sizeof name, "%s", names[i]);
        if (upper)
            add_upper(name, names[i]);
        if (strcmp(name, word) == 0)
            return i;
    }
    return -1;
}

/* The letters behind '_' into node->along. */
static bool read_along(parser *p, const char *at, const char *letters,
                       sti_expression_node *node)
{
    const int most = node->kind == STI_EXPRESSION_TARGET ? STI_EXPRESSION_TARGET_ORDER
                                                         : STI_JET_ORDER;
    if (!*letters)
        return refuse(p, at, "a derivative along nothing") >= 0;
    for (; *letters; letters++) {
        const char word[2] = {*letters, '\0'};
        const int c =
            index_in(word, p->names->coordinate, p->names->coordinates, false);
        if (c < 0)
            return refuse(p, at, "a derivative along no coordinate") >= 0;
        if (node->order == most)
            return refuse(p, at, "a derivative of too high an order") >= 0;
        node->along[node->order++] = (int8_t)c;
    }
    /* Orders of differentiation do not matter: they are sorted. */
    for (int i = 1; i < node->order; i++)
        for (int j = i; j > 0 && node->along[j - 1] > node->along[j]; j--) {
            const int8_t swap = node->along[j];
            node->along[j] = node->along[j - 1];
            node->along[j - 1] = swap;
        }
    return true;
}

static int parse_column(parser *p, const char *at, const char *base,
                        const char *letters)
{
    sti_expression_node node = {.left = -1, .right = -1};
    const int outputs = p->names->outputs;
    node.kind = STI_EXPRESSION_OUTPUT;
    node.index = index_in(base, p->names->output, outputs, false);
    if (node.index < 0) {
        node.kind = STI_EXPRESSION_TARGET;
        node.index = index_in(base, p->names->output, outputs, true);
    }
    if (node.index < 0)
        return unknown_name(p, at, base);
    if (letters && !read_along(p, at, letters, &node))
        return -1;
    if (node.kind == STI_EXPRESSION_OUTPUT) {
        p->e->has_output = true;
    } else {
        p->e->has_target = true;
        if (node.order > p->e->target_order)
            p->e->target_order = node.order;
    }
    return add_node(p, &node);
}

/* nx: what the first output's derivative along x is to be at a point of a surface. -2:
 * the name is another's. */
static int parse_normal(parser *p, const char *word)
{
    const int c = word[0] == 'n' ? index_in(word + 1, p->names->coordinate,
                                            p->names->coordinates, false)
                                 : -1;
    if (c < 0 || index_in(word, p->names->output, p->names->outputs, false) >= 0)
        return -2;
    p->e->has_target = p->e->has_normal = true;
    if (p->e->target_order < 1)
        p->e->target_order = 1;
    return add_node(p, &(sti_expression_node){.kind = STI_EXPRESSION_TARGET,
                                              .left = -1,
                                              .right = -1,
                                              .order = 1,
                                              .along = {(int8_t)c}});
}

static int parse_sum(parser *p);

static int parse_function(parser *p, const char *at, const char *word)
{
    const int function = sti_field_function_find(word);
    if (function < 0)
        return unknown_name(p, at, word);
    (void)take(p, '(');
    const int inner = parse_sum(p);
    if (p->status == STINT_OK && !take(p, ')'))
        return refuse(p, p->at, "')' is missing");
    return add_node(p, &(sti_expression_node){.kind = STI_EXPRESSION_FUNCTION,
                                              .left = inner,
                                              .right = -1,
                                              .index = function});
}

static int parse_name(parser *p)
{
    const char *at = p->at;
    char word[WORD];
    size_t length = 0;
    while (isalnum((unsigned char)*p->at) || *p->at == '_') {
        if (length + 1 == sizeof word)
            return refuse(p, at, "a name that long");
        word[length++] = *p->at++;
    }
    word[length] = '\0';
    skip_blanks(p);
    if (*p->at == '(')
        return parse_function(p, at, word);
    const int c = index_in(word, p->names->coordinate, p->names->coordinates, false);
    if (c >= 0)
        return add_node(p, &(sti_expression_node){.kind = STI_EXPRESSION_COORDINATE,
                                                  .left = -1,
                                                  .right = -1,
                                                  .index = c});
    if (strcmp(word, "pi") == 0)
        return add_node(p, &(sti_expression_node){.kind = STI_EXPRESSION_NUMBER,
                                                  .number = 3.141592653589793,
                                                  .left = -1,
                                                  .right = -1});
    const int normal = parse_normal(p, word);
    if (normal != -2)
        return normal;
    char *letters = strchr(word, '_');
    if (letters)
        *letters++ = '\0';
    return parse_column(p, at, word, letters);
}

/* ---- numbers and operators ---- */

static bool read_number(parser *p, double *number_out)
{
    char word[WORD];
    size_t length = 0;
    const char *at = p->at;
    while (isdigit((unsigned char)*at) || *at == '.' ||
           ((*at == 'e' || *at == 'E') && length > 0) ||
           ((*at == '-' || *at == '+') && length > 0 &&
            (at[-1] == 'e' || at[-1] == 'E'))) {
        if (length + 1 == sizeof word)
            return false;
        word[length++] = *at++;
    }
    word[length] = '\0';
    if (length == 0 || sti_parse_float(word, number_out) != STINT_OK ||
        !isfinite(*number_out))
        return false;
    p->at = at;
    return true;
}

static int parse_atom(parser *p)
{
    double number;
    skip_blanks(p);
    if (p->status != STINT_OK)
        return -1;
    if (take(p, '(')) {
        const int inner = parse_sum(p);
        if (p->status == STINT_OK && !take(p, ')'))
            return refuse(p, p->at, "')' is missing");
        return inner;
    }
    if (isalpha((unsigned char)*p->at))
        return parse_name(p);
    if (!read_number(p, &number))
        return refuse(p, p->at,
                      *p->at ? "a number or a name was wanted"
                             : "it ends where a number or a name was wanted");
    return add_node(p, &(sti_expression_node){.kind = STI_EXPRESSION_NUMBER,
                                              .number = number,
                                              .left = -1,
                                              .right = -1});
}

static int parse_power(parser *p)
{
    const int base = parse_atom(p);
    double number;
    if (p->status != STINT_OK || !take(p, '^'))
        return base;
    const bool minus = take(p, '-');
    skip_blanks(p);
    const char *at = p->at;
    if (!read_number(p, &number) ||
        (number != 0.5 && (number != floor(number) || number > 16)))
        return refuse(p, at,
                      "a whole number of at most 16, or 0.5, was wanted behind ^");
    return add_node(p, &(sti_expression_node){.kind = STI_EXPRESSION_POWER,
                                              .left = base,
                                              .right = -1,
                                              .number = minus ? -number : number});
}

static int parse_sign(parser *p)
{
    if (p->nesting++ == NESTING_MOST)
        return refuse(p, p->at, "too many brackets and signs");
    int value;
    if (take(p, '-'))
        value = add_operation(p, STI_EXPRESSION_NEGATE, parse_sign(p), -1);
    else
        value = take(p, '+') ? parse_sign(p) : parse_power(p);
    p->nesting--;
    return value;
}

static int parse_product(parser *p)
{
    int value = parse_sign(p);
    while (p->status == STINT_OK) {
        if (take(p, '*'))
            value = add_operation(p, STI_EXPRESSION_MULTIPLY, value, parse_sign(p));
        else if (take(p, '/'))
            value = add_operation(p, STI_EXPRESSION_DIVIDE, value, parse_sign(p));
        else
            break;
    }
    return value;
}

static int parse_sum(parser *p)
{
    int value = parse_product(p);
    while (p->status == STINT_OK) {
        if (take(p, '+'))
            value = add_operation(p, STI_EXPRESSION_ADD, value, parse_product(p));
        else if (take(p, '-'))
            value = add_operation(p, STI_EXPRESSION_SUBTRACT, value, parse_product(p));
        else
            break;
    }
    return value;
}

/* ---- the whole ---- */

stint_status sti_expressions_parse(const char *key, const char *text,
                                   const sti_field_names *names,
                                   sti_expressions *expressions_out)
{
    sti_expressions all = {.count = 0};
    parser p = {.key = key, .text = text, .at = text, .names = names};
    bool more = text && text[strspn(text, " \t")];
    *expressions_out = all;
    if (!more)
        return STINT_OK;
    all.expression =
        sti_alloc_array(STI_EXPRESSIONS_MOST, sizeof *all.expression, "expressions");
    if (!all.expression)
        return STINT_E_MEMORY;
    while (more && p.status == STINT_OK) {
        if (all.count == STI_EXPRESSIONS_MOST) {
            (void)refuse(&p, p.at, "too many expressions");
            break;
        }
        p.e = &all.expression[all.count++];
        p.e->root = parse_sum(&p);
        more = take(&p, ',');
        if (!more && p.status == STINT_OK && *p.at)
            (void)refuse(&p, p.at, "an operator or a comma was wanted");
    }
    if (p.status == STINT_OK)
        *expressions_out = all;
    else
        sti_expressions_fini(&all);
    return p.status;
}

void sti_expressions_fini(sti_expressions *expressions)
{
    sti_free(expressions->expression);
    *expressions = (sti_expressions){.count = 0};
}

double sti_expression_value(const sti_expression *e, const double *point)
{
    double v[STI_EXPRESSION_NODES];
    for (int i = 0; i < e->count; i++) {
        const sti_expression_node *n = &e->node[i];
        const double a = n->left >= 0 ? v[n->left] : 0,
                     b = n->right >= 0 ? v[n->right] : 0;
        v[i] = n->kind == STI_EXPRESSION_NUMBER       ? n->number
               : n->kind == STI_EXPRESSION_COORDINATE ? point[n->index]
               : n->kind == STI_EXPRESSION_ADD        ? a + b
               : n->kind == STI_EXPRESSION_SUBTRACT   ? a - b
               : n->kind == STI_EXPRESSION_MULTIPLY   ? a * b
               : n->kind == STI_EXPRESSION_DIVIDE     ? a / b
               : n->kind == STI_EXPRESSION_NEGATE     ? -a
               : n->kind == STI_EXPRESSION_POWER      ? pow(a, n->number)
               : n->kind == STI_EXPRESSION_FUNCTION
                   ? sti_field_function_value(n->index, a)
                   : (double)NAN;
    }
    return v[e->root];
}
