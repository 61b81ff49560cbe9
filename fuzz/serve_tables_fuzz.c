/* Any text as latency tables: refused, or tables that a machine is cut by. */
#include <stdint.h>

#include "serve/paris.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sti_serve_tables tables;
    sti_serve_cut cut;
    sti_paris paris;
    sti_text text = {0};
    if (sti_serve_tables_parse((const char *)data, size, "tables", &tables) != STINT_OK)
        return 0;
    if (sti_paris_cut(&tables, STI_PARIS_KNEE, &paris, &cut) == STINT_OK)
        sti_serve_cut_text(&tables, &cut, &text);
    sti_serve_tables_write(&tables, &text);
    sti_text_fini(&text);
    sti_serve_tables_fini(&tables);
    return 0;
}
