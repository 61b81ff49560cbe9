#include "store/field_facts.h"

#include "base/fail.h"
#include "model/network_recipe.h"
#include "store/model_meta.h"

stint_status sti_field_facts_read(const sti_tensor_file *file,
                                  const stint_recipe *recipe,
                                  sti_network_desc *network_out)
{
    sti_field_names names;
    sti_network_desc network;
    stint_status st =
        sti_field_names_read(sti_tensor_file_text(file, STI_META_FIELD), &names);
    if (st == STINT_OK)
        st = sti_recipe_field_network(recipe, names.outputs, &network);
    if (st == STINT_OK && names.coordinates != network.names.coordinates)
        st = sti_fail(STINT_E_INPUT, "its coordinates are not those of its recipe");
    if (st != STINT_OK)
        return sti_fail_context(STINT_E_INPUT,
                                "%s: '" STI_META_FIELD "' in its metadata",
                                sti_tensor_file_path(file));
    network.names = names;
    *network_out = network;
    return STINT_OK;
}
