/* What is remembered of a text: losses of runs with and without each passage. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/npy.h"
#include "base/rng.h"
#include "trust/memory_priv.h"
#include "trust/memory_text_page.h"
#include "trust/text_changes.h"

enum { PERMUTATIONS = 4, LEAST_RUNS = 2, PASSAGE_BYTES = 400, PASSAGE_TOKENS = 400 };
#define MEMORISED 0.25 /* nats a token */

typedef struct ranked {
    double value;
    int64_t index;
} ranked;

typedef struct table {
    int64_t runs, passages;
    uint8_t *member; /* [runs, passages] */
    float *loss;     /* likewise */
    int32_t *order;  /* [runs], of a permutation */
    ranked *rank;    /* [passages]: most memorised first */
} table;

size_t sti_memory_text_bytes(int64_t runs, int64_t passages)
{
    return (size_t)(runs * passages) * (1 + sizeof(float)) +
           (size_t)runs * sizeof(int32_t) +
           (size_t)passages * (16 + 2 * sizeof(double) + 1 + sizeof(float));
}

static stint_status read_runs(const memory_lab *l, table *t)
{
    stint_status st = STINT_OK;
    for (int64_t r = 0; r < t->runs && st == STINT_OK; r++) {
        const sti_memory_answers at = {.member = t->member + r * t->passages,
                                       .loss = t->loss + r * t->passages};
        st = sti_memory_folder_read(&l->folder, r, &at);
    }
    return st;
}

/* ---- one passage ---- */

typedef struct estimate {
    double value, error, seen, unseen;
} estimate;

/* Runs by their place in `order`, so that another order tells of chance. */
static estimate estimate_of(const table *t, int64_t i, const int32_t *order)
{
    double sum[2] = {0}, squares[2] = {0}, mean[2], variance = 0;
    int64_t count[2] = {0};
    for (int64_t r = 0; r < t->runs; r++) {
        const bool in = t->member[(order ? order[r] : r) * t->passages + i];
        const double loss = (double)t->loss[r * t->passages + i];
        sum[in] += loss;
        squares[in] += loss * loss;
        count[in]++;
    }
    if (count[0] < LEAST_RUNS || count[1] < LEAST_RUNS)
        return (estimate){(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    for (int k = 0; k < 2; k++) {
        const double n = (double)count[k];
        mean[k] = sum[k] / n;
        variance += fmax(squares[k] / n - mean[k] * mean[k], 0) / (n - 1);
    }
    return (estimate){mean[0] - mean[1], sqrt(variance), mean[1], mean[0]};
}

static double count_by_chance(const table *t, uint64_t seed, double from)
{
    int64_t count = 0;
    for (int p = 0; p < PERMUTATIONS; p++) {
        sti_shuffle(seed, STI_STREAM_SUBSET, (uint64_t)p, t->runs, t->order);
        for (int64_t i = 0; i < t->passages; i++)
            count += estimate_of(t, i, t->order).value >= from;
    }
    return (double)count / PERMUTATIONS;
}

/* ---- all ---- */

/* The most memorised first, NaN last, equal ones in their order. */
static int by_value(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    const int before = (x->index > y->index) - (x->index < y->index);
    if (isnan(x->value) || isnan(y->value))
        return isnan(x->value) == isnan(y->value) ? before : isnan(x->value) ? 1 : -1;
    return x->value == y->value ? before : x->value < y->value ? 1 : -1;
}

static void estimate_all(const table *t, stint_memory_text *m)
{
    double seen = 0, unseen = 0;
    for (int64_t i = 0; i < t->passages; i++) {
        const estimate e = estimate_of(t, i, NULL);
        m->memorisation[i] = e.value;
        m->error[i] = e.error;
        t->rank[i] = (ranked){e.value, i};
        m->memorised += e.value >= m->memorised_from;
        if (isnan(e.value)) {
            m->undefined++;
            continue;
        }
        seen += e.seen;
        unseen += e.unseen;
    }
    m->seen_loss = seen / (double)(t->passages - m->undefined);
    m->unseen_loss = unseen / (double)(t->passages - m->undefined);
}

static stint_status passage_text(const memory_lab *l, int64_t index, sti_arena *arena,
                                 const char **out)
{
    const sti_corpus *text = l->job.inputs.text;
    const int64_t context = l->job.inputs.network.context;
    int32_t token[PASSAGE_TOKENS];
    const int64_t count = context < PASSAGE_TOKENS ? context : PASSAGE_TOKENS;
    const stint_status st =
        sti_corpus_tokens(text, text->train.begin + index * context, count, token);
    if (st != STINT_OK)
        return st;
    *out = sti_text_tokens_words(text, arena, token, count, PASSAGE_BYTES);
    return *out ? STINT_OK : STINT_E_MEMORY;
}

static stint_status tell_passages(const memory_lab *l, const table *t,
                                  stint_memory_text *m)
{
    stint_status st = STINT_OK;
    for (int64_t k = 0; k < t->passages && k < STINT_MEMORY_PASSAGES; k++) {
        const int64_t i = t->rank[k].index;
        const estimate e = estimate_of(t, i, NULL);
        if (isnan(e.value))
            break;
        stint_memory_passage *p = &m->passage[m->told++];
        *p = (stint_memory_passage){.index = i,
                                    .token = i * m->context,
                                    .memorisation = e.value,
                                    .error = e.error,
                                    .seen = e.seen,
                                    .unseen = e.unseen};
        if ((st = passage_text(l, i, m->arena, &p->text)) != STINT_OK)
            return st;
    }
    return st;
}

/* ---- files ---- */

static stint_status write_array(const memory_lab *l, const char *name, const char *kind,
                                int rank, const int64_t *dim, const void *data,
                                size_t bytes)
{
    const char *path = sti_path_join(l->arena, l->folder.path, name);
    return path ? sti_npy_write(path, kind, rank, dim, data, bytes) : STINT_E_MEMORY;
}

static stint_status write_list(const memory_lab *l, const table *t,
                               const stint_memory_text *m)
{
    sti_text text = {0};
    const char *path = sti_path_join(l->arena, l->folder.path, "memorised.tsv");
    sti_text_add(&text, "passage\ttoken\tmemorisation\terror\tseen\tunseen\n");
    for (int64_t k = 0; k < t->passages; k++) {
        const int64_t i = t->rank[k].index;
        const estimate e = estimate_of(t, i, NULL);
        sti_text_printf(&text, "%" PRId64 "\t%" PRId64 "\t%.6f\t%.6f\t%.6f\t%.6f\n", i,
                        i * m->context, e.value, e.error, e.seen, e.unseen);
    }
    const stint_status st = text.failed || !path
                                ? STINT_E_MEMORY
                                : sti_file_write(path, text.data, text.length);
    sti_text_fini(&text);
    return st;
}

static stint_status write_files(const memory_lab *l, const table *t,
                                const stint_memory_text *m)
{
    const int64_t dim[2] = {t->runs, t->passages}, n = t->runs * t->passages;
    const char *page = sti_path_join(l->arena, l->folder.path, "memory.html");
    stint_status st =
        write_array(l, "members.npy", "|u1", 2, dim, t->member, (size_t)n);
    if (st == STINT_OK)
        st = write_array(l, "losses.npy", "<f4", 2, dim, t->loss,
                         (size_t)n * sizeof(float));
    if (st == STINT_OK)
        st = write_array(l, "memorisation.npy", "<f8", 1, &t->passages, m->memorisation,
                         (size_t)t->passages * sizeof(double));
    if (st == STINT_OK)
        st = write_list(l, t, m);
    return st == STINT_OK ? (page ? sti_memory_text_page(m, page) : STINT_E_MEMORY)
                          : st;
}

/* ---- the call ---- */

static stint_status make_room(table *t, stint_memory_text *m)
{
    const int64_t n = t->runs * t->passages;
    t->member = sti_alloc((size_t)n, "members");
    t->loss = sti_alloc_array(n, sizeof *t->loss, "losses");
    t->order = sti_alloc_array(t->runs, sizeof *t->order, "order");
    t->rank = sti_alloc_array(t->passages, sizeof *t->rank, "order");
    m->memorisation =
        sti_arena_alloc(m->arena, (size_t)t->passages * sizeof *m->memorisation);
    m->error = sti_arena_alloc(m->arena, (size_t)t->passages * sizeof *m->error);
    return t->member && t->loss && t->order && t->rank && m->memorisation && m->error
               ? STINT_OK
               : STINT_E_MEMORY;
}

static void describe(const memory_lab *l, stint_memory_text *m)
{
    m->runs = l->desc->runs;
    m->passages = l->job.inputs.train_count;
    m->context = l->job.inputs.network.context;
    m->members = l->members;
    m->fraction = l->desc->fraction;
    m->memorised_from = l->desc->memorised > 0 ? l->desc->memorised : MEMORISED;
}

stint_status sti_memory_text_estimate(const memory_lab *l, stint_memory_text *m)
{
    table t = {.runs = l->desc->runs, .passages = l->job.inputs.train_count};
    stint_status st;
    describe(l, m);
    STI_TRY(make_room(&t, m));
    STI_TRY(read_runs(l, &t));
    estimate_all(&t, m);
    qsort(t.rank, (size_t)t.passages, sizeof *t.rank, by_value);
    m->memorised_chance = count_by_chance(&t, l->seed, m->memorised_from);
    STI_TRY(tell_passages(l, &t, m));
    st = write_files(l, &t, m);
out:
    sti_free(t.member);
    sti_free(t.loss);
    sti_free(t.order);
    sti_free(t.rank);
    return st;
}

void stint_memory_text_fini(stint_memory_text *m)
{
    if (m->arena)
        sti_arena_destroy(m->arena);
    *m = (stint_memory_text){0};
}
