#include "embed/row_layout.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/rng.h"

enum { PAGE_MOST = 65536 };

stint_status sti_row_layout_of(int64_t rows, int64_t width, int64_t state,
                               uint64_t seed, float scale, sti_row_layout *layout_out)
{
    const int64_t record = (4 * (width + state) + 15) / 16 * 16;
    int64_t page = STI_PAGE_ALIGN;
    while (page < PAGE_MOST && record > page - STI_PAGE_TAIL)
        page *= 2;
    const int64_t payload = page - STI_PAGE_TAIL;
    if (record > payload)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "a row of %" PRId64 " floats and %" PRId64
                        " of its optimiser is larger than a page of %d bytes; set a "
                        "smaller model.width, or embedding.optimizer = rowwise-adagrad",
                        width, state, PAGE_MOST);
    *layout_out = (sti_row_layout){.rows = rows,
                                   .width = width,
                                   .state = state,
                                   .seed = seed,
                                   .scale = scale,
                                   .stride = 1,
                                   .record_bytes = record,
                                   .per_page = payload / record,
                                   .page_bytes = (size_t)page};
    layout_out->pages = 1 + (rows + layout_out->per_page - 1) / layout_out->per_page;
    return STINT_OK;
}

void sti_row_layout_part(sti_row_layout *l, int64_t part, int64_t parts)
{
    l->rows = (l->rows - part + parts - 1) / parts;
    l->first = part;
    l->stride = parts;
    l->pages = 1 + (l->rows + l->per_page - 1) / l->per_page;
}

void sti_row_make(const sti_row_layout *l, uint32_t rank, void *record)
{
    float *w = record;
    uint32_t words[4] = {0};
    const uint64_t whole = (uint64_t)(l->first + rank * l->stride);
    for (int64_t i = 0; i < l->width; i++) {
        if (i % 4 == 0)
            sti_random4(l->seed, STI_STREAM_ROWS, whole, (uint64_t)i / 4, words);
        w[i] = (2 * sti_uniform(words[i % 4]) - 1) * l->scale;
    }
    memset(w + l->width, 0, (size_t)l->record_bytes - 4 * (size_t)l->width);
}

void sti_row_make_page(const sti_row_layout *l, int64_t page, void *bytes)
{
    const int64_t first = (page - 1) * l->per_page;
    memset(bytes, 0, l->page_bytes);
    for (int64_t k = 0; k < l->per_page && first + k < l->rows; k++)
        sti_row_make(l, (uint32_t)(first + k), (char *)bytes + k * l->record_bytes);
}
