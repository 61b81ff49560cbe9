/* Bits of layers: sizes and errors of every width, then the choice. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/knapsack.h"
#include "base/memory.h"
#include "net/compressed_priv.h"

/* Widths that may be chosen, least bits first; the last is float32. */
typedef struct widths {
    int count, bits[STI_GRADIENT_BITS_MAX + 1];
} widths;

typedef struct table {
    widths w;
    int layers;            /* that are compressed */
    int *layer;            /* [layers] */
    double *bytes, *error; /* [layers, widths]: a rank sends; squared */
    double raw_rest, raw;  /* bytes of the other layers; of all as float32 */
    double size;           /* squared, of the vector */
    uint8_t *coded;        /* scratch: a bucket */
    float *left;
} table;

/* Where bytes are what is scarce, float32 is for all layers or for none: one among 8
 * bits takes four times the bytes for an error that is nothing beside that of the rest.
 * And bytes cost time of processors, too, which nothing hides: hence the half. */
static widths widths_of(const sti_bits_policy *p, double raw_bytes)
{
    const bool by_bytes = p->wire_bytes > 0;
    const bool raw_fits = raw_bytes <= p->wire_bytes / 2;
    widths w = {0};
    for (int b = p->min_bits; b <= p->max_bits && !(by_bytes && raw_fits); b++)
        w.bits[w.count++] = b;
    if (!by_bytes || raw_fits)
        w.bits[w.count++] = STI_COMPRESSED_RAW;
    return w;
}

/* By whatever scheme: of a link that ranks of a host share, all of this at most. */
static double sent_share(const sti_compressed_allreduce *s)
{
    return sti_schedule_sent(STI_SCHEME_SCATTER, sti_comm_size(s->comm), 1).coded;
}

/* Sum of squares of what encoding takes; `step` keys nothing here but the draw. */
static double squared_error(const table *t, const sti_gradient_form *form, int64_t n,
                            const float *x)
{
    const sti_gradient_key key = {.parts = 1};
    double sum = 0;
    for (int64_t at = 0; at < n; at += form->bucket) {
        const int64_t m = n - at < form->bucket ? n - at : form->bucket;
        memcpy(t->left, x + at, (size_t)m * sizeof *x);
        if (sti_gradient_encode(&sti_team_serial, form, &key, m, x + at, t->coded) >= 0)
            return INFINITY; /* the exchange will name the value */
        sti_gradient_decode(&sti_team_serial, form, m, t->coded, STI_GRADIENT_TAKE,
                            t->left);
        for (int64_t i = 0; i < m; i++)
            sum += (double)t->left[i] * (double)t->left[i];
    }
    return sum;
}

static void measure(const sti_compressed_allreduce *s, table *t, const float *vector)
{
    for (int k = 0; k < t->layers; k++) {
        const sti_compressed_layer *l = &s->layers[t->layer[k]];
        const float *x = vector + l->first;
        for (int64_t i = 0; i < l->count; i++)
            t->size += (double)x[i] * (double)x[i];
        for (int c = 0; c < t->w.count; c++) {
            sti_gradient_form form = s->desc.form;
            const bool raw = t->w.bits[c] == STI_COMPRESSED_RAW;
            form.bits = t->w.bits[c];
            t->bytes[k * t->w.count + c] =
                sent_share(s) * (raw ? 4 * (double)l->count
                                     : (double)sti_gradient_bytes(&form, l->count));
            t->error[k * t->w.count + c] =
                raw ? 0 : squared_error(t, &form, l->count, x);
        }
    }
}

static double uniform_error(const table *t, int bits)
{
    double sum = 0;
    for (int k = 0; k < t->layers; k++)
        for (int c = 0; c < t->w.count; c++)
            if (t->w.bits[c] == bits)
                sum += t->error[k * t->w.count + c];
    return sum;
}

/* On rank 0: a place in `widths` for each compressed layer. */
static stint_status choose(const sti_bits_policy *p, const table *t, int *choice,
                           bool *fits_out)
{
    stint_status st;
    *fits_out = true;
    if (p->wire_bytes <= 0)
        return sti_knapsack_choose(t->layers, t->w.count, t->error, t->bytes,
                                   p->error_factor * uniform_error(t, p->uniform),
                                   choice);
    st = sti_knapsack_choose(t->layers, t->w.count, t->bytes, t->error,
                             p->wire_bytes - t->raw_rest, choice);
    if (st != STINT_E_BUDGET)
        return st;
    *fits_out = false;
    for (int k = 0; k < t->layers; k++)
        choice[k] = 0;
    return STINT_OK;
}

static void report(const table *t, const int *choice, sti_bits_report *r)
{
    double error = 0;
    r->bytes = t->raw_rest;
    r->raw_bytes = t->raw;
    r->min_bits = STI_COMPRESSED_RAW;
    r->max_bits = 0;
    for (int k = 0; k < t->layers; k++) {
        const int bits = t->w.bits[choice[k]];
        r->bytes += t->bytes[k * t->w.count + choice[k]];
        error += t->error[k * t->w.count + choice[k]];
        r->min_bits = bits < r->min_bits ? bits : r->min_bits;
        r->max_bits = bits > r->max_bits ? bits : r->max_bits;
    }
    r->max_bits = r->max_bits ? r->max_bits : STI_COMPRESSED_RAW;
    r->error = t->size > 0 ? sqrt(error / t->size) : 0;
}

static stint_status table_create(const sti_compressed_allreduce *s,
                                 const sti_bits_policy *p, table *t)
{
    *t = (table){0};
    for (int l = 0; l < s->layer_count; l++) {
        const double bytes = sent_share(s) * 4 * (double)s->layers[l].count;
        t->layers += sti_compressed_takes_layer(s, l);
        t->raw += bytes;
        if (!sti_compressed_takes_layer(s, l))
            t->raw_rest += bytes;
    }
    t->w = widths_of(p, t->raw);
    const int64_t cells = (int64_t)t->layers * t->w.count;
    t->layer = sti_alloc_array(t->layers, sizeof *t->layer, "net.bits");
    t->bytes = sti_alloc_array(cells, sizeof *t->bytes, "net.bits");
    t->error = sti_alloc_array(cells, sizeof *t->error, "net.bits");
    t->coded = sti_alloc((size_t)s->desc.form.bucket + 64, "net.bits");
    t->left = sti_alloc_array(s->desc.form.bucket, sizeof *t->left, "net.bits");
    if (!t->layer || !t->bytes || !t->error || !t->coded || !t->left)
        return STINT_E_MEMORY;
    for (int l = 0, k = 0; l < s->layer_count; l++)
        if (sti_compressed_takes_layer(s, l))
            t->layer[k++] = l;
    return STINT_OK;
}

static void table_destroy(table *t)
{
    sti_free(t->layer);
    sti_free(t->bytes);
    sti_free(t->error);
    sti_free(t->coded);
    sti_free(t->left);
}

static stint_status check_policy(const sti_bits_policy *p)
{
    if (p->min_bits < 1 || p->min_bits > p->max_bits ||
        p->max_bits > STI_GRADIENT_BITS_MAX)
        return sti_fail(STINT_E_USAGE,
                        "bits of gradients: from %d to %d; 1 to 8 are "
                        "possible",
                        p->min_bits, p->max_bits);
    if (p->wire_bytes <= 0 &&
        (p->error_factor <= 0 || p->uniform < p->min_bits || p->uniform > p->max_bits))
        return sti_fail(STINT_E_USAGE,
                        "bits of gradients: an error budget of %g times that of %d "
                        "bits; a factor above 0 and bits from %d to %d are possible",
                        p->error_factor, p->uniform, p->min_bits, p->max_bits);
    return STINT_OK;
}

static stint_status choose_on_rank_0(sti_compressed_allreduce *s,
                                     const sti_bits_policy *p, const float *vector,
                                     int *bits, sti_bits_report *report_out)
{
    table t;
    stint_status st = table_create(s, p, &t);
    int *choice = sti_alloc_array(t.layers, sizeof *choice, "net.bits");
    if (st == STINT_OK && !choice)
        st = STINT_E_MEMORY;
    if (st == STINT_OK) {
        measure(s, &t, vector);
        st = choose(p, &t, choice, &report_out->fits);
    }
    if (st == STINT_OK) {
        for (int l = 0; l < s->layer_count; l++)
            bits[l] = STI_COMPRESSED_RAW;
        for (int k = 0; k < t.layers; k++)
            bits[t.layer[k]] = t.w.bits[choice[k]];
        report(&t, choice, report_out);
    }
    sti_free(choice);
    table_destroy(&t);
    return st;
}

stint_status sti_compressed_choose_bits(sti_compressed_allreduce *s,
                                        const sti_bits_policy *policy,
                                        const float *vector,
                                        sti_bits_report *report_out)
{
    const bool first = sti_comm_rank(s->comm) == 0;
    sti_bits_report r = {0};
    stint_status st = check_policy(policy);
    int *bits = sti_alloc_array(s->layer_count, sizeof *bits, "net.bits");
    if (st == STINT_OK && !bits)
        st = STINT_E_MEMORY;
    if (st == STINT_OK && first)
        st = choose_on_rank_0(s, policy, vector, bits, &r);
    st = sti_comm_agree(s->comm, st);
    if (st == STINT_OK)
        st =
            sti_comm_broadcast(s->comm, 0, bits, (size_t)s->layer_count * sizeof *bits);
    if (st == STINT_OK)
        st = sti_comm_broadcast(s->comm, 0, &r, sizeof r);
    if (st == STINT_OK)
        st = sti_compressed_set_bits(s, bits);
    if (st == STINT_OK)
        *report_out = r;
    sti_free(bits);
    return st;
}
