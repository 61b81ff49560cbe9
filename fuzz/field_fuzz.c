/* Any bytes as a model file of a field, and as weights of PyTorch's: refused, or a
 * field that answers. */
#include "fuzz_folder.h"
#include "stint/field.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Its values and gradients at four points, where it is small. */
static void ask_field(const char *path, const char *out)
{
    const stint_field_ask ask = {.order = 1, .threads = 1};
    const stint_field_points grid = {.width = 2, .height = 2};
    stint_field_eval_result result = {.points = 0};
    stint_model_file *model = NULL;
    stint_model_facts facts;
    if (stint_model_open(path, &model) != STINT_OK)
        return;
    stint_model_describe(model, &facts);
    if (facts.parameters < 1 << 16 && facts.field.coordinates == 2)
        (void)stint_field_eval(model, &ask, &grid, out, &result);
    stint_field_plan_fini(&result.plan);
    stint_model_close(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const stint_field_import_desc desc = {.omega = 30};
    fuzz_begin();
    fuzz_put("in", data, size);
    const char *in = fuzz_files[fuzz_file_count - 1];
    fuzz_put("model", data, 0);
    const char *model = fuzz_files[fuzz_file_count - 1];
    fuzz_put("out", data, 0);
    const char *out = fuzz_files[fuzz_file_count - 1];
    ask_field(in, out);
    if (stint_field_import(in, &desc, model) == STINT_OK)
        ask_field(model, out);
    return 0;
}
