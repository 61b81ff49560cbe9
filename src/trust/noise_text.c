#include "trust/noise_text.h"

#include <inttypes.h>
#include <math.h>

#include "base/fail.h"
#include "base/memory.h"
#include "trust/text_changes.h"
#include "trust/text_scores.h"

enum { TOKENS = 2048 /* at a time */ };

stint_status sti_noise_text_open(sti_noise_lab *lab)
{
    const stint_status st = sti_inputs_open_data(lab->recipe, &lab->text);
    if (st == STINT_OK && sti_noise_text_count(lab) < 1)
        return sti_fail(STINT_E_INPUT,
                        "%s: its test part has no two tokens, and the runs are told "
                        "apart by what they say follows; set data.validation to a "
                        "share, or give more text",
                        lab->text.text->path);
    return st;
}

int64_t sti_noise_text_count(const sti_noise_lab *lab)
{
    const sti_corpus_part *part = &lab->text.text->test;
    return part->end - part->begin - 1;
}

int32_t sti_noise_text_classes(const sti_noise_lab *lab)
{
    return (int32_t)lab->text.network.text.vocabulary;
}

stint_status sti_noise_text_labels(const sti_noise_lab *lab, int32_t *label)
{
    const sti_corpus *text = lab->text.text;
    return sti_corpus_tokens(text, text->test.begin + 1, sti_noise_text_count(lab),
                             label);
}

stint_status sti_noise_text_names(const sti_noise_lab *lab, const char ***out)
{
    const int32_t classes = sti_noise_text_classes(lab);
    const char **name = sti_arena_alloc(lab->arena, (size_t)classes * sizeof *name);
    for (int32_t c = 0; name && c < classes; c++)
        if (!(name[c] = sti_text_token_words(lab->text.text, lab->arena, c)))
            return STINT_E_MEMORY;
    *out = name;
    return name ? STINT_OK : STINT_E_MEMORY;
}

/* ---- answers ---- */

typedef struct asking {
    sti_text_scores scores;
    sti_team team;
    float *logits;
    int32_t *token, *label, *window, *answer;
    const int32_t *row_label; /* of the block */
    int32_t *row_answer;      /* likewise; -1: its scores are not finite */
    int64_t context, batch, windows;
} asking;

static void answer_row(void *arg, int64_t i, int worker)
{
    const asking *a = arg;
    const float *z = a->logits + i * a->scores.vocabulary;
    int32_t best = 0;
    bool finite = isfinite(z[0]);
    (void)worker;
    if (a->row_label[i] < 0)
        return;
    for (int32_t k = 1; k < a->scores.vocabulary; k++) {
        finite = finite && isfinite(z[k]);
        best = z[k] > z[best] ? k : best;
    }
    a->row_answer[i] = finite ? best : -1;
}

/* The windows of a batch, which lie side by side: rows are next tokens in order. */
static void answer_batch(asking *a, int64_t first, int64_t count)
{
    for (int64_t r = 0; r < count; r += STI_TEXT_SCORES_ROWS) {
        const int64_t rows =
            count - r < STI_TEXT_SCORES_ROWS ? count - r : STI_TEXT_SCORES_ROWS;
        sti_text_scores_take(&a->scores, r, rows, a->logits);
        a->row_label = a->label + r;
        a->row_answer = a->answer + first + r;
        sti_team_run(&a->team, rows, answer_row, a);
    }
}

static stint_status make_room(const sti_noise_lab *lab, const stint_model_file *model,
                              asking *a)
{
    int threads;
    stint_status st;
    a->context = model->network.context;
    a->windows = sti_corpus_test_windows(&lab->text.text->test, a->context);
    a->batch = (TOKENS + a->context - 1) / a->context;
    a->batch = a->batch < a->windows ? a->batch : a->windows;
    STI_TRY(sti_threads_choose(0, &threads, NULL));
    a->team = (sti_team){.threads = threads};
    STI_TRY(sti_text_scores_open(model, a->batch, a->context, threads, &a->scores));
    a->logits = sti_alloc_array(STI_TEXT_SCORES_ROWS,
                                (size_t)a->scores.vocabulary * sizeof(float), "scores");
    a->token = sti_alloc_array(a->batch * a->context, sizeof *a->token, "windows");
    a->label = sti_alloc_array(a->batch * a->context, sizeof *a->label, "windows");
    a->window = sti_alloc_array(a->batch, sizeof *a->window, "windows");
    a->answer =
        sti_alloc_array(sti_noise_text_count(lab), sizeof *a->answer, "answers");
    st = a->logits && a->token && a->label && a->window && a->answer ? STINT_OK
                                                                     : STINT_E_MEMORY;
out:
    return st;
}

static stint_status ask(const sti_noise_lab *lab, asking *a)
{
    const int64_t count = sti_noise_text_count(lab);
    const sti_corpus_cut cut = {.part = lab->text.text->test, .context = a->context};
    stint_status st = STINT_OK;
    for (int64_t w = 0; w < a->windows && st == STINT_OK; w += a->batch) {
        const int64_t first = w * a->context, most = a->batch * a->context;
        for (int64_t i = 0; i < a->batch; i++)
            a->window[i] = w + i < a->windows ? (int32_t)(w + i) : -1;
        st = sti_corpus_batch(lab->text.text, &cut, a->window, a->batch, a->token,
                              a->label);
        if (st != STINT_OK)
            return st;
        sti_text_scores_run(&a->scores, a->token);
        answer_batch(a, first, count - first < most ? count - first : most);
    }
    return st;
}

static stint_status check_finite(const asking *a, int64_t count, const char *path)
{
    for (int64_t i = 0; i < count; i++)
        if (a->answer[i] < 0)
            return sti_fail(STINT_E_INPUT,
                            "%s gives scores that are not finite for what follows "
                            "token %" PRId64 " of the test part",
                            path, i);
    return STINT_OK;
}

stint_status sti_noise_text_answers(const sti_noise_lab *lab, const char *path,
                                    int32_t **out)
{
    stint_model_file *model = NULL;
    asking a = {.logits = NULL};
    stint_status st = path ? stint_model_open(path, &model) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = make_room(lab, model, &a);
    if (st == STINT_OK)
        st = ask(lab, &a);
    if (st == STINT_OK)
        st = check_finite(&a, sti_noise_text_count(lab), path);
    if (st == STINT_OK) {
        *out = a.answer;
        a.answer = NULL;
    }
    sti_text_scores_close(&a.scores);
    sti_free(a.logits);
    sti_free(a.token);
    sti_free(a.label);
    sti_free(a.window);
    sti_free(a.answer);
    stint_model_close(model);
    return st;
}
