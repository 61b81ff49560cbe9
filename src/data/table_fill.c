/* What all readers of tables share: arrays that fill row by row, words as labels, and
 * faults of a line. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/shown.h"
#include "data/table_priv.h"

size_t sti_table_counts_bytes(const sti_table_counts *counts)
{
    return (size_t)counts->rows * (sizeof(int64_t) + sizeof(double)) +
           2 * sizeof(int64_t) +
           (size_t)counts->entries * (sizeof(int32_t) + sizeof(double));
}

stint_status sti_table_reserve(sti_table *table, const sti_table_counts *counts,
                               bool labels)
{
    sti_csr *x = &table->x;
    table->arena = sti_arena_create("table.names");
    x->start = sti_alloc_array(counts->rows + 2, sizeof *x->start, "table.rows");
    x->column = sti_alloc_array(counts->entries, sizeof *x->column, "table.columns");
    x->value = sti_alloc_array(counts->entries, sizeof *x->value, "table.values");
    if (labels)
        table->y = sti_alloc_array(counts->rows, sizeof *table->y, "table.labels");
    table->first = 1;
    table->bytes = sti_table_counts_bytes(counts);
    return table->arena && x->start && x->column && x->value && (table->y || !labels)
               ? STINT_OK
               : STINT_E_MEMORY;
}

void sti_table_fini(sti_table *table)
{
    sti_free(table->x.start);
    sti_free(table->x.column);
    sti_free(table->x.value);
    sti_free(table->y);
    sti_arena_destroy(table->arena);
    *table = (sti_table){0};
}

void sti_table_add(sti_table *table, int64_t column, double value)
{
    sti_csr *x = &table->x;
    if (column >= x->columns)
        x->columns = column + 1;
    if (value == 0)
        return;
    const int64_t at = x->start[x->rows + 1]++;
    x->column[at] = (int32_t)column;
    x->value[at] = value;
}

/* start[rows + 1] counts up while a row fills; there is one more than rows need. */
void sti_table_end_row(sti_table *table)
{
    sti_csr *x = &table->x;
    x->rows++;
    x->start[x->rows + 1] = x->start[x->rows];
}

stint_status sti_table_name(sti_table *table, const char *word, size_t length,
                            double *y_out)
{
    for (int64_t i = table->name_count; i-- > 0;)
        if (strlen(table->names[i]) == length &&
            memcmp(table->names[i], word, length) == 0) {
            *y_out = (double)i;
            return STINT_OK;
        }
    if (table->name_count == STI_TABLE_NAMES_MOST)
        return sti_fail(STINT_E_INPUT, "more than %d different words as labels",
                        STI_TABLE_NAMES_MOST);
    if (!table->names) {
        table->names =
            sti_arena_alloc(table->arena, STI_TABLE_NAMES_MOST * sizeof *table->names);
        if (!table->names)
            return STINT_E_MEMORY;
    }
    char *copy = sti_arena_alloc(table->arena, length + 1);
    if (!copy)
        return STINT_E_MEMORY;
    memcpy(copy, word, length);
    *y_out = (double)table->name_count;
    table->names[table->name_count++] = copy;
    return STINT_OK;
}

stint_status sti_table_fault(const sti_table_text *text, const char *format, ...)
{
    char words[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(words, sizeof words, format, args);
    va_end(args);
    return sti_fail(STINT_E_INPUT, "%s:%" PRId64 ": %s", text->name, text->line, words);
}

const char *sti_table_quote(const char *at, const char *end)
{
    char copy[48];
    const size_t length = (size_t)(end - at), most = sizeof copy - 4;
    const size_t kept = length < most ? length : most;
    memcpy(copy, at, kept);
    memcpy(copy + kept, length > most ? "..." : "", length > most ? 4 : 1);
    return sti_shown(copy);
}
