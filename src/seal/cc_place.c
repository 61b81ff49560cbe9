/* Places: variables, elements, members, and secret indices as trees of choices. */
#include <string.h>

#include "seal/cc_run_priv.h"

/* ---- secret indices ---- */

typedef struct walk {
    cc_run *c;
    const cc_place *place;
    int width;
} walk;

static void gather(const walk *w, int d, int64_t at, sti_literal *out);

/* The choice among elements lo .. lo + span - 1 of index d; span is a power of two. */
static void gather_span(const walk *w, int d, int64_t at, int64_t lo, int bits,
                        sti_literal *out)
{
    const int64_t half = bits > 0 ? INT64_C(1) << (bits - 1) : 0;
    sti_literal high[STI_BITS_MAX];
    if (bits == 0) {
        gather(w, d + 1, at + lo * w->place->secret[d].stride, out);
        return;
    }
    gather_span(w, d, at, lo, bits - 1, out);
    if (lo + half >= w->place->secret[d].count)
        return;
    gather_span(w, d, at, lo + half, bits - 1, high);
    sti_bits_mux(w->c->netlist, w->width, w->place->secret[d].bit[bits - 1], high, out,
                 out);
}

static int index_bits(int64_t count)
{
    int bits = 0;
    while (INT64_C(1) << bits < count)
        bits++;
    return bits;
}

static void gather(const walk *w, int d, int64_t at, sti_literal *out)
{
    if (d == w->place->secrets)
        memcpy(out, w->c->store + at, (size_t)w->width * sizeof *out);
    else
        gather_span(w, d, at, 0, index_bits(w->place->secret[d].count), out);
}

static stint_status scatter(const walk *w, int d, int64_t at, sti_literal here,
                            const sti_literal *value);

static stint_status scatter_span(const walk *w, int d, int64_t at, int64_t lo, int bits,
                                 sti_literal here, const sti_literal *value)
{
    const int64_t half = bits > 0 ? INT64_C(1) << (bits - 1) : 0;
    if (bits == 0)
        return scatter(w, d + 1, at + lo * w->place->secret[d].stride, here, value);
    sti_netlist *n = w->c->netlist;
    const sti_literal bit = w->place->secret[d].bit[bits - 1];
    stint_status st = scatter_span(w, d, at, lo, bits - 1,
                                   sti_netlist_and(n, here, sti_not(bit)), value);
    if (st == STINT_OK && lo + half < w->place->secret[d].count)
        st = scatter_span(w, d, at, lo + half, bits - 1, sti_netlist_and(n, here, bit),
                          value);
    return st;
}

/* Write where all indices fit; elsewhere what was there stays. */
static stint_status scatter(const walk *w, int d, int64_t at, sti_literal here,
                            const sti_literal *value)
{
    stint_status st = STINT_OK;
    if (here == STI_FALSE)
        return STINT_OK;
    if (d < w->place->secrets)
        return scatter_span(w, d, at, 0, index_bits(w->place->secret[d].count), here,
                            value);
    for (int i = 0; st == STINT_OK && i < w->width; i++)
        st = sti_cc_write(
            w->c, at + i,
            sti_netlist_mux(w->c->netlist, here, value[i], w->c->store[at + i]));
    return st;
}

/* ---- loads and stores ---- */

stint_status sti_cc_load(cc_run *c, const cc_place *place, cc_value *out)
{
    walk w = {c, place, 0};
    stint_status st = STINT_OK;
    out->type = place->type;
    out->at = place->at;
    if (sti_cc_is_scalar(place->type)) {
        w.width = (int)place->type->bits;
        gather(&w, 0, place->at, out->bit);
        return STINT_OK;
    }
    if (place->secrets == 0)
        return STINT_OK;
    /* A struct chosen by a secret index: a copy of its own. */
    STI_TRY(sti_cc_push_store(c, place->type->bits, &out->at));
    for (int64_t k = 0; k < place->type->bits; k += w.width) {
        const int64_t rest = place->type->bits - k;
        w.width = rest < STI_BITS_MAX ? (int)rest : STI_BITS_MAX;
        gather(&w, 0, place->at + k, c->store + out->at + k);
    }
out:
    return st;
}

static stint_status write_bits(cc_run *c, const cc_place *place, int64_t offset,
                               int width, const sti_literal *bit)
{
    const walk w = {c, place, width};
    return scatter(&w, 0, place->at + offset, STI_TRUE, bit);
}

stint_status sti_cc_store_value(cc_run *c, const cc_place *place, const cc_value *value)
{
    if (place->read_only)
        return CC_FAIL(c->program, c->netlist->line, "what is const is not written");
    if (sti_cc_is_scalar(place->type))
        return write_bits(c, place, 0, (int)place->type->bits, value->bit);
    return sti_cc_copy(c, value->at, place);
}

stint_status sti_cc_copy(cc_run *c, int64_t from, const cc_place *to)
{
    stint_status st = STINT_OK;
    int width = 0;
    c->steps += to->type->bits / 64;
    for (int64_t k = 0; st == STINT_OK && k < to->type->bits; k += width) {
        sti_literal bit[STI_BITS_MAX];
        const int64_t rest = to->type->bits - k;
        width = rest < STI_BITS_MAX ? (int)rest : STI_BITS_MAX;
        memcpy(bit, c->store + from + k, (size_t)width * sizeof *bit);
        st = write_bits(c, to, k, width, bit);
    }
    return st;
}

/* ---- which place ---- */

bool sti_cc_known(const cc_value *value, int64_t *out)
{
    uint64_t number;
    const int bits = (int)value->type->bits;
    if (!sti_bits_is_constant(value->bit, bits, &number))
        return false;
    if (value->type->is_signed && number >> (bits - 1) & 1)
        number |= ~(UINT64_MAX >> (64 - bits));
    *out = (int64_t)number;
    return true;
}

static stint_status variable_place(cc_run *c, const cc_variable *v, cc_place *out)
{
    *out = (cc_place){.type = v->type, .read_only = v->is_const};
    if (v->is_global) {
        out->at = v->at;
    } else if (v->by_reference) {
        out->at = c->call->reference[v->slot];
        out->type = c->call->referred[v->slot];
        out->read_only = out->read_only || c->call->read_only[v->slot];
    } else {
        out->at = c->call->base + v->at;
    }
    return STINT_OK;
}

static stint_status add_secret(cc_run *c, int32_t line, const cc_type *array,
                               const cc_value *index, cc_place *out)
{
    const int bits = (int)index->type->bits;
    if (out->secrets == CC_MAX_SECRETS)
        return CC_FAIL(c->program, line, "more than %d secret indices at once",
                       CC_MAX_SECRETS);
    c->steps += array->count * (1 + array->element->bits / 64);
    out->secret[out->secrets].count = array->count;
    out->secret[out->secrets].stride = array->element->bits;
    for (int i = 0; i < STI_BITS_MAX; i++)
        out->secret[out->secrets].bit[i] =
            i < bits ? index->bit[i]
                     : (index->type->is_signed ? index->bit[bits - 1] : STI_FALSE);
    out->secrets++;
    return STINT_OK;
}

static stint_status element_place(cc_run *c, const cc_node *n, cc_place *out)
{
    cc_value index;
    int64_t known;
    stint_status st = sti_cc_place(c, n->a, out);
    STI_TRY(st);
    const cc_type *array = out->type;
    if (array->kind != CC_ARRAY)
        return CC_FAIL(c->program, n->line, "an index of what is no array");
    STI_TRY(c->eval(c, n->b, &index));
    if (!sti_cc_is_scalar(index.type))
        return CC_FAIL(c->program, n->line, "an index is an integer");
    out->type = array->element;
    if (!sti_cc_known(&index, &known))
        return add_secret(c, n->line, array, &index, out);
    if (known < 0 || known >= array->count)
        return CC_FAIL(c->program, n->line,
                       "index %" PRId64 " of an array of %" PRId64 " elements", known,
                       array->count);
    out->at += known * array->element->bits;
out:
    return st;
}

static stint_status member_place(cc_run *c, const cc_node *n, cc_place *out)
{
    stint_status st = sti_cc_place(c, n->a, out);
    if (st != STINT_OK)
        return st;
    const cc_type *type = out->type;
    for (int64_t i = 0; type->kind == CC_STRUCT && i < type->count; i++)
        if (type->field[i].length == n->name_length &&
            memcmp(type->field[i].name, n->name, (size_t)n->name_length) == 0) {
            out->at += type->field[i].at;
            out->type = type->field[i].type;
            return STINT_OK;
        }
    return CC_FAIL(c->program, n->line, "there is no member '%.*s' here",
                   n->name_length, n->name);
}

static stint_status first_element(cc_run *c, const cc_node *n, cc_place *out)
{
    stint_status st = sti_cc_place(c, n->a, out);
    if (st == STINT_OK && out->type->kind != CC_ARRAY)
        return CC_FAIL(c->program, n->line,
                       "* and -> take an array parameter; there are no other pointers, "
                       "and no arithmetic with them");
    if (st == STINT_OK)
        out->type = out->type->element;
    return st;
}

stint_status sti_cc_place(cc_run *c, const cc_node *n, cc_place *out)
{
    cc_value value;
    stint_status st;
    switch ((int)n->kind) {
    case CC_VARIABLE:
        return variable_place(c, n->variable, out);
    case CC_INDEX:
        return element_place(c, n, out);
    case CC_MEMBER:
        return member_place(c, n, out);
    case CC_DEREFERENCE:
        return first_element(c, n, out);
    case CC_CALL:
    case CC_CHOICE:
    case CC_ASSIGN:
        st = c->eval(c, n, &value);
        if (st == STINT_OK && value.type->kind == CC_STRUCT) {
            *out = (cc_place){.type = value.type, .at = value.at, .read_only = true};
            return STINT_OK;
        }
        if (st != STINT_OK)
            return st;
        break;
    default:
        break;
    }
    return CC_FAIL(c->program, n->line,
                   "a variable, an element or a member is wanted here; there are no "
                   "pointers, and no arithmetic with them");
}

/* `a` of an array, `&a[3]`, `&a`: an array from there on. */
stint_status sti_cc_reference(cc_run *c, const cc_node *n, cc_place *out)
{
    cc_type *rest;
    stint_status st;
    if (n->kind != CC_ADDRESS) {
        st = sti_cc_place(c, n, out);
        if (st == STINT_OK && out->type->kind != CC_ARRAY)
            return CC_FAIL(c->program, n->line,
                           "an array, or the address of a variable, is wanted here");
        goto out;
    }
    STI_TRY(sti_cc_place(c, n->a, out));
    rest = sti_arena_alloc(c->program->arena, sizeof *rest);
    STI_TRY(rest ? STINT_OK : STINT_E_MEMORY);
    *rest = (cc_type){.kind = CC_ARRAY, .element = out->type, .count = 1};
    if (n->a->kind == CC_INDEX) { /* the elements that follow belong to it, too */
        cc_place whole;
        STI_TRY(sti_cc_place(c, n->a->a, &whole));
        if (whole.secrets == 0 && out->secrets == 0)
            rest->count = (whole.at + whole.type->bits - out->at) / out->type->bits;
    }
    rest->bits = rest->count * out->type->bits;
    out->type = rest;
out:
    if (st == STINT_OK && out->secrets > 0)
        return CC_FAIL(c->program, n->line,
                       "what is handed by reference is at a known place; copy the "
                       "element, call, and copy it back");
    return st;
}
