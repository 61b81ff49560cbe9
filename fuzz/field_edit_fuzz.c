/* Any bytes as the file of an edit, used on a field of two coordinates and one output:
 * refused, or a picture. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_folder.h"
#include "stint/field.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Weights of a field 2 -> 2 -> 1, as PyTorch keeps them. */
static const char weights[] =
    "{\"net.0.weight\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
    "\"net.0.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]},"
    "\"net.1.weight\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[24,32]},"
    "\"net.1.bias\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[32,36]}}";

static stint_model_file *make_field(void)
{
    const stint_field_import_desc desc = {.omega = 1};
    const float numbers[9] = {0.5f, -0.25f, 0.75f, 1, 0.125f, -0.5f, 0.5f, 1, 0};
    uint8_t file[8 + sizeof weights - 1 + sizeof numbers] = {(sizeof weights - 1) & 255,
                                                             (sizeof weights - 1) >> 8};
    stint_model_file *model = NULL;
    memcpy(file + 8, weights, sizeof weights - 1);
    memcpy(file + 8 + sizeof weights - 1, numbers, sizeof numbers);
    fuzz_begin();
    fuzz_put("weights", file, sizeof file);
    fuzz_put("model", file, 0);
    if (stint_field_import(fuzz_files[0], &desc, fuzz_files[1]) != STINT_OK ||
        stint_model_open(fuzz_files[1], &model) != STINT_OK)
        abort();
    return model;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static stint_model_file *field;
    if (!field)
        field = make_field();
    fuzz_begin();
    fuzz_put("in", data, size);
    fuzz_put("out.png", data, 0);
    (void)stint_field_edit_draw(field, fuzz_files[0], 3, 2, 1, fuzz_files[1]);
    return 0;
}
