/* Expressions, by precedence, and their values where they are constant. */
#include <string.h>

#include "seal/cc_parse_priv.h"

static stint_status unary(cc_parser *p, cc_node **out);

/* Expressions are walked by recursion, so their depth is kept within the stack. */
enum { MAX_EXPRESSION = 1000 };

static stint_status set_depth(cc_parser *p, cc_node *n, const cc_node *below)
{
    if (below && below->depth >= n->depth)
        n->depth = below->depth + 1;
    return n->depth <= MAX_EXPRESSION
               ? STINT_OK
               : CC_FAIL(p->program, n->line,
                         "an expression of more than %d operators in a row; use "
                         "variables for its parts",
                         MAX_EXPRESSION);
}

static stint_status new_node(cc_parser *p, cc_node_kind kind, cc_node *a, cc_node *b,
                             cc_node **out)
{
    cc_node *n = sti_cc_node(p, kind);
    if (!n)
        return STINT_E_MEMORY;
    if (a)
        n->line = a->line;
    stint_status st = set_depth(p, n, a);
    if (st == STINT_OK)
        st = set_depth(p, n, b);
    if (st != STINT_OK)
        return st;
    n->a = a;
    n->b = b;
    *out = n;
    return STINT_OK;
}

/* ---- constants ---- */

static stint_status not_constant(cc_parser *p, const cc_node *n)
{
    return CC_FAIL(p->program, n->line,
                   "a constant is wanted here: numbers, enums and sizeof");
}

static stint_status fold_binary(cc_parser *p, const cc_node *n, int64_t a, int64_t b,
                                int64_t *out)
{
    const uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (n->op) {
    case '+':
        *out = (int64_t)(x + y);
        return STINT_OK;
    case '-':
        *out = (int64_t)(x - y);
        return STINT_OK;
    case '*':
        *out = (int64_t)(x * y);
        return STINT_OK;
    case '/':
    case '%':
        if (b == 0 || (a == INT64_MIN && b == -1))
            return CC_FAIL(p->program, n->line, "a division that is not defined");
        *out = n->op == '/' ? a / b : a % b;
        return STINT_OK;
    case CC_OP2('<', '<'):
    case CC_OP2('>', '>'):
        if (b < 0 || b > 63)
            return CC_FAIL(p->program, n->line,
                           "a shift by less than 0 or more than 63");
        *out = n->op == CC_OP2('<', '<') ? (int64_t)(x << b) : a >> b;
        return STINT_OK;
    case '&':
        *out = a & b;
        return STINT_OK;
    case '|':
        *out = a | b;
        return STINT_OK;
    case '^':
        *out = a ^ b;
        return STINT_OK;
    case '<':
        *out = a < b;
        return STINT_OK;
    case '>':
        *out = a > b;
        return STINT_OK;
    case CC_OP2('<', '='):
        *out = a <= b;
        return STINT_OK;
    case CC_OP2('>', '='):
        *out = a >= b;
        return STINT_OK;
    case CC_OP2('=', '='):
        *out = a == b;
        return STINT_OK;
    case CC_OP2('!', '='):
        *out = a != b;
        return STINT_OK;
    default:
        return not_constant(p, n);
    }
}

/* Constants of declarations are small: 64 bits stand for every type. */
static stint_status fold(cc_parser *p, const cc_node *n, int64_t *out)
{
    int64_t a = 0, b = 0;
    stint_status st;
    if (n->kind == CC_CONSTANT) {
        *out = (int64_t)n->number;
        return STINT_OK;
    }
    if (n->kind != CC_UNARY && n->kind != CC_BINARY && n->kind != CC_LOGIC &&
        n->kind != CC_CHOICE)
        return not_constant(p, n);
    STI_TRY(fold(p, n->a, &a));
    if (n->kind == CC_UNARY) {
        *out = n->op == '-'   ? (int64_t)(0 - (uint64_t)a)
               : n->op == '~' ? ~a
               : n->op == '!' ? !a
                              : a;
        return STINT_OK;
    }
    if (n->kind == CC_CHOICE)
        return fold(p, a ? n->b : n->c, out);
    STI_TRY(fold(p, n->b, &b));
    if (n->kind == CC_LOGIC)
        *out = n->op == '&' ? a && b : a || b;
    else
        st = fold_binary(p, n, a, b, out);
out:
    return st;
}

static stint_status choice(cc_parser *p, cc_node **out);

stint_status sti_cc_number(cc_parser *p, int64_t *out)
{
    cc_node *n = NULL;
    stint_status st = choice(p, &n);
    return st == STINT_OK ? fold(p, n, out) : st;
}

/* ---- primaries ---- */

static stint_status constant(cc_parser *p, const cc_type *type, uint64_t number,
                             cc_node **out)
{
    stint_status st = new_node(p, CC_CONSTANT, NULL, NULL, out);
    if (st == STINT_OK) {
        (*out)->type = type;
        (*out)->number = number;
    }
    return st;
}

static stint_status call(cc_parser *p, const cc_token *name, cc_node **out)
{
    int64_t capacity = 0;
    cc_node **list = NULL;
    int64_t count = 0;
    stint_status st = new_node(p, CC_CALL, NULL, NULL, out);
    STI_TRY(st);
    (*out)->name = name->text;
    (*out)->name_length = name->length;
    (*out)->line = name->line;
    while (!sti_cc_take(p, ")")) {
        cc_node *argument;
        if (count > 0)
            STI_TRY(sti_cc_expect(p, ","));
        STI_TRY(sti_cc_assignment(p, &argument));
        STI_TRY(set_depth(p, *out, argument));
        STI_TRY(sti_cc_append(p, &list, &count, &capacity, argument));
    }
    (*out)->count = count;
    (*out)->list = sti_cc_new(p, (size_t)(count + 1) * sizeof *list);
    st = (*out)->list ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK && count > 0)
        memcpy((*out)->list, list, (size_t)count * sizeof *list);
out:
    sti_free(list);
    return st;
}

static stint_status named(cc_parser *p, cc_node **out)
{
    const cc_token name = *p->at++;
    if (sti_cc_take(p, "("))
        return call(p, &name, out);
    const cc_known *k = sti_cc_find(p, &name, false);
    if (!k || k->kind == CC_IS_TYPE)
        return CC_FAIL(p->program, name.line, "'%.*s' is not declared", name.length,
                       name.text);
    if (k->kind == CC_IS_NUMBER)
        return constant(p, sti_cc_integer(32, true), (uint64_t)k->number, out);
    stint_status st = new_node(p, CC_VARIABLE, NULL, NULL, out);
    if (st == STINT_OK) {
        (*out)->variable = k->variable;
        (*out)->line = name.line;
    }
    return st;
}

static stint_status primary(cc_parser *p, cc_node **out)
{
    const cc_token *t = p->at;
    stint_status st;
    if (t->kind == CC_NUMBER) {
        p->at++;
        return constant(p, sti_cc_integer(t->is_long ? 64 : 32, !t->is_unsigned),
                        t->number, out);
    }
    if (t->kind == CC_NAME)
        return named(p, out);
    if (!sti_cc_take(p, "("))
        return sti_cc_wrong(p, "an expression");
    STI_TRY(sti_cc_expression(p, out));
    st = sti_cc_expect(p, ")");
out:
    return st;
}

static stint_status member(cc_parser *p, bool arrow, cc_node **out)
{
    cc_token name;
    stint_status st = sti_cc_expect_name(p, &name);
    STI_TRY(st);
    if (arrow)
        STI_TRY(new_node(p, CC_DEREFERENCE, *out, NULL, out));
    STI_TRY(new_node(p, CC_MEMBER, *out, NULL, out));
    (*out)->name = name.text;
    (*out)->name_length = name.length;
out:
    return st;
}

static stint_status postfix(cc_parser *p, cc_node **out)
{
    stint_status st = primary(p, out);
    while (st == STINT_OK) {
        cc_node *index = NULL;
        if (sti_cc_take(p, "[")) {
            STI_TRY(sti_cc_expression(p, &index));
            STI_TRY(sti_cc_expect(p, "]"));
            st = new_node(p, CC_INDEX, *out, index, out);
        } else if (sti_cc_take(p, ".")) {
            st = member(p, false, out);
        } else if (sti_cc_take(p, "->")) {
            st = member(p, true, out);
        } else if (sti_cc_is(p->at, "++") || sti_cc_is(p->at, "--")) {
            const int op = p->at++->text[0];
            STI_TRY(new_node(p, CC_STEP, *out, NULL, out));
            (*out)->op = op;
            (*out)->after = true;
        } else {
            break;
        }
    }
out:
    return st;
}

/* Type of a variable, its elements and members, for sizeof. */
static const cc_type *type_of(const cc_node *n)
{
    if (n->kind == CC_VARIABLE)
        return n->variable->by_reference ? NULL : n->variable->type;
    if (n->kind == CC_INDEX && n->a->kind == CC_VARIABLE)
        return n->a->variable->type->element;
    const cc_type *outer =
        n->kind == CC_INDEX || n->kind == CC_MEMBER ? type_of(n->a) : NULL;
    if (!outer || n->kind == CC_INDEX)
        return outer ? outer->element : NULL;
    for (int64_t i = 0; outer->kind == CC_STRUCT && i < outer->count; i++)
        if (outer->field[i].length == n->name_length &&
            memcmp(outer->field[i].name, n->name, (size_t)n->name_length) == 0)
            return outer->field[i].type;
    return NULL;
}

static stint_status size_of(cc_parser *p, cc_node **out)
{
    const cc_type *type = NULL;
    const cc_token *begin = p->at;
    cc_node *n = NULL;
    stint_status st;
    if (sti_cc_take(p, "(") && sti_cc_begins_type(p)) {
        STI_TRY(sti_cc_type_name(p, &type));
        STI_TRY(sti_cc_expect(p, ")"));
    } else {
        p->at = begin;
        STI_TRY(unary(p, &n));
        type = type_of(n);
    }
    if (!type || type->bytes == 0)
        return CC_FAIL(p->program, begin->line,
                       "sizeof takes a type, or a variable, element or member whose "
                       "size is declared");
    st = constant(p, sti_cc_integer(64, false), (uint64_t)type->bytes, out);
out:
    return st;
}

static stint_status cast(cc_parser *p, cc_node **out)
{
    const cc_type *type;
    stint_status st = sti_cc_type_name(p, &type);
    STI_TRY(st);
    STI_TRY(sti_cc_expect(p, ")"));
    if (type->kind != CC_VOID && !sti_cc_is_scalar(type))
        return CC_FAIL(p->program, p->at->line, "a cast to what is no integer");
    STI_TRY(unary(p, out));
    STI_TRY(new_node(p, CC_CAST, *out, NULL, out));
    (*out)->type = type;
out:
    return st;
}

static stint_status prefix(cc_parser *p, cc_node_kind kind, int op, cc_node **out)
{
    stint_status st = unary(p, out);
    if (st == STINT_OK)
        st = new_node(p, kind, *out, NULL, out);
    if (st == STINT_OK)
        (*out)->op = op;
    return st;
}

static stint_status unary_here(cc_parser *p, cc_node **out)
{
    const cc_token *t = p->at;
    if (sti_cc_take(p, "sizeof"))
        return size_of(p, out);
    if (sti_cc_is(t, "++") || sti_cc_is(t, "--")) {
        p->at++;
        return prefix(p, CC_STEP, t->text[0], out);
    }
    if (t->kind == CC_MARK && t->length == 1 && strchr("+-~!", t->text[0])) {
        p->at++;
        return prefix(p, CC_UNARY, t->text[0], out);
    }
    if (sti_cc_take(p, "*"))
        return prefix(p, CC_DEREFERENCE, 0, out);
    if (sti_cc_take(p, "&"))
        return prefix(p, CC_ADDRESS, 0, out);
    if (sti_cc_is(t, "(")) {
        p->at++;
        if (sti_cc_begins_type(p))
            return cast(p, out);
        p->at = t;
    }
    return postfix(p, out);
}

static stint_status unary(cc_parser *p, cc_node **out)
{
    stint_status st = sti_cc_deeper(p);
    if (st == STINT_OK)
        st = unary_here(p, out);
    p->depth--;
    return st;
}

/* ---- two operands ---- */

static const struct {
    const char *text;
    int level;
} operators[] = {{"||", 1}, {"&&", 2}, {"|", 3}, {"^", 4},  {"&", 5},  {"==", 6},
                 {"!=", 6}, {"<", 7},  {">", 7}, {"<=", 7}, {">=", 7}, {"<<", 8},
                 {">>", 8}, {"+", 9},  {"-", 9}, {"*", 10}, {"/", 10}, {"%", 10}};

/* Binding of the operator here, 0: there is none. */
static int level_of(const cc_token *t)
{
    for (size_t i = 0; t->kind == CC_MARK && i < sizeof operators / sizeof operators[0];
         i++)
        if (sti_cc_is(t, operators[i].text))
            return operators[i].level;
    return 0;
}

static int op_of(const cc_token *t, int length)
{
    return length == 1 ? t->text[0] : CC_OP2(t->text[0], t->text[1]);
}

static stint_status binary(cc_parser *p, int lowest, cc_node **out)
{
    stint_status st = unary(p, out);
    for (int level;
         st == STINT_OK && (level = level_of(p->at)) >= lowest && level > 0;) {
        const cc_token *t = p->at++;
        cc_node *right = NULL;
        STI_TRY(binary(p, level + 1, &right));
        STI_TRY(new_node(p, level <= 2 ? CC_LOGIC : CC_BINARY, *out, right, out));
        (*out)->op = level <= 2 ? t->text[0] : op_of(t, t->length);
        (*out)->line = t->line;
    }
out:
    return st;
}

static stint_status choice(cc_parser *p, cc_node **out)
{
    cc_node *yes = NULL, *no = NULL, *n = NULL;
    stint_status st = sti_cc_deeper(p);
    STI_TRY(st);
    STI_TRY(binary(p, 1, out));
    if (sti_cc_take(p, "?")) {
        STI_TRY(sti_cc_expression(p, &yes));
        STI_TRY(sti_cc_expect(p, ":"));
        STI_TRY(choice(p, &no));
        STI_TRY(new_node(p, CC_CHOICE, *out, yes, &n));
        STI_TRY(set_depth(p, n, no));
        n->c = no;
        *out = n;
    }
out:
    p->depth--;
    return st;
}

/* Length of the operator before '=', 0 for a plain one; -1: no assignment here. */
static int assignment_at(const cc_token *t)
{
    static const char *const marks[] = {
        "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", NULL};
    if (sti_cc_is(t, "="))
        return 0;
    for (int i = 0; marks[i]; i++)
        if (sti_cc_is(t, marks[i]))
            return t->length - 1;
    return -1;
}

stint_status sti_cc_assignment(cc_parser *p, cc_node **out)
{
    stint_status st = sti_cc_deeper(p);
    STI_TRY(st);
    STI_TRY(choice(p, out));
    const int length = assignment_at(p->at);
    if (length >= 0) {
        const cc_token *t = p->at++;
        cc_node *right = NULL;
        STI_TRY(sti_cc_assignment(p, &right));
        STI_TRY(new_node(p, CC_ASSIGN, *out, right, out));
        (*out)->op = length > 0 ? op_of(t, length) : 0;
        (*out)->line = t->line;
    }
out:
    p->depth--;
    return st;
}

stint_status sti_cc_expression(cc_parser *p, cc_node **out)
{
    stint_status st = sti_cc_assignment(p, out);
    while (st == STINT_OK && sti_cc_take(p, ",")) {
        cc_node *right = NULL;
        STI_TRY(sti_cc_assignment(p, &right));
        st = new_node(p, CC_COMMA, *out, right, out);
    }
out:
    return st;
}
