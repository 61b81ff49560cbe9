/* A text model written as a GGUF file. */
#ifndef STI_STORE_GGUF_WRITE_H
#define STI_STORE_GGUF_WRITE_H

#include "store/text_model_file.h"

typedef struct sti_gguf_written {
    int64_t tensors, blocks; /* of these, tensors in blocks */
    bool tokenizer; /* false: there is none, or of a kind that the format lacks */
    size_t bytes;   /* of the file */
} sti_gguf_written;

/* Matrices are written as `type`, one that can be written; those whose rows are no
 * whole blocks as F16, vectors and positions as F32. A parameter is held in memory at a
 * time. STINT_E_UNSUPPORTED: what the format cannot say of this model; STINT_E_IO;
 * STINT_E_MEMORY. */
stint_status sti_gguf_write(const stint_text_model *model, const sti_gguf_type *type,
                            const char *path, sti_gguf_written *written_out);

/* The keys of a tokeniser, added to `out`; how many. 0, and nothing added: the format
 * has no such kind. */
int64_t sti_gguf_put_tokenizer(const stint_tokenizer *tokenizer, int64_t end_token,
                               sti_text *out);

/* ---- values, in the order of bytes of the format ---- */

void sti_gguf_put_u32(sti_text *out, uint32_t value);
void sti_gguf_put_u64(sti_text *out, uint64_t value);
void sti_gguf_put_bytes(sti_text *out, const char *bytes, size_t n_bytes);
void sti_gguf_put_key_u32(sti_text *out, const char *key, uint32_t value);
void sti_gguf_put_key_f32(sti_text *out, const char *key, float value);
void sti_gguf_put_key_bool(sti_text *out, const char *key, bool value);
void sti_gguf_put_key_text(sti_text *out, const char *key, const char *text);
/* The head of an array of `count` values of a type: f32 6, i32 5, text 8. */
void sti_gguf_put_key_array(sti_text *out, const char *key, uint32_t type,
                            int64_t count);
void sti_gguf_put_f32(sti_text *out, float value);

#endif
