/* Inside the data room: files without a name that hold what does not fit memory while
 * click data is counted: written once from the front, then read from the front. */
#ifndef STI_DATA_CLICKS_SPILL_H
#define STI_DATA_CLICKS_SPILL_H

#include <stdio.h>

#include "base/file.h"

typedef struct sti_spill {
    FILE *file;
    int64_t bytes;
} sti_spill;

/* In $TMPDIR, else /var/tmp; gone with the process. STINT_E_IO. */
stint_status sti_spill_open(sti_spill *spill);
void sti_spill_close(sti_spill *spill); /* also of a zeroed one */
stint_status sti_spill_add(sti_spill *spill, const void *bytes, size_t n_bytes);
/* To the front, for reading. */
stint_status sti_spill_rewind(sti_spill *spill);
/* The next bytes; *more_out false: none are left. */
stint_status sti_spill_next(sti_spill *spill, void *bytes, size_t n_bytes,
                            bool *more_out);

#endif
