#include "svm/svm_device.h"

#include "base/fail.h"
#include "base/plugin.h"

static stint_status load(sti_arena *arena, const sti_kernel_tile_plugin **device_out)
{
    static const sti_plugin_desc desc = {.name = "libstint_cuda.so",
                                         .variable = "STINT_CUDA_PLUGIN",
                                         .symbol = "stint_kernel_tiles"};
    const char *path, *why;
    const sti_kernel_tile_plugin *device = sti_plugin_open(&desc, arena, &path, &why);
    if (!device)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "--device cuda: %s cannot be used (%s); it is built where nvcc "
                        "is; --device cpu gives the same bits",
                        path, why);
    if (device->version != STI_KERNEL_TILE_PLUGIN)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s is of another version of Stint (%d, this one wants %d)",
                        path, device->version, STI_KERNEL_TILE_PLUGIN);
    *device_out = device;
    return STINT_OK;
}

stint_status sti_svm_device_open(const sti_kernel_tile_plugin **device_out)
{
    const sti_kernel_tile_plugin *device = NULL;
    sti_arena *arena = sti_arena_create("svm.plugin");
    stint_status st = arena ? load(arena, &device) : STINT_E_MEMORY;
    sti_arena_destroy(arena);
    if (st != STINT_OK)
        return st;
    if (device->devices() == 0)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "--device cuda: this machine has no CUDA device that can be "
                        "used; --device cpu gives the same bits");
    const char *error = device->begin();
    if (error)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "--device cuda: %s; --device cpu gives the same bits", error);
    *device_out = device;
    return STINT_OK;
}

stint_status sti_svm_device_check(const char *error)
{
    return error ? sti_fail(STINT_E_IO,
                            "the CUDA device failed: %s; no model was "
                            "written; --device cpu gives the same bits",
                            error)
                 : STINT_OK;
}
