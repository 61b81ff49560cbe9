/* Inside the data room: the file of ranks.
 *
 *     "stint clicks 2\n\n"                16 bytes
 *     key, sha256                         64 hex digits each
 *     samples, train, rows, ids' bytes    u64 each
 *     dense, fields, slots, CRC-32C       u32 each; of all of the head but itself
 *     fields                              name 48 bytes, slots, first, other u32, 4
 * bytes of zeros, ids u64 samples                             label f32, dense f32,
 * ranks u32 counts                              u32 a rank ids a rank: field u16
 * (65535: it is some field's `other`), length u16, bytes
 *
 * Integers are stored lowest byte first. sha256 is that of all behind the fields, which
 * is cut into blocks with a sum behind each (clicks_blocks.h); files of version 1,
 * which have none, are read, too. */
#ifndef STI_DATA_CLICKS_FILE_H
#define STI_DATA_CLICKS_FILE_H

#include "data/clicks_blocks.h"

#define STI_CLICKS_MAGIC       "stint clicks 2\n\n"
#define STI_CLICKS_MAGIC_1     "stint clicks 1\n\n"
#define STI_CLICKS_MAGIC_BYTES 16
#define STI_CLICKS_HEAD_BYTES  (16 + 128 + 32 + 16)
#define STI_CLICKS_FIELD_BYTES (48 + 16 + 8)
#define STI_CLICKS_OTHER       UINT16_MAX

/* Offsets and sizes that follow from the counts. */
void sti_clicks_place(sti_clicks *clicks);
/* The head and the fields as bytes; *bytes_out, the caller frees. STINT_E_MEMORY. */
stint_status sti_clicks_head(const sti_clicks *clicks, uint8_t **head_out,
                             size_t *bytes_out);

#endif
