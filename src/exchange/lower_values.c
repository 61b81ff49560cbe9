/* Names, operands, and values with an order of axes. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "exchange/lower_priv.h"

/* ---- refusals ---- */

stint_status sti_lower_refuse(const sti_lowering *l, stint_status status,
                              const char *format, ...)
{
    char why[384];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return sti_fail(status, "%s: node '%.100s' (%s): %s", sti_shown(l->options->name),
                    sti_shown(sti_exchange_node_name(l->node)), sti_shown(l->node->op),
                    why);
}

/* ---- names ---- */

static uint64_t hash_of(const char *name)
{
    uint64_t h = 1469598103934665603u; /* FNV-1a */
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 1099511628211u;
    return h ^ h >> 32;
}

/* Where the name is, or would be. */
static int64_t place_of(const sti_lowering *l, const char *name)
{
    int64_t at = (int64_t)(hash_of(name) & (uint64_t)(l->table_size - 1));
    while (l->table[at] >= 0 && strcmp(l->slot[l->table[at]].name, name) != 0)
        at = (at + 1) & (l->table_size - 1);
    return at;
}

static bool grow_slots(sti_lowering *l)
{
    const int64_t room = l->slot_room ? 2 * l->slot_room : 64;
    sti_slot *slot = sti_arena_alloc(l->arena, (size_t)room * sizeof *slot);
    int32_t *table = sti_arena_alloc(l->arena, (size_t)(2 * room) * sizeof *table);
    if (!slot || !table || room > INT32_MAX / 4)
        return false;
    if (l->slots)
        memcpy(slot, l->slot, (size_t)l->slots * sizeof *slot);
    l->slot = slot;
    l->slot_room = room;
    l->table = table;
    l->table_size = 2 * room;
    memset(table, -1, (size_t)l->table_size * sizeof *table);
    for (int64_t i = 0; i < l->slots; i++)
        table[place_of(l, slot[i].name)] = (int32_t)i;
    return true;
}

int32_t sti_slot_of(sti_lowering *l, const char *name)
{
    if (l->slots == l->slot_room && !grow_slots(l))
        return -1;
    const int64_t at = place_of(l, name);
    if (l->table[at] < 0) {
        l->table[at] = (int32_t)l->slots;
        l->slot[l->slots++] = (sti_slot){.name = name, .param = -1};
    }
    return l->table[at];
}

bool sti_lower_has(const sti_exchange_node *n, int i)
{
    return i < n->n_in && n->in[i][0] != '\0';
}

sti_slot *sti_lower_in(sti_lowering *l, const sti_exchange_node *n, int i)
{
    static sti_slot none; /* never written: kind NONE is what it says */
    const int32_t row = sti_lower_has(n, i) ? sti_slot_of(l, n->in[i]) : -1;
    return row < 0 ? &none : &l->slot[row];
}

static stint_status set_slot(sti_lowering *l, const char *name, sti_slot slot)
{
    if (!name[0])
        return STINT_OK;
    const int32_t row = sti_slot_of(l, name);
    if (row < 0)
        return STINT_E_MEMORY;
    if (l->slot[row].kind != STI_SLOT_NONE)
        return sti_fail(STINT_E_INPUT, "%s: '%.80s' is made twice",
                        sti_shown(l->options->name), sti_shown(name));
    slot.name = l->slot[row].name;
    slot.param = -1;
    l->slot[row] = slot;
    return STINT_OK;
}

stint_status sti_lower_set(sti_lowering *l, const char *name,
                           const sti_lane_value *lane)
{
    int64_t dim[STINT_MAX_RANK];
    if (l->options->seen && name[0]) {
        sti_lane_dims(l, lane, dim);
        l->options->seen(l->options->user, name, lane->rank, dim);
    }
    return set_slot(l, name, (sti_slot){.kind = STI_SLOT_LANE, .lane = *lane});
}

stint_status sti_lower_set_known(sti_lowering *l, const char *name,
                                 const sti_exchange_tensor *known)
{
    return set_slot(l, name, (sti_slot){.kind = STI_SLOT_KNOWN, .known = known});
}

/* ---- constants ---- */

stint_value sti_lower_constant(sti_lowering *l, const stint_shape *shape,
                               const void *data)
{
    char name[48];
    void *room = sti_graph_room(l->graph, stint_shape_bytes(shape));
    if (!room)
        return -1;
    memcpy(room, data, stint_shape_bytes(shape));
    snprintf(name, sizeof name, "constant.%d", (int)sti_graph_value_count(l->graph));
    return sti_graph_constant(l->graph, name, shape, room);
}

stint_value sti_lower_scalar(sti_lowering *l, float value)
{
    const stint_shape shape = stint_shape_make(STINT_F32, 0, NULL);
    return sti_lower_constant(l, &shape, &value);
}

stint_value sti_lower_indices(sti_lowering *l, int64_t count, const int64_t *index)
{
    const stint_shape shape = stint_shape_make(STINT_I32, 1, &count);
    int32_t *room = sti_graph_room(l->graph, stint_shape_bytes(&shape));
    char name[48];
    if (!room)
        return -1;
    for (int64_t i = 0; i < count; i++)
        room[i] = (int32_t)index[i];
    snprintf(name, sizeof name, "constant.%d", (int)sti_graph_value_count(l->graph));
    return sti_graph_constant(l->graph, name, &shape, room);
}

/* Whole numbers and truth values in the form that the run has them in. */
static stint_status words_value(sti_lowering *l, const sti_exchange_tensor *t,
                                stint_shape *shape, stint_value *out)
{
    shape->dtype = t->type == STI_EXCHANGE_BOOL ? STINT_F32 : STINT_I32;
    int32_t *room = sti_graph_room(l->graph, (size_t)t->count * sizeof *room);
    if (!room)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < t->count; i++) {
        if (shape->dtype == STINT_F32)
            ((float *)(void *)room)[i] = t->words[i] ? 1.0f : 0.0f;
        else if (t->words[i] > INT32_MAX || t->words[i] < INT32_MIN)
            return sti_lower_refuse(l, STINT_E_UNSUPPORTED,
                                    "a whole number beyond 32 bits, %" PRId64,
                                    t->words[i]);
        else
            room[i] = (int32_t)t->words[i];
    }
    char name[48];
    snprintf(name, sizeof name, "constant.%d", (int)sti_graph_value_count(l->graph));
    *out = sti_graph_constant(l->graph, name, shape, room);
    return *out < 0 ? sti_graph_status(l->graph) : STINT_OK;
}

/* A tensor's numbers lie where they were read, or are copied to where a kernel may read
 * them. */
static stint_value floats_value(sti_lowering *l, const sti_slot *slot,
                                const stint_shape *shape)
{
    const sti_exchange_tensor *t = slot->known;
    if (l->options->trained && t->trained)
        return stint_param(l->graph, slot->name, shape,
                           &(stint_param_desc){.init = t->fan_in > 0
                                                           ? STINT_INIT_FAN_IN_UNIFORM
                                                           : STINT_INIT_ZERO,
                                               .fan_in = t->fan_in,
                                               .no_decay = t->rank < 2});
    if (!l->options->images && (uintptr_t)t->floats % 64 == 0)
        return sti_graph_constant(l->graph, slot->name, shape, t->floats);
    void *room = sti_graph_room(l->graph, stint_shape_bytes(shape));
    if (!room)
        return -1;
    memcpy(room, t->floats, stint_shape_bytes(shape));
    return sti_graph_constant(l->graph, slot->name, shape, room);
}

static stint_status known_lane(sti_lowering *l, sti_slot *slot, sti_lane_value *out)
{
    const sti_exchange_tensor *t = slot->known;
    stint_shape shape = {.rank = t->rank, .dtype = STINT_F32};
    stint_status st = STINT_OK;
    if (t->rank > STINT_MAX_RANK || t->count < 1)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED,
                                "'%.80s' has more than %d axes or no elements",
                                sti_shown(slot->name), STINT_MAX_RANK);
    *out = (sti_lane_value){.value = slot->param, .type = t->type, .rank = t->rank};
    for (int i = 0; i < t->rank; i++) {
        shape.dim[i] = t->dim[t->order[i]];
        out->order[i] = t->order[i];
    }
    if (slot->param < 0) {
        if (t->words)
            st = words_value(l, t, &shape, &slot->param);
        else
            slot->param = floats_value(l, slot, &shape);
    }
    out->value = slot->param;
    return st != STINT_OK || out->value >= 0 ? st : sti_graph_status(l->graph);
}

/* ---- operands ---- */

stint_status sti_lower_lane(sti_lowering *l, const sti_exchange_node *n, int i,
                            sti_lane_value *out)
{
    sti_slot *slot = sti_lower_in(l, n, i);
    if (slot->kind == STI_SLOT_LANE) {
        *out = slot->lane;
        return STINT_OK;
    }
    if (slot->kind != STI_SLOT_KNOWN)
        return sti_lower_refuse(l, STINT_E_INPUT, "operand %d is left out", i);
    return known_lane(l, slot, out);
}

stint_status sti_lower_ordered(sti_lowering *l, const sti_exchange_node *n, int i,
                               int rank, const int8_t *order, sti_lane_value *out)
{
    sti_slot *slot = sti_lower_in(l, n, i);
    if (slot->kind == STI_SLOT_KNOWN && slot->param < 0 && slot->known->rank == rank &&
        !slot->known->fresh) {
        const sti_exchange_tensor *moved =
            sti_known_ordered(l->arena, slot->known, order);
        if (!moved)
            return STINT_E_MEMORY;
        slot->known = moved;
    }
    const stint_status st = sti_lower_lane(l, n, i, out);
    if (st != STINT_OK)
        return st;
    if (out->rank != rank)
        return sti_lower_refuse(l, STINT_E_INPUT, "operand %d has %d axes, wanted %d",
                                i, out->rank, rank);
    out->value = sti_lane_ordered(l, out, order);
    memcpy(out->order, order, (size_t)rank);
    return out->value < 0 ? sti_graph_status(l->graph) : STINT_OK;
}

stint_status sti_lower_known(sti_lowering *l, const sti_exchange_node *n, int i,
                             const sti_exchange_tensor **out)
{
    const sti_slot *slot = sti_lower_in(l, n, i);
    if (slot->kind != STI_SLOT_KNOWN)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED,
                                "operand %d ('%.60s') depends on the data", i,
                                i < n->n_in ? sti_shown(n->in[i]) : "");
    if (slot->known->fresh)
        return sti_lower_refuse(l, STINT_E_UNSUPPORTED,
                                "operand %d is of the classifier, which begins anew",
                                i);
    *out = sti_known_plain(l->arena, slot->known);
    return *out ? STINT_OK : STINT_E_MEMORY;
}

stint_status sti_lower_list(sti_lowering *l, const sti_exchange_node *n, int i,
                            const char *name, const int64_t **list, int64_t *count)
{
    const sti_exchange_attr *a = sti_exchange_attr_find(n, name);
    *list = NULL;
    *count = -1;
    if (sti_lower_has(n, i)) {
        const sti_exchange_tensor *t;
        const stint_status st = sti_lower_known(l, n, i, &t);
        if (st != STINT_OK)
            return st;
        *list = sti_known_list(t, count);
        return *count >= 0
                   ? STINT_OK
                   : sti_lower_refuse(l, STINT_E_INPUT,
                                      "operand %d is no list of whole numbers", i);
    }
    if (a && a->kind == STI_EXCHANGE_INTS) {
        *list = a->ints;
        *count = a->count;
    }
    return STINT_OK;
}

stint_status sti_lower_number(sti_lowering *l, const sti_exchange_node *n, int i,
                              double otherwise, double *out)
{
    const sti_exchange_tensor *t = NULL;
    *out = otherwise;
    if (!sti_lower_has(n, i))
        return STINT_OK;
    const stint_status st = sti_lower_known(l, n, i, &t);
    if (st == STINT_OK && t->count != 1)
        return sti_lower_refuse(l, STINT_E_INPUT, "operand %d is not one number", i);
    if (st == STINT_OK)
        *out = sti_known_number(t, 0);
    return st;
}

stint_status sti_lower_choice(const sti_lowering *l, const sti_exchange_node *n,
                              const char *name, const char *const *words,
                              const char **out)
{
    const char *said = sti_exchange_attr_text(n, name, words[0]);
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], said) == 0) {
            *out = words[i];
            return STINT_OK;
        }
    char taken[192] = "";
    for (int i = 0; words[i]; i++) {
        const size_t used = strlen(taken);
        snprintf(taken + used, sizeof taken - used, "%s%s", i ? ", " : "", words[i]);
    }
    return sti_lower_refuse(l, STINT_E_UNSUPPORTED, "%s '%.40s'; taken are: %s", name,
                            sti_shown(said), taken);
}

stint_status sti_lower_axis_of(const sti_lowering *l, int64_t axis, int rank, int *out)
{
    *out = sti_known_axis(axis, rank);
    return *out >= 0 ? STINT_OK
                     : sti_lower_refuse(l, STINT_E_INPUT,
                                        "axis %" PRId64 " of a tensor of %d axes", axis,
                                        rank);
}

stint_status sti_lower_axis(const sti_lowering *l, const sti_exchange_node *n,
                            int64_t otherwise, int rank, int *out)
{
    return sti_lower_axis_of(l, sti_exchange_attr_int(n, "axis", otherwise), rank, out);
}

/* ---- lanes ---- */

sti_lane_value sti_lane_plain(const sti_lowering *l, stint_value value, int type)
{
    sti_lane_value v = {.value = value, .type = type};
    v.rank = stint_value_shape(l->graph, value).rank;
    for (int i = 0; i < STINT_MAX_RANK; i++)
        v.order[i] = (int8_t)i;
    return v;
}

void sti_lane_dims(const sti_lowering *l, const sti_lane_value *v, int64_t *dim)
{
    const stint_shape shape = stint_value_shape(l->graph, v->value);
    for (int i = 0; i < v->rank; i++)
        dim[v->order[i]] = shape.dim[i];
}

int64_t sti_lane_dim(const sti_lowering *l, const sti_lane_value *v, int axis)
{
    return stint_value_shape(l->graph, v->value).dim[sti_lane_axis(v, axis)];
}

int sti_lane_axis(const sti_lane_value *v, int axis)
{
    for (int i = 0; i < v->rank; i++)
        if (v->order[i] == axis)
            return i;
    return 0;
}

void sti_order_last(int rank, int8_t *order)
{
    for (int i = 0; i < rank; i++)
        order[i] = (int8_t)(i == 0 ? 0 : i == rank - 1 ? 1 : i + 1);
    if (rank < 2)
        order[0] = 0;
}

/* Only axes of length 1 change places: no element moves. */
static bool is_view(const stint_shape *shape, const int *axes)
{
    int last = -1;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[axes[i]] == 1)
            continue;
        if (axes[i] < last)
            return false;
        last = axes[i];
    }
    return true;
}

stint_value sti_lane_ordered(sti_lowering *l, const sti_lane_value *v,
                             const int8_t *order)
{
    const stint_shape shape = stint_value_shape(l->graph, v->value);
    stint_shape to = shape;
    int axes[STINT_MAX_RANK];
    bool same = true;
    for (int i = 0; i < v->rank; i++) {
        axes[i] = sti_lane_axis(v, order[i]);
        to.dim[i] = shape.dim[axes[i]];
        same = same && axes[i] == i;
    }
    if (same || v->value < 0)
        return v->value;
    return is_view(&shape, axes) ? stint_reshape(l->graph, v->value, &to)
                                 : stint_transpose(l->graph, v->value, axes);
}

stint_value sti_lane_straight(sti_lowering *l, const sti_lane_value *v)
{
    static const int8_t plain[STINT_MAX_RANK] = {0, 1, 2, 3, 4, 5};
    return sti_lane_ordered(l, v, plain);
}

sti_lane_value sti_lane_reshaped(sti_lowering *l, const sti_lane_value *v, int rank,
                                 const int64_t *dim)
{
    stint_shape to = stint_shape_make(STINT_F32, rank, dim);
    const stint_value straight = sti_lane_straight(l, v);
    return sti_lane_plain(l, stint_reshape(l->graph, straight, &to), v->type);
}

sti_lane_value sti_lane_widened(sti_lowering *l, const sti_lane_value *v, int rank)
{
    stint_shape to = stint_value_shape(l->graph, v->value);
    sti_lane_value w = *v;
    const int more = rank - v->rank;
    if (more <= 0)
        return w;
    for (int i = rank - 1; i >= 0; i--) {
        to.dim[i] = i < more ? 1 : to.dim[i - more];
        w.order[i] = (int8_t)(i < more ? i : v->order[i - more] + more);
    }
    to.rank = w.rank = rank;
    w.value = stint_reshape(l->graph, v->value, &to);
    return w;
}

sti_lane_value sti_lane_f32(sti_lowering *l, const sti_lane_value *v)
{
    sti_lane_value w = *v;
    if (stint_value_shape(l->graph, v->value).dtype == STINT_I32)
        w.value = stint_to_f32(l->graph, v->value);
    return w;
}

sti_lane_value sti_lane_typed(sti_lowering *l, const sti_lane_value *v, int type)
{
    const bool words = !sti_exchange_is_float(type) && type != STI_EXCHANGE_BOOL;
    const stint_dtype now = stint_value_shape(l->graph, v->value).dtype;
    sti_lane_value w = *v;
    w.type = type;
    if (words && now == STINT_F32)
        w.value = stint_to_i32(l->graph, v->value);
    else if (!words && now == STINT_I32)
        w.value = stint_to_f32(l->graph, v->value);
    return w;
}

stint_status sti_lower_result(sti_lowering *l, const sti_exchange_node *n, int i,
                              const sti_lane_value *like, stint_value value)
{
    sti_lane_value v = *like;
    v.value = value;
    if (value < 0)
        return sti_graph_status(l->graph);
    return i < n->n_out ? sti_lower_set(l, n->out[i], &v) : STINT_OK;
}

/* Axes of a bit set leave, all of length 1; the others keep their order in memory. */
sti_lane_value sti_lane_without(sti_lowering *l, const sti_lane_value *x, unsigned gone)
{
    const stint_shape shape = stint_value_shape(l->graph, x->value);
    stint_shape to = {.dtype = shape.dtype};
    sti_lane_value y = {.type = x->type};
    for (int i = 0; i < x->rank; i++) {
        const int axis = x->order[i];
        if (gone >> axis & 1)
            continue;
        int before = 0; /* axes that leave in front of this one */
        for (int k = 0; k < axis; k++)
            before += gone >> k & 1;
        to.dim[y.rank] = shape.dim[i];
        y.order[y.rank++] = (int8_t)(axis - before);
    }
    to.rank = y.rank;
    y.value = stint_reshape(l->graph, x->value, &to);
    return y;
}

/* The axis last in memory; the others stay as they lie. */
sti_lane_value sti_lane_with_last(sti_lowering *l, const sti_lane_value *x, int axis)
{
    sti_lane_value y = *x;
    int k = 0;
    for (int i = 0; i < x->rank; i++)
        if (x->order[i] != axis)
            y.order[k++] = x->order[i];
    y.order[k] = (int8_t)axis;
    y.value = sti_lane_ordered(l, x, y.order);
    return y;
}

/* x with ONNX's axis read at constant indices. */
sti_lane_value sti_lane_taken(sti_lowering *l, const sti_lane_value *x, int axis,
                              int64_t count, const int64_t *index)
{
    sti_lane_value y = *x;
    const stint_value at = sti_lower_indices(l, count, index);
    y.value = stint_take(l->graph, x->value, at, sti_lane_axis(x, axis));
    return y;
}

/* The order of the larger operand that has all axes is taken; the other follows. */
stint_status sti_lower_pair(sti_lowering *l, sti_lane_value *a, sti_lane_value *b)
{
    const int rank = a->rank > b->rank ? a->rank : b->rank;
    const stint_shape sa = stint_value_shape(l->graph, a->value),
                      sb = stint_value_shape(l->graph, b->value);
    const bool by_a =
        a->rank > b->rank ||
        (a->rank == b->rank && stint_shape_count(&sa) >= stint_shape_count(&sb));
    sti_lane_value *lead = by_a ? a : b, *other = by_a ? b : a;
    *lead = sti_lane_widened(l, lead, rank);
    *other = sti_lane_widened(l, other, rank);
    other->value = sti_lane_ordered(l, other, lead->order);
    memcpy(other->order, lead->order, sizeof other->order);
    return a->value < 0 || b->value < 0 ? sti_graph_status(l->graph) : STINT_OK;
}
