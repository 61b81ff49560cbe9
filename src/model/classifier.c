#include "model/classifier.h"

#include <string.h>

stint_status sti_classifier_init(const sti_network_desc *desc,
                                 sti_classifier *classifier)
{
    sti_network_desc more = *desc;
    more.model.classes++;
    return sti_network_build(&more, STINT_EVAL, 1, &classifier->other);
}

void sti_classifier_fini(sti_classifier *classifier)
{
    sti_network_fini(&classifier->other);
}

static const sti_value_row *find_parameter(const stint_graph *graph, const char *name)
{
    for (int32_t v = 0; v < sti_graph_value_count(graph); v++) {
        const sti_value_row *row = sti_graph_value(graph, v);
        if (row->role == STI_ROLE_PARAM && strcmp(row->name, name) == 0)
            return row;
    }
    return NULL;
}

bool sti_classifier_has(const sti_classifier *classifier, const sti_value_row *value)
{
    const sti_value_row *other = find_parameter(classifier->other.graph, value->name);
    return other && !sti_shape_equal(&other->shape, &value->shape);
}
