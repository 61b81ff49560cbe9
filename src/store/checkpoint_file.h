/* Checkpoints as files: what their tensors are called, how those of a network are
 * listed to be written and read back, and the files of a folder.
 *
 * A model file holds the network's parameters and states under their names. A pruned
 * one also has a mask a pruned tensor ("mask.<name>", bit i % 8 of byte i / 8 is 1
 * where element i is trained), and one with a weight that is a product its thin factors
 * ("product.left.<name>" [rows * rank], "product.right.<name>" [rank * columns]). A
 * checkpoint also has the optimiser's moments
 * ("optimizer.0.<name>"), the bounds of packed activations ("error.bounds"), the state
 * of the weights of a loss against a reference ("loss.state"), what compressed sums owe
 * ("net.residuals") and the position (store/position.h). Everything that a run's future
 * depends on is in that one file, written beside its place, synced and renamed. */
#ifndef STI_STORE_CHECKPOINT_FILE_H
#define STI_STORE_CHECKPOINT_FILE_H

#include "model/network.h"
#include "store/position.h"

#define STI_TENSOR_MASK     "mask."         /* and the name of a parameter */
#define STI_TENSOR_LEFT     "product.left." /* likewise; see above */
#define STI_TENSOR_RIGHT    "product.right."
#define STI_TENSOR_MOMENT_0 "optimizer.0."
#define STI_TENSOR_MOMENT_1 "optimizer.1."
#define STI_TENSOR_SHADOW_0 "shrink.0."
#define STI_TENSOR_SHADOW_1 "shrink.1."
#define STI_TENSOR_SHADOW_2 "shrink.2."
#define STI_TENSOR_AVERAGE  "average."
#define STI_TENSOR_SHAPES   "shrink.shapes"
#define STI_TENSOR_ERROR    "error.bounds"
#define STI_TENSOR_LOSS     "loss.state"
/* Residuals of all ranks, in the order of a result block; bits of layers. */
#define STI_TENSOR_RESIDUALS "net.residuals"
/* The same of older builds, in another order. */
#define STI_TENSOR_OLD_RESIDUALS "net.exchange"

/* ---- tensors ---- */

/* Rows of tensors where they lie in memory; names and rows are in the arena. */
typedef struct sti_tensor_list {
    sti_arena *arena; /* borrowed */
    sti_tensor_row *rows;
    int64_t count, capacity;
} sti_tensor_list;

/* Room for so many rows. STINT_E_MEMORY. */
stint_status sti_tensor_list_init(sti_tensor_list *list, sti_arena *arena,
                                  int64_t capacity);
void sti_tensor_list_add(sti_tensor_list *list, const sti_tensor_row *row);
/* One tensor of [count] elements of this type. */
void sti_tensor_list_add_vector(sti_tensor_list *list, const char *name,
                                sti_tensor_type type, int64_t count, size_t bytes,
                                const void *data);
/* Every parameter or state of a planned network, at its address in `block`, under its
 * name with a prefix; those that are held in bytes as vectors of bytes. */
stint_status sti_tensor_list_add_network(sti_tensor_list *list,
                                         const sti_network *network, sti_role role,
                                         const char *prefix, const void *block);
/* The tensors [first, end) into a hash. */
void sti_tensor_list_add_sha256(const sti_tensor_list *list, int64_t first, int64_t end,
                                sti_sha256 *state);
/* The file's tensor of a row's name, type and shape; STINT_E_INPUT: it has none. */
stint_status sti_tensor_list_find(const sti_tensor_list *list, int64_t i,
                                  const sti_tensor_file *file,
                                  const sti_tensor_row **have_out);
/* The file's tensor of that name and shape into the memory of row i. STINT_E_INPUT: it
 * has none. */
stint_status sti_tensor_list_read(const sti_tensor_list *list, int64_t i,
                                  const sti_tensor_file *file);

/* ---- files ---- */

enum { STI_CHECKPOINT_NAME_BYTES = 64 };

/* "step-00000000.safetensors" */
void sti_checkpoint_name(int64_t step, char name_out[STI_CHECKPOINT_NAME_BYTES]);
/* Files of checkpoints in a folder, oldest first; none when there is no folder. Names
 * are in the arena. */
stint_status sti_checkpoint_list(sti_arena *arena, const char *folder,
                                 char ***names_out, int64_t *count_out);
/* Remove all but `keep` of the files up to `newest`, which is there. One that cannot be
 * removed costs space, not correctness: it is logged. */
stint_status sti_checkpoint_remove_old(const char *folder, const char *newest,
                                       int64_t keep);

#endif
