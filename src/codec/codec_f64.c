/* Arrays of double by way of the float32 codec.
 *
 * Each value is rounded to float and packed within what its rounding leaves of the
 * bound. Beyond 2^22 bounds from zero the codec keeps values as they are; up to there
 * rounding takes a quarter of the bound at most. Values that come back outside of the
 * bound, which is looked at one by one in double precision, are kept bit for bit behind
 * the block of floats, each with its distance from the one before. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "codec/codec_priv.h"

#define MAGIC "StintW\r\n"

enum { VERSION = 1, GAP_MOST = 10 }; /* bytes of a distance */

typedef struct wide_head {
    char magic[8];
    uint32_t version, checksum; /* of what follows it here, and of the exceptions */
    uint64_t bytes, inner_bytes, exceptions;
    double bound, max_error;
} wide_head;

/* ---- sizes ---- */

static stint_status shape_of(const stint_codec_desc *desc, size_t *count_out,
                             size_t *inner_out)
{
    size_t workspace;
    stint_status status = stint_codec_workspace_bytes(desc, &workspace);
    if (status != STINT_OK)
        return status;
    *count_out = 1;
    for (int i = 0; i < desc->rank; i++)
        *count_out *= (size_t)desc->dim[i];
    *inner_out = workspace;
    return STINT_OK;
}

stint_status stint_codec_f64_max_bytes(const stint_codec_desc *desc, size_t *bytes_out)
{
    size_t count, inner;
    stint_status status = stint_codec_max_bytes(desc, &inner);
    if (status == STINT_OK)
        status = shape_of(desc, &count, &(size_t){0});
    if (status == STINT_OK)
        *bytes_out =
            sizeof(wide_head) + inner + count * (sizeof(double) + 1) + GAP_MOST;
    return status;
}

stint_status stint_codec_f64_workspace_bytes(const stint_codec_desc *desc,
                                             size_t *bytes_out)
{
    size_t count, inner;
    const stint_status status = shape_of(desc, &count, &inner);
    if (status == STINT_OK)
        *bytes_out = inner + count * sizeof(float) + 64;
    return status;
}

/* The floats begin at the workspace's first address that is aligned. */
static float *floats_of(void *workspace)
{
    unsigned char *at = workspace;
    return (float *)(void *)(at + (64 - (uintptr_t)at % 64) % 64);
}

/* ---- packing ---- */

/* Floats near the values; the greatest distance to one, where a quarter of the bound
 * allows for it. Others become zero, which the codec writes in next to nothing. */
static double round_all(const double *x, size_t count, double bound, float *rounded)
{
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        const float near = (float)x[i];
        const double away = fabs((double)near - x[i]);
        const bool kept = away <= bound / 4 || (isinf(x[i]) && isinf(near));
        rounded[i] = kept ? near : 0;
        most = kept && away > most ? away : most; /* of infinities no number */
    }
    return most;
}

/* Is y a value that x may come back as? Differences are rounded, so one that equals the
 * bound may lie beyond it. */
static bool is_within(double x, double y, double bound)
{
    return x == y || fabs(x - y) < bound;
}

typedef struct exceptions {
    unsigned char *at, *end;
    uint64_t count;
    double max_error;
    bool full;
} exceptions;

static void put_exception(exceptions *e, uint64_t gap, double value)
{
    if (e->end - e->at < (ptrdiff_t)(GAP_MOST + sizeof value)) {
        e->full = true;
        return;
    }
    for (; gap >= 128; gap >>= 7)
        *e->at++ = (unsigned char)(gap | 128);
    *e->at++ = (unsigned char)gap;
    memcpy(e->at, &value, sizeof value);
    e->at += sizeof value;
    e->count++;
}

static void find_exceptions(const double *x, const float *back, size_t count,
                            double bound, exceptions *e)
{
    size_t last = 0;
    for (size_t i = 0; i < count && !e->full; i++) {
        const double y = (double)back[i];
        if (is_within(x[i], y, bound)) {
            const double away = x[i] == y ? 0 : fabs(x[i] - y);
            e->max_error = away > e->max_error ? away : e->max_error;
            continue;
        }
        put_exception(e, i - last, x[i]);
        last = i;
    }
}

static void close_head(unsigned char *out, wide_head *h)
{
    const size_t skip = offsetof(wide_head, bytes);
    const size_t rest = sizeof *h + (size_t)h->inner_bytes;
    memcpy(h->magic, MAGIC, sizeof h->magic);
    h->version = VERSION;
    memcpy(out, h, sizeof *h);
    h->checksum = sti_crc32c(sti_crc32c(0, out + skip, sizeof *h - skip), out + rest,
                             (size_t)h->bytes - rest);
    memcpy(out, h, sizeof *h);
}

/* Pack the floats of `back` and unpack them there again. */
static stint_status pack_floats(const stint_codec_desc *desc, float *back, void *out,
                                size_t capacity, void *workspace, size_t bytes,
                                stint_codec_result *result)
{
    stint_status status =
        stint_codec_pack(desc, back, NULL, out, capacity, workspace, bytes, result);
    if (status == STINT_OK)
        status =
            stint_codec_unpack(desc, out, result->bytes, NULL, back, workspace, bytes);
    return status;
}

stint_status stint_codec_f64_pack(const stint_codec_desc *desc, const double *x,
                                  void *out, size_t capacity_bytes, void *workspace,
                                  size_t workspace_bytes,
                                  stint_codec_result *result_out)
{
    size_t count, inner, needed;
    stint_status status = stint_codec_f64_max_bytes(desc, &needed);
    if (status == STINT_OK)
        status = stint_codec_f64_workspace_bytes(desc, &inner);
    if (status != STINT_OK)
        return status;
    if (!x || !out || !workspace || workspace_bytes < inner || capacity_bytes < needed)
        return sti_fail(STINT_E_INPUT,
                        "codec: no values, or less memory than "
                        "stint_codec_f64_max_bytes and _workspace_bytes say");
    status = shape_of(desc, &count, &inner);
    if (status != STINT_OK)
        return status;
    float *back = floats_of(workspace);
    stint_codec_desc left = *desc;
    stint_codec_result result;
    left.bound = nextafter(desc->bound - round_all(x, count, desc->bound, back), 0);
    status =
        pack_floats(&left, back, (unsigned char *)out + sizeof(wide_head),
                    capacity_bytes - sizeof(wide_head), back + count, inner, &result);
    if (status != STINT_OK)
        return status;
    unsigned char *begin = out;
    exceptions e = {.at = begin + sizeof(wide_head) + result.bytes,
                    .end = begin + capacity_bytes};
    find_exceptions(x, back, count, desc->bound, &e);
    if (e.full)
        return sti_fail(STINT_E_BUG, "codec: %zu values take more than they can",
                        count);
    wide_head h = {.bytes = (uint64_t)(e.at - begin),
                   .inner_bytes = result.bytes,
                   .exceptions = e.count,
                   .bound = desc->bound,
                   .max_error = e.max_error};
    close_head(begin, &h);
    result.bytes = (size_t)h.bytes;
    result.max_error = h.max_error;
    result.outliers += (int64_t)e.count;
    *result_out = result;
    return STINT_OK;
}

/* ---- unpacking ---- */

static stint_status damaged(const char *what)
{
    return sti_fail(STINT_E_INPUT, "packed block of doubles: damaged, %s", what);
}

bool stint_codec_is_f64(const void *packed, size_t bytes)
{
    return bytes >= 8 && memcmp(packed, MAGIC, 8) == 0;
}

static stint_status read_head(const unsigned char *packed, size_t bytes, wide_head *h)
{
    const size_t skip = offsetof(wide_head, bytes);
    if (bytes < sizeof *h || !stint_codec_is_f64(packed, bytes))
        return damaged("it does not begin like one");
    memcpy(h, packed, sizeof *h);
    if (h->version != VERSION)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "packed block of doubles: version %u; %d is known", h->version,
                        VERSION);
    if (h->bytes != bytes || h->inner_bytes > bytes - sizeof *h)
        return damaged("sizes that are not its own");
    const size_t rest = sizeof *h + (size_t)h->inner_bytes;
    if (h->checksum != sti_crc32c(sti_crc32c(0, packed + skip, sizeof *h - skip),
                                  packed + rest, bytes - rest))
        return damaged("the checksum of its head and exceptions");
    if (!(h->bound > 0) || !isfinite(h->bound) || !(h->max_error >= 0) ||
        h->exceptions > (bytes - rest) / (sizeof(double) + 1))
        return damaged("a bound or a number of exceptions that cannot be");
    return STINT_OK;
}

stint_status stint_codec_f64_info_read(const void *packed, size_t bytes,
                                       stint_codec_info *info_out)
{
    wide_head h;
    stint_codec_info info;
    stint_status status = read_head(packed, bytes, &h);
    if (status == STINT_OK)
        status = stint_codec_info_read((const unsigned char *)packed + sizeof h,
                                       (size_t)h.inner_bytes, &info);
    if (status != STINT_OK)
        return status;
    if (info.bytes != h.inner_bytes || info.masked)
        return damaged("its block of floats");
    info.bytes = bytes;
    info.bound = h.bound;
    info.max_error = h.max_error;
    info.outliers += (int64_t)h.exceptions;
    *info_out = info;
    return STINT_OK;
}

/* Floats in the upper half of the array become doubles from its beginning on: a double
 * is written where floats have been read. */
static void widen(double *x, size_t count)
{
    const unsigned char *from =
        (const unsigned char *)(x + count) - count * sizeof(float);
    for (size_t i = 0; i < count; i++) {
        float f;
        memcpy(&f, from + i * sizeof f, sizeof f);
        x[i] = (double)f;
    }
}

static stint_status put_back(const unsigned char *at, const unsigned char *end,
                             uint64_t exceptions_left, double *x, size_t count)
{
    uint64_t place = 0;
    for (; exceptions_left > 0; exceptions_left--) {
        uint64_t gap = 0;
        for (int shift = 0;; shift += 7) {
            if (at == end || shift > 63)
                return damaged("a distance between exceptions");
            gap |= (uint64_t)(*at & 127) << shift;
            if (*at++ < 128)
                break;
        }
        if (gap >= count || (place += gap) >= count ||
            end - at < (ptrdiff_t)sizeof(double))
            return damaged("an exception beyond its end");
        memcpy(&x[place], at, sizeof(double));
        at += sizeof(double);
    }
    return at == end ? STINT_OK : damaged("bytes behind its exceptions");
}

stint_status stint_codec_f64_unpack(const stint_codec_desc *desc, const void *packed,
                                    size_t bytes, double *x_out, void *workspace,
                                    size_t workspace_bytes)
{
    wide_head h;
    size_t count, inner;
    stint_status status = shape_of(desc, &count, &inner);
    if (status == STINT_OK)
        status = read_head(packed, bytes, &h);
    if (status == STINT_OK && (!x_out || !workspace || workspace_bytes < inner))
        status = sti_fail(STINT_E_INPUT, "codec: no memory is given");
    if (status != STINT_OK)
        return status;
    const unsigned char *at = (const unsigned char *)packed + sizeof h;
    float *floats = (float *)(void *)x_out + count;
    status = stint_codec_unpack(desc, at, (size_t)h.inner_bytes, NULL, floats,
                                workspace, workspace_bytes);
    if (status != STINT_OK)
        return status;
    widen(x_out, count);
    return put_back(at + h.inner_bytes, (const unsigned char *)packed + bytes,
                    h.exceptions, x_out, count);
}
