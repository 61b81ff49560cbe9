#include "svm/svm_folds.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#include "svm/svm_predict.h"
#include "svm/svm_probability.h"
#include "svm/svm_rows.h"

/* ---- tables ---- */

static stint_status take_arrays(const sti_table *table, int64_t count, int64_t entries,
                                bool weighted, bool placed, sti_svm_sample *s)
{
    sti_table *out = &s->table;
    out->x.start = sti_alloc_array(count + 1, sizeof *out->x.start, "svm.starts");
    out->x.column = sti_alloc_array(entries, sizeof *out->x.column, "svm.columns");
    out->x.value = sti_alloc_array(entries, sizeof *out->x.value, "svm.values");
    out->y = table->y ? sti_alloc_array(count, sizeof *out->y, "svm.targets") : NULL;
    s->weight =
        weighted ? sti_alloc_array(count, sizeof *s->weight, "svm.weights") : NULL;
    s->number =
        placed ? sti_alloc_array(count, sizeof *s->number, "svm.numbers") : NULL;
    return out->x.start && out->x.column && out->x.value && (!table->y || out->y) &&
                   (!weighted || s->weight) && (!placed || s->number)
               ? STINT_OK
               : STINT_E_MEMORY;
}

static void copy_rows(const sti_table *table, const double *weight,
                      const int64_t *number, int64_t count, const int64_t *row,
                      sti_svm_sample *s)
{
    const sti_csr *x = &table->x;
    sti_table *out = &s->table;
    for (int64_t i = 0, at = 0; i < count; i++) {
        const int64_t from = x->start[row[i]], n = x->start[row[i] + 1] - from;
        memcpy(out->x.column + at, x->column + from, sizeof(int32_t) * (size_t)n);
        memcpy(out->x.value + at, x->value + from, sizeof(double) * (size_t)n);
        out->x.start[i + 1] = at += n;
        if (out->y)
            out->y[i] = table->y[row[i]];
        if (weight)
            s->weight[i] = weight[row[i]];
        if (number)
            s->number[i] = number[row[i]];
    }
}

stint_status sti_svm_sample_take(const sti_svm_fit *fit, const sti_table *table,
                                 int64_t count, const int64_t *row, sti_svm_sample *s)
{
    const sti_csr *x = &table->x;
    const double *weight =
        fit->ls ? fit->least_squares.point_weight : fit->smo.point_weight;
    const sti_svm_places places = sti_svm_fit_places(fit);
    int64_t entries = 0;
    for (int64_t i = 0; i < count; i++)
        entries += x->start[row[i] + 1] - x->start[row[i]];
    *s = (sti_svm_sample){.table = {.x = {.rows = count, .columns = x->columns},
                                    .first = table->first,
                                    .names = table->names,
                                    .name_count = table->name_count,
                                    .format = table->format,
                                    .bytes = (size_t)count * 24 + (size_t)entries * 12},
                          .fit = *fit};
    if (take_arrays(table, count, entries, weight != NULL, places.shared != NULL, s) !=
        STINT_OK) {
        sti_svm_sample_fini(s);
        return STINT_E_MEMORY;
    }
    copy_rows(table, weight, places.number, count, row, s);
    sti_svm_fit_set_places(&s->fit, (sti_svm_places){places.shared, s->number});
    s->fit.least_squares.point_weight = s->fit.smo.point_weight = s->weight;
    s->fit.least_squares.progress = s->fit.smo.progress = NULL;
    s->fit.least_squares.start = NULL;
    if (count <= STI_GRAM_TILE) /* a tile or less is nothing to share */
        s->fit.least_squares.threads = s->fit.smo.threads = 1;
    return STINT_OK;
}

void sti_svm_sample_fini(sti_svm_sample *s)
{
    sti_table_fini(&s->table);
    sti_free(s->weight);
    sti_free(s->number);
    *s = (sti_svm_sample){.weight = NULL};
}

stint_status sti_svm_split(const sti_svm_fit *fit, const sti_table *table,
                           const int64_t *order, int64_t begin, int64_t end,
                           sti_svm_sample *train_out, sti_svm_sample *test_out)
{
    const int64_t rows = table->x.rows, count = end - begin;
    int64_t *rest = sti_alloc_array(rows - count, sizeof *rest, "svm.fold");
    if (!rest)
        return STINT_E_MEMORY;
    memcpy(rest, order, sizeof *rest * (size_t)begin);
    memcpy(rest + begin, order + end, sizeof *rest * (size_t)(rows - end));
    stint_status st = sti_svm_sample_take(fit, table, rows - count, rest, train_out);
    if (st == STINT_OK) {
        st = sti_svm_sample_take(fit, table, count, order + begin, test_out);
        if (st != STINT_OK)
            sti_svm_sample_fini(train_out);
    }
    sti_free(rest);
    return st;
}

/* ---- the matrix that folds share ---- */

sti_svm_places sti_svm_fit_places(const sti_svm_fit *fit)
{
    return fit->ls ? fit->least_squares.places : fit->smo.places;
}

void sti_svm_fit_set_places(sti_svm_fit *fit, sti_svm_places places)
{
    fit->least_squares.places = fit->smo.places = places;
    fit->least_squares.shared_bytes = fit->smo.shared_bytes = 0;
}

/* Do folds make their rows alike, on one centre? Whatever is kept of their matrix: so
 * room for it changes no bit. */
static bool shares(const sti_svm_fit *fit, const sti_table *table)
{
    const sti_gram_function *f =
        fit->ls ? &fit->least_squares.function : &fit->smo.function;
    return sti_svm_shared_can(f, table) && !(fit->ls && f->kind == STI_GRAM_LINEAR);
}

size_t sti_svm_fit_shared_bytes(const sti_svm_fit *fit, const sti_table *table,
                                size_t taken_bytes)
{
    const sti_svm_train_desc *ls = &fit->least_squares;
    const sti_svm_process *process = fit->ls ? &ls->process : &fit->smo.process;
    const size_t asked = fit->ls ? ls->budget_bytes : fit->smo.budget_bytes;
    const size_t cache = fit->ls ? ls->cache_bytes : fit->smo.cache_bytes;
    const size_t budget = asked > 0 ? asked : sti_svm_process_of(process).budget_bytes;
    if (!shares(fit, table) || (fit->ls && (ls->store == STI_STORE_NONE || ls->device)))
        return 0;
    size_t room = budget > taken_bytes ? (budget - taken_bytes) / 257 * 256 : 0;
    if (cache > 0 && cache < room)
        room = cache;
    const size_t all = sti_svm_shared_bytes(table->x.rows, fit->ls && ls->single);
    return room < all ? room : all;
}

stint_status sti_svm_fit_share(const sti_svm_fit *fit, const sti_table *table,
                               const int64_t *order, int threads,
                               sti_svm_shared **shared_out)
{
    const sti_svm_train_desc *ls = &fit->least_squares;
    const sti_svm_shared_desc desc = {
        .table = table,
        .function = fit->ls ? &ls->function : &fit->smo.function,
        .classes = sti_svm_fit_classifies(fit),
        .single = fit->ls && ls->single,
        .order = order,
        .bytes = fit->ls ? ls->shared_bytes : fit->smo.shared_bytes};
    const sti_team team = {threads};
    *shared_out = NULL;
    return shares(fit, table) ? sti_svm_shared_create(&desc, &team, shared_out)
                              : STINT_OK;
}

/* The shared matrix has its part of what -m lets a training keep. */
static size_t cache_left(size_t cache, const sti_svm_shared *shared)
{
    const size_t kept = shared ? sti_svm_shared_kept_bytes(shared) : 0;
    return cache == 0 || kept == 0 ? cache : cache > kept ? cache - kept : 1;
}

stint_status sti_svm_sample_plan(sti_svm_sample *s, sti_svm_plan *plan)
{
    const size_t now = sti_alloc_now_bytes(), own = s->table.bytes;
    const sti_svm_shared *shared = sti_svm_fit_places(&s->fit).shared;
    s->fit.least_squares.beside_bytes = s->fit.smo.beside_bytes =
        now > own ? now - own : 0;
    s->fit.least_squares.cache_bytes =
        cache_left(s->fit.least_squares.cache_bytes, shared);
    s->fit.smo.cache_bytes = cache_left(s->fit.smo.cache_bytes, shared);
    return sti_svm_fit_plan(&s->fit, &s->table, plan);
}

size_t sti_svm_folds_bytes(const sti_svm_fit *fit, const sti_table *table,
                           bool validated, bool probable)
{
    const size_t rows = (size_t)table->x.rows;
    /* Rows to train on and to predict; of both an order, answers and what they are
     * judged by. */
    const size_t split = rows * 80 + (size_t)table->x.start[rows] * 12;
    /* Numbers of rows and the centre, of which the matrix that folds share is made. */
    const size_t shared =
        shares(fit, table) ? rows * 8 + (size_t)table->x.columns * 8 : 0;
    const bool one_class = !fit->ls && fit->smo.type == STI_SVM_ONE_CLASS;
    size_t copies = validated ? 1 : 0;
    if (probable && !one_class)
        copies +=
            sti_svm_fit_classifies(fit) ? 2 : 1; /* a pair of classes, its folds */
    return copies > 0 ? copies * split + shared : 0;
}

/* ---- where trainings start ---- */

/* Values of a training on all rows; of a part of them there are no more. */
static int64_t start_values(const sti_svm_fit *fit, const sti_table *table)
{
    const bool rest = fit->least_squares.classes_by == STI_SVM_REST;
    int64_t count[STI_SVM_CLASSES_MOST], classes = 2;
    if (!fit->ls)
        return 0;
    if (sti_svm_fit_classifies(fit) &&
        sti_svm_count_classes(table, &classes, count) != STINT_OK)
        return 0; /* the training itself says what is wrong */
    return sti_svm_start_values(table->x.rows, !rest && classes > 2, classes,
                                rest ? classes + 1 : 2);
}

size_t sti_svm_starts_bytes(const sti_svm_fit *fit, const sti_table *table,
                            int64_t folds)
{
    const size_t values = (size_t)start_values(fit, table);
    return values > 0
               ? (size_t)folds * (sizeof(sti_svm_start) + values * sizeof(double))
               : 0;
}

stint_status sti_svm_starts_create(const sti_svm_fit *fit, const sti_table *table,
                                   int64_t folds, sti_svm_start **starts_out)
{
    const int64_t values = start_values(fit, table);
    *starts_out = NULL;
    if (values == 0)
        return STINT_OK;
    sti_svm_start *starts =
        sti_alloc(sti_svm_starts_bytes(fit, table, folds), "svm.starts");
    if (!starts)
        return STINT_E_MEMORY;
    double *x = (double *)(void *)(starts + folds);
    for (int64_t f = 0; f < folds; f++)
        starts[f] = (sti_svm_start){.x = x + f * values};
    *starts_out = starts;
    return STINT_OK;
}

void sti_svm_starts_forget(sti_svm_start *starts, int64_t folds)
{
    for (int64_t f = 0; starts && f < folds; f++)
        starts[f].filled = false;
}

/* ---- folds ---- */

static void swap(int64_t *a, int64_t *b)
{
    const int64_t was = *a;
    *a = *b;
    *b = was;
}

static void shuffle(int64_t count, sti_libc_random *random, int64_t *order)
{
    for (int64_t i = 0; i < count; i++)
        swap(&order[i],
             &order[i + (int64_t)sti_libc_random_next(random) % (count - i)]);
}

void sti_svm_shuffle(int64_t count, sti_libc_random *random, int64_t *order)
{
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
    shuffle(count, random, order);
}

/* Rows by class, shuffled within each: sorted [rows], class_begin [classes + 1]. */
static void shuffle_classes(int64_t rows, const int32_t *class_of, int64_t classes,
                            sti_libc_random *random, int64_t *sorted,
                            int64_t *class_begin)
{
    int64_t at = 0;
    for (int64_t c = 0; c < classes; c++) {
        class_begin[c] = at;
        for (int64_t i = 0; i < rows; i++)
            if (class_of[i] == c)
                sorted[at++] = i;
    }
    class_begin[classes] = at;
    for (int64_t c = 0; c < classes; c++)
        shuffle(class_begin[c + 1] - class_begin[c], random, sorted + class_begin[c]);
}

static stint_status fold_classes(const sti_table *table, int64_t folds,
                                 sti_libc_random *random, int64_t *order,
                                 int64_t *begin)
{
    double label[STI_SVM_CLASSES_MOST];
    int64_t class_begin[STI_SVM_CLASSES_MOST + 1], classes, at = 0;
    const int64_t rows = table->x.rows;
    int32_t *class_of = sti_alloc_array(rows, sizeof *class_of, "svm.classes");
    int64_t *sorted = sti_alloc_array(rows, sizeof *sorted, "svm.sorted");
    stint_status st = class_of && sorted ? STINT_OK : STINT_E_MEMORY;
    STI_TRY(st);
    STI_TRY(sti_svm_classes_of(table, class_of, label, &classes));
    shuffle_classes(rows, class_of, classes, random, sorted, class_begin);
    for (int64_t f = 0; f < folds; f++) {
        begin[f] = at;
        for (int64_t c = 0; c < classes; c++) {
            const int64_t count = class_begin[c + 1] - class_begin[c];
            const int64_t from = class_begin[c] + f * count / folds;
            const int64_t to = class_begin[c] + (f + 1) * count / folds;
            memcpy(order + at, sorted + from, sizeof *order * (size_t)(to - from));
            at += to - from;
        }
    }
    begin[folds] = at;
out:
    sti_free(class_of);
    sti_free(sorted);
    return st;
}

stint_status sti_svm_fold(const sti_table *table, bool classes, int64_t folds,
                          sti_libc_random *random, int64_t *order, int64_t *begin)
{
    const int64_t rows = table->x.rows;
    if (classes && folds < rows)
        return fold_classes(table, folds, random, order, begin);
    sti_svm_shuffle(rows, random, order);
    for (int64_t f = 0; f <= folds; f++)
        begin[f] = f * rows / folds;
    return STINT_OK;
}

/* ---- cross-validation ---- */

static stint_status predict_fold(const sti_svm_folds_desc *d,
                                 const sti_svm_model *model,
                                 const sti_svm_sample *sample, const int64_t *row,
                                 double *answer_out)
{
    const sti_table *test = &sample->table;
    const int64_t rows = test->x.rows, values = sti_svm_values(model);
    double *value = sti_alloc_array(rows * values, sizeof(double), "svm.decisions");
    double *answer = sti_alloc_array(rows, sizeof(double), "svm.answers");
    const bool probable = d->probable && sti_svm_classifies(model);
    double *p = sti_alloc_array(model->classes + sti_svm_probabilities_scratch(model),
                                sizeof(double), "svm.probable");
    stint_status st = value && answer && p ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_svm_predict_shared(model, test, sample->number, d->threads, value,
                                    answer);
    for (int64_t i = 0; i < rows && st == STINT_OK; i++) {
        if (probable)
            answer[i] = (double)sti_svm_probabilities(model, value + i * values, p,
                                                      p + model->classes);
        answer_out[row[i]] =
            sti_svm_classifies(model) ? model->label[(int64_t)answer[i]] : answer[i];
    }
    sti_free(value);
    sti_free(answer);
    sti_free(p);
    return st;
}

/* Has every fold one rank? */
static bool deals_folds(const sti_svm_folds_desc *d)
{
    return sti_svm_fit_comm(d->fit) && !d->probable;
}

static stint_status run_fold(const sti_svm_folds_desc *d, const sti_svm_fit *fit,
                             sti_libc_random *random, const int64_t *order,
                             int64_t begin, int64_t end, sti_svm_start *start,
                             double *answer_out)
{
    sti_svm_sample train, test;
    sti_svm_model model = {0};
    sti_svm_plan plan;
    stint_status st = sti_svm_split(fit, d->table, order, begin, end, &train, &test);
    if (st != STINT_OK)
        return st;
    train.fit.least_squares.start = start;
    if (deals_folds(d))
        sti_svm_fit_set_comm(&train.fit, NULL);
    STI_TRY(sti_svm_sample_plan(&train, &plan));
    STI_TRY(d->probable
                ? d->probable(&train.fit, &train.table, &plan, d->threads, random,
                              &model, NULL)
                : sti_svm_fit_train(&train.fit, &train.table, &plan, &model, NULL));
    st = predict_fold(d, &model, &test, order + begin, answer_out);
out:
    sti_svm_model_fini(&model);
    sti_svm_sample_fini(&train);
    sti_svm_sample_fini(&test);
    return st;
}

/* This rank's folds, or all. */
static stint_status run_folds(const sti_svm_folds_desc *d, const sti_svm_fit *fit,
                              sti_libc_random *random, const int64_t *order,
                              const int64_t *begin, double *answer_out)
{
    const sti_comm *comm = deals_folds(d) ? sti_svm_fit_comm(d->fit) : NULL;
    const int64_t step = comm ? sti_comm_size(comm) : 1;
    stint_status st = STINT_OK;
    for (int64_t f = comm ? sti_comm_rank(comm) : 0; f < d->folds && st == STINT_OK;
         f += step) {
        if (d->told)
            d->told(d->user, f, d->folds);
        st = run_fold(d, fit, random, order, begin[f], begin[f + 1],
                      d->starts ? &d->starts[f] : NULL, answer_out);
        if (st == STINT_E_INPUT || st == STINT_E_FAILED)
            st = sti_fail_context(st, "fold %d of %d", (int)f + 1, (int)d->folds);
    }
    return st;
}

/* The answers of every fold from the rank that has them. */
static stint_status pass_answers(const sti_svm_folds_desc *d, const int64_t *order,
                                 const int64_t *begin, double *answer)
{
    sti_comm *comm = sti_svm_fit_comm(d->fit);
    double *passed = sti_alloc_array(d->table->x.rows, sizeof *passed, "svm.passed");
    stint_status st = sti_comm_agree(comm, passed ? STINT_OK : STINT_E_MEMORY);
    for (int64_t f = 0; f < d->folds && st == STINT_OK; f++) {
        const int64_t count = begin[f + 1] - begin[f], *row = order + begin[f];
        for (int64_t i = 0; i < count; i++)
            passed[i] = answer[row[i]];
        st = sti_comm_broadcast(comm, (int)(f % sti_comm_size(comm)), passed,
                                sizeof *passed * (size_t)count);
        for (int64_t i = 0; i < count; i++)
            answer[row[i]] = passed[i];
    }
    sti_free(passed);
    return st;
}

stint_status sti_svm_cross_validate(const sti_svm_folds_desc *d,
                                    sti_libc_random *random, double *answer_out)
{
    const int64_t rows = d->table->x.rows;
    int64_t *order = sti_alloc_array(rows, sizeof *order, "svm.order");
    int64_t *begin = sti_alloc_array(d->folds + 1, sizeof *begin, "svm.folds");
    stint_status st = order && begin ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_svm_fold(d->table, sti_svm_fit_classifies(d->fit), d->folds, random,
                          order, begin);
    sti_svm_fit fit = *d->fit;
    if (st == STINT_OK && d->shared && !*d->shared && !sti_svm_fit_places(&fit).shared)
        st = sti_svm_fit_share(&fit, d->table, order, d->threads, d->shared);
    if (d->shared && *d->shared)
        sti_svm_fit_set_places(&fit, sti_svm_shared_places(*d->shared));
    if (deals_folds(d))
        st = sti_comm_agree(sti_svm_fit_comm(d->fit), st);
    if (st == STINT_OK)
        st = run_folds(d, &fit, random, order, begin, answer_out);
    if (deals_folds(d)) {
        st = sti_comm_agree(sti_svm_fit_comm(d->fit), st);
        if (st == STINT_OK)
            st = pass_answers(d, order, begin, answer_out);
    }
    if (st != STINT_OK)
        sti_svm_starts_forget(d->starts, d->folds);
    sti_free(order);
    sti_free(begin);
    return st;
}
