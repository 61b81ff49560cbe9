/* Building the index of a dataset: classes and samples arrive in the order of a folder
 * or an archive and leave in the one order that every machine agrees on. */
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "data/data_priv.h"

bool sti_data_image_name(const char *name)
{
    return sti_image_kind_of_name(name) >= 0;
}

stint_status sti_index_init(sti_index *index, sti_data_sink *sink)
{
    *index = (sti_index){.sink = sink, .arena = sti_arena_create("data.names")};
    return index->arena ? STINT_OK : STINT_E_MEMORY;
}

void sti_index_fini(sti_index *index)
{
    sti_arena_destroy(index->arena);
    sti_free(index->entries);
    sti_free(index->classes);
    sti_free(index->class_counts);
    sti_free(index->slots);
    *index = (sti_index){0};
}

static stint_status grow_classes(sti_index *index)
{
    if (index->class_count < index->class_capacity)
        return STINT_OK;
    if (index->class_count >= INT32_MAX / 4)
        return sti_fail(STINT_E_INPUT, "data: more than %d classes", INT32_MAX / 4);
    int32_t more = index->class_capacity ? 2 * index->class_capacity : 64;
    const char **names =
        sti_realloc(index->classes, (size_t)more * sizeof *names, "data.classes");
    if (!names)
        return STINT_E_MEMORY;
    index->classes = names;
    int64_t *counts =
        sti_realloc(index->class_counts, (size_t)more * sizeof *counts, "data.classes");
    if (!counts)
        return STINT_E_MEMORY;
    index->class_counts = counts;
    index->class_capacity = more;
    return STINT_OK;
}

/* The slot of a name: of its class, or the free one where that would be. */
static int32_t slot_of(const sti_index *index, const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (const char *at = name; *at; at++)
        h = (h ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
    const uint64_t mask = (uint64_t)index->slot_count - 1;
    int32_t slot = (int32_t)((h ^ h >> 32) & mask);
    while (index->slots[slot] != 0 &&
           strcmp(index->classes[index->slots[slot] - 1], name) != 0)
        slot = (int32_t)(((uint64_t)slot + 1) & mask);
    return slot;
}

/* Room for one more class among the slots, half of which stay free. */
static stint_status grow_slots(sti_index *index)
{
    if (2 * (index->class_count + 1) <= index->slot_count)
        return STINT_OK;
    const int32_t more = index->slot_count ? 2 * index->slot_count : 128;
    int32_t *slots = sti_alloc_array(more, sizeof *slots, "data.classes");
    if (!slots)
        return STINT_E_MEMORY;
    sti_free(index->slots);
    index->slots = slots;
    index->slot_count = more;
    for (int32_t i = 0; i < index->class_count; i++)
        slots[slot_of(index, index->classes[i])] = i + 1;
    return STINT_OK;
}

stint_status sti_index_class(sti_index *index, const char *name, int32_t *class_out)
{
    /* Samples of a class mostly come together. */
    int32_t last = index->last_class;
    if (last < index->class_count && strcmp(index->classes[last], name) == 0) {
        *class_out = last;
        return STINT_OK;
    }
    stint_status st = grow_slots(index);
    if (st != STINT_OK)
        return st;
    const int32_t slot = slot_of(index, name);
    if (index->slots[slot] != 0) {
        *class_out = index->last_class = index->slots[slot] - 1;
        return STINT_OK;
    }
    st = grow_classes(index);
    if (st != STINT_OK)
        return st;
    char *copy = sti_arena_strdup(index->arena, name);
    if (!copy)
        return STINT_E_MEMORY;
    index->classes[index->class_count] = copy;
    index->class_counts[index->class_count] = 0;
    index->slots[slot] = index->class_count + 1;
    *class_out = index->last_class = index->class_count++;
    return STINT_OK;
}

stint_status sti_index_add(sti_index *index, int32_t class_index, const char *name,
                           int64_t where, int64_t bytes)
{
    if (bytes < 0 || bytes > STI_DATA_MAX_FILE)
        return sti_fail(STINT_E_INPUT, "data: %s is too large for an image",
                        name ? name : "a record");
    if (index->count >= INT32_MAX)
        return sti_fail(STINT_E_INPUT, "data: more than %d samples", INT32_MAX);
    if (index->count == index->capacity) {
        int64_t more = index->capacity ? 2 * index->capacity : 1024;
        sti_index_entry *entries =
            sti_realloc(index->entries, (size_t)more * sizeof *entries, "data.index");
        if (!entries)
            return STINT_E_MEMORY;
        index->entries = entries;
        index->capacity = more;
    }
    const char *copy = NULL;
    if (name && !(copy = sti_arena_strdup(index->arena, name)))
        return STINT_E_MEMORY;
    index->entries[index->count++] = (sti_index_entry){
        .name = copy, .where = where, .bytes = (uint32_t)bytes, .label = class_index};
    index->class_counts[class_index]++;
    return STINT_OK;
}

static int compare_names(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

static int compare_entries(const void *a, const void *b)
{
    const sti_index_entry *x = a, *y = b;
    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    int order = x->name && y->name ? strcmp(x->name, y->name) : 0;
    return order ? order : (x->where > y->where) - (x->where < y->where);
}

/* The class of a name in the order found; -1: none. */
static int32_t find_class(const sti_index *index, const char *name)
{
    return index->slot_count > 0 ? index->slots[slot_of(index, name)] - 1 : -1;
}

/* *number_out [index->class_count]: where each class is among `names`, or -1. */
static stint_status number_names(const sti_index *index, const char *const *names,
                                 int32_t count, int32_t **number_out)
{
    int32_t *number =
        sti_alloc_array(index->class_count, sizeof *number, "data.classes");
    if (!number)
        return STINT_E_MEMORY;
    for (int32_t i = 0; i < index->class_count; i++)
        number[i] = -1;
    for (int32_t i = count - 1; i >= 0; i--) { /* of names that are equal, the first */
        const int32_t class_index = find_class(index, names[i]);
        if (class_index >= 0)
            number[class_index] = i;
    }
    *number_out = number;
    return STINT_OK;
}

/* A class of which names gave this split no image. */
static stint_status check_named_class(const sti_index *index, const stint_data *data,
                                      const char *name)
{
    if (data->split == STINT_DATA_TEST)
        return sti_data_find(index->sink, STI_FIND_SPLIT,
                             "%s: class '%s' is in the training split only: it has too "
                             "few images for a share of %s to give the test split one",
                             data->info.path, name, sti_float_text(data->share));
    return sti_data_find(
        index->sink, STI_FIND_EMPTY_CLASS,
        "%s: class '%s' is in the test split only, by the names of its "
        "few images; add some, or keep a smaller share than %s "
        "(`validation` in [data])",
        data->info.path, name, sti_float_text(data->share));
}

/* Every class needs a sample; an empty one could only be learned never to occur. */
static stint_status check_empty(const sti_index *index, const stint_data *data,
                                const char *what)
{
    stint_status st = STINT_OK;
    for (int32_t i = 0; i < index->class_count && st == STINT_OK; i++)
        if (index->class_counts[i] == 0 && index->by_names)
            st = check_named_class(index, data, index->classes[i]);
        else if (index->class_counts[i] == 0)
            st = sti_data_find(
                index->sink, STI_FIND_EMPTY_CLASS,
                "%s: class '%s' has no images; add some .jpg or .png files, or "
                "remove the folder%s",
                what, index->classes[i],
                index->passed_folders ? "; where they lie in folders within it, "
                                        "data.nested = true takes them"
                                      : "");
    return st;
}

/* *same_out: every class has a number in `like`. */
static stint_status check_like(const sti_index *index, const stint_data_info *like,
                               bool partial, const char *what, bool *same_out)
{
    int32_t *number = NULL;
    stint_status st = number_names(index, like->class_names, like->classes, &number);
    *same_out = true;
    for (int32_t i = 0; i < index->class_count && st == STINT_OK; i++) {
        if (number[i] >= 0 || (partial && index->class_counts[i] == 0))
            continue;
        *same_out = false;
        st = sti_data_find(index->sink, STI_FIND_CLASSES_DIFFER,
                           "%s: class '%s' is not one of the %d training classes; both "
                           "splits need the same classes",
                           what, index->classes[i], like->classes);
    }
    /* IDX and CIFAR hold numbers only: a test set may lack one of them. */
    const bool all = !index->ordered && !partial;
    for (int32_t i = 0; i < like->classes && st == STINT_OK && all; i++) {
        if (find_class(index, like->class_names[i]) >= 0)
            continue;
        *same_out = false;
        st = sti_data_find(
            index->sink, STI_FIND_CLASSES_DIFFER,
            "%s: the training class '%s' is missing; both splits need the "
            "same classes",
            what, like->class_names[i]);
    }
    sti_free(number);
    return st;
}

/* Is there anything, and of the right classes? *same_out as in check_like. */
static stint_status check_classes(const sti_index *index, const stint_data *data,
                                  const stint_data_info *like, const char *what,
                                  bool *same_out)
{
    stint_status st = STINT_OK;
    *same_out = true;
    if (data->partial && index->count == 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: there are folders of classes, but no images in any; add "
                        "some .jpg or .png files",
                        what);
    if (!data->partial)
        st = check_empty(index, data, what);
    if (st == STINT_OK && like)
        st = check_like(index, like, data->partial, what, same_out);
    return st;
}

/* Final class names into the dataset and entry labels renumbered to match them. */
static stint_status number_classes(sti_index *index, stint_data *data,
                                   const stint_data_info *like)
{
    int32_t count = like ? like->classes : index->class_count;
    const char **names =
        sti_arena_alloc(data->arena, (size_t)count * sizeof *names + 1);
    if (!names)
        return STINT_E_MEMORY;
    for (int32_t i = 0; i < count; i++) {
        names[i] = sti_arena_strdup(data->arena,
                                    like ? like->class_names[i] : index->classes[i]);
        if (!names[i])
            return STINT_E_MEMORY;
    }
    if (!like && !index->ordered && count > 0)
        qsort(names, (size_t)count, sizeof *names, compare_names);
    int32_t *number = NULL;
    const stint_status st = number_names(index, names, count, &number);
    if (st != STINT_OK)
        return st;
    for (int64_t i = 0; i < index->count; i++)
        index->entries[i].label = number[index->entries[i].label];
    sti_free(number);
    data->info.class_names = names;
    data->info.classes = count;
    return STINT_OK;
}

static stint_status check_duplicates(const sti_index *index, const stint_data *data,
                                     const char *what)
{
    stint_status st = STINT_OK;
    for (int64_t i = 1; i < index->count && st == STINT_OK; i++) {
        const sti_index_entry *a = &index->entries[i - 1], *b = &index->entries[i];
        if (a->label == b->label && a->name && strcmp(a->name, b->name) == 0)
            st = sti_data_find(
                index->sink, STI_FIND_DUPLICATE,
                "%s: %s/%s is there twice; which one counts is not clear, "
                "remove one",
                what, data->info.class_names[b->label], b->name);
    }
    return st;
}

/* Image folders find a file by its name: all of them in one block,
 * without the classes. */
static stint_status store_names(sti_index *index, stint_data *data)
{
    size_t bytes = 0;
    for (int64_t i = 0; i < index->count; i++)
        bytes += strlen(index->entries[i].name) + 1;
    data->names = sti_alloc(bytes, "data.names");
    if (!data->names)
        return STINT_E_MEMORY;
    data->names_bytes = bytes;
    size_t at = 0;
    for (int64_t i = 0; i < index->count; i++) {
        size_t length = strlen(index->entries[i].name) + 1;
        memcpy(data->names + at, index->entries[i].name, length);
        index->entries[i].where = (int64_t)at;
        at += length;
    }
    return STINT_OK;
}

static stint_status store_samples(const sti_index *index, stint_data *data)
{
    data->samples = sti_alloc_array(index->count, sizeof *data->samples, "data.index");
    if (!data->samples)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < index->count; i++) {
        const sti_index_entry *entry = &index->entries[i];
        data->samples[i] = (sti_data_sample){
            .where = entry->where, .bytes = entry->bytes, .label = entry->label};
        if (entry->bytes > data->max_file_bytes)
            data->max_file_bytes = entry->bytes;
    }
    data->info.count = index->count;
    return STINT_OK;
}

stint_status sti_index_finish(sti_index *index, stint_data *data,
                              const stint_data_info *like, const char *what)
{
    bool same = true;
    stint_status st = STINT_OK;
    if (index->count == 0 && index->class_count == 0) {
        st = sti_data_find(index->sink, STI_FIND_NO_SPLIT,
                           "%s: no images; wanted %s/<class>/*.jpg or *.png", what,
                           data->split_name ? data->split_name
                                            : sti_data_split_name(data->split));
        if (st != STINT_OK)
            return st;
    }
    if (index->by_names && index->count == 0) {
        st = sti_data_find(
            index->sink, STI_FIND_NO_SPLIT,
            "%s: none of the images is in the %s split at a share of %s; "
            "set `validation` in [data], or sort the images into train/ "
            "and test/",
            what, sti_data_split_name(data->split), sti_float_text(data->share));
        if (st != STINT_OK)
            return st;
    }
    if ((st = check_classes(index, data, like, what, &same)) != STINT_OK)
        return st;
    /* Where a sink let differing classes pass, the split keeps its own numbering. */
    if ((st = number_classes(index, data, same ? like : NULL)) != STINT_OK)
        return st;
    if (index->count > 1)
        qsort(index->entries, (size_t)index->count, sizeof *index->entries,
              compare_entries);
    if ((st = check_duplicates(index, data, what)) != STINT_OK)
        return st;
    if (data->source->finds_by_name && (st = store_names(index, data)) != STINT_OK)
        return st;
    return store_samples(index, data);
}
