/* Expressions: C's conversions, and its operators on bits. */
#include <string.h>

#include "seal/cc_run_priv.h"

enum { MAX_NESTED = 600 };

/* ---- types ---- */

static const cc_type *int_type(void)
{
    return sti_cc_integer(32, true);
}

static const cc_type *promoted(const cc_type *type)
{
    return type->kind == CC_INTEGER && type->bits >= 32 ? type : int_type();
}

static const cc_type *common(const cc_type *a, const cc_type *b)
{
    if (!sti_cc_is_scalar(a) || !sti_cc_is_scalar(b))
        return a;
    a = promoted(a);
    b = promoted(b);
    if (a->bits != b->bits)
        return a->bits > b->bits ? a : b;
    return a->is_signed ? b : a;
}

static bool is_shift(int op)
{
    return op == CC_OP2('<', '<') || op == CC_OP2('>', '>');
}

static bool is_comparison(int op)
{
    return op == '<' || op == '>' || op == CC_OP2('<', '=') || op == CC_OP2('>', '=') ||
           op == CC_OP2('=', '=') || op == CC_OP2('!', '=');
}

static const cc_type *type_of(const cc_run *c, const cc_node *n);

static const cc_type *member_type(const cc_run *c, const cc_node *n)
{
    const cc_type *type = type_of(c, n->a);
    for (int64_t i = 0; type->kind == CC_STRUCT && i < type->count; i++)
        if (type->field[i].length == n->name_length &&
            memcmp(type->field[i].name, n->name, (size_t)n->name_length) == 0)
            return type->field[i].type;
    return &sti_cc_void;
}

static const cc_type *element_type(const cc_type *type)
{
    return type->kind == CC_ARRAY ? type->element : &sti_cc_void;
}

/* The type of an expression, without its value: of the side of a choice that is not
 * taken. Void for what is no expression. */
static const cc_type *type_of(const cc_run *c, const cc_node *n)
{
    const cc_function *f;
    switch ((int)n->kind) {
    case CC_CONSTANT:
    case CC_CAST:
        return n->type;
    case CC_VARIABLE:
        return n->variable->type;
    case CC_INDEX:
    case CC_DEREFERENCE:
        return element_type(type_of(c, n->a));
    case CC_MEMBER:
        return member_type(c, n);
    case CC_CALL:
        f = sti_cc_find_function(c->program, n->name, n->name_length);
        return f ? f->result : &sti_cc_void;
    case CC_UNARY:
        return n->op == '!' ? int_type() : promoted(type_of(c, n->a));
    case CC_BINARY:
        return is_comparison(n->op) ? int_type()
               : is_shift(n->op)    ? promoted(type_of(c, n->a))
                                    : common(type_of(c, n->a), type_of(c, n->b));
    case CC_CHOICE:
        return common(type_of(c, n->b), type_of(c, n->c));
    case CC_ASSIGN:
    case CC_STEP:
        return type_of(c, n->a);
    case CC_COMMA:
        return type_of(c, n->b);
    case CC_LOGIC:
        return int_type();
    default:
        return &sti_cc_void;
    }
}

void sti_cc_convert(cc_run *c, const cc_type *type, cc_value *value)
{
    const int from = (int)value->type->bits, to = (int)type->bits;
    if (!sti_cc_is_scalar(type) || !sti_cc_is_scalar(value->type))
        return;
    if (type->kind == CC_BOOL) {
        value->bit[0] = sti_bits_any(c->netlist, from, value->bit);
    } else {
        const sti_literal fill =
            value->type->is_signed ? value->bit[from - 1] : STI_FALSE;
        for (int i = from; i < to; i++)
            value->bit[i] = fill;
    }
    value->type = type;
}

static stint_status eval_integer(cc_run *c, const cc_node *n, cc_value *out)
{
    stint_status st = sti_cc_eval(c, n, out);
    if (st == STINT_OK && !sti_cc_is_scalar(out->type))
        return CC_FAIL(c->program, n->line, "an integer is wanted here");
    return st;
}

stint_status sti_cc_truth(cc_run *c, const cc_node *n, sti_literal *out)
{
    cc_value value;
    stint_status st = eval_integer(c, n, &value);
    if (st == STINT_OK)
        *out = sti_bits_any(c->netlist, (int)value.type->bits, value.bit);
    return st;
}

static void set_truth(cc_value *out, sti_literal truth)
{
    out->type = int_type();
    sti_bits_constant(0, 32, out->bit);
    out->bit[0] = truth;
}

/* ---- operators ---- */

static stint_status shift(cc_run *c, const cc_node *n, int op, cc_value *a, cc_value *b,
                          cc_value *out)
{
    int64_t by;
    sti_cc_convert(c, promoted(a->type), a);
    sti_cc_convert(c, promoted(b->type), b);
    if (sti_cc_known(b, &by) && (by < 0 || by >= a->type->bits))
        return CC_FAIL(c->program, n->line,
                       "a shift by %" PRId64 " of %" PRId64 " bits is not defined in C",
                       by, a->type->bits);
    out->type = a->type;
    sti_bits_shift(c->netlist, (int)a->type->bits, op == CC_OP2('<', '<'),
                   a->type->is_signed, a->bit, b->bit, (int)b->type->bits, out->bit);
    return STINT_OK;
}

static void compare(cc_run *c, int op, const cc_value *a, const cc_value *b,
                    cc_value *out)
{
    const int bits = (int)a->type->bits;
    const bool is_signed = a->type->is_signed;
    sti_literal truth;
    if (op == CC_OP2('=', '=') || op == CC_OP2('!', '='))
        truth = sti_bits_equal(c->netlist, bits, a->bit, b->bit);
    else if (op == '<' || op == CC_OP2('>', '='))
        truth = sti_bits_less(c->netlist, bits, is_signed, a->bit, b->bit);
    else
        truth = sti_bits_less(c->netlist, bits, is_signed, b->bit, a->bit);
    const bool inverted =
        op == CC_OP2('!', '=') || op == CC_OP2('>', '=') || op == CC_OP2('<', '=');
    set_truth(out, truth ^ (sti_literal)inverted);
}

/* A power of two divides by moving bits; a signed one rounds towards zero by adding
 * what is below it first. */
static bool divide_by_power(cc_run *c, int op, const cc_value *a, const cc_value *b,
                            cc_value *out)
{
    const int bits = (int)a->type->bits;
    sti_literal add[STI_BITS_MAX], sum[STI_BITS_MAX];
    uint64_t by;
    int k = 0;
    if (!sti_bits_is_constant(b->bit, bits, &by) || by == 0 || (by & (by - 1)) != 0 ||
        (a->type->is_signed && by >> (bits - 1)))
        return false;
    while (by >> k != 1)
        k++;
    const sti_literal sign = a->type->is_signed ? a->bit[bits - 1] : STI_FALSE;
    for (int i = 0; i < bits; i++)
        add[i] = i < k ? sign : STI_FALSE;
    sti_bits_add(c->netlist, bits, a->bit, add, STI_FALSE, sum);
    if (op == '/') {
        for (int i = 0; i < bits; i++)
            out->bit[i] = i + k < bits         ? sum[i + k]
                          : a->type->is_signed ? sum[bits - 1]
                                               : STI_FALSE;
    } else {
        for (int i = 0; i < k; i++)
            sum[i] = STI_FALSE;
        sti_bits_subtract(c->netlist, bits, a->bit, sum, out->bit);
    }
    return true;
}

static stint_status divide(cc_run *c, const cc_node *n, int op, const cc_value *a,
                           const cc_value *b, cc_value *out)
{
    sti_literal quotient[STI_BITS_MAX], remainder[STI_BITS_MAX];
    int64_t by;
    if (sti_cc_known(b, &by) && by == 0)
        return CC_FAIL(c->program, n->line, "a division by zero");
    if (divide_by_power(c, op, a, b, out))
        return STINT_OK;
    sti_bits_divide(c->netlist, (int)a->type->bits, a->type->is_signed, a->bit, b->bit,
                    quotient, remainder);
    memcpy(out->bit, op == '/' ? quotient : remainder,
           (size_t)a->type->bits * sizeof *out->bit);
    return STINT_OK;
}

static void bitwise(cc_run *c, int op, const cc_value *a, const cc_value *b,
                    cc_value *out)
{
    for (int i = 0; i < a->type->bits; i++)
        out->bit[i] = op == '&'   ? sti_netlist_and(c->netlist, a->bit[i], b->bit[i])
                      : op == '|' ? sti_netlist_or(c->netlist, a->bit[i], b->bit[i])
                                  : sti_netlist_xor(c->netlist, a->bit[i], b->bit[i]);
}

stint_status sti_cc_binary(cc_run *c, const cc_node *n, int op, const cc_value *a,
                           const cc_value *b, cc_value *out)
{
    cc_value x = *a, y = *b;
    const cc_type *type = common(a->type, b->type);
    const int bits = (int)type->bits;
    if (is_shift(op))
        return shift(c, n, op, &x, &y, out);
    sti_cc_convert(c, type, &x);
    sti_cc_convert(c, type, &y);
    out->type = type;
    switch (op) {
    case '+':
        sti_bits_add(c->netlist, bits, x.bit, y.bit, STI_FALSE, out->bit);
        return STINT_OK;
    case '-':
        sti_bits_subtract(c->netlist, bits, x.bit, y.bit, out->bit);
        return STINT_OK;
    case '*':
        sti_bits_multiply(c->netlist, bits, x.bit, y.bit, out->bit);
        return STINT_OK;
    case '/':
    case '%':
        return divide(c, n, op, &x, &y, out);
    case '&':
    case '|':
    case '^':
        bitwise(c, op, &x, &y, out);
        return STINT_OK;
    default:
        compare(c, op, &x, &y, out);
        return STINT_OK;
    }
}

static stint_status eval_binary(cc_run *c, const cc_node *n, cc_value *out)
{
    cc_value a, b;
    stint_status st = eval_integer(c, n->a, &a);
    STI_TRY(st);
    STI_TRY(eval_integer(c, n->b, &b));
    st = sti_cc_binary(c, n, n->op, &a, &b, out);
out:
    return st;
}

static stint_status eval_unary(cc_run *c, const cc_node *n, cc_value *out)
{
    stint_status st = eval_integer(c, n->a, out);
    if (st != STINT_OK)
        return st;
    if (n->op == '!') {
        set_truth(out,
                  sti_not(sti_bits_any(c->netlist, (int)out->type->bits, out->bit)));
        return STINT_OK;
    }
    sti_cc_convert(c, promoted(out->type), out);
    if (n->op == '-')
        sti_bits_negate(c->netlist, (int)out->type->bits, out->bit, out->bit);
    for (int i = 0; n->op == '~' && i < out->type->bits; i++)
        out->bit[i] = sti_not(out->bit[i]);
    return STINT_OK;
}

/* a && b, a || b: the right side is run only where the left one leaves it open. */
static stint_status eval_logic(cc_run *c, const cc_node *n, cc_value *out)
{
    const bool both = n->op == '&';
    sti_literal a, b = STI_FALSE;
    cc_branch branch = {0};
    stint_status st = sti_cc_truth(c, n->a, &a);
    STI_TRY(st);
    if (sti_is_constant(a)) {
        b = a;
        if (a == (both ? STI_TRUE : STI_FALSE))
            st = sti_cc_truth(c, n->b, &b);
        set_truth(out, b);
        return st;
    }
    STI_TRY(sti_cc_branch_begin(c, &branch, both ? a : sti_not(a)));
    STI_TRY(sti_cc_truth(c, n->b, &b));
    STI_TRY(sti_cc_branch_turn(c, &branch));
    STI_TRY(sti_cc_branch_end(c, &branch));
    set_truth(out, both ? sti_netlist_and(c->netlist, a, b)
                        : sti_netlist_or(c->netlist, a, b));
out:
    sti_cc_branch_fini(c, &branch);
    return st;
}

/* Two integers of one type, or two structs, of which the condition chooses. */
static stint_status choose(cc_run *c, sti_literal condition, const cc_value *a,
                           const cc_value *b, cc_value *out)
{
    stint_status st = STINT_OK;
    out->type = a->type;
    if (sti_cc_is_scalar(a->type)) {
        sti_bits_mux(c->netlist, (int)a->type->bits, condition, a->bit, b->bit,
                     out->bit);
        return STINT_OK;
    }
    st = sti_cc_push_store(c, a->type->bits, &out->at);
    for (int64_t i = 0; st == STINT_OK && i < a->type->bits; i++)
        c->store[out->at + i] = sti_netlist_mux(
            c->netlist, condition, c->store[a->at + i], c->store[b->at + i]);
    return st;
}

static stint_status eval_choice(cc_run *c, const cc_node *n, cc_value *out)
{
    const cc_type *type = common(type_of(c, n->b), type_of(c, n->c));
    sti_literal condition;
    cc_value a, b;
    cc_branch branch = {0};
    stint_status st = sti_cc_truth(c, n->a, &condition);
    STI_TRY(st);
    if (sti_is_constant(condition)) {
        st = sti_cc_eval(c, condition ? n->b : n->c, out);
        sti_cc_convert(c, type, out);
        return st;
    }
    STI_TRY(sti_cc_branch_begin(c, &branch, condition));
    STI_TRY(sti_cc_eval(c, n->b, &a));
    STI_TRY(sti_cc_branch_turn(c, &branch));
    STI_TRY(sti_cc_eval(c, n->c, &b));
    STI_TRY(sti_cc_branch_end(c, &branch));
    sti_cc_convert(c, type, &a);
    sti_cc_convert(c, type, &b);
    if (a.type != b.type || a.type->kind == CC_ARRAY)
        st = CC_FAIL(c->program, n->line, "a choice between values of different types");
    else if (a.type->kind != CC_VOID)
        st = choose(c, condition, &a, &b, out);
    else
        out->type = a.type;
out:
    sti_cc_branch_fini(c, &branch);
    return st;
}

static stint_status eval_assign(cc_run *c, const cc_node *n, cc_value *out)
{
    cc_place place;
    cc_value right, old;
    stint_status st = sti_cc_eval(c, n->b, &right);
    STI_TRY(st);
    STI_TRY(sti_cc_place(c, n->a, &place));
    if (place.type->kind == CC_ARRAY || right.type->kind == CC_VOID ||
        sti_cc_is_scalar(place.type) != sti_cc_is_scalar(right.type) ||
        (place.type->kind == CC_STRUCT && right.type != place.type))
        return CC_FAIL(c->program, n->line, "an assignment between different types");
    if (n->op) {
        if (!sti_cc_is_scalar(place.type))
            return CC_FAIL(c->program, n->line, "an integer is wanted here");
        STI_TRY(sti_cc_load(c, &place, &old));
        STI_TRY(sti_cc_binary(c, n, n->op, &old, &right, out));
        right = *out;
    }
    sti_cc_convert(c, place.type, &right);
    STI_TRY(sti_cc_store_value(c, &place, &right));
    *out = right;
out:
    return st;
}

static stint_status eval_step(cc_run *c, const cc_node *n, cc_value *out)
{
    cc_place place;
    cc_value old, one = {.type = int_type()}, next = {0};
    stint_status st = sti_cc_place(c, n->a, &place);
    STI_TRY(st);
    if (!sti_cc_is_scalar(place.type))
        return CC_FAIL(
            c->program, n->line,
            "++ and -- count integers; there is no arithmetic with pointers");
    STI_TRY(sti_cc_load(c, &place, &old));
    sti_bits_constant(1, 32, one.bit);
    STI_TRY(sti_cc_binary(c, n, n->op, &old, &one, &next));
    sti_cc_convert(c, place.type, &next);
    STI_TRY(sti_cc_store_value(c, &place, &next));
    *out = n->after ? old : next;
out:
    return st;
}

static stint_status eval_place(cc_run *c, const cc_node *n, cc_value *out)
{
    cc_place place;
    stint_status st = sti_cc_place(c, n, &place);
    if (st == STINT_OK && place.type->kind == CC_ARRAY)
        return CC_FAIL(c->program, n->line,
                       "an array stands where a value is wanted; there is no "
                       "arithmetic with pointers");
    return st == STINT_OK ? sti_cc_load(c, &place, out) : st;
}

static stint_status eval_cast(cc_run *c, const cc_node *n, cc_value *out)
{
    stint_status st = sti_cc_eval(c, n->a, out);
    if (st != STINT_OK)
        return st;
    if (n->type->kind == CC_VOID) {
        out->type = n->type;
        return STINT_OK;
    }
    if (!sti_cc_is_scalar(out->type))
        return CC_FAIL(c->program, n->line, "a cast of what is no integer");
    sti_cc_convert(c, n->type, out);
    return STINT_OK;
}

static stint_status eval_kind(cc_run *c, const cc_node *n, cc_value *out)
{
    stint_status st;
    switch ((int)n->kind) {
    case CC_CONSTANT:
        out->type = n->type;
        sti_bits_constant(n->number, (int)n->type->bits, out->bit);
        return STINT_OK;
    case CC_VARIABLE:
    case CC_INDEX:
    case CC_MEMBER:
    case CC_DEREFERENCE:
        return eval_place(c, n, out);
    case CC_CALL:
        return c->invoke(c, n, out);
    case CC_UNARY:
        return eval_unary(c, n, out);
    case CC_BINARY:
        return eval_binary(c, n, out);
    case CC_LOGIC:
        return eval_logic(c, n, out);
    case CC_CHOICE:
        return eval_choice(c, n, out);
    case CC_ASSIGN:
        return eval_assign(c, n, out);
    case CC_STEP:
        return eval_step(c, n, out);
    case CC_CAST:
        return eval_cast(c, n, out);
    case CC_COMMA:
        st = sti_cc_eval(c, n->a, out);
        return st == STINT_OK ? sti_cc_eval(c, n->b, out) : st;
    case CC_ADDRESS:
        return CC_FAIL(c->program, n->line,
                       "& is for arguments only: there are no pointers else");
    default:
        return CC_FAIL(c->program, n->line,
                       "an initialiser is wanted only where a "
                       "variable is declared");
    }
}

stint_status sti_cc_eval(cc_run *c, const cc_node *n, cc_value *out)
{
    stint_status st = sti_cc_step(c, n->line);
    if (st != STINT_OK)
        return st;
    if (++c->depth > MAX_NESTED)
        return CC_FAIL(c->program, n->line,
                       "calls and expressions nested more than %d "
                       "deep",
                       MAX_NESTED);
    st = eval_kind(c, n, out);
    c->depth--;
    return st;
}
