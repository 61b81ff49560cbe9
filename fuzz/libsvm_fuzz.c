/* Any text as a LIBSVM table: refused, or rows whose columns ascend. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "data/data_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sti_table table;
    if (sti_table_parse((const char *)data, size, "x.libsvm", STI_TABLE_LIBSVM,
                        &table) != STINT_OK)
        return 0;
    for (int64_t i = 0; i < table.x.rows; i++)
        for (int64_t e = table.x.start[i]; e < table.x.start[i + 1]; e++)
            if (table.x.column[e] < table.first ||
                table.x.column[e] >= table.x.columns || !isfinite(table.x.value[e]) ||
                (e > table.x.start[i] && table.x.column[e] <= table.x.column[e - 1]))
                abort();
    sti_table_fini(&table);
    return 0;
}
