/* Plug-ins of our own: what needs a library that the program itself does without (MPI,
 * CUDA) is a shared object beside it, loaded only where it is asked for. */
#ifndef STI_BASE_PLUGIN_H
#define STI_BASE_PLUGIN_H

#include <stdbool.h>

#include "base/memory.h"
#include "stint/status.h"

typedef struct sti_plugin_desc {
    const char *name;     /* "libstint_mpi.so" */
    const char *variable; /* of the environment, which may name another file */
    const char *symbol;   /* the object that it gives */
    bool shares;          /* its libraries look for each other's symbols */
} sti_plugin_desc;

/* The plug-in's object: of the file that the variable names, of that beside this
 * program, or where it was installed, or where the loader looks for libraries. NULL:
 * *path_out is what was tried (in the arena) and *why_out the loader's words, of this
 * thread until its next call. It stays loaded. */
void *sti_plugin_open(const sti_plugin_desc *desc, sti_arena *arena,
                      const char **path_out, const char **why_out);

/* An object of libstint_cuda.so, which begins with an int that says its version, for
 * who was asked to use a CUDA device. STINT_E_UNSUPPORTED: there is no such plug-in, or
 * one of another version. */
stint_status sti_plugin_open_cuda(const char *symbol, int version,
                                  const void **object_out);

#endif
