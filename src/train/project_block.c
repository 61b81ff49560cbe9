/* block: tiles of a weight as a matrix [rows, columns]. row, filter, structure: whole
 * columns, which are the outputs of dense layers and of convolutions, with their biases
 * and with scale and shift of a normalisation behind them. */
#include <inttypes.h>

#include "base/fail.h"
#include "train/project_priv.h"

/* ---- block ---- */

static int64_t count_blocks(const sti_scheme_word *word, const sti_target *t)
{
    return t->form.rows / word->block_rows * (t->form.columns / word->block_columns);
}

/* The first number of a block, counted row by row of blocks. */
static int64_t block_start(const sti_scheme_word *word, const sti_target *t,
                           int64_t unit)
{
    const int64_t across = t->form.columns / word->block_columns;
    return unit / across * word->block_rows * t->form.columns +
           unit % across * word->block_columns;
}

static void score_blocks(const sti_scheme_word *word, const sti_target *t,
                         const float *x, float *score)
{
    const int64_t n = count_blocks(word, t);
    for (int64_t b = 0; b < n; b++) {
        sti_scorer s;
        sti_scorer_begin(&s, word->criterion);
        for (int64_t r = 0; r < word->block_rows; r++)
            sti_scorer_add(&s, x + block_start(word, t, b) + r * t->form.columns,
                           word->block_columns, 1);
        score[b] = sti_scorer_end(&s);
    }
}

static void cut_block(const sti_scheme_word *word, const sti_target *t, void *params,
                      int64_t unit)
{
    float *x = sti_target_numbers(t, params) + block_start(word, t, unit);
    for (int64_t r = 0; r < word->block_rows; r++)
        for (int64_t c = 0; c < word->block_columns; c++)
            x[r * t->form.columns + c] = 0;
}

stint_status sti_project_check_block(const sti_scheme_word *word, const sti_target *t)
{
    if (t->form.rows % word->block_rows == 0 &&
        t->form.columns % word->block_columns == 0)
        return STINT_OK;
    return sti_fail(STINT_E_USAGE,
                    "scheme: block: tiles of %" PRId64 "x%" PRId64
                    " do not divide %s, a matrix of %" PRId64 "x%" PRId64
                    "; take a size that does, or pick other tensors by @GLOB",
                    word->block_rows, word->block_columns, t->name, t->form.rows,
                    t->form.columns);
}

void sti_project_block(sti_projection *p, int word, void *params)
{
    static const sti_cutter cutter = {
        .units = count_blocks, .score = score_blocks, .cut = cut_block};
    sti_project_cut(p, word, &cutter, params);
    for (int i = 0; i < p->count; i++)
        if (p->target[i].takes >> word & 1) {
            p->target[i].form.block_rows = p->scheme.word[word].block_rows;
            p->target[i].form.block_columns = p->scheme.word[word].block_columns;
        }
}

/* ---- row, filter, structure ---- */

static int64_t count_columns(const sti_scheme_word *word, const sti_target *t)
{
    (void)word;
    return t->form.columns;
}

static void score_columns(const sti_scheme_word *word, const sti_target *t,
                          const float *x, float *score)
{
    for (int64_t c = 0; c < t->form.columns; c++) {
        sti_scorer s;
        sti_scorer_begin(&s, word->criterion);
        sti_scorer_add(&s, x + c, t->form.rows, t->form.columns);
        score[c] = sti_scorer_end(&s);
    }
}

static void cut_column(const sti_scheme_word *word, const sti_target *t, void *params,
                       int64_t unit)
{
    float *x = sti_target_numbers(t, params);
    (void)word;
    for (int64_t r = 0; r < t->form.rows; r++)
        x[r * t->form.columns + unit] = 0;
    for (int i = 0; i < t->companions; i++) {
        float *of = (float *)(void *)((char *)params + t->companion[i]);
        of[unit] = 0;
    }
}

stint_status sti_project_check_outputs(const sti_scheme_word *word, const sti_target *t)
{
    if (word->align <= t->form.columns)
        return STINT_OK;
    return sti_fail(STINT_E_USAGE,
                    "scheme: %s: align=%" PRId64 " is more than the %" PRId64
                    " outputs of %s; take a smaller one, or pick other tensors by "
                    "@GLOB",
                    sti_scheme_kind_name(word->kind), word->align, t->form.columns,
                    t->name);
}

void sti_project_outputs(sti_projection *p, int word, void *params)
{
    static const sti_cutter cutter = {
        .units = count_columns, .score = score_columns, .cut = cut_column};
    sti_project_cut(p, word, &cutter, params);
    for (int i = 0; i < p->count; i++)
        if (p->target[i].takes >> word & 1)
            p->target[i].form.whole_columns = true;
}
