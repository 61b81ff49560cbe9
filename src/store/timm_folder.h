/* A folder in timm's layout: config.json with an "architecture", and model.safetensors
 * with PyTorch's names and orders. What is read becomes a model file of ours. */
#ifndef STI_STORE_TIMM_FOLDER_H
#define STI_STORE_TIMM_FOLDER_H

#include "base/text.h"
#include "data/data.h"
#include "stint/status.h"

typedef struct sti_timm_config {
    const char *network; /* ours: "resnet18", "resnet34", "resnet50", "mobilenetv2" */
    int64_t classes, height, width, channels;
    sti_data_norm norm;
    sti_text
        names; /* of the classes, a JSON array; "0", "1", ... where none are given */
} sti_timm_config;

/* The text of a config.json; `where` names it in messages. STINT_E_INPUT: it is no such
 * text; STINT_E_UNSUPPORTED: of an architecture that is not read. */
stint_status sti_timm_config_parse(const char *json, size_t n_bytes, const char *where,
                                   sti_timm_config *config_out);
void sti_timm_config_fini(sti_timm_config *config); /* a zeroed one is fine */

/* Is there a config.json that names an architecture? */
bool sti_timm_folder_is(const char *path);
stint_status sti_timm_folder_config(const char *path, sti_timm_config *config_out);

/* The folder's model as a file of ours, one tensor in memory at a time. STINT_E_INPUT:
 * a tensor is missing, of another shape, or holds what is no finite number. */
stint_status sti_timm_import(const char *folder, const char *path);

#endif
