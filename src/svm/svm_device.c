#include "svm/svm_device.h"

#include "base/fail.h"
#include "base/plugin.h"

stint_status sti_svm_device_open(const sti_kernel_tile_plugin **device_out)
{
    const void *object = NULL;
    const stint_status st =
        sti_plugin_open_cuda("stint_kernel_tiles", STI_KERNEL_TILE_PLUGIN, &object);
    if (st != STINT_OK)
        return st;
    const sti_kernel_tile_plugin *device = object;
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
