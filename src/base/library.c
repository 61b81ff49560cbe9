#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

#include "base/fail.h"

stint_status sti_library_load(const char *file, const char *missing,
                              const sti_library_call *calls, int count)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return sti_fail(STINT_E_UNSUPPORTED, "%s", missing);
    for (int i = 0; i < count; i++) {
        void *symbol = dlsym(library, calls[i].name);
        if (!symbol)
            return sti_fail(STINT_E_UNSUPPORTED,
                            "%s lacks %s: another version of it is "
                            "wanted",
                            file, calls[i].name);
        /* ISO C has no cast from object to function pointer. */
        memcpy(calls[i].call_out, &symbol, sizeof symbol);
    }
    return STINT_OK;
}
