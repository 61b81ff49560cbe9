#include "store/text_rounding.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/elementwise/round_columns.h"

struct sti_text_rounding {
    sti_weight_source source;
    int bits;
    char name[128]; /* whose scales these are; "": nobody's */
    float *largest; /* [room] */
    int64_t room;   /* columns of the widest matrix */
};

static int64_t widest(const stint_text_model_desc *d)
{
    const int64_t packed = (d->heads + 2 * d->kv_heads) * d->head_size;
    int64_t most = d->width > d->hidden ? d->width : d->hidden;
    return packed > most ? packed : most;
}

stint_status sti_text_rounding_create(stint_model_file *file, sti_text_rounding **out)
{
    sti_text_rounding *r = sti_alloc(sizeof *r, "rounding");
    if (!r)
        return STINT_E_MEMORY;
    *r = (sti_text_rounding){.bits = file->network.weight_bits,
                             .room = widest(&file->network.text)};
    r->largest = sti_alloc_array(r->room, sizeof *r->largest, "rounding");
    if (!r->largest) {
        sti_free(r);
        return STINT_E_MEMORY;
    }
    *out = r;
    return STINT_OK;
}

void sti_text_rounding_destroy(sti_text_rounding *r)
{
    if (!r)
        return;
    sti_free(r->largest);
    sti_free(r);
}

/* Tables of embeddings and classes, biases and norms stay as they are. */
static bool is_rounded(const sti_text_rounding *r, const char *name, int64_t runs,
                       int64_t each)
{
    const size_t n = strlen(name), end = sizeof ".weight" - 1;
    return strncmp(name, "h.", 2) == 0 && n > end &&
           strcmp(name + n - end, ".weight") == 0 && runs > 1 && each <= r->room;
}

/* The whole matrix, in slices that `slice` has room for. */
static stint_status find_scales(sti_text_rounding *r, const char *name, int64_t runs,
                                int64_t each, int64_t count, float *slice)
{
    stint_status st = STINT_OK;
    r->name[0] = '\0';
    memset(r->largest, 0, (size_t)each * sizeof *r->largest);
    for (int64_t at = 0; at < runs && st == STINT_OK; at += count) {
        const int64_t some = runs - at < count ? runs - at : count;
        st = r->source.read(r->source.user, name, runs, each, at, some, slice);
        if (st == STINT_OK)
            sti_columns_largest_f32(some, each, each, slice, r->largest);
    }
    if (st == STINT_OK)
        snprintf(r->name, sizeof r->name, "%s", name);
    return st;
}

static stint_status read_rounded(void *user, const char *name, int64_t runs,
                                 int64_t each, int64_t first, int64_t count, float *out)
{
    sti_text_rounding *r = user;
    const bool rounded = count > 0 && is_rounded(r, name, runs, each);
    stint_status st = STINT_OK;
    if (rounded && strcmp(r->name, name) != 0)
        st = find_scales(r, name, runs, each, count, out);
    if (st == STINT_OK)
        st = r->source.read(r->source.user, name, runs, each, first, count, out);
    if (st == STINT_OK && rounded)
        sti_columns_round_f32(count, each, each, r->bits, r->largest, out, out);
    return st;
}

static bool never_by_columns(void *user, const char *name)
{
    (void)user, (void)name;
    return false;
}

sti_weight_source sti_text_rounding_source(sti_text_rounding *r,
                                           sti_weight_source source)
{
    r->source = source;
    return (sti_weight_source){
        .user = r, .by_columns = never_by_columns, .read = read_rounded};
}
