#include "recommend/clicks_make.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/stop.h"
#include "base/text.h"
#include "train/ranking.h"

/* Ids of the fields of Criteo's Kaggle set, as facebookresearch/dlrm counts them. */
static const int64_t kaggle[26] = {
    1460,  583,  10131227, 2202608, 305, 24,     12517,   633,   3,
    93145, 5683, 8351593,  3194,    27,  14992,  5461306, 10,    5652,
    2173,  4,    7046547,  18,      15,  286181, 105,     142572};

typedef struct maker {
    const sti_made_desc *desc;
    const int64_t *ids;
    int fields;
    bool criteo;
    sti_text line;
    float *logit;
    uint8_t *label;
} maker;

/* What a word is for, beside the row: a place among the numbers of a sample. */
enum { WORD_LABEL = 1, WORD_NUMBER = 16, WORD_FIELD = 64 };

static double uniform(const maker *m, int64_t row, int64_t what)
{
    uint32_t w[4];
    sti_random4(m->desc->seed, STI_STREAM_CLICKS, (uint64_t)row, (uint64_t)what, w);
    return ((double)w[0] + 0.5) * 0x1p-32;
}

/* About normal, of mean 0 and deviation 1: the sum of twelve uniforms, minus six. */
static double about_normal(uint64_t seed, uint64_t a, uint64_t b)
{
    double sum = -6;
    for (uint64_t k = 0; k < 3; k++) {
        uint32_t w[4];
        sti_random4(seed ^ 0x9e3779b97f4a7c15u, STI_STREAM_CLICKS, a, b << 2 | k, w);
        for (int i = 0; i < 4; i++)
            sum += (double)w[i] * 0x1p-32;
    }
    return sum;
}

/* The inverse of the distribution function of x^-s on [1, n + 1). */
static int64_t zipf(double s, int64_t n, double u)
{
    const double top = log((double)n + 1);
    const double x = fabs(s - 1) < 1e-9
                         ? exp(u * top)
                         : pow(1 + u * (exp((1 - s) * top) - 1), 1 / (1 - s));
    const int64_t k = (int64_t)x - 1;
    return k < 0 ? 0 : k >= n ? n - 1 : k;
}

static int64_t draw_id(const maker *m, int64_t row, int field, int64_t k)
{
    const sti_made_desc *d = m->desc;
    const int64_t n = m->ids[field];
    const double moved = d->drift * (double)n * (double)row / (double)d->rows;
    int64_t rank = zipf(d->zipf, n, uniform(m, row, WORD_FIELD + field * 64 + k));
    rank = (rank + (int64_t)moved) % n;
    return sti_permute(d->seed, STI_STREAM_CLICKS, (uint64_t)field, n, rank);
}

/* One number of three is missing; the others are about exponential. */
static double add_number(maker *m, int64_t row, int i)
{
    const double u = uniform(m, row, WORD_NUMBER + i);
    sti_text_add(&m->line, m->criteo ? "\t" : ",");
    if (u < 0.3)
        return 0;
    const int64_t value = (int64_t)(-20 * log((u - 0.3) / 0.7));
    sti_text_printf(&m->line, "%" PRId64, value);
    return log1p((double)value) * about_normal(m->desc->seed, UINT64_MAX, (uint64_t)i) *
           0.1;
}

static double add_field(maker *m, int64_t row, int field)
{
    const int64_t bags = m->desc->bags > 1 ? m->desc->bags : 1;
    const double u = uniform(m, row, WORD_FIELD + field * 64 + 63);
    const int64_t count = 1 + (int64_t)(u * (double)bags);
    double sum = 0;
    sti_text_add(&m->line, m->criteo ? "\t" : ",");
    for (int64_t k = 0; k < count; k++) {
        const int64_t id = draw_id(m, row, field, k);
        sti_text_printf(&m->line, "%s%08" PRIx64, k ? "|" : "", (uint64_t)id);
        sum += about_normal(m->desc->seed, (uint64_t)field, (uint64_t)id);
    }
    return sum / sqrt((double)m->fields * (double)count);
}

static stint_status add_row(maker *m, sti_writer *writer, int64_t row)
{
    double logit = -1;
    char *label;
    m->line.length = 0;
    sti_text_add(&m->line, "0");
    for (int i = 0; i < STI_MADE_NUMBERS; i++)
        logit += add_number(m, row, i);
    for (int f = 0; f < m->fields; f++)
        logit += 1.5 * add_field(m, row, f);
    sti_text_add(&m->line, "\n");
    if (m->line.failed)
        return sti_fail(STINT_E_MEMORY, "out of memory for a line");
    label = m->line.data;
    m->logit[row] = (float)logit;
    m->label[row] = uniform(m, row, WORD_LABEL) < 1 / (1 + exp(-logit));
    *label = (char)('0' + m->label[row]);
    return sti_writer_add(writer, m->line.data, m->line.length);
}

static stint_status add_header(maker *m, sti_writer *writer)
{
    if (m->criteo)
        return STINT_OK;
    sti_text_add(&m->line, "label");
    for (int i = 0; i < STI_MADE_NUMBERS; i++)
        sti_text_printf(&m->line, ",I%d", i + 1);
    for (int f = 0; f < m->fields; f++)
        sti_text_printf(&m->line, ",C%d", f + 1);
    sti_text_add(&m->line, "\n");
    return m->line.failed ? sti_fail(STINT_E_MEMORY, "out of memory for a line")
                          : sti_writer_add(writer, m->line.data, m->line.length);
}

static stint_status write_all(maker *m)
{
    sti_writer *writer = NULL;
    stint_status st = sti_writer_open(m->desc->path, &writer);
    if (st == STINT_OK)
        st = add_header(m, writer);
    for (int64_t row = 0; row < m->desc->rows && st == STINT_OK; row++)
        st = sti_stop_asked() == STINT_OK
                 ? add_row(m, writer, row)
                 : sti_fail(sti_stop_asked(), "stopped; nothing is written");
    if (st == STINT_OK)
        return sti_writer_commit(writer);
    sti_writer_abort(writer);
    return st;
}

stint_status sti_clicks_make(const sti_made_desc *desc, sti_made *made_out)
{
    maker m = {.desc = desc,
               .ids = desc->fields > 0 ? desc->ids : kaggle,
               .fields = desc->fields > 0 ? desc->fields : 26};
    sti_ranking ranking = {.count = 0};
    /* A file's name says csv to those that read it, too. */
    m.criteo = m.fields == 26 && desc->bags <= 1 &&
               strcasecmp(sti_path_extension(desc->path), ".csv") != 0;
    m.logit = sti_alloc_array(desc->rows + 1, sizeof *m.logit, "clicks.logits");
    m.label = sti_alloc((size_t)desc->rows + 1, "clicks.labels");
    stint_status st = m.logit && m.label ? write_all(&m) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_rank_scores(m.logit, m.label, desc->rows, &ranking);
    if (st == STINT_OK)
        *made_out = (sti_made){.rows = desc->rows,
                               .positives = ranking.positives,
                               .fields = m.fields,
                               .auc = ranking.auc,
                               .criteo = m.criteo};
    sti_text_fini(&m.line);
    sti_free(m.logit);
    sti_free(m.label);
    return st;
}
