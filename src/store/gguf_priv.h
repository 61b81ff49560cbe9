/* Within the room: what an open GGUF file is made of. */
#ifndef STI_STORE_GGUF_PRIV_H
#define STI_STORE_GGUF_PRIV_H

#include "base/memory.h"
#include "store/gguf_file.h"

typedef struct gguf_value {
    const char *key; /* NUL-terminated copy */
    uint32_t type, item;
    int64_t count;
    const uint8_t *at; /* in the head */
} gguf_value;

struct sti_gguf {
    sti_arena *arena;
    const char *path;
    int fd;
    int64_t bytes; /* of the file */
    uint8_t *head;
    size_t head_bytes;
    gguf_value *value;
    int64_t values;
    sti_gguf_tensor *tensor;
    int64_t tensors, data; /* data: where the tensors' bytes begin */
    sti_gguf **part;       /* [parts]: the other files of the model */
    int64_t parts;
};

/* One file alone, whatever it says of others; as sti_gguf_open. */
stint_status sti_gguf_open_one(const char *path, sti_gguf **file_out);
/* The tensors by name. STINT_E_INPUT: two of one name. */
stint_status sti_gguf_sort_names(sti_gguf *file);

#endif
