#include "svm/kernel_store.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"

struct sti_kernel_store {
    sti_kernel_source source;
    int64_t count, kept, skipped; /* ranges; values; values before the first kept */
    const sti_row_range *ranges;
    int64_t *before; /* [count] values of the ranges before */
    char *values;
    /* of a filling */
    char *scratch;
    size_t scratch_bytes;
    int64_t range, band;
};

int64_t sti_band_count(int64_t rows)
{
    const int64_t side = sti_band_side(rows);
    return (rows + side - 1) / side;
}

int64_t sti_band_side(int64_t rows)
{
    const int64_t bands = (rows + STI_GRAM_TILE - 1) / STI_GRAM_TILE;
    const int64_t even = bands > 0 ? (rows + bands - 1) / bands : 8;
    return (even + 7) / 8 * 8;
}

sti_row_range sti_band_of(sti_row_range range, int64_t band)
{
    const int64_t side = sti_band_side(range.count), left = range.count - band * side;
    return (sti_row_range){range.begin + band * side, left < side ? left : side};
}

int64_t sti_band_stride(sti_row_range band)
{
    return (band.count + 7) / 8 * 8;
}

int64_t sti_triangle_values(int64_t rows, int64_t band, int64_t other)
{
    const int64_t side = sti_band_side(rows), bands = sti_band_count(rows);
    const sti_row_range all = {0, rows};
    if (band < bands)
        return side * side * (band * (band + 1) / 2) +
               sti_band_of(all, band).count * side * other;
    if (bands == 0)
        return 0;
    const sti_row_range last = sti_band_of(all, bands - 1);
    return sti_triangle_values(rows, bands - 1, bands - 1) +
           last.count * sti_band_stride(last);
}

int64_t sti_rectangle_values(int64_t rows, int64_t other_rows, int64_t band,
                             int64_t other)
{
    const int64_t other_bands = sti_band_count(other_rows);
    if (other_bands == 0)
        return 0;
    const sti_row_range last =
        sti_band_of((sti_row_range){0, other_rows}, other_bands - 1);
    const int64_t side = sti_band_side(rows), other_side = sti_band_side(other_rows);
    const int64_t width = (other_bands - 1) * other_side + sti_band_stride(last);
    if (band >= sti_band_count(rows))
        return rows * width;
    return band * side * width +
           sti_band_of((sti_row_range){0, rows}, band).count * other * other_side;
}

size_t sti_kernel_source_value_bytes(const sti_kernel_source *s)
{
    return s->single ? sizeof(float) : sizeof(double);
}

void sti_kernel_source_tile(const sti_kernel_source *s, sti_row_range u,
                            sti_row_range v, void *tile, void *scratch)
{
    const int64_t stride = sti_band_stride(v);
    if (s->single)
        sti_gram_tile_f32(s->function, s->rows, u.begin, u.count, s->rows, v.begin,
                          v.count, tile, stride, scratch);
    else
        sti_gram_tile(s->function, s->rows, u.begin, u.count, s->rows, v.begin, v.count,
                      tile, stride, scratch);
}

stint_status sti_kernel_store_create(const sti_kernel_source *source, int64_t count,
                                     const sti_row_range *ranges, int64_t values,
                                     int64_t first_band, sti_kernel_store **store_out)
{
    sti_kernel_store *s = sti_alloc(sizeof *s, "svm.store");
    if (!s)
        return STINT_E_MEMORY;
    s->source = *source;
    s->count = count;
    s->ranges = ranges;
    s->kept = values;
    s->skipped = sti_triangle_values(ranges[0].count, first_band, 0);
    s->before = sti_alloc_array(count, sizeof *s->before, "svm.store");
    s->values =
        sti_alloc_array(values, sti_kernel_source_value_bytes(source), "svm.tiles");
    if (!s->before || !s->values) {
        sti_kernel_store_destroy(s);
        return STINT_E_MEMORY;
    }
    for (int64_t r = 1; r < count; r++)
        s->before[r] = s->before[r - 1] +
                       sti_triangle_values(ranges[r - 1].count,
                                           sti_band_count(ranges[r - 1].count), 0);
    sti_alloc_huge_pages(s->values);
    *store_out = s;
    return STINT_OK;
}

void sti_kernel_store_destroy(sti_kernel_store *s)
{
    if (!s)
        return;
    sti_free(s->before);
    sti_free(s->values);
    sti_free(s);
}

static void *tile_of(const sti_kernel_store *s, int64_t range, int64_t band,
                     int64_t other)
{
    const sti_row_range r = s->ranges[range], v = sti_band_of(r, other);
    const int64_t at =
        s->before[range] + sti_triangle_values(r.count, band, other) - s->skipped;
    const int64_t end = at + sti_band_of(r, band).count * sti_band_stride(v);
    return at >= 0 && end <= s->kept
               ? s->values + (size_t)at * sti_kernel_source_value_bytes(&s->source)
               : NULL;
}

const void *sti_kernel_store_tile(const sti_kernel_store *s, int64_t range,
                                  int64_t band, int64_t other)
{
    return tile_of(s, range, band, other);
}

static void fill_piece(void *arg, int64_t other, int worker)
{
    const sti_kernel_store *s = arg;
    const sti_row_range r = s->ranges[s->range];
    void *tile = tile_of(s, s->range, s->band, other);
    if (tile)
        sti_kernel_source_tile(&s->source, sti_band_of(r, s->band),
                               sti_band_of(r, other), tile,
                               s->scratch + (size_t)worker * s->scratch_bytes);
}

static stint_status fill(sti_kernel_store *s, const sti_team *team)
{
    for (s->range = 0; s->range < s->count; s->range++)
        for (s->band = 0; s->band < sti_band_count(s->ranges[s->range].count);
             s->band++) {
            const stint_status st = sti_stop_asked();
            if (st != STINT_OK)
                return sti_fail(st, "stopped before the machine was solved; no model "
                                    "was written");
            sti_team_take(team, s->band + 1, fill_piece, s);
        }
    return STINT_OK;
}

stint_status sti_kernel_store_fill(sti_kernel_store *s, const sti_team *team)
{
    s->scratch_bytes = STI_ALIGN_UP(sti_gram_scratch_bytes(s->source.rows), 64);
    s->scratch = sti_alloc_array(team->threads, s->scratch_bytes, "svm.scratch");
    const stint_status st = s->scratch ? fill(s, team) : STINT_E_MEMORY;
    sti_free(s->scratch);
    return st;
}
