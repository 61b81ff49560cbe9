/* What a load is made of beside noise: prompts, or image files. */
#ifndef STI_SERVE_LOAD_DATA_H
#define STI_SERVE_LOAD_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "stint/status.h"

typedef struct sti_load_data {
    bool texts;
    char *all;     /* every item behind the other; sti_alloc'ed */
    size_t *begin; /* [count + 1]: where each begins, and the end */
    int64_t count;
} sti_load_data;

/* A file with a prompt a line (texts), or an image file, or a folder of files in the
 * order of their names. All of it is kept in memory, 256 MiB at most. STINT_E_INPUT:
 * there is none, or too much. */
stint_status sti_load_data_read(const char *path, bool texts, sti_load_data *data_out);
void sti_load_data_fini(sti_load_data *data); /* a zeroed one is fine */

/* The body of request `number`, in the place of what is in out: of texts prompt number
 * `number` (they come round), for `size` tokens; of images the next `size` ones. *head
 * _bytes_out: of the JSON before binary data, 0 of texts. */
void sti_load_data_body(const sti_load_data *data, int64_t number, int size,
                        sti_text *out, size_t *head_bytes_out);

#endif
