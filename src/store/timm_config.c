/* config.json of timm. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "store/model_file.h"
#include "store/timm_folder.h"

enum { SIDE_MAX = 4096, CLASSES_MAX = 1 << 20 };

static const char *const names[][2] = {{"resnet18", "resnet18"},
                                       {"resnet34", "resnet34"},
                                       {"resnet50", "resnet50"},
                                       {"mobilenetv2_100", "mobilenetv2"}};

static stint_status find_network(const json_t *root, const char *where,
                                 sti_timm_config *c)
{
    const char *theirs = json_string_value(json_object_get(root, "architecture"));
    if (!theirs)
        return sti_fail(STINT_E_INPUT, "%s: names no \"architecture\"", where);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], theirs) == 0)
            c->network = names[i][1];
    if (c->network)
        return STINT_OK;
    return sti_fail(STINT_E_UNSUPPORTED,
                    "%s: of timm's networks resnet18, resnet34, resnet50 and "
                    "mobilenetv2_100 are read; this is '%.60s'",
                    where, theirs);
}

/* What a key says, in the part that tells how the weights were made, or beside it. */
static const json_t *fact(const json_t *root, const char *key)
{
    const json_t *in = json_object_get(json_object_get(root, "pretrained_cfg"), key);
    return in ? in : json_object_get(root, key);
}

/* Three whole numbers: channels, height, width. */
static stint_status read_size(const json_t *root, const char *where, sti_timm_config *c)
{
    const json_t *size = fact(root, "input_size");
    int64_t n[3] = {3, 224, 224};
    for (size_t i = 0; size && i < 3; i++)
        n[i] = json_integer_value(json_array_get(size, i));
    c->channels = n[0];
    c->height = n[1];
    c->width = n[2];
    if ((n[0] == 1 || n[0] == 3) && n[1] >= 1 && n[1] <= SIDE_MAX && n[2] >= 1 &&
        n[2] <= SIDE_MAX)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "%s: \"input_size\" is not [channels, height, width] with 1 or 3 "
                    "channels and up to %d pixels",
                    where, (int)SIDE_MAX);
}

static void read_three(const json_t *list, int64_t channels, const float *usual,
                       float *out)
{
    for (int64_t i = 0; i < channels; i++)
        out[i] =
            list ? (float)json_number_value(json_array_get(list, (size_t)i)) : usual[i];
}

static stint_status read_norm(const json_t *root, const char *where, sti_timm_config *c)
{
    static const float mean[] = {0.485f, 0.456f, 0.406f};
    static const float deviation[] = {0.229f, 0.224f, 0.225f};
    read_three(fact(root, "mean"), c->channels, mean, c->norm.mean);
    read_three(fact(root, "std"), c->channels, deviation, c->norm.deviation);
    const char *fault = sti_norm_fault(&c->norm, c->channels);
    if (!fault)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "%s: with its \"mean\" and \"std\" a normalised pixel is no finite "
                    "number (%s)",
                    where, fault);
}

/* Names that are given must be as many as there are classes. */
static stint_status read_classes(const json_t *root, const char *where,
                                 sti_timm_config *c)
{
    const json_t *count = json_object_get(root, "num_classes");
    const json_t *given = fact(root, "label_names");
    sti_json j = {.out = &c->names};
    c->classes = json_integer_value(count ? count : fact(root, "num_classes"));
    if (c->classes < 2 || c->classes > CLASSES_MAX)
        return sti_fail(STINT_E_INPUT, "%s: \"num_classes\" must be 2 to %d", where,
                        (int)CLASSES_MAX);
    if (given && json_array_size(given) != (size_t)c->classes)
        return sti_fail(STINT_E_INPUT, "%s: %zu \"label_names\" for %d classes", where,
                        json_array_size(given), (int)c->classes);
    sti_json_begin_array(&j, NULL);
    for (int64_t i = 0; i < c->classes; i++) {
        char number[32];
        const char *name =
            given ? json_string_value(json_array_get(given, (size_t)i)) : number;
        snprintf(number, sizeof number, "%d", (int)i);
        if (!name)
            return sti_fail(STINT_E_INPUT, "%s: \"label_names\": a class has no name",
                            where);
        sti_json_text(&j, NULL, name);
    }
    sti_json_end_array(&j);
    return c->names.failed ? STINT_E_MEMORY : STINT_OK;
}

stint_status sti_timm_config_parse(const char *json, size_t n_bytes, const char *where,
                                   sti_timm_config *config_out)
{
    json_error_t error;
    json_t *root = json_loadb(json, n_bytes, JSON_REJECT_DUPLICATES, &error);
    sti_timm_config c = {.network = NULL};
    stint_status st;
    if (!root)
        return sti_fail(STINT_E_INPUT, "%s: line %d: %s; take another copy", where,
                        error.line, error.text);
    STI_TRY(find_network(root, where, &c));
    STI_TRY(read_size(root, where, &c));
    STI_TRY(read_norm(root, where, &c));
    STI_TRY(read_classes(root, where, &c));
    *config_out = c;
    c = (sti_timm_config){.network = NULL};
out:
    sti_timm_config_fini(&c);
    json_decref(root);
    return st;
}

void sti_timm_config_fini(sti_timm_config *config)
{
    sti_text_fini(&config->names);
}
