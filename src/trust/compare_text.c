/* Two models of text over the same windows. */
#include "stint/compare_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"
#include "data/data_section.h"
#include "kernel/maths/maths.h"
#include "trust/statistics.h"
#include "trust/text_changes.h"
#include "trust/text_scores.h"

enum { TOKENS = 2048 /* at a time */ };

/* What one next token came to: r and c, the reference and the changed model. */
typedef struct row_score {
    int32_t answer[2];
    double loss[2], p[2]; /* p: of the own answer */
    double kl;
    bool bad[2];
} row_score;

typedef struct comparison {
    const stint_compare_desc *desc;
    stint_text_fidelity *out;
    stint_model_file *model[2];
    sti_corpus *text;
    sti_corpus_part part;
    sti_text_scores scores[2];
    sti_team team;
    int64_t context, batch, windows; /* tokens; windows at a time, and in all */
    int32_t vocabulary;
    int32_t *token, *label, *window; /* [batch, context]; window [batch] */
    float *logits[2];                /* [STI_TEXT_SCORES_ROWS, vocabulary] */
    row_score row[STI_TEXT_SCORES_ROWS];
    int64_t *seen;      /* [vocabulary]: how often each token is a label */
    double *difference; /* [windows]: of the summed losses */
    float *scaled;      /* the same by tokens a window */
    int64_t right[2], changed, changed_right, lost, won;
    double kl, loss[2];
    int64_t count[STINT_TEXT_POSITIONS + STINT_TEXT_FREQUENCIES][2]; /* all, changed */
    double part_loss[STINT_TEXT_POSITIONS + STINT_TEXT_FREQUENCIES][2];
} comparison;

/* ---- one next token ---- */

/* log of the sum of exp(z), the largest first taken out. */
static double log_sum(int64_t n, const float *z, int32_t *largest)
{
    double sum = 0;
    *largest = 0;
    for (int64_t i = 1; i < n; i++)
        if (z[i] > z[*largest])
            *largest = (int32_t)i;
    for (int64_t i = 0; i < n; i++)
        sum += (double)sti_exp_f32(z[i] - z[*largest]);
    return (double)z[*largest] + log(sum);
}

static double divergence(int64_t n, const float *r, double sum_r, const float *c,
                         double sum_c)
{
    double kl = 0;
    for (int64_t i = 0; i < n; i++) {
        const double log_p = (double)r[i] - sum_r;
        kl += (double)sti_exp_f32((float)log_p) * (log_p - ((double)c[i] - sum_c));
    }
    return kl > 0 ? kl : 0; /* below only by rounding */
}

typedef struct block {
    comparison *k;
    int64_t first; /* row of the batch */
} block;

static void score_row(void *arg, int64_t i, int worker)
{
    const block *b = arg;
    comparison *k = b->k;
    row_score *s = &k->row[i];
    const int32_t label = k->label[b->first + i];
    double sum[2];
    (void)worker;
    if (label < 0)
        return;
    for (int m = 0; m < 2; m++) {
        const float *z = k->logits[m] + i * k->vocabulary;
        sum[m] = log_sum(k->vocabulary, z, &s->answer[m]);
        s->loss[m] = sum[m] - (double)z[label];
        s->p[m] = (double)sti_exp_f32((float)((double)z[s->answer[m]] - sum[m]));
        s->bad[m] = !isfinite(s->loss[m]);
    }
    s->kl = divergence(k->vocabulary, k->logits[0] + i * k->vocabulary, sum[0],
                       k->logits[1] + i * k->vocabulary, sum[1]);
}

/* ---- counts ---- */

static int frequency_of(int64_t seen)
{
    int kind = 0;
    while (seen >= (kind == 0 ? 2 : 10) && kind < STINT_TEXT_FREQUENCIES - 1) {
        seen = kind == 0 ? seen : seen / 10;
        kind++;
    }
    return kind;
}

static void count_kind(comparison *k, int kind, const row_score *s)
{
    k->count[kind][0]++;
    k->count[kind][1] += s->answer[0] != s->answer[1];
    for (int m = 0; m < 2; m++)
        k->part_loss[kind][m] += s->loss[m];
}

static void count_row(comparison *k, const row_score *s, int32_t label, int64_t window,
                      int64_t position)
{
    const bool was = s->answer[0] == label, is = s->answer[1] == label;
    k->right[0] += was;
    k->right[1] += is;
    k->changed += s->answer[0] != s->answer[1];
    k->changed_right += was && s->answer[0] != s->answer[1];
    k->lost += was && !is;
    k->won += is && !was;
    k->kl += s->kl;
    k->loss[0] += s->loss[0];
    k->loss[1] += s->loss[1];
    k->difference[window] += s->loss[1] - s->loss[0];
    count_kind(k, (int)(position * STINT_TEXT_POSITIONS / k->context), s);
    count_kind(k, STINT_TEXT_POSITIONS + frequency_of(k->seen[label]), s);
}

static stint_status not_finite(const comparison *k, int m, int64_t at)
{
    return sti_fail(STINT_E_INPUT,
                    "%s gives scores that are not finite for what follows token "
                    "%" PRId64 " of the text",
                    m ? k->desc->changed : k->desc->reference, at);
}

/* Rows first .. of the batch that begins with window w. */
static stint_status score_block(comparison *k, int64_t w, int64_t first, int64_t rows)
{
    block b = {k, first};
    for (int m = 0; m < 2; m++)
        sti_text_scores_take(&k->scores[m], first, rows, k->logits[m]);
    sti_team_run(&k->team, rows, score_row, &b);
    for (int64_t i = 0; i < rows; i++) {
        const int64_t at = w * k->context + first + i, window = at / k->context;
        const row_score *s = &k->row[i];
        const int32_t label = k->label[first + i];
        if (label < 0)
            continue;
        for (int m = 0; m < 2; m++)
            if (s->bad[m])
                return not_finite(k, m, k->part.begin + at);
        count_row(k, s, label, window, at % k->context);
        sti_text_changes_take(k->out,
                              &(stint_text_change){.at = at + 1,
                                                   .kl = s->kl,
                                                   .label = label,
                                                   .reference_answer = s->answer[0],
                                                   .changed_answer = s->answer[1],
                                                   .reference_p = s->p[0],
                                                   .changed_p = s->p[1]});
    }
    return STINT_OK;
}

/* ---- the text ---- */

static stint_status read_batch(comparison *k, int64_t w)
{
    const sti_corpus_cut cut = {.part = k->part, .context = k->context};
    for (int64_t i = 0; i < k->batch; i++)
        k->window[i] = w + i < k->windows ? (int32_t)(w + i) : -1;
    return sti_corpus_batch(k->text, &cut, k->window, k->batch, k->token, k->label);
}

static stint_status count_labels(comparison *k)
{
    stint_status st = STINT_OK;
    for (int64_t w = 0; w < k->windows && st == STINT_OK; w += k->batch) {
        st = read_batch(k, w);
        for (int64_t i = 0; i < k->batch * k->context && st == STINT_OK; i++)
            if (k->label[i] >= 0)
                k->seen[k->label[i]]++;
    }
    return st;
}

static void tell(const comparison *k, int64_t done)
{
    const stint_compare_desc *d = k->desc;
    if (d->progress)
        d->progress(d->user, &(stint_train_progress){.loss = (double)NAN,
                                                     .accuracy = (double)NAN,
                                                     .test_loss = (double)NAN,
                                                     .test_accuracy = (double)NAN,
                                                     .evaluating = true,
                                                     .evaluated = done,
                                                     .to_evaluate = k->windows});
}

static stint_status score_all(comparison *k)
{
    stint_status st = STINT_OK;
    for (int64_t w = 0; w < k->windows && st == STINT_OK; w += k->batch) {
        const int64_t left = k->windows - w, here = left < k->batch ? left : k->batch;
        const int64_t rows = here * k->context;
        STI_TRY(read_batch(k, w));
        for (int m = 0; m < 2; m++)
            sti_text_scores_run(&k->scores[m], k->token);
        for (int64_t r = 0; r < rows && st == STINT_OK; r += STI_TEXT_SCORES_ROWS)
            st = score_block(k, w, r,
                             rows - r < STI_TEXT_SCORES_ROWS ? rows - r
                                                             : STI_TEXT_SCORES_ROWS);
        if (st == STINT_OK && sti_stop_asked() != STINT_OK)
            st = sti_fail(sti_stop_asked(), "stopped while comparing");
        tell(k, w + here);
    }
out:
    sti_stop_clear();
    return st;
}

/* ---- models and data ---- */

static stint_status open_model(const char *path, stint_model_file **model_out)
{
    const stint_status st = stint_model_open(path, model_out);
    if (st != STINT_OK)
        return st;
    if ((*model_out)->network.context == 0)
        return sti_fail(STINT_E_INPUT, "%s is no model of text", path);
    if (!(*model_out)->tokenizer)
        return sti_fail(STINT_E_INPUT, "%s holds no tokeniser, so it cannot read text",
                        path);
    return STINT_OK;
}

static stint_status check_models(const comparison *k)
{
    const stint_model_file *r = k->model[0], *c = k->model[1];
    if (strcmp(stint_tokenizer_describe(r->tokenizer)->hash,
               stint_tokenizer_describe(c->tokenizer)->hash) != 0)
        return sti_fail(STINT_E_INPUT,
                        "%s and %s have tokenisers of their own: their next tokens are "
                        "not the same things",
                        k->desc->reference, k->desc->changed);
    if (r->network.text.vocabulary != c->network.text.vocabulary)
        return sti_fail(STINT_E_INPUT, "%s tells %" PRId64 " tokens apart, %s %" PRId64,
                        k->desc->reference, r->network.text.vocabulary,
                        k->desc->changed, c->network.text.vocabulary);
    return STINT_OK;
}

static stint_status open_text(comparison *k)
{
    const stint_model_file *r = k->model[0];
    const sti_corpus_desc wanted = {.path = k->desc->data.path,
                                    .tokenizer = r->tokenizer,
                                    .validation =
                                        sti_data_section_of(r->recipe)->validation};
    const stint_status st = sti_corpus_open(&wanted, &k->text);
    if (st != STINT_OK)
        return sti_fail_context(st, "data for these models");
    k->part = k->desc->data.split == STINT_DATA_TRAIN ? k->text->train : k->text->test;
    if (k->desc->data.split == STINT_DATA_ALL)
        k->part = (sti_corpus_part){.begin = 0, .end = k->text->tokens, .bytes = 0};
    const int64_t other = k->model[1]->network.context;
    k->context = r->network.context < other ? r->network.context : other;
    k->windows = sti_corpus_test_windows(&k->part, k->context);
    if (k->windows == 0 || k->windows > INT32_MAX)
        return sti_fail(STINT_E_INPUT,
                        "%s: that part of the text has %" PRId64
                        " tokens; wanted are two, and windows that 31 bits count; "
                        "give another text, or --split all",
                        k->text->path, k->part.end - k->part.begin);
    return STINT_OK;
}

static stint_status make_room(comparison *k)
{
    const int64_t tokens = k->desc->batch > 0 ? k->desc->batch : TOKENS;
    int threads;
    stint_status st;
    k->batch = (tokens + k->context - 1) / k->context;
    k->batch = k->batch < k->windows ? k->batch : k->windows;
    k->vocabulary = (int32_t)k->model[0]->network.text.vocabulary;
    STI_TRY(sti_threads_choose(k->desc->threads, &threads, NULL));
    k->team = (sti_team){.threads = threads};
    for (int m = 0; m < 2; m++) {
        STI_TRY(sti_text_scores_open(k->model[m], k->batch, k->context, threads,
                                     &k->scores[m]));
        k->logits[m] = sti_alloc_array(STI_TEXT_SCORES_ROWS,
                                       (size_t)k->vocabulary * sizeof(float), "scores");
    }
    k->token = sti_alloc_array(k->batch * k->context, sizeof *k->token, "windows");
    k->label = sti_alloc_array(k->batch * k->context, sizeof *k->label, "windows");
    k->window = sti_alloc_array(k->batch, sizeof *k->window, "windows");
    k->seen = sti_alloc_array(k->vocabulary, sizeof *k->seen, "frequencies");
    k->scaled = sti_alloc_array(k->windows, sizeof *k->scaled, "losses");
    k->difference = sti_alloc_array(k->windows, sizeof *k->difference, "losses");
    if (!k->logits[0] || !k->logits[1] || !k->token || !k->label || !k->window ||
        !k->seen || !k->difference || !k->scaled) {
        st = STINT_E_MEMORY;
        goto out;
    }
    memset(k->seen, 0, (size_t)k->vocabulary * sizeof *k->seen);
    memset(k->difference, 0, (size_t)k->windows * sizeof *k->difference);
out:
    return st;
}

static void comparison_fini(comparison *k)
{
    for (int m = 0; m < 2; m++) {
        sti_text_scores_close(&k->scores[m]);
        sti_free(k->logits[m]);
    }
    sti_free(k->token);
    sti_free(k->label);
    sti_free(k->window);
    sti_free(k->seen);
    sti_free(k->difference);
    sti_free(k->scaled);
    sti_corpus_close(k->text);
    stint_model_close(k->model[0]);
    stint_model_close(k->model[1]);
}

/* ---- what it came to ---- */

static void name_parts(const comparison *k, stint_text_fidelity *out)
{
    static const char *const seen[STINT_TEXT_FREQUENCIES] = {
        "seen once", "seen 2 to 9 times", "seen 10 to 99 times",
        "seen 100 to 999 times", "seen 1000 times and more"};
    for (int64_t p = 0; p < STINT_TEXT_POSITIONS; p++)
        snprintf(out->position[p].name, sizeof out->position[p].name,
                 "positions %" PRId64 " to %" PRId64,
                 (p * k->context + STINT_TEXT_POSITIONS - 1) / STINT_TEXT_POSITIONS,
                 ((p + 1) * k->context + STINT_TEXT_POSITIONS - 1) /
                         STINT_TEXT_POSITIONS -
                     1);
    for (int f = 0; f < STINT_TEXT_FREQUENCIES; f++)
        snprintf(out->frequency[f].name, sizeof out->frequency[f].name, "%s", seen[f]);
}

static void sum_up_parts(const comparison *k, stint_text_fidelity *out)
{
    name_parts(k, out);
    for (int i = 0; i < STINT_TEXT_POSITIONS + STINT_TEXT_FREQUENCIES; i++) {
        stint_text_part *part = i < STINT_TEXT_POSITIONS
                                    ? &out->position[i]
                                    : &out->frequency[i - STINT_TEXT_POSITIONS];
        const double n = (double)k->count[i][0];
        part->mismatch = sti_share(k->count[i][1], k->count[i][0]);
        part->reference_loss = n > 0 ? k->part_loss[i][0] / n : (double)NAN;
        part->changed_loss = n > 0 ? k->part_loss[i][1] / n : (double)NAN;
    }
}

static void sum_up(comparison *k, stint_text_fidelity *out)
{
    const int64_t n = k->part.end - k->part.begin - 1;
    const double tokens = (double)n;
    out->tokens = n;
    out->windows = k->windows;
    out->reference_accuracy = (double)k->right[0] / tokens;
    out->changed_accuracy = (double)k->right[1] / tokens;
    out->mismatch = sti_share(k->changed, n);
    out->mismatch_right = sti_share(k->changed_right, n);
    out->nfr = sti_share(k->lost, n);
    out->pfr = sti_share(k->won, n);
    out->kl = k->kl / tokens;
    out->reference_loss = k->loss[0] / tokens;
    out->changed_loss = k->loss[1] / tokens;
    out->loss_difference = out->changed_loss - out->reference_loss;
    /* So scaled, the mean over windows is that over tokens: the last is shorter. */
    for (int64_t w = 0; w < k->windows; w++)
        k->scaled[w] = (float)(k->difference[w] * (double)k->windows / tokens);
    out->loss_low = out->loss_high = (double)NAN;
    if (k->windows > 1)
        sti_bootstrap_mean(k->windows, k->scaled, 1, &out->loss_low, &out->loss_high);
    sum_up_parts(k, out);
}

static stint_status check_desc(const stint_compare_desc *d)
{
    if (d->floors > 0 || d->group_count > 0 || d->saliency > 0)
        return sti_fail(STINT_E_USAGE,
                        "--floor, --groups and --saliency are of models of images; "
                        "leave them out for text");
    return STINT_OK;
}

static stint_status compare_all(comparison *k)
{
    stint_status st;
    STI_TRY(check_desc(k->desc));
    STI_TRY(open_model(k->desc->reference, &k->model[0]));
    STI_TRY(open_model(k->desc->changed, &k->model[1]));
    STI_TRY(check_models(k));
    STI_TRY(open_text(k));
    STI_TRY(make_room(k));
    STI_TRY(count_labels(k));
    STI_TRY(score_all(k));
    sum_up(k, k->out);
    st = sti_text_changes_write(k->text, &k->part, k->context, k->out);
out:
    return st;
}

stint_status stint_compare_text(const stint_compare_desc *desc,
                                stint_text_fidelity *out)
{
    comparison *k = sti_alloc(sizeof *k, "comparison");
    stint_status st = STINT_E_MEMORY;
    *out = (stint_text_fidelity){.arena = sti_arena_create("fidelity")};
    if (k && out->arena) {
        *k = (comparison){.desc = desc, .out = out};
        st = compare_all(k);
        comparison_fini(k);
    }
    sti_free(k);
    if (st != STINT_OK)
        stint_text_fidelity_fini(out);
    return st;
}

void stint_text_fidelity_fini(stint_text_fidelity *f)
{
    if (f->arena)
        sti_arena_destroy(f->arena);
    *f = (stint_text_fidelity){0};
}
