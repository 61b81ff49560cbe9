/* Chains: tiles through the loops of the instruction set in use. */
#include "kernel/elementwise/chain_loops.h"

#include <stdbool.h>
#include <string.h>

#include "kernel/elementwise/elementwise_priv.h"

enum { CHAIN_PIECE = 16384 };

typedef struct chain {
    const sti_elementwise_table *table;
    const sti_chain_program *program;
    int64_t n;
    const sti_chain_input *in;
    float *const *out;
    bool hold_first; /* input 0 is read after its place was written */
} chain;

/* What a worker has at hand for a tile. */
typedef struct tile {
    float slot[STI_CHAIN_SLOTS][STI_CHAIN_TILE];
    float spread[STI_CHAIN_INPUTS][STI_CHAIN_TILE];  /* inputs that repeat */
    float unread[STI_CHAIN_OUTPUTS][STI_CHAIN_TILE]; /* outputs that are not wanted */
    const float *in[STI_CHAIN_INPUTS];
    float *out[STI_CHAIN_OUTPUTS];
} tile;

static bool is_whole(const sti_chain_input *in, int64_t n)
{
    return in->repeat == 1 && in->period == n;
}

static bool is_scalar(const sti_chain_input *in, int64_t n)
{
    return in->period == 1 && n > 1;
}

/* Elements at .. at + count of an input that repeats. */
static void spread_input(const sti_chain_input *in, int64_t at, int64_t count,
                         float *to)
{
    int64_t whole = at / in->repeat % in->period, part = at % in->repeat;
    if (in->repeat == 1) {
        for (int64_t i = 0, run; i < count; i += run, whole = 0) {
            run = in->period - whole < count - i ? in->period - whole : count - i;
            memcpy(to + i, in->data + whole, (size_t)run * sizeof *to);
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        to[i] = in->data[whole];
        if (++part < in->repeat)
            continue;
        part = 0;
        whole = whole + 1 < in->period ? whole + 1 : 0;
    }
}

static void place_inputs(const chain *c, int64_t at, int64_t count, tile *t)
{
    for (int i = 0; i < c->program->inputs; i++) {
        const sti_chain_input *in = &c->in[i];
        t->in[i] = is_whole(in, c->n) ? in->data + at : t->spread[i];
        if (is_scalar(in, c->n))
            t->spread[i][0] = in->data[0];
        else if (!is_whole(in, c->n))
            spread_input(in, at, count, t->spread[i]);
    }
    if (c->hold_first) {
        memcpy(t->spread[0], t->in[0], (size_t)count * sizeof(float));
        t->in[0] = t->spread[0];
    }
}

static float *place_of(tile *t, int code)
{
    if (code < STI_CHAIN_INPUT)
        return t->slot[code];
    return t->out[code - STI_CHAIN_OUTPUT];
}

static const float *operand_of(const chain *c, tile *t, int code, bool *scalar_out)
{
    const int i = code - STI_CHAIN_INPUT;
    *scalar_out = false;
    if (code < STI_CHAIN_INPUT || code >= STI_CHAIN_OUTPUT)
        return place_of(t, code);
    *scalar_out = is_scalar(&c->in[i], c->n);
    return t->in[i];
}

/* A scalar where a loop wants a tile. */
static const float *whole_operand(const float *x, bool scalar, int64_t count, float *to)
{
    if (!scalar)
        return x;
    for (int64_t i = 0; i < count; i++)
        to[i] = *x;
    return to;
}

static void run_unary(const sti_elementwise_table *table, const sti_chain_step *s,
                      int64_t count, const float *a, float *to)
{
    if (s->kind == STI_CHAIN_RELU)
        table->relu(count, s->p, a, to, NULL);
    else if (s->kind == STI_CHAIN_RELU6)
        table->relu6(count, a, to, NULL);
    else
        table->unary[s->kind](count, s->p, a, to);
}

static void run_step(const chain *c, tile *t, const sti_chain_step *s, int64_t count)
{
    float splat[STI_CHAIN_TILE];
    bool a_scalar, b_scalar;
    float *const to = place_of(t, s->to);
    const float *a = operand_of(c, t, s->a, &a_scalar);
    if (!s->binary) {
        a = whole_operand(a, a_scalar, count, splat);
        run_unary(c->table, s, count, a, to);
        return;
    }
    const float *b = operand_of(c, t, s->b, &b_scalar);
    if (b_scalar)
        a = whole_operand(a, a_scalar, count, splat);
    const int loop = b_scalar ? STI_LOOP_VS : a_scalar ? STI_LOOP_SV : STI_LOOP_VV;
    c->table->binary[s->kind][loop](count, a, b, to);
}

static void chain_piece(void *arg, int64_t piece, int worker)
{
    const chain *c = arg;
    const int64_t end =
        (piece + 1) * CHAIN_PIECE < c->n ? (piece + 1) * CHAIN_PIECE : c->n;
    tile t;
    (void)worker;
    for (int64_t at = piece * CHAIN_PIECE; at < end; at += STI_CHAIN_TILE) {
        const int64_t count = end - at < STI_CHAIN_TILE ? end - at : STI_CHAIN_TILE;
        for (int o = 0; o < c->program->outputs; o++)
            t.out[o] = c->out[o] ? c->out[o] + at : t.unread[o];
        place_inputs(c, at, count, &t);
        for (int s = 0; s < c->program->steps; s++)
            run_step(c, &t, &c->program->step[s], count);
    }
}

/* Is input 0 read by a step behind the one that makes output 0? */
static bool reads_first_late(const sti_chain_program *p)
{
    bool written = false;
    for (int s = 0; s < p->steps; s++) {
        const sti_chain_step *step = &p->step[s];
        if (written && (step->a == STI_CHAIN_INPUT ||
                        (step->binary && step->b == STI_CHAIN_INPUT)))
            return true;
        written = written || step->to == STI_CHAIN_OUTPUT;
    }
    return false;
}

void sti_chain_f32(const sti_team *team, const sti_chain_program *program, int64_t n,
                   const sti_chain_input *in, float *const *out)
{
    chain c = {.table = sti_elementwise_now(),
               .program = program,
               .n = n,
               .in = in,
               .out = out};
    c.hold_first = program->inputs > 0 && program->outputs > 0 &&
                   in[0].data == out[0] && reads_first_late(program);
    sti_team_run(team, (n + CHAIN_PIECE - 1) / CHAIN_PIECE, chain_piece, &c);
}
