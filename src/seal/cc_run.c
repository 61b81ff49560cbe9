/* Statements and calls. */
#include <string.h>

#include "seal/cc_run_priv.h"

enum { MAX_NESTED = 600 };

/* ---- calls ---- */

stint_status sti_cc_activate(cc_run *c, cc_function *f, int32_t line,
                             cc_activation *call)
{
    const int64_t result_bits = f->result->bits;
    stint_status st;
    *call = (cc_activation){.function = f, .caller = c->call};
    if (!f->body)
        return CC_FAIL(c->program, line,
                       "'%.*s' is declared, but not defined in this file", f->length,
                       f->name);
    if (f->running)
        return CC_FAIL(c->program, line,
                       "'%.*s' calls itself; write a loop, with its most iterations "
                       "known",
                       f->length, f->name);
    STI_TRY(sti_cc_push_store(c, result_bits + f->bits, &call->result));
    call->base = call->result + result_bits;
    call->reference = sti_alloc_array(f->slots, sizeof *call->reference, "seal.call");
    call->referred = sti_alloc_array(f->slots, sizeof *call->referred, "seal.call");
    call->read_only = sti_alloc_array(f->slots, sizeof *call->read_only, "seal.call");
    st = call->reference && call->referred && call->read_only ? STINT_OK
                                                              : STINT_E_MEMORY;
out:
    return st;
}

void sti_cc_leave(cc_run *c, cc_activation *call)
{
    (void)c;
    sti_free(call->reference);
    sti_free(call->referred);
    sti_free(call->read_only);
}

stint_status sti_cc_enter(cc_run *c, cc_activation *call)
{
    cc_target returns;
    stint_status st = sti_cc_target_begin(c, &returns);
    if (st != STINT_OK)
        return st;
    call->returns = &returns;
    c->call = call;
    call->function->running = true;
    st = sti_cc_execute(c, call->function->body);
    call->function->running = false;
    c->call = call->caller;
    if (st == STINT_OK)
        st = sti_cc_target_end(c, &returns, call->base);
    sti_cc_target_fini(c, &returns);
    return st;
}

static bool same_type(const cc_type *a, const cc_type *b)
{
    if (a->kind != b->kind || a->bits != b->bits || a->is_signed != b->is_signed)
        return false;
    if (a->kind == CC_ARRAY)
        return same_type(a->element, b->element);
    return a->kind != CC_STRUCT || a == b;
}

static stint_status pass_reference(cc_run *c, const cc_node *argument,
                                   const cc_variable *v, cc_activation *call)
{
    cc_place place;
    stint_status st = sti_cc_reference(c, argument, &place);
    if (st != STINT_OK)
        return st;
    if (!same_type(place.type->element, v->type->element))
        return CC_FAIL(c->program, argument->line,
                       "an array of another type than parameter '%.*s'", v->length,
                       v->name);
    if (v->type->count > place.type->count)
        return CC_FAIL(c->program, argument->line,
                       "parameter '%.*s' has %" PRId64
                       " elements, the array only %" PRId64,
                       v->length, v->name, v->type->count, place.type->count);
    if (place.read_only && !v->is_const)
        return CC_FAIL(c->program, argument->line,
                       "a const array for parameter '%.*s', which is not const",
                       v->length, v->name);
    call->reference[v->slot] = place.at;
    call->referred[v->slot] = place.type;
    call->read_only[v->slot] = place.read_only;
    return STINT_OK;
}

/* The parameter is fresh: no journal needs to know of it. */
static stint_status pass_value(cc_run *c, const cc_node *argument, const cc_variable *v,
                               cc_activation *call)
{
    cc_value value;
    stint_status st = sti_cc_eval(c, argument, &value);
    if (st != STINT_OK)
        return st;
    if (sti_cc_is_scalar(v->type) != sti_cc_is_scalar(value.type) ||
        value.type->kind == CC_VOID ||
        (v->type->kind == CC_STRUCT && value.type != v->type))
        return CC_FAIL(c->program, argument->line,
                       "a value of another type than parameter '%.*s'", v->length,
                       v->name);
    sti_cc_convert(c, v->type, &value);
    const sti_literal *from =
        sti_cc_is_scalar(v->type) ? value.bit : c->store + value.at;
    memmove(c->store + call->base + v->at, from,
            (size_t)v->type->bits * sizeof *c->store);
    return STINT_OK;
}

static stint_status pass_arguments(cc_run *c, const cc_node *n, cc_activation *call)
{
    const cc_function *f = call->function;
    stint_status st = STINT_OK;
    if (f->parameters != n->count)
        return CC_FAIL(c->program, n->line,
                       "'%.*s' takes %" PRId64 " argument%s, not %" PRId64, f->length,
                       f->name, f->parameters, f->parameters == 1 ? "" : "s", n->count);
    for (int64_t i = 0; st == STINT_OK && i < n->count; i++) {
        const cc_variable *v = f->parameter[i];
        st = v->by_reference ? pass_reference(c, n->list[i], v, call)
                             : pass_value(c, n->list[i], v, call);
    }
    return st;
}

static stint_status unknown_function(cc_run *c, const cc_node *n)
{
    static const char *const allocators[] = {"malloc", "calloc", "realloc",
                                             "free",   "alloca", NULL};
    for (int i = 0; allocators[i]; i++)
        if (strlen(allocators[i]) == (size_t)n->name_length &&
            memcmp(allocators[i], n->name, (size_t)n->name_length) == 0)
            return CC_FAIL(c->program, n->line,
                           "there is no %s; declare an array of the largest size",
                           allocators[i]);
    return CC_FAIL(c->program, n->line,
                   "'%.*s' is no function of this file; there is no library",
                   n->name_length, n->name);
}

stint_status sti_cc_call(cc_run *c, const cc_node *n, cc_value *out)
{
    cc_activation call;
    cc_function *f = sti_cc_find_function(c->program, n->name, n->name_length);
    if (!f)
        return unknown_function(c, n);
    stint_status st = sti_cc_activate(c, f, n->line, &call);
    STI_TRY(st);
    STI_TRY(pass_arguments(c, n, &call));
    STI_TRY(sti_cc_enter(c, &call));
    out->type = f->result;
    if (sti_cc_is_scalar(f->result)) {
        memcpy(out->bit, c->store + call.result,
               (size_t)f->result->bits * sizeof *out->bit);
        sti_cc_pop_store(c, call.result);
    } else { /* a struct stays where it is until the caller returns */
        out->at = call.result;
        sti_cc_pop_store(c, call.base);
    }
    if (c->dead)
        st = CC_FAIL(c->program, n->line, "'%.*s' never returns", f->length, f->name);
out:
    sti_cc_leave(c, &call);
    return st;
}

/* ---- declarations ---- */

static stint_status clear(cc_run *c, int64_t at, int64_t bits)
{
    stint_status st = STINT_OK;
    c->steps += bits / 64;
    for (int64_t i = 0; st == STINT_OK && i < bits; i++)
        st = sti_cc_write(c, at + i, STI_FALSE);
    return st;
}

static stint_status initialise_value(cc_run *c, const cc_node *n, const cc_type *type,
                                     int64_t at)
{
    cc_value value;
    const cc_place place = {.type = type, .at = at};
    stint_status st;
    if (type->kind == CC_ARRAY)
        return CC_FAIL(
            c->program, n->line,
            "an array is initialised with braces, an inner one with its own");
    STI_TRY(sti_cc_eval(c, n, &value));
    if (sti_cc_is_scalar(type) != sti_cc_is_scalar(value.type) ||
        value.type->kind == CC_VOID || (type->kind == CC_STRUCT && value.type != type))
        return CC_FAIL(c->program, n->line, "an initialiser of another type");
    sti_cc_convert(c, type, &value);
    st = sti_cc_store_value(c, &place, &value);
out:
    return st;
}

stint_status sti_cc_initialise(cc_run *c, const cc_node *n, const cc_type *type,
                               int64_t at)
{
    const int64_t most =
        type->kind == CC_ARRAY || type->kind == CC_STRUCT ? type->count : 1;
    stint_status st = STINT_OK;
    if (n->kind != CC_BRACES)
        return initialise_value(c, n, type, at);
    if (n->count > most)
        return CC_FAIL(c->program, n->line, "more initialisers than elements");
    STI_TRY(sti_cc_step(c, n->line));
    if (++c->depth > MAX_NESTED)
        return CC_FAIL(c->program, n->line, "initialisers nested too deep");
    if (n->count < most || n->count == 0)
        STI_TRY(clear(c, at, type->bits));
    for (int64_t i = 0; i < n->count; i++) {
        const bool in_array = type->kind == CC_ARRAY;
        const bool in_struct = type->kind == CC_STRUCT;
        STI_TRY(sti_cc_initialise(c, n->list[i],
                                  in_array    ? type->element
                                  : in_struct ? type->field[i].type
                                              : type,
                                  at + (in_array    ? i * type->element->bits
                                        : in_struct ? type->field[i].at
                                                    : 0)));
    }
    c->depth--;
out:
    return st;
}

/* ---- statements ---- */

static stint_status execute_if(cc_run *c, const cc_node *n)
{
    sti_literal condition;
    cc_branch branch = {0};
    stint_status st = sti_cc_truth(c, n->a, &condition);
    STI_TRY(st);
    if (sti_is_constant(condition)) {
        const cc_node *taken = condition ? n->b : n->c;
        return taken ? sti_cc_execute(c, taken) : STINT_OK;
    }
    STI_TRY(sti_cc_branch_begin(c, &branch, condition));
    STI_TRY(sti_cc_execute(c, n->b));
    STI_TRY(sti_cc_branch_turn(c, &branch));
    if (n->c)
        STI_TRY(sti_cc_execute(c, n->c));
    st = sti_cc_branch_end(c, &branch);
out:
    sti_cc_branch_fini(c, &branch);
    return st;
}

/* The condition before a run of the body. A secret one leaves the loop where it is
 * false; *go: there may be another run. */
static stint_status loop_condition(cc_run *c, const cc_node *n,
                                   const cc_node *condition, int64_t run, bool *go)
{
    sti_literal goes_on = STI_TRUE;
    stint_status st = STINT_OK;
    if (condition)
        STI_TRY(sti_cc_truth(c, condition, &goes_on));
    *go = goes_on != STI_FALSE;
    if (!*go)
        return STINT_OK;
    if (!sti_is_constant(goes_on)) {
        if (n->bound == 0)
            return CC_FAIL(c->program, n->line,
                           "how often this loop runs is secret; write #pragma stint "
                           "bound N above it, N being the most");
        STI_TRY(sti_cc_target_exit(c, c->call->breaks, sti_not(goes_on)));
    }
    if (n->bound > 0 && run >= n->bound) {
        if (c->call->breaks->exits == 0)
            return CC_FAIL(c->program, n->line,
                           "this loop runs more often than the %" PRId64
                           " times of its pragma",
                           n->bound);
        c->dead = true; /* the pragma says that no path comes here */
        *go = false;
    }
out:
    return st;
}

static stint_status loop_body(cc_run *c, const cc_node *body, const cc_node *step)
{
    cc_value ignored;
    cc_target continues, *outer = c->call->continues;
    stint_status st = sti_cc_target_begin(c, &continues);
    if (st != STINT_OK)
        return st;
    c->call->continues = &continues;
    STI_TRY(sti_cc_execute(c, body));
    STI_TRY(sti_cc_target_end(c, &continues, INT64_MAX));
    if (step && !c->dead)
        st = sti_cc_eval(c, step, &ignored);
out:
    c->call->continues = outer;
    sti_cc_target_fini(c, &continues);
    return st;
}

static stint_status run_loop(cc_run *c, const cc_node *n, const cc_node *condition,
                             const cc_node *body, const cc_node *step)
{
    bool go = true;
    for (int64_t run = 0; !c->dead; run++) {
        stint_status st = STINT_OK;
        if (n->kind != CC_DO || run > 0)
            st = loop_condition(c, n, condition, run, &go);
        if (st == STINT_OK && go)
            st = loop_body(c, body, step);
        if (st != STINT_OK || !go)
            return st;
    }
    return STINT_OK;
}

static stint_status execute_loop(cc_run *c, const cc_node *n)
{
    cc_value ignored;
    cc_target breaks, *outer = c->call->breaks;
    stint_status st = STINT_OK;
    const bool is_for = n->kind == CC_FOR;
    if (is_for && n->a)
        st = n->a->kind == CC_BLOCK ? sti_cc_execute(c, n->a)
                                    : sti_cc_eval(c, n->a, &ignored);
    if (st == STINT_OK)
        st = sti_cc_target_begin(c, &breaks);
    if (st != STINT_OK)
        return st;
    c->call->breaks = &breaks;
    st = is_for ? run_loop(c, n, n->b, n->d, n->c) : run_loop(c, n, n->a, n->b, NULL);
    c->call->breaks = outer;
    if (st == STINT_OK)
        st = sti_cc_target_end(c, &breaks, INT64_MAX);
    sti_cc_target_fini(c, &breaks);
    return st;
}

/* ---- switch ---- */

/* Where control enters at a label: the value is the case's, or, for `default`, none of
 * them. */
static sti_literal enters(cc_run *c, const cc_node *body, const cc_node *label,
                          const cc_value *value)
{
    const int bits = (int)value->type->bits;
    sti_literal number[STI_BITS_MAX], any = STI_FALSE;
    if (label->op != 'd') {
        sti_bits_constant(label->number, bits, number);
        return sti_bits_equal(c->netlist, bits, value->bit, number);
    }
    for (int64_t i = 0; i < body->count; i++)
        if (body->list[i]->kind == CC_CASE && body->list[i]->op != 'd')
            any =
                sti_netlist_or(c->netlist, any, enters(c, body, body->list[i], value));
    return sti_not(any);
}

/* A statement that is reached under a condition; *entered is false behind one that
 * leaves. */
static stint_status execute_under(cc_run *c, const cc_node *n, sti_literal *entered)
{
    cc_branch branch = {0};
    stint_status st;
    if (*entered == STI_FALSE)
        return STINT_OK;
    if (*entered == STI_TRUE)
        return sti_cc_execute(c, n);
    STI_TRY(sti_cc_branch_begin(c, &branch, *entered));
    STI_TRY(sti_cc_execute(c, n));
    if (c->dead)
        *entered = STI_FALSE;
    STI_TRY(sti_cc_branch_turn(c, &branch));
    st = sti_cc_branch_end(c, &branch);
out:
    sti_cc_branch_fini(c, &branch);
    return st;
}

static stint_status switch_body(cc_run *c, const cc_node *body, const cc_value *value)
{
    sti_literal entered = STI_FALSE;
    stint_status st = STINT_OK;
    for (int64_t i = 0; st == STINT_OK && i < body->count && !c->dead; i++) {
        if (body->list[i]->kind == CC_CASE)
            entered = sti_netlist_or(c->netlist, entered,
                                     enters(c, body, body->list[i], value));
        else
            st = execute_under(c, body->list[i], &entered);
    }
    return st;
}

static stint_status execute_switch(cc_run *c, const cc_node *n)
{
    cc_value value;
    cc_target breaks, *outer = c->call->breaks;
    stint_status st = sti_cc_eval(c, n->a, &value);
    if (st != STINT_OK)
        return st;
    if (n->b->kind != CC_BLOCK || !sti_cc_is_scalar(value.type))
        return CC_FAIL(c->program, n->line, "a switch is of an integer and has braces");
    if (value.type->bits < 32)
        sti_cc_convert(c, sti_cc_integer(32, true), &value);
    st = sti_cc_target_begin(c, &breaks);
    if (st != STINT_OK)
        return st;
    c->call->breaks = &breaks;
    st = switch_body(c, n->b, &value);
    c->call->breaks = outer;
    if (st == STINT_OK)
        st = sti_cc_target_end(c, &breaks, INT64_MAX);
    sti_cc_target_fini(c, &breaks);
    return st;
}

/* ---- leaving ---- */

static stint_status leave_to(cc_run *c, cc_target *target, int32_t line)
{
    if (!target)
        return CC_FAIL(c->program, line, "nothing to break out of, or to continue");
    stint_status st = sti_cc_target_exit(c, target, STI_TRUE);
    c->dead = true;
    return st;
}

static stint_status execute_return(cc_run *c, const cc_node *n)
{
    const cc_type *type = c->call->function->result;
    stint_status st = STINT_OK;
    if ((n->a == NULL) != (type->kind == CC_VOID))
        return CC_FAIL(
            c->program, n->line, "a return %s a value, in a function that %s one",
            n->a ? "with" : "without", type->kind == CC_VOID ? "has not" : "has");
    if (n->a)
        st = initialise_value(c, n->a, type, c->call->result);
    return st == STINT_OK ? leave_to(c, c->call->returns, n->line) : st;
}

static stint_status execute_block(cc_run *c, const cc_node *n)
{
    stint_status st = STINT_OK;
    for (int64_t i = 0; st == STINT_OK && i < n->count && !c->dead; i++)
        st = sti_cc_execute(c, n->list[i]);
    return st;
}

static stint_status execute_kind(cc_run *c, const cc_node *n)
{
    cc_value ignored;
    switch ((int)n->kind) {
    case CC_EXPRESSION:
        return sti_cc_eval(c, n->a, &ignored);
    case CC_DECLARE:
        return n->a ? sti_cc_initialise(c, n->a, n->variable->type,
                                        c->call->base + n->variable->at)
                    : STINT_OK;
    case CC_BLOCK:
        return execute_block(c, n);
    case CC_IF:
        return execute_if(c, n);
    case CC_WHILE:
    case CC_DO:
    case CC_FOR:
        return execute_loop(c, n);
    case CC_SWITCH:
        return execute_switch(c, n);
    case CC_BREAK:
        return leave_to(c, c->call->breaks, n->line);
    case CC_CONTINUE:
        return leave_to(c, c->call->continues, n->line);
    case CC_RETURN:
        return execute_return(c, n);
    case CC_CASE:
        return CC_FAIL(c->program, n->line,
                       "a case stands directly between the braces of its switch");
    default:
        return STINT_OK;
    }
}

stint_status sti_cc_execute(cc_run *c, const cc_node *n)
{
    stint_status st = sti_cc_step(c, n->line);
    if (st != STINT_OK)
        return st;
    if (++c->depth > MAX_NESTED)
        return CC_FAIL(c->program, n->line, "calls and blocks nested more than %d deep",
                       MAX_NESTED);
    st = execute_kind(c, n);
    c->depth--;
    return st;
}
