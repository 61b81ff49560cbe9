/* Networks that other programs made: as a model file, and run.
 *
 * The file is safetensors. Its metadata say stint.kind "network" and hold the graph as
 * text (exchange_text.h); its tensors are the weights, in the order that the run reads
 * them in. It has no recipe: none describes it.
 *
 * Weights are read where they lie in the file, which stays mapped as long as the
 * network is open, but for those that do not lie at a multiple of 64 bytes, and for
 * those that passes compute others from. */
#ifndef STI_EXCHANGE_IMPORTED_H
#define STI_EXCHANGE_IMPORTED_H

#include "base/file_map.h"
#include "base/team.h"
#include "exchange/image_form.h"
#include "exchange/lower.h"
#include "exec/exec.h"
#include "store/safetensors.h"

#define STI_IMPORTED_KIND    "network"
#define STI_IMPORTED_NETWORK "stint.network"

/* Write what is left of a lowered network, and how it takes pictures. Tensors that hold
 * NaN or infinities are told of in a warning. */
stint_status sti_imported_write(const sti_exchange_graph *kept,
                                const sti_image_form *images, const char *path);

/* A tensor as a row of such a file, whose name and numbers are the tensor's. */
sti_tensor_row sti_imported_row(const sti_exchange_tensor *tensor);

/* Is it such a file? False for whatever cannot be read, too. */
bool sti_imported_is(const char *path);

/* Is it one, or the folder of a run whose model is one? */
bool sti_imported_is_model(const char *path);

typedef struct sti_imported {
    char *path;
    sti_exchange_graph *source; /* as the text says it */
    sti_file_map *map;          /* of the file; NULL: it has no tensors */
    void **blocks; /* numbers of tensors that are copied, [source->tensors]; or NULL */
    size_t mapped_bytes; /* of the file's pages that a run reads; once it is built */
    char weights_sha256[65];
    sti_image_form images;
    size_t read_bytes;  /* most of the file's that were resident at once in opening */
    stint_graph *graph; /* lowered for use, through the passes */
    sti_lowered lowered;
    int64_t transposes; /* nodes of the graph that move axes */
    sti_plan *plan;
    sti_exec *exec;
    void *region[STI_REGIONS];
    int threads;
} sti_imported;

/* Read and verify, with its tensors; nothing is built. STINT_E_INPUT,
 * STINT_E_UNSUPPORTED, STINT_E_IO, STINT_E_MEMORY. */
stint_status sti_imported_read(const char *path, sti_imported **m_out);
/* Read, verify and build it for use. STINT_E_INPUT, STINT_E_UNSUPPORTED, STINT_E_IO,
 * STINT_E_MEMORY. */
stint_status sti_imported_open(const char *path, sti_imported **m_out);
void sti_imported_close(sti_imported *m); /* NULL is fine */

/* For many runs, before it is planned: what depends on weights alone (transformed
 * filters, packed panels) is made once, in sti_imported_begin, or (false, as at first)
 * in every run. Bits stay. */
void sti_imported_keep(sti_imported *m, bool keep);
/* Fix where every byte of a run lies, for a team of so many threads; again: anew,
 * before the memory is taken. */
stint_status sti_imported_plan(sti_imported *m, int threads);
/* Bytes of all that a run works in but the weights, which are in m->mapped_bytes and
 * among what is allocated. */
size_t sti_imported_work_bytes(const sti_imported *m);
/* Take the memory. Inputs may be filled from here on. */
stint_status sti_imported_begin(sti_imported *m);
/* Memory of a port's value, in the type that the graph has it in. */
void *sti_imported_data(const sti_imported *m, const sti_lowered_port *port);
void sti_imported_run(sti_imported *m, const sti_team *team);
/* The same, adding each node's time to ns_total [nodes of m->plan->graph]. */
void sti_imported_run_timed(sti_imported *m, const sti_team *team, int64_t *ns_total);

#endif
