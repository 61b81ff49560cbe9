/* Image sets as tables: a row is an image's pixels / 255 in the order height, width,
 * channels, columns counted from 1; the label is the name of its class. */
#include <inttypes.h>

#include "base/number.h"
#include "base/rng.h"
#include "base/units.h"
#include "data/data.h"
#include "data/table_priv.h"

#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const stint_data *data;
    const stint_data_info *info;
    sti_data_decoders *decoders;
    int32_t *order; /* [info->count], the first `rows` of them ascending */
    uint8_t *pixels;
    int64_t rows, columns;
} reader;

static int compare_indices(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Names of classes that are all numbers are numbers. */
static bool names_are_numbers(const stint_data_info *info)
{
    for (int32_t c = 0; c < info->classes; c++) {
        const char *name = info->class_names[c], *end = name + strlen(name), *after;
        double value;
        if (!sti_number_read(name, end, &after, &value) || after != end)
            return false;
    }
    return true;
}

static stint_status class_values(const stint_data_info *info, sti_table *table,
                                 double *value)
{
    const bool numbers = names_are_numbers(info);
    stint_status st = STINT_OK;
    for (int32_t c = 0; c < info->classes && st == STINT_OK; c++) {
        const char *name = info->class_names[c], *after;
        const size_t length = strlen(name);
        if (numbers)
            (void)sti_number_read(name, name + length, &after, &value[c]);
        else
            st = sti_table_name(table, name, length, &value[c]);
    }
    return st;
}

static stint_status fill(reader *r, const double *value, sti_table *table)
{
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < r->rows && st == STINT_OK; i++) {
        st = sti_data_decode(r->data, r->order[i], r->decoders, 0, r->pixels);
        if (st != STINT_OK)
            break;
        for (int64_t p = 0; p < r->columns; p++)
            sti_table_add(table, 1 + p, r->pixels[p] / 255.0);
        table->y[i] = value[sti_data_label(r->data, r->order[i])];
        sti_table_end_row(table);
    }
    return st;
}

static stint_status measure(const sti_table_desc *desc, reader *r, sti_table *table)
{
    r->columns = r->info->height * r->info->width * r->info->channels;
    r->rows =
        desc->count > 0 && desc->count < r->info->count ? desc->count : r->info->count;
    const sti_table_counts counts = {r->rows, r->rows * r->columns};
    table->peak_bytes = sti_table_counts_bytes(&counts) +
                        sti_data_memory_bytes(r->data, 1, 1) +
                        (size_t)r->info->count * sizeof(int32_t);
    if (desc->limit_bytes > 0 && table->peak_bytes > desc->limit_bytes)
        return sti_fail(STINT_E_BUDGET,
                        "%s: %" PRId64 " images as a table take %s, of the budget %s "
                        "are left; give more by --memory, or fewer by --count",
                        desc->path, r->rows, sti_bytes_text(table->peak_bytes),
                        sti_bytes_text(desc->limit_bytes));
    return sti_table_reserve(table, &counts, true);
}

static stint_status choose_rows(const sti_table_desc *desc, reader *r)
{
    r->order = sti_alloc_array(r->info->count, sizeof *r->order, "table.order");
    r->pixels = sti_alloc((size_t)r->columns, "table.pixels");
    if (!r->order || !r->pixels)
        return STINT_E_MEMORY;
    sti_shuffle(desc->seed, STI_STREAM_SUBSET, 0, r->info->count, r->order);
    qsort(r->order, (size_t)r->rows, sizeof *r->order, compare_indices);
    return STINT_OK;
}

stint_status sti_table_read_images(const sti_table_desc *desc, sti_table *table)
{
    const stint_data_desc open = {.path = desc->path, .split = desc->split};
    stint_data *data = NULL;
    double *value = NULL;
    reader r = {0};
    stint_status st;
    STI_TRY(stint_data_open(&open, &data));
    r.data = data;
    r.info = stint_data_describe(data);
    STI_TRY(measure(desc, &r, table));
    value = sti_alloc_array(r.info->classes, sizeof *value, "table.classes");
    STI_TRY(value ? choose_rows(desc, &r) : STINT_E_MEMORY);
    STI_TRY(class_values(r.info, table, value));
    STI_TRY(sti_data_decoders_create(data, 1, &r.decoders));
    STI_TRY(fill(&r, value, table));
out:
    sti_free(value);
    sti_free(r.order);
    sti_free(r.pixels);
    sti_data_decoders_destroy(r.decoders);
    stint_data_close(data);
    return st;
}
