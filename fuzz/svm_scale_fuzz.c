/* Any text as a file of ranges: refused, or ranges that scale a row. */
#include <stdint.h>
#include <stdlib.h>

#include "svm/svm_scale.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char row[] = "1 1:0.5 3:2\n";
    sti_svm_scale scale;
    sti_table table;
    sti_text text = {0};
    if (sti_svm_scale_parse((const char *)data, size, "x.range", &scale) != STINT_OK)
        return 0;
    if (sti_table_parse(row, sizeof row - 1, "row", STI_TABLE_LIBSVM, &table) !=
        STINT_OK)
        exit(1);
    if (scale.columns < 1 << 16) /* wide ones are sound but slow */
        sti_svm_scale_row(&scale, &table, 0, &text);
    sti_text_fini(&text);
    sti_table_fini(&table);
    sti_svm_scale_fini(&scale);
    return 0;
}
