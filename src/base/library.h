/* Shared libraries that a single capability needs, loaded when it is asked for, so that
 * all else runs without them and pays no memory for them. */
#ifndef STI_BASE_LIBRARY_H
#define STI_BASE_LIBRARY_H

#include "stint/status.h"

/* A function to look up; call_out: the address of a pointer to such a function. */
typedef struct sti_library_call {
    const char *name;
    void *call_out;
} sti_library_call;

/* Load `file` and look up its calls [count]. It stays loaded: its exit handlers must
 * find it where it was. STINT_E_UNSUPPORTED: not installed (`missing` is the sentence
 * that says so) or without one of the calls. */
stint_status sti_library_load(const char *file, const char *missing,
                              const sti_library_call *calls, int count);

#endif
