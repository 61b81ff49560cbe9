#include "solve/trsv_device.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/plugin.h"
#include "solve/trsv_priv.h"

struct sti_trsv_device {
    const sti_trsv_cuda_plugin *plugin;
    sti_trsv_cuda *triangle;
    int64_t n;
    size_t real;
    char *side; /* [n] where there are many columns */
};

static stint_status failed(const char *error)
{
    return error ? sti_fail(STINT_E_IO,
                            "the CUDA device failed: %s; --device cpu gives the same "
                            "bits",
                            error)
                 : STINT_OK;
}

stint_status sti_trsv_device_open(const sti_trsv_cuda_plugin **plugin_out)
{
    const void *object = NULL;
    const stint_status st =
        sti_plugin_open_cuda("stint_trsv_device", STI_TRSV_CUDA_PLUGIN, &object);
    if (st != STINT_OK)
        return st;
    const sti_trsv_cuda_plugin *plugin = object;
    if (plugin->devices() == 0)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "--device cuda: this machine has no CUDA device that can be "
                        "used; --device cpu gives the same bits");
    const char *error = plugin->begin();
    if (error)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "--device cuda: %s; --device cpu gives the same bits", error);
    *plugin_out = plugin;
    return STINT_OK;
}

/* The triangle as the CPU's natural order has it goes there; nothing of it stays. */
static stint_status put(sti_trsv_device *s, const sti_trsv_desc *d, sti_trsv *plan,
                        int64_t *levels_out)
{
    stint_status st;
    STI_TRY(sti_trsv_look_natural(plan));
    if (d->transpose)
        STI_TRY(sti_trsv_turn_natural(plan));
    STI_TRY(sti_trsv_find_levels(&plan->natural, &plan->order));
    *levels_out = plan->order.levels;
    st = failed(s->plugin->create(&plan->natural, d->single, &s->triangle));
out:
    return st;
}

stint_status sti_trsv_device_create(const sti_trsv_cuda_plugin *plugin,
                                    const sti_trsv_desc *desc, int64_t *levels_out,
                                    sti_trsv_device **device_out)
{
    sti_trsv_device *s = sti_alloc(sizeof *s, "trsv.device");
    sti_trsv *plan = sti_alloc(sizeof *plan, "trsv.plan");
    stint_status st = s && plan ? sti_trsv_check_shape(desc) : STINT_E_MEMORY;
    if (st == STINT_OK) {
        plan->d = *desc;
        s->plugin = plugin;
        s->n = desc->a->rows;
        s->real = sti_trsv_real_bytes(desc);
        if (desc->columns > 1)
            s->side = sti_alloc_array(s->n, s->real, "trsv.side");
        st = desc->columns > 1 && !s->side ? STINT_E_MEMORY : STINT_OK;
    }
    if (st == STINT_OK)
        st = put(s, desc, plan, levels_out);
    sti_trsv_destroy(plan);
    if (st == STINT_OK)
        *device_out = s;
    else
        sti_trsv_device_destroy(s);
    return st;
}

void sti_trsv_device_destroy(sti_trsv_device *device)
{
    if (!device)
        return;
    if (device->triangle)
        device->plugin->destroy(device->triangle);
    sti_free(device->side);
    sti_free(device);
}

stint_status sti_trsv_device_solve(sti_trsv_device *device, int64_t columns,
                                   const void *b, void *x)
{
    sti_trsv_device *s = device;
    const size_t real = s->real, row = real * (size_t)columns;
    stint_status st = STINT_OK;
    if (columns == 1)
        return failed(s->plugin->solve(s->triangle, b, x, NULL));
    for (size_t c = 0; st == STINT_OK && c < (size_t)columns; c++) {
        const char *from = (const char *)b + c * real;
        char *to = (char *)x + c * real;
        for (size_t i = 0; i < (size_t)s->n; i++)
            memcpy(s->side + i * real, from + i * row, real);
        st = failed(s->plugin->solve(s->triangle, s->side, s->side, NULL));
        for (size_t i = 0; i < (size_t)s->n; i++)
            memcpy(to + i * row, s->side + i * real, real);
    }
    return st;
}

size_t sti_trsv_device_bytes(const sti_trsv_desc *desc)
{
    return sti_trsv_most_bytes(desc);
}
