#include "exchange/known.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/shown.h"

sti_exchange_tensor *sti_known_make(sti_arena *arena, int type, int rank,
                                    const int64_t *dim)
{
    int64_t count;
    size_t bytes;
    if (rank > STI_EXCHANGE_RANK || !sti_exchange_count(rank, dim, &count) ||
        count > STI_KNOWN_MAX) {
        sti_fail(STINT_E_UNSUPPORTED,
                 "a constant has more than %d axes or 2^26 elements",
                 STI_EXCHANGE_RANK);
        return NULL;
    }
    sti_exchange_tensor *t = sti_arena_alloc(arena, sizeof *t);
    if (!t)
        return NULL;
    t->name = "";
    t->type = type;
    t->rank = rank;
    t->count = count;
    for (int i = 0; i < STI_EXCHANGE_RANK; i++) {
        t->dim[i] = i < rank ? dim[i] : 0;
        t->order[i] = (int8_t)i;
    }
    const bool floats = sti_exchange_is_float(type);
    if (!sti_mul_bytes(count + 1, floats ? sizeof(float) : sizeof(int64_t), &bytes))
        return NULL;
    void *data = sti_arena_alloc(arena, bytes);
    if (!data)
        return NULL;
    if (floats)
        t->floats = data;
    else
        t->words = data;
    return t;
}

sti_exchange_tensor *sti_known_view(sti_arena *arena, const sti_exchange_tensor *t,
                                    int rank, const int64_t *dim)
{
    sti_exchange_tensor *v = sti_arena_alloc(arena, sizeof *v);
    const sti_exchange_tensor *plain = v ? sti_known_plain(arena, t) : NULL;
    if (!plain)
        return NULL;
    *v = *plain;
    v->rank = rank;
    memset(v->dim, 0, sizeof v->dim);
    if (rank > 0)
        memcpy(v->dim, dim, (size_t)rank * sizeof *dim);
    return v;
}

static bool lies_so(const sti_exchange_tensor *t, const int8_t *order)
{
    for (int i = 0; i < t->rank; i++)
        if (t->order[i] != order[i])
            return false;
    return true;
}

const sti_exchange_tensor *
sti_known_ordered(sti_arena *arena, const sti_exchange_tensor *t, const int8_t *order)
{
    int64_t stride[STI_EXCHANGE_RANK], at[STI_EXCHANGE_RANK] = {0}, run = 1, from = 0;
    if (lies_so(t, order))
        return t;
    for (int i = t->rank - 1; i >= 0; i--) { /* of t's axes in its memory */
        stride[t->order[i]] = run;
        run *= t->dim[t->order[i]];
    }
    sti_exchange_tensor *y = sti_known_make(arena, t->type, t->rank, t->dim);
    if (!y)
        return NULL;
    for (int64_t i = 0; i < t->count; i++) {
        if (t->floats)
            sti_known_floats(y)[i] = t->floats[from];
        else
            sti_known_words(y)[i] = t->words[from];
        for (int k = t->rank - 1; k >= 0; k--) {
            const int axis = order[k];
            from += stride[axis];
            if (++at[axis] < t->dim[axis])
                break;
            from -= at[axis] * stride[axis];
            at[axis] = 0;
        }
    }
    y->name = t->name;
    y->trained = t->trained;
    memcpy(y->order, order, (size_t)t->rank);
    return y;
}

const sti_exchange_tensor *sti_known_plain(sti_arena *arena,
                                           const sti_exchange_tensor *t)
{
    static const int8_t plain[STI_EXCHANGE_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    return sti_known_ordered(arena, t, plain);
}

double sti_known_number(const sti_exchange_tensor *t, int64_t i)
{
    return t->floats ? (double)t->floats[i] : (double)t->words[i];
}

int64_t sti_known_whole(double v)
{
    return v >= 9.2e18 ? INT64_MAX : v <= -9.2e18 ? INT64_MIN : v == v ? (int64_t)v : 0;
}

int64_t sti_known_word(const sti_exchange_tensor *t, int64_t i)
{
    return t->words ? t->words[i] : sti_known_whole((double)t->floats[i]);
}

const int64_t *sti_known_list(const sti_exchange_tensor *t, int64_t *count)
{
    *count = -1;
    if (!t || t->rank > 1 || (!t->words && t->count > 0))
        return NULL;
    *count = t->count;
    return t->words;
}

bool sti_known_broadcast(int ra, const int64_t *a, int rb, const int64_t *b, int *rank,
                         int64_t *dim)
{
    *rank = ra > rb ? ra : rb;
    for (int i = 0; i < *rank; i++) {
        const int ia = i - (*rank - ra), ib = i - (*rank - rb);
        const int64_t da = ia < 0 ? 1 : a[ia], db = ib < 0 ? 1 : b[ib];
        if (da != db && da != 1 && db != 1)
            return false;
        dim[i] = da == 1 ? db : da;
    }
    return true;
}

int sti_known_axis(int64_t axis, int rank)
{
    if (axis < -rank || axis >= rank)
        return -1;
    return (int)(axis < 0 ? axis + rank : axis);
}

static stint_status refuse_reshape(const sti_exchange_node *node, int rank,
                                   const int64_t *from, const int64_t *want,
                                   int64_t want_count)
{
    sti_text a = {0}, b = {0};
    sti_exchange_shape_text(rank, from, &a);
    sti_exchange_shape_text((int)want_count, want, &b);
    const stint_status st =
        sti_fail(STINT_E_INPUT, "node '%.80s' (Reshape): %s cannot become %s",
                 sti_shown(sti_exchange_node_name(node)), a.data ? a.data : "[]",
                 b.data ? b.data : "[]");
    sti_text_fini(&a);
    sti_text_fini(&b);
    return st;
}

stint_status sti_known_reshape(const sti_exchange_node *node, int rank,
                               const int64_t *from, const int64_t *want,
                               int64_t want_count, bool allow_zero, int *rank_out,
                               int64_t *dim_out)
{
    int64_t count, known = 1, made;
    int open = -1;
    if (want_count > STI_EXCHANGE_RANK)
        return refuse_reshape(node, rank, from, want, 0);
    for (int i = 0; i < (int)want_count; i++) {
        dim_out[i] = want[i] == 0 && !allow_zero && i < rank ? from[i] : want[i];
        if (dim_out[i] == -1) {
            if (open >= 0)
                return refuse_reshape(node, rank, from, want, want_count);
            open = i;
        } else if (dim_out[i] < 0 ||
                   (dim_out[i] > 0 && known > (1LL << 40) / dim_out[i])) {
            return refuse_reshape(node, rank, from, want, want_count);
        } else {
            known *= dim_out[i];
        }
    }
    if (!sti_exchange_count(rank, from, &count))
        return refuse_reshape(node, rank, from, want, want_count);
    if (open >= 0)
        dim_out[open] = known > 0 ? count / known : 0;
    if (!sti_exchange_count((int)want_count, dim_out, &made) || made != count)
        return refuse_reshape(node, rank, from, want, want_count);
    *rank_out = (int)want_count;
    return STINT_OK;
}

static int64_t clamp(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

int64_t sti_known_slice(int64_t length, int64_t begin, int64_t end, int64_t step,
                        int64_t *begin_out)
{
    *begin_out = 0;
    if (length < 1)
        return 0;
    begin += begin < 0 ? length : 0;
    end += end < 0 ? length : 0;
    if (step > 0) {
        begin = clamp(begin, 0, length);
        end = clamp(end, 0, length);
    } else {
        begin = clamp(begin, 0, length - 1);
        end = clamp(end, -1, length - 1);
    }
    *begin_out = begin;
    if (step > 0)
        return end > begin ? (end - begin - 1) / step + 1 : 0;
    return begin > end && step < 0 && step > INT64_MIN ? (begin - end - 1) / -step + 1
                                                       : 0;
}
