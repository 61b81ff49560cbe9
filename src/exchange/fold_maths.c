/* Folding of operators that compute: each element from one, two or three, and
 * reductions. Whole numbers are computed as such, numbers with a point in float32, as
 * the run would. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/shown.h"
#include "exchange/fold_rules.h"

/* ---- of one ---- */

typedef enum unary_kind {
    NEG,
    ABS,
    SQRT,
    FLOOR,
    CEIL,
    ROUND,
    NOT,
    RECIPROCAL,
    SIGN
} unary_kind;

static float unary_float(unary_kind kind, float x)
{
    switch (kind) {
    case NEG:
        return -x;
    case ABS:
        return fabsf(x);
    case SQRT:
        return sqrtf(x);
    case FLOOR:
        return floorf(x);
    case CEIL:
        return ceilf(x);
    case ROUND:
        return rintf(x);
    case RECIPROCAL:
        return 1.0f / x;
    case SIGN:
        return (float)(x > 0.0f) - (float)(x < 0.0f);
    case NOT:
    default:
        return x == 0.0f ? 1.0f : 0.0f;
    }
}

static int64_t unary_word(unary_kind kind, int64_t x)
{
    switch (kind) {
    case NEG:
        return (int64_t)(0 - (uint64_t)x);
    case ABS:
        return x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
    case NOT:
        return x == 0;
    case SIGN:
        return (x > 0) - (x < 0);
    case SQRT:
    case FLOOR:
    case CEIL:
    case ROUND:
    case RECIPROCAL:
    default:
        return x;
    }
}

static stint_status fold_unary(sti_fold *f, unary_kind kind)
{
    const sti_exchange_tensor *x = f->in[0];
    sti_exchange_tensor *y = sti_known_make(f->arena, x->type, x->rank, x->dim);
    if (!y)
        return STINT_E_UNSUPPORTED;
    for (int64_t i = 0; i < x->count; i++)
        if (x->floats)
            sti_known_floats(y)[i] = unary_float(kind, x->floats[i]);
        else
            sti_known_words(y)[i] = unary_word(kind, x->words[i]);
    f->out[0] = y;
    return STINT_OK;
}

#define UNARY(name, kind)                     \
    stint_status sti_fold_##name(sti_fold *f) \
    {                                         \
        return fold_unary(f, kind);           \
    }
UNARY(neg, NEG)
UNARY(abs, ABS)
UNARY(sqrt, SQRT)
UNARY(floor, FLOOR)
UNARY(ceil, CEIL)
UNARY(round, ROUND)
UNARY(not, NOT)
UNARY(reciprocal, RECIPROCAL)
UNARY(sign, SIGN)

static stint_status fold_to(sti_fold *f, int type)
{
    const sti_exchange_tensor *x = f->in[0];
    if (!sti_exchange_type_bytes(type))
        return STINT_OK;
    sti_exchange_tensor *y = sti_known_make(f->arena, type, x->rank, x->dim);
    if (!y)
        return STINT_E_UNSUPPORTED;
    for (int64_t i = 0; i < x->count; i++) {
        const double v = sti_known_number(x, i);
        if (y->floats)
            sti_known_floats(y)[i] = (float)v;
        else if (type == STI_EXCHANGE_BOOL)
            sti_known_words(y)[i] = v != 0.0;
        else
            sti_known_words(y)[i] = sti_known_word(x, i);
    }
    y->trained = x->trained && y->floats;
    f->out[0] = y;
    return STINT_OK;
}

stint_status sti_fold_cast(sti_fold *f)
{
    return fold_to(f, (int)sti_exchange_attr_int(f->node, "to", 0));
}

stint_status sti_fold_cast_like(sti_fold *f)
{
    return fold_to(f, f->in[1]->type);
}

/* ---- of two ---- */

typedef enum binary_kind {
    ADD,
    SUB,
    MUL,
    DIV,
    POW,
    MOD,
    MIN,
    MAX,
    EQUAL,
    LESS,
    LESS_EQUAL,
    GREATER,
    GREATER_EQUAL,
    AND,
    OR,
    XOR
} binary_kind;

static float remainder_of(float a, float b, bool as_c)
{
    float r = fmodf(a, b);
    if (!as_c && r != 0.0f && (r < 0.0f) != (b < 0.0f))
        r += b;
    return r;
}

static float binary_float(binary_kind kind, float a, float b, bool as_c)
{
    switch (kind) {
    case ADD:
        return a + b;
    case SUB:
        return a - b;
    case MUL:
        return a * b;
    case DIV:
        return a / b;
    case POW:
        return (float)pow((double)a, (double)b);
    case MOD:
        return remainder_of(a, b, as_c);
    case MIN:
        return a != a || a < b ? a : b;
    case MAX:
        return a != a || a > b ? a : b;
    case EQUAL:
        return a == b;
    case LESS:
        return a < b;
    case LESS_EQUAL:
        return a <= b;
    case GREATER:
        return a > b;
    case GREATER_EQUAL:
        return a >= b;
    case AND:
        return a != 0.0f && b != 0.0f;
    case OR:
        return a != 0.0f || b != 0.0f;
    case XOR:
    default:
        return (a != 0.0f) != (b != 0.0f);
    }
}

static int64_t quotient(int64_t a, int64_t b)
{
    return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t modulo(int64_t a, int64_t b, bool as_c)
{
    if (b == 0 || b == -1)
        return 0;
    const int64_t r = a % b;
    return !as_c && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static int64_t power(int64_t a, int64_t b)
{
    uint64_t r = 1, x = (uint64_t)a;
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    for (; b > 0; b >>= 1, x *= x)
        if (b & 1)
            r *= x;
    return (int64_t)r;
}

/* Sums and products wrap round as in other programs. */
static int64_t binary_word(binary_kind kind, int64_t a, int64_t b, bool as_c)
{
    const uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    switch (kind) {
    case ADD:
        return (int64_t)(ua + ub);
    case SUB:
        return (int64_t)(ua - ub);
    case MUL:
        return (int64_t)(ua * ub);
    case DIV:
        return quotient(a, b);
    case POW:
        return power(a, b);
    case MOD:
        return modulo(a, b, as_c);
    case MIN:
        return a < b ? a : b;
    case MAX:
        return a > b ? a : b;
    case EQUAL:
        return a == b;
    case LESS:
        return a < b;
    case LESS_EQUAL:
        return a <= b;
    case GREATER:
        return a > b;
    case GREATER_EQUAL:
        return a >= b;
    case AND:
        return a && b;
    case OR:
        return a || b;
    case XOR:
    default:
        return !a != !b;
    }
}

static stint_status fold_pair(sti_fold *f, binary_kind kind,
                              const sti_exchange_tensor *a,
                              const sti_exchange_tensor *b, sti_exchange_tensor **out)
{
    int rank;
    int64_t dim[STI_EXCHANGE_RANK];
    const bool truth = kind >= EQUAL, as_c = sti_exchange_attr_int(f->node, "fmod", 0);
    if (!sti_known_broadcast(a->rank, a->dim, b->rank, b->dim, &rank, dim))
        return sti_fold_refuse(f, "its operands have shapes that do not go together");
    sti_exchange_tensor *y =
        sti_known_make(f->arena, truth ? STI_EXCHANGE_BOOL : a->type, rank, dim);
    if (!y)
        return STINT_E_UNSUPPORTED;
    sti_walk wa = sti_walk_of(a, rank, dim), wb = sti_walk_of(b, rank, dim);
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t ia = sti_walk_next(&wa), ib = sti_walk_next(&wb);
        const bool floats = a->floats || b->floats;
        const float fv = floats ? binary_float(kind, (float)sti_known_number(a, ia),
                                               (float)sti_known_number(b, ib), as_c)
                                : 0.0f;
        if (y->floats)
            sti_known_floats(y)[i] = fv;
        else
            sti_known_words(y)[i] =
                floats ? sti_known_whole((double)fv)
                       : binary_word(kind, a->words[ia], b->words[ib], as_c);
    }
    *out = y;
    return STINT_OK;
}

static stint_status fold_binary(sti_fold *f, binary_kind kind)
{
    if (f->node->n_in != 2)
        return STINT_OK;
    return fold_pair(f, kind, f->in[0], f->in[1], &f->out[0]);
}

#define BINARY(name, kind)                    \
    stint_status sti_fold_##name(sti_fold *f) \
    {                                         \
        return fold_binary(f, kind);          \
    }
BINARY(add, ADD)
BINARY(sub, SUB)
BINARY(mul, MUL)
BINARY(div, DIV)
BINARY(pow, POW)
BINARY(mod, MOD)
BINARY(equal, EQUAL)
BINARY(less, LESS)
BINARY(less_equal, LESS_EQUAL)
BINARY(greater, GREATER)
BINARY(greater_equal, GREATER_EQUAL)
BINARY(and, AND)
BINARY(or, OR)
BINARY(xor, XOR)

static stint_status fold_many(sti_fold *f, binary_kind kind)
{
    const sti_exchange_tensor *y = f->in[0];
    int64_t made = 0;
    for (int i = 1; i < f->node->n_in; i++) {
        sti_exchange_tensor *next = NULL;
        const stint_status st = fold_pair(f, kind, y, f->in[i], &next);
        if (st != STINT_OK)
            return st;
        y = next;
        made += y->count;
        if (made > 2 * STI_KNOWN_MAX)
            return STINT_E_UNSUPPORTED;
    }
    f->out[0] = sti_known_view(f->arena, y, y->rank, y->dim);
    return f->out[0] ? STINT_OK : STINT_E_MEMORY;
}

stint_status sti_fold_min(sti_fold *f)
{
    return fold_many(f, MIN);
}

stint_status sti_fold_max(sti_fold *f)
{
    return fold_many(f, MAX);
}

stint_status sti_fold_where(sti_fold *f)
{
    const sti_exchange_tensor *c = f->in[0], *a = f->in[1], *b = f->in[2];
    int rank;
    int64_t dim[STI_EXCHANGE_RANK], all[STI_EXCHANGE_RANK];
    if (!sti_known_broadcast(a->rank, a->dim, b->rank, b->dim, &rank, dim) ||
        !sti_known_broadcast(rank, dim, c->rank, c->dim, &rank, all))
        return sti_fold_refuse(f, "its operands have shapes that do not go together");
    sti_exchange_tensor *y = sti_known_make(f->arena, a->type, rank, all);
    if (!y)
        return STINT_E_UNSUPPORTED;
    sti_walk wa = sti_walk_of(a, rank, all), wb = sti_walk_of(b, rank, all),
             wc = sti_walk_of(c, rank, all);
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t ia = sti_walk_next(&wa), ib = sti_walk_next(&wb);
        const bool hit = sti_known_word(c, sti_walk_next(&wc)) != 0;
        if (y->floats)
            sti_known_floats(y)[i] =
                (float)sti_known_number(hit ? a : b, hit ? ia : ib);
        else
            sti_known_words(y)[i] = sti_known_word(hit ? a : b, hit ? ia : ib);
    }
    f->out[0] = y;
    return STINT_OK;
}

/* ---- reductions ---- */

typedef enum reduce_kind { SUM, PROD, LEAST, MOST, MEAN } reduce_kind;

static double join(reduce_kind kind, double a, double b)
{
    switch (kind) {
    case PROD:
        return a * b;
    case LEAST:
        return a < b ? a : b;
    case MOST:
        return a > b ? a : b;
    case SUM:
    case MEAN:
    default:
        return a + b;
    }
}

/* Do the axes, of operand 1 or the attribute, come to all that there are? */
static bool over_all(const sti_fold *f)
{
    const sti_exchange_attr *a = sti_exchange_attr_find(f->node, "axes");
    const int rank = f->in[0]->rank;
    const int64_t *axes = NULL;
    int64_t count = 0;
    unsigned seen = 0;
    if (f->node->n_in > 1 && f->in[1])
        axes = sti_known_list(f->in[1], &count);
    else if (a && a->kind == STI_EXCHANGE_INTS)
        axes = a->ints, count = a->count;
    else
        return true;
    for (int64_t i = 0; i < count; i++) {
        const int axis = sti_known_axis(axes[i], rank);
        if (axis < 0)
            return false;
        seen |= 1u << axis;
    }
    return count >= 0 && seen == (1u << rank) - 1;
}

/* Over all elements, which is what shape arithmetic has; others are left to the run. */
static stint_status fold_reduce(sti_fold *f, reduce_kind kind)
{
    const sti_exchange_tensor *x = f->in[0];
    int64_t dim[STI_EXCHANGE_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    if (!over_all(f) || x->count < 1)
        return STINT_OK;
    const bool keep = sti_exchange_attr_int(f->node, "keepdims", 1) != 0;
    sti_exchange_tensor *y = sti_known_make(f->arena, x->type, keep ? x->rank : 0, dim);
    if (!y)
        return STINT_E_UNSUPPORTED;
    double all = sti_known_number(x, 0);
    for (int64_t i = 1; i < x->count; i++)
        all = join(kind, all, sti_known_number(x, i));
    if (kind == MEAN)
        all /= (double)x->count;
    if (y->floats)
        sti_known_floats(y)[0] = (float)all;
    else
        sti_known_words(y)[0] = sti_known_whole(all);
    f->out[0] = y;
    return STINT_OK;
}

#define REDUCE(name, kind)                           \
    stint_status sti_fold_reduce_##name(sti_fold *f) \
    {                                                \
        return fold_reduce(f, kind);                 \
    }
REDUCE(sum, SUM)
REDUCE(prod, PROD)
REDUCE(min, LEAST)
REDUCE(max, MOST)
REDUCE(mean, MEAN)
