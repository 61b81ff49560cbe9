#include "trust/long_tail.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/npy.h"
#include "base/rng.h"
#include "data/data.h"
#include "trust/compare_priv.h"
#include "trust/memory_folder.h"
#include "trust/statistics.h"

enum { PERMUTATIONS = 1000, BINS = 10 };

/* ---- one side ---- */

typedef struct side {
    int64_t n; /* inputs whose value is known */
    double *value, *margin, *rank, *other;
    uint8_t *changed;
    int32_t *order;
} side;

static void side_fini(side *s)
{
    sti_free(s->value);
    sti_free(s->margin);
    sti_free(s->rank);
    sti_free(s->other);
    sti_free(s->changed);
    sti_free(s->order);
}

static stint_status side_init(side *s, int64_t count, const double *value,
                              const uint8_t *changed, const float *margin)
{
    s->value = sti_alloc_array(count, sizeof *s->value, "long tail");
    s->margin = sti_alloc_array(count, sizeof *s->margin, "long tail");
    s->rank = sti_alloc_array(count, sizeof *s->rank, "long tail");
    s->other = sti_alloc_array(count, sizeof *s->other, "long tail");
    s->changed = sti_alloc_array(count, sizeof *s->changed, "long tail");
    s->order = sti_alloc_array(count, sizeof *s->order, "long tail");
    if (!s->value || !s->margin || !s->rank || !s->other || !s->changed || !s->order)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < count; i++)
        if (!isnan(value[i])) {
            s->value[s->n] = value[i];
            s->margin[s->n] = (double)margin[i];
            s->changed[s->n++] = changed[i];
        }
    return STINT_OK;
}

/* Changed and marked inputs over what tenths of equal margin expect of them. */
static stint_status find_partial(side *s, double from, stint_tail_side *out)
{
    double changed[BINS] = {0}, marked[BINS] = {0}, count[BINS] = {0}, expected = 0;
    stint_status st = sti_midranks(s->n, s->margin, s->other);
    for (int64_t i = 0; i < s->n && st == STINT_OK; i++) {
        int bin = (int)((s->other[i] - 0.5) / (double)s->n * BINS);
        bin = bin < BINS ? bin : BINS - 1;
        count[bin]++;
        changed[bin] += s->changed[i];
        marked[bin] += s->value[i] >= from;
    }
    for (int bin = 0; bin < BINS; bin++)
        expected += count[bin] > 0 ? changed[bin] * marked[bin] / count[bin] : 0;
    out->partial_lift =
        expected > 0 ? (double)out->changed_marked / expected : (double)NAN;
    return st;
}

/* As many inputs as changed, drawn at random, a thousand times. */
static void find_p(side *s, stint_tail_side *out)
{
    int64_t as_high = 0;
    for (int p = 0; p < PERMUTATIONS; p++) {
        sti_shuffle(1, STI_STREAM_BOOTSTRAP, (uint64_t)p, s->n, s->order);
        memset(s->changed, 0, (size_t)s->n);
        for (int64_t i = 0; i < out->changed; i++)
            s->changed[s->order[i]] = 1;
        as_high += sti_auroc(s->n, s->rank, s->changed) >= out->auroc;
    }
    out->p = (double)(1 + as_high) / (1 + PERMUTATIONS);
}

static stint_status find_ranks(side *s, stint_tail_side *out)
{
    stint_status st = sti_midranks(s->n, s->value, s->rank);
    if (st != STINT_OK)
        return st;
    out->auroc = sti_auroc(s->n, s->rank, s->changed);
    for (int64_t i = 0; i < s->n; i++)
        s->margin[i] = s->changed[i]; /* margins are done with */
    st = sti_midranks(s->n, s->margin, s->other);
    if (st == STINT_OK)
        out->spearman = sti_spearman(s->n, s->rank, s->other);
    return st;
}

stint_status sti_tail_side(int64_t count, const double *value, const uint8_t *changed,
                           const float *margin, double from, stint_tail_side *out)
{
    side s = {0};
    *out = (stint_tail_side){.p = (double)NAN};
    stint_status st = side_init(&s, count, value, changed, margin);
    out->count = s.n;
    for (int64_t i = 0; i < s.n; i++) {
        out->marked += s.value[i] >= from;
        out->changed += s.changed[i];
        out->changed_marked += s.changed[i] && s.value[i] >= from;
    }
    out->lift = out->changed > 0 && out->marked > 0
                    ? (double)out->changed_marked * (double)out->count /
                          ((double)out->changed * (double)out->marked)
                    : (double)NAN;
    if (st == STINT_OK)
        st = find_partial(&s, from, out);
    if (st == STINT_OK)
        st = find_ranks(&s, out);
    if (st == STINT_OK && !isnan(out->auroc))
        find_p(&s, out);
    side_fini(&s);
    return st;
}

/* ---- models and the folder ---- */

typedef struct tail {
    const stint_compare_desc *desc;
    const char *folder;
    stint_model_file *reference;
} tail;

/* [count] float64 of an array in the folder. */
static stint_status read_values(const tail *t, const char *name, int64_t count,
                                double **values_out)
{
    char path[1200];
    sti_npy a = {0};
    double *values = NULL;
    snprintf(path, sizeof path, "%s/%s.npy", t->folder, name);
    stint_status st = sti_npy_open(path, &a);
    if (st == STINT_OK &&
        (a.kind != 'f' || a.item_bytes != 8 || a.rank != 1 || a.count != count))
        st = sti_fail(STINT_E_INPUT, "%s: wanted %" PRId64 " float64", path, count);
    if (st == STINT_OK &&
        !(values = sti_alloc_array(count, sizeof *values, "long tail")))
        st = STINT_E_MEMORY;
    if (st == STINT_OK)
        memcpy(values, a.data, (size_t)count * sizeof *values);
    sti_npy_close(&a);
    *values_out = values;
    return st;
}

static stint_status check_finished(const tail *t)
{
    char sha256[65], path[1200];
    stint_status st = sti_memory_folder_sha256(t->folder, "train", sha256);
    snprintf(path, sizeof path, "%s/cuts.npy", t->folder);
    if (st == STINT_OK && !sti_path_is_file(path))
        return sti_fail(STINT_E_INPUT,
                        "%s: its runs are not finished; let `stint trust memory` go on "
                        "there first",
                        t->folder);
    return st;
}

/* The study and the comparison must speak of the same images. */
static stint_status check_images(const tail *t, const stint_data *data,
                                 const char *split)
{
    char here[65], there[65];
    sti_data_decoders *decoders = NULL;
    stint_status st = sti_memory_folder_sha256(t->folder, split, there);
    if (st == STINT_OK)
        st = sti_data_decoders_create(data, 1, &decoders);
    if (st == STINT_OK)
        st = sti_data_sha256(data, decoders, here);
    sti_data_decoders_destroy(decoders);
    if (st == STINT_OK && strcmp(here, there) != 0)
        st = sti_fail(STINT_E_INPUT,
                      "%s: the %s images are not those that %s was made from",
                      stint_data_describe(data)->path, split, t->folder);
    return st;
}

/* One model against the reference's answers. */
static stint_status find_side(const tail *t, const char *path, stint_data_split split,
                              int64_t count, const int32_t *answer, const float *margin,
                              const double *value, double from, stint_tail_side *out)
{
    int32_t *other = sti_alloc_array(count, sizeof *other, "answers");
    uint8_t *changed = sti_alloc_array(count, sizeof *changed, "answers");
    stint_status st = other && changed
                          ? sti_compare_answers(t->desc, t->reference, path, split,
                                                count, other, NULL)
                          : STINT_E_MEMORY;
    for (int64_t i = 0; i < count && st == STINT_OK; i++)
        changed[i] = other[i] != answer[i];
    if (st == STINT_OK)
        st = sti_tail_side(count, value, changed, margin, from, out);
    sti_free(other);
    sti_free(changed);
    return st;
}

static stint_status find_split(const tail *t, stint_data_split split,
                               const char *values, double from, stint_tail_side *out,
                               stint_tail_side *floor)
{
    const stint_compare_desc *d = t->desc;
    stint_data *data = NULL;
    double *value = NULL;
    int32_t *answer = NULL;
    float *margin = NULL;
    stint_data_desc wanted = d->data;
    wanted.split = split;
    stint_status st = sti_model_open_data(t->reference, &wanted, &data);
    if (st == STINT_OK)
        st = check_images(t, data, split == STINT_DATA_TRAIN ? "train" : "test");
    const int64_t count = st == STINT_OK ? stint_data_describe(data)->count : 0;
    if (st == STINT_OK)
        st = read_values(t, values, count, &value);
    if (st == STINT_OK) {
        answer = sti_alloc_array(count, sizeof *answer, "answers");
        margin = sti_alloc_array(count, sizeof *margin, "margins");
        st = answer && margin ? sti_compare_answers(d, t->reference, d->reference,
                                                    split, count, answer, margin)
                              : STINT_E_MEMORY;
    }
    if (st == STINT_OK)
        st = find_side(t, d->changed, split, count, answer, margin, value, from, out);
    if (st == STINT_OK && d->floors > 0)
        st =
            find_side(t, d->floor[0], split, count, answer, margin, value, from, floor);
    sti_free(value);
    sti_free(answer);
    sti_free(margin);
    stint_data_close(data);
    return st;
}

stint_status stint_tail_find(const stint_compare_desc *desc, const char *memory_folder,
                             stint_tail *out)
{
    tail t = {.desc = desc, .folder = memory_folder};
    double *cuts = NULL;
    stint_tail r = {.has_floor = desc->floors > 0};
    stint_status st = stint_model_open(desc->reference, &t.reference);
    if (st == STINT_OK)
        st = check_finished(&t);
    if (st == STINT_OK)
        st = read_values(&t, "cuts", 2, &cuts);
    if (st == STINT_OK) {
        r.memorised_from = cuts[0];
        r.influence_from = cuts[1];
        st = find_split(&t, STINT_DATA_TRAIN, "memorisation", cuts[0], &r.train,
                        &r.floor_train);
    }
    if (st == STINT_OK)
        st = find_split(&t, STINT_DATA_TEST, "influence", cuts[1], &r.test,
                        &r.floor_test);
    sti_free(cuts);
    stint_model_close(t.reference);
    if (st == STINT_OK)
        *out = r;
    return st;
}
