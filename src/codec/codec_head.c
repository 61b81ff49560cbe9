/* The head of a block: reading it without believing it, and the questions about shapes
 * that need no data. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "codec/codec_priv.h"
#include "kernel/lane/dispatch.h"

static const uint8_t magic[8] = {'S', 't', 'i', 'n', 't', 'Q', '\r', '\n'};

enum { COUNT_LOG2_MAX = 40 };

static stint_status check_shape(int rank, const int64_t *dim)
{
    int64_t count = 1;
    bool empty = false;
    if (rank < 1 || rank > STINT_CODEC_RANK)
        return sti_fail(STINT_E_USAGE, "codec: rank %d; 1 to %d can be packed", rank,
                        STINT_CODEC_RANK);
    for (int i = 0; i < rank; i++) {
        if (dim[i] < 0)
            return sti_fail(STINT_E_USAGE, "codec: axis %d of %" PRId64 " values", i,
                            dim[i]);
        empty |= dim[i] == 0;
    }
    for (int i = 0; i < rank && !empty; i++)
        if (__builtin_mul_overflow(count, dim[i], &count) || count >> COUNT_LOG2_MAX)
            return sti_fail(STINT_E_USAGE, "codec: more than 2^%d values",
                            COUNT_LOG2_MAX);
    return STINT_OK;
}

static stint_status check_desc(const stint_codec_desc *desc)
{
    const stint_status status = check_shape(desc->rank, desc->dim);
    if (status != STINT_OK)
        return status;
    if (!(desc->bound > 0) || isinf(desc->bound))
        return sti_fail(STINT_E_USAGE,
                        "codec: error bound %g; it must be a number above 0",
                        desc->bound);
    if ((unsigned)desc->predictor >= STINT_CODEC_PREDICTORS)
        return sti_fail(STINT_E_USAGE, "codec: predictor %d is unknown",
                        (int)desc->predictor);
    if (desc->shard >> 24)
        return sti_fail(STINT_E_USAGE, "codec: shard %" PRIu32 "; below 2^24 is wanted",
                        desc->shard);
    return STINT_OK;
}

stint_status sti_codec_check(const stint_codec_desc *desc, sti_codec_layout *layout_out)
{
    const stint_status status = check_desc(desc);
    if (status == STINT_OK)
        *layout_out = sti_codec_layout_of(desc->rank, desc->dim);
    return status;
}

stint_status sti_codec_check_shape(const stint_codec_desc *desc,
                                   sti_codec_layout *layout_out)
{
    const stint_status status = check_shape(desc->rank, desc->dim);
    if (status == STINT_OK)
        *layout_out = sti_codec_layout_of(desc->rank, desc->dim);
    return status;
}

static size_t usual_bytes(const sti_codec_layout *l, int contexts)
{
    return contexts > 0 && l->channels > 1 ? (size_t)l->channels : 0;
}

size_t sti_codec_front_bytes(const sti_codec_layout *l, int contexts,
                             size_t model_bytes)
{
    return sizeof(sti_codec_head) + usual_bytes(l, contexts) + model_bytes +
           (size_t)l->chunks * sizeof(sti_codec_entry);
}

stint_status stint_codec_max_bytes(const stint_codec_desc *desc, size_t *bytes_out)
{
    sti_codec_layout l;
    const stint_status status = sti_codec_check(desc, &l);
    if (status == STINT_OK)
        *bytes_out = sti_codec_front_bytes(&l, 1, STI_CODEC_MODEL_BYTES) +
                     (size_t)l.count * sizeof(float) + STI_CODEC_PAD_BYTES;
    return status;
}

void sti_codec_head_begin(sti_codec_head *head)
{
    memset(head, 0, sizeof *head);
    memcpy(head->magic, magic, sizeof magic);
    head->version = STI_CODEC_VERSION;
    head->type = STI_CODEC_F32;
}

static stint_status damaged(const char *what)
{
    return sti_fail(STINT_E_INPUT, "packed block: damaged, %s", what);
}

static stint_status check_fields(const sti_codec_head *h)
{
    if (!(h->bound > 0) || isinf(h->bound) || !(h->max_error >= 0) ||
        !(h->max_error <= h->bound))
        return damaged("no bound that holds");
    if (h->flags & ~(STI_CODEC_DITHER | STI_CODEC_MASKED | STI_CODEC_POSITIVE |
                     STI_CODEC_KINDS) ||
        h->predictor < STINT_CODEC_DIRECT || h->predictor >= STINT_CODEC_PREDICTORS ||
        h->contexts > STI_CODEC_CONTEXTS || h->shard >> 24)
        return damaged("options that there are not");
    if (h->contexts > 0 && !(h->step > 0x1p-120f && h->step < 0x1p124f))
        return damaged("no step");
    return STINT_OK;
}

static stint_status check_sizes(const sti_codec_head *h, size_t total)
{
    const sti_codec_layout l = sti_codec_layout_of(h->rank, h->dim);
    /* A chunk of which nothing had to be stored still has states. */
    const uint64_t least = (uint64_t)l.chunks * sizeof(sti_codec_entry);
    if (h->bytes > total)
        return sti_fail(STINT_E_INPUT, "packed block: cut short, %zu bytes of %" PRIu64,
                        total, h->bytes);
    if (h->bytes < sizeof *h + least + STI_CODEC_PAD_BYTES)
        return damaged("sizes that do not agree");
    if (h->model_bytes > STI_CODEC_MODEL_BYTES ||
        h->front_bytes != sti_codec_front_bytes(&l, h->contexts, h->model_bytes) ||
        h->front_bytes > h->bytes - STI_CODEC_PAD_BYTES)
        return damaged("sizes that do not agree");
    if (h->zeros < 0 || h->zeros > l.count || h->outliers < 0 ||
        h->outliers > l.count || h->raw < 0 || h->raw > l.count)
        return damaged("counts that do not agree");
    return STINT_OK;
}

stint_status sti_codec_head_read(const void *packed, size_t n_bytes,
                                 sti_codec_head *head_out)
{
    sti_codec_head h;
    if (n_bytes < sizeof h || memcmp(packed, magic, sizeof magic) != 0)
        return sti_fail(STINT_E_INPUT,
                        "packed block: none here (%zu bytes, other first bytes)",
                        n_bytes);
    memcpy(&h, packed, sizeof h);
    if (h.version != STI_CODEC_VERSION)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "packed block: version %" PRIu32
                        "; this program knows %" PRIu32,
                        h.version, STI_CODEC_VERSION);
    if (h.type != STI_CODEC_F32)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "packed block: elements of type %d; float32 alone is known",
                        h.type);
    if (check_shape(h.rank, h.dim) != STINT_OK)
        return damaged("no shape");
    stint_status status = check_fields(&h);
    if (status == STINT_OK)
        status = check_sizes(&h, n_bytes);
    if (status != STINT_OK)
        return status;
    const size_t skip = offsetof(sti_codec_head, bytes);
    if (STI_KERNELS_NOW(sti_codec_kernels)
            ->checksum((const uint8_t *)packed + skip, h.front_bytes - skip) !=
        h.checksum)
        return damaged("the checksum of its head does not fit");
    for (size_t i = 1; i <= STI_CODEC_PAD_BYTES; i++) /* under no checksum */
        if (((const uint8_t *)packed)[h.bytes - i] != 0)
            return damaged("the zeros at its end are none");
    *head_out = h;
    return STINT_OK;
}

stint_status stint_codec_info_read(const void *packed, size_t bytes,
                                   stint_codec_info *info_out)
{
    sti_codec_head h;
    if (!packed || !info_out)
        return sti_fail(STINT_E_INPUT, "packed block: no memory is given");
    const stint_status status = sti_codec_head_read(packed, bytes, &h);
    if (status != STINT_OK)
        return status;
    stint_codec_info info = {
        .rank = h.rank,
        .count = sti_codec_layout_of(h.rank, h.dim).count,
        .bound = h.bound,
        .dither = h.flags & STI_CODEC_DITHER,
        .masked = h.flags & STI_CODEC_MASKED,
        .bytes = h.bytes,
        .max_error = h.max_error,
        .zeros = h.zeros,
        .outliers = h.outliers,
        .raw = h.raw,
        .predictor = (stint_codec_predictor)h.predictor,
        .contexts = h.contexts,
    };
    memcpy(info.dim, h.dim, sizeof info.dim);
    *info_out = info;
    return STINT_OK;
}

const char *stint_codec_predictor_name(stint_codec_predictor predictor)
{
    static const char *const names[] = {"auto", "direct", "left", "plane", "mean"};
    return (unsigned)predictor < STINT_CODEC_PREDICTORS ? names[predictor] : "unknown";
}
