#include "trust/same_task.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"

stint_status sti_check_same_task(const stint_model_file *a, const char *name_a,
                                 const stint_model_file *b, const char *path)
{
    const sti_network_desc *m = &a->network, *n = &b->network;
    if (m->model.classes != n->model.classes)
        return sti_fail(STINT_E_INPUT,
                        "%s tells %" PRId64 " classes apart, %s %" PRId64, path,
                        n->model.classes, name_a, m->model.classes);
    for (int64_t c = 0; c < m->model.classes; c++)
        if (strcmp(a->class_names[c], b->class_names[c]) != 0)
            return sti_fail(STINT_E_INPUT, "%s: class %" PRId64 " is '%s', in %s '%s'",
                            path, c, b->class_names[c], name_a, a->class_names[c]);
    if (m->height != n->height || m->width != n->width || m->channels != n->channels)
        return sti_fail(STINT_E_INPUT,
                        "%s takes images of %" PRId64 "x%" PRId64 "x%" PRId64
                        ", %s of %" PRId64 "x%" PRId64 "x%" PRId64,
                        path, n->height, n->width, n->channels, name_a, m->height,
                        m->width, m->channels);
    return STINT_OK;
}
