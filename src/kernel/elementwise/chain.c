#include "kernel/elementwise/chain.h"

#include <string.h>

#include "kernel/elementwise/elementwise_priv.h"

enum { TILE = STI_CHAIN_TILE, FIRST = STI_CHAIN_INPUTS };

static bool is_binary(const sti_chain_step *s)
{
    return s->kind >= STI_CHAIN_BINARY && s->kind < STI_CHAIN_RELU;
}

static bool is_there(const sti_chain *c, int step, int32_t operand)
{
    return operand >= FIRST ? operand < FIRST + step
                            : operand >= 0 && operand < c->inputs;
}

bool sti_chain_is_sound(const sti_chain *c)
{
    if (c->inputs < 1 || c->inputs > STI_CHAIN_INPUTS || c->steps < 1 ||
        c->steps > STI_CHAIN_STEPS || c->buffers < 0 || c->buffers > STI_CHAIN_STEPS)
        return false;
    for (int i = 0; i < c->steps; i++) {
        const sti_chain_step *s = &c->step[i];
        if (s->kind < 0 || s->kind > STI_CHAIN_RELU || !is_there(c, i, s->a) ||
            (is_binary(s) && !is_there(c, i, s->b)) || s->buffer < 0 ||
            (i + 1 < c->steps && s->buffer >= c->buffers))
            return false;
    }
    return true;
}

/* ---- buffers ---- */

/* The last step that reads the result of step i. */
static int last_reader(const sti_chain *c, int i)
{
    int last = i;
    for (int k = i + 1; k < c->steps; k++)
        if (c->step[k].a == FIRST + i ||
            (is_binary(&c->step[k]) && c->step[k].b == FIRST + i))
            last = k;
    return last;
}

void sti_chain_assign(sti_chain *c)
{
    int until[STI_CHAIN_STEPS] = {0}; /* steps that read what is in a buffer */
    c->buffers = 0;
    for (int i = 0; i < c->steps; i++) {
        int free = 0;
        c->step[i].buffer = 0;
        if (i + 1 == c->steps)
            break;
        while (free < c->buffers && until[free] > i)
            free++;
        until[free] = last_reader(c, i);
        c->step[i].buffer = free;
        if (free == c->buffers)
            c->buffers++;
    }
}

/* ---- running ---- */

typedef struct chain_job {
    const sti_chain *chain;
    const sti_elementwise_table *table;
    const sti_chain_form *form;
    const float *in[STI_CHAIN_INPUTS]; /* rows are repeated where a tile has several */
    int64_t rows, columns, count;
    int64_t tile; /* elements: whole rows, or a part of one */
    bool repeated;
    float *out, *buffers; /* [threads][chain->buffers][TILE] */
} chain_job;

/* Elements of a tile that begins at `first`. */
static int64_t tile_length(const chain_job *j, int64_t first)
{
    const int64_t left = j->count - first;
    const int64_t row = j->columns - first % j->columns;
    const int64_t most = j->repeated || row > j->tile ? j->tile : row;
    return left < most ? left : most;
}

static const float *operand(const chain_job *j, int32_t which, int64_t first,
                            float *const *result, bool *one)
{
    *one = false;
    if (which >= FIRST)
        return result[which - FIRST];
    *one = j->form[which] == STI_CHAIN_ONE;
    return j->form[which] == STI_CHAIN_WHOLE ? j->in[which] + first
           : *one || j->repeated             ? j->in[which]
                                             : j->in[which] + first % j->columns;
}

static void run_tile(const chain_job *j, int64_t first, int64_t n, float *buffers)
{
    float *result[STI_CHAIN_STEPS];
    for (int i = 0; i < j->chain->steps; i++) {
        const sti_chain_step *s = &j->chain->step[i];
        bool a_one, b_one;
        const float *a = operand(j, s->a, first, result, &a_one);
        result[i] = i + 1 == j->chain->steps ? j->out + first
                                             : buffers + (int64_t)s->buffer * TILE;
        if (s->kind == STI_CHAIN_RELU) {
            j->table->relu(n, s->p, a, result[i], NULL);
        } else if (!is_binary(s)) {
            j->table->unary[s->kind](n, s->p, a, result[i]);
        } else {
            const float *b = operand(j, s->b, first, result, &b_one);
            const int loop = a_one ? STI_LOOP_SV : b_one ? STI_LOOP_VS : STI_LOOP_VV;
            j->table->binary[s->kind - STI_CHAIN_BINARY][loop](n, a, b, result[i]);
        }
    }
}

/* Pieces are runs of whole rows where tiles are, else tiles of one row. */
static void run_piece(void *arg, int64_t piece, int worker)
{
    const chain_job *j = arg;
    float *buffers = j->buffers + (int64_t)worker * j->chain->buffers * TILE;
    const int64_t row = j->repeated ? j->tile : j->columns;
    const int64_t begin = piece * row;
    const int64_t end = begin + row < j->count ? begin + row : j->count;
    for (int64_t first = begin, n; first < end; first += n) {
        n = tile_length(j, first);
        run_tile(j, first, n, buffers);
    }
}

size_t sti_chain_scratch_bytes(const sti_chain *c, int threads)
{
    return (size_t)(c->inputs + c->buffers * threads) * TILE * sizeof(float);
}

/* Rows as often as a tile has them. */
static void repeat_rows(chain_job *j, float *scratch)
{
    for (int i = 0; i < j->chain->inputs; i++) {
        if (j->form[i] != STI_CHAIN_ROW)
            continue;
        float *to = scratch + (int64_t)i * TILE;
        for (int64_t at = 0; at < j->tile; at += j->columns)
            memcpy(to + at, j->in[i], (size_t)j->columns * sizeof *to);
        j->in[i] = to;
    }
}

void sti_chain_f32(const sti_team *team, const sti_chain *chain, int64_t rows,
                   int64_t columns, const sti_chain_form *form, const float *const *in,
                   float *out, void *scratch)
{
    bool any = false;
    for (int i = 0; i < chain->inputs; i++)
        any = any || form[i] == STI_CHAIN_ROW;
    chain_job j = {.chain = chain,
                   .table = sti_elementwise_now(),
                   .form = form,
                   .rows = any ? rows : 1,
                   .columns = any ? columns : rows * columns,
                   .count = rows * columns,
                   .tile = TILE,
                   .out = out,
                   .buffers = (float *)scratch + (int64_t)chain->inputs * TILE};
    memcpy(j.in, in, (size_t)chain->inputs * sizeof *in);
    j.repeated = any && columns <= TILE / 2;
    if (j.repeated) {
        j.tile = TILE / columns * columns;
        repeat_rows(&j, scratch);
    } else if (!any) { /* one row, in tiles that are pieces of their own */
        j.repeated = true;
    }
    const int64_t piece = j.repeated ? j.tile : j.columns;
    sti_team_run(team, (j.count + piece - 1) / piece, run_piece, &j);
}
