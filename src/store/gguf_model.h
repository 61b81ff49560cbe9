/* A text model in a GGUF file: its sizes, its tokeniser, its weights under our names.
 *
 * Read are the architectures llama (Mistral's and SmolLM's models are of it), qwen2,
 * qwen3 and gpt2. Rows of queries and keys of a llama lie there with the two halves of
 * a head in turns; they are put back in our order as they are read. */
#ifndef STI_STORE_GGUF_MODEL_H
#define STI_STORE_GGUF_MODEL_H

#include "model/decoder.h"
#include "stint/text.h"
#include "store/gguf_file.h"
#include "store/hf_config.h"

/* Sizes of the model. STINT_E_UNSUPPORTED: another architecture, or a variant that our
 * graph does not compute (which key); STINT_E_INPUT: a key that is missing or no size.
 */
stint_status sti_gguf_config(const sti_gguf *file, sti_hf_config *config_out);
/* STINT_E_UNSUPPORTED: a tensor that nothing here reads, so that the network is another
 * one than that of `depth` blocks. */
stint_status sti_gguf_check_names(const sti_gguf *file, int64_t depth);

/* The tokeniser; the caller closes it. STINT_E_UNSUPPORTED: none, or of a kind that is
 * not known here. */
stint_status sti_gguf_tokenizer(const sti_gguf *file, stint_tokenizer **tokenizer_out);

/* Tensors by our names; file and config must outlive it. */
typedef struct sti_gguf_weights {
    const sti_gguf *file;
    const sti_hf_config *config;
} sti_gguf_weights;
sti_weight_source sti_gguf_source(sti_gguf_weights *weights);

/* The name of (a part of) a parameter of ours in such a file: part 0, 1, 2 are queries,
 * keys and values of a llama. False: it has none. */
bool sti_gguf_name(bool llama, const char *ours, int part, char *out, size_t out_bytes);
/* Row of a head of `size` rows, in the order of GGUF, that is row `ours`: its halves
 * lie in turns. */
static inline int64_t sti_gguf_turned_row(int64_t ours, int64_t size)
{
    return ours < size / 2 ? 2 * ours : 2 * (ours - size / 2) + 1;
}

#endif
