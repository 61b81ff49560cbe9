/* Lists of files and labels: PATH/train.csv and PATH/test.csv, or PATH/labels.csv, of
 * which names decide what is the test split.
 *
 * A line is "file,label"; a first line that names its columns may put them anywhere. A
 * file is looked for from PATH on, then in the folder named as the split, then in every
 * folder of PATH. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/units.h"
#include "data/csv.h"
#include "data/data_priv.h"

#define LIST_BYTES_MAX ((size_t)1 << 28)
#define NAME_BYTES_MAX 1000

/* A row that holds. */
typedef struct list_row {
    const char *name; /* relative to PATH, or absolute */
    const char *label;
    int64_t line, bytes;
} list_row;

typedef struct list_read {
    stint_data *data;
    sti_data_sink *sink;
    sti_arena *arena;
    const char *path; /* of the list */
    char **folders;   /* of PATH, where files may be */
    int64_t folder_count;
    int file_column, label_column;
    list_row *rows;
    int64_t count, capacity;
} list_read;

/* ---- which list ---- */

/* Two columns at least: a list of files alone has nothing to test with. */
static bool has_labels(const char *path, const char *split)
{
    char line[1024] = "";
    sti_arena *arena = sti_arena_create("data.paths");
    char *full = arena ? sti_arena_printf(arena, "%s/%s.csv", path, split) : NULL;
    int fd = -1;
    if (full && sti_file_open(full, &fd) == STINT_OK) {
        if (read(fd, line, sizeof line - 1) < 0)
            line[0] = '\0';
        close(fd);
    }
    sti_arena_destroy(arena);
    sti_csv csv;
    sti_csv_begin(&csv, line);
    return sti_csv_next(&csv) == 1 && csv.count > 1;
}

static bool list_present(const char *path, stint_data_split split, bool nested)
{
    (void)nested; /* or not, it is there */
    if (split == STINT_DATA_TRAIN)
        return sti_data_has_list(path);
    if (!sti_data_is_list(path, "train.csv"))
        return sti_data_is_list(path, "labels.csv");
    const char *name = sti_data_find_split(path, split, ".csv");
    return name && has_labels(path, name);
}

/* ---- columns ---- */

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcasecmp(word, *words) == 0)
            return true;
    return false;
}

/* Is the first line a head? Then it says which columns are which. */
static bool read_head(list_read *r, const sti_csv *csv)
{
    static const char *const labels[] = {"label",  "labels",   "class", "class_name",
                                         "target", "category", NULL};
    static const char *const files[] = {
        "file",       "filename",   "file_name", "path", "image", "filepath",
        "image_path", "image_name", "image_id",  "id",   NULL};
    int file = -1, label = -1;
    for (int i = csv->count - 1; i >= 0; i--) {
        if (is_one_of(csv->field[i], labels))
            label = i;
        else if (is_one_of(csv->field[i], files))
            file = i;
    }
    if (label < 0)
        return false;
    r->label_column = label;
    r->file_column = file >= 0 ? file : label == 0 ? 1 : 0;
    return true;
}

/* ---- files ---- */

/* Its bytes, where it is a regular file below PATH; -1. */
static int64_t size_of(const list_read *r, const char *name)
{
    struct stat info;
    return fstatat(r->data->fds[0], name, &info, 0) == 0 && S_ISREG(info.st_mode)
               ? (int64_t)info.st_size
               : -1;
}

/* The file as it is named, or (as many lists leave it out) with an extension. */
static int64_t find_named(const list_read *r, const char *folder, const char *file,
                          const char **name_out)
{
    static const char *const endings[] = {"", ".jpg", ".png", ".jpeg"};
    const int tries = sti_data_image_name(file) ? 1 : 4;
    for (int i = 0; i < tries; i++) {
        char *name = sti_arena_printf(r->arena, "%s%s%s%s", folder, *folder ? "/" : "",
                                      file, endings[i]);
        const bool fits = name && strlen(name) < NAME_BYTES_MAX;
        const int64_t bytes = fits && sti_data_image_name(name) ? size_of(r, name) : -1;
        *name_out = name;
        if (bytes >= 0)
            return bytes;
    }
    return -1;
}

static int64_t find_file(const list_read *r, const char *file, const char **name_out)
{
    while (file[0] == '.' && file[1] == '/')
        file += 2;
    int64_t bytes = find_named(r, "", file, name_out);
    if (bytes >= 0 || file[0] == '/')
        return bytes;
    bytes = find_named(r, r->data->split_name, file, name_out);
    for (int64_t i = 0; i < r->folder_count && bytes < 0; i++)
        bytes = find_named(r, r->folders[i], file, name_out);
    return bytes;
}

static stint_status list_folders(list_read *r)
{
    char **names = NULL;
    int64_t count = 0;
    stint_status st = sti_dir_list(r->arena, r->data->info.path, &names, &count);
    for (int64_t i = 0; i < count && st == STINT_OK; i++) {
        const char *full = names[i][0] == '.'
                               ? NULL
                               : sti_path_join(r->arena, r->data->info.path, names[i]);
        if (full && sti_path_is_dir(full))
            names[r->folder_count++] = names[i];
    }
    r->folders = names;
    return st;
}

/* ---- rows ---- */

static stint_status keep_row(list_read *r, list_row row)
{
    if (r->count == r->capacity) {
        const int64_t more = r->capacity ? 2 * r->capacity : 1024;
        list_row *rows = sti_realloc(r->rows, (size_t)more * sizeof *rows, "data.list");
        if (!rows)
            return STINT_E_MEMORY;
        r->rows = rows;
        r->capacity = more;
    }
    r->rows[r->count++] = row;
    return STINT_OK;
}

static stint_status take_row(list_read *r, const sti_csv *csv)
{
    const int needed =
        r->file_column > r->label_column ? r->file_column : r->label_column;
    const char *name = NULL;
    if (csv->count <= needed)
        return sti_data_find(r->sink, STI_FIND_LIST,
                             "%s:%" PRId64 ": %d field%s, wanted file,label", r->path,
                             csv->line, csv->count, sti_s(csv->count));
    const char *file = csv->field[r->file_column];
    const char *label = csv->field[r->label_column];
    if (!*file || !*label)
        return sti_data_find(r->sink, STI_FIND_LIST,
                             "%s:%" PRId64 ": the %s is empty; fill it in, or remove "
                             "the line",
                             r->path, csv->line, *file ? "label" : "file");
    const int64_t bytes = find_file(r, file, &name);
    if (!name)
        return STINT_E_MEMORY;
    if (bytes < 0)
        return sti_data_find(r->sink, STI_FIND_LIST,
                             "%s:%" PRId64 ": there is no image %s below %s", r->path,
                             csv->line, file, r->data->info.path);
    return keep_row(r, (list_row){name, label, csv->line, bytes});
}

static stint_status read_rows(list_read *r, char *text)
{
    sti_csv csv;
    stint_status st = STINT_OK;
    int found;
    r->label_column = 1;
    sti_csv_begin(&csv, text);
    for (bool first = true; (found = sti_csv_next(&csv)) != 0; first = false) {
        if (found < 0)
            return sti_data_find(r->sink, STI_FIND_LIST,
                                 "%s:%" PRId64 ": a quote is not closed; nothing after "
                                 "it is read",
                                 r->path, csv.line);
        if (!(first && read_head(r, &csv)))
            st = take_row(r, &csv);
        if (st != STINT_OK)
            return st;
    }
    return st;
}

static int compare_rows(const void *a, const void *b)
{
    const list_row *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* Each file once; of two lines the first stands. */
static stint_status index_rows(list_read *r, sti_index *index)
{
    stint_status st = STINT_OK;
    if (r->count > 1)
        qsort(r->rows, (size_t)r->count, sizeof *r->rows, compare_rows);
    for (int64_t i = 0; i < r->count && st == STINT_OK; i++) {
        const list_row *row = &r->rows[i];
        int32_t class_index;
        if (i > 0 && strcmp(row[-1].name, row->name) == 0) {
            st =
                sti_data_find(r->sink, STI_FIND_LIST,
                              "%s:%" PRId64 ": %s is there twice, also on line %" PRId64
                              "; remove one",
                              r->path, row->line, row->name, row[-1].line);
            continue;
        }
        st = sti_index_class(index, row->label, &class_index);
        if (st == STINT_OK &&
            (!index->by_names || sti_data_name_in_split(r->data, row->name)))
            st = sti_index_add(index, class_index, row->name, 0, row->bytes);
    }
    return st;
}

/* ---- opening ---- */

/* Which list is this split's, and what there is to say of it. */
static stint_status choose_list(list_read *r, bool *by_names)
{
    stint_data *data = r->data;
    stint_status st = STINT_OK;
    *by_names = !sti_data_is_list(data->info.path, "train.csv");
    data->split_name = *by_names
                           ? sti_data_split_name(data->split)
                           : sti_data_find_split(data->info.path, data->split, ".csv");
    if (!data->split_name)
        return sti_fail(STINT_E_IO, "%s has changed just now; try again",
                        data->info.path);
    if (!*by_names)
        st = sti_data_tell_split(data, ".csv", r->sink);
    else if (data->split == STINT_DATA_TEST)
        st =
            sti_data_find(r->sink, STI_FIND_SPLIT,
                          "%s/labels.csv: a share of %s of the images, chosen by their "
                          "names, is the test split",
                          data->info.path, sti_float_text(data->share));
    r->path = sti_arena_printf(data->arena, "%s/%s.csv", data->info.path,
                               *by_names ? "labels" : data->split_name);
    data->info.from = r->path;
    return r->path ? st : STINT_E_MEMORY;
}

static stint_status read_list(list_read *r, sti_index *index,
                              const stint_data_info *like)
{
    void *text = NULL;
    size_t n_bytes = 0;
    stint_status st = choose_list(r, &index->by_names);
    if (st == STINT_OK)
        st = sti_data_add_file(r->data, r->data->info.path);
    if (st == STINT_OK)
        st = list_folders(r);
    if (st == STINT_OK)
        st = sti_file_read(r->path, LIST_BYTES_MAX, &text, &n_bytes);
    if (st == STINT_OK && memchr(text, '\0', n_bytes))
        st = sti_fail(STINT_E_INPUT, "%s is no text", r->path);
    if (st == STINT_OK)
        st = read_rows(r, text);
    if (st == STINT_OK)
        st = index_rows(r, index);
    if (st == STINT_OK)
        st = sti_index_finish(index, r->data, like, r->path);
    sti_free(text);
    return st;
}

static stint_status list_open(stint_data *data, const stint_data_info *like,
                              sti_data_sink *sink)
{
    list_read r = {.data = data, .sink = sink, .arena = sti_arena_create("data.list")};
    sti_index index = {0};
    data->layout = STI_LAYOUT_ENCODED;
    data->whole_names = true;
    stint_status st = r.arena ? sti_index_init(&index, sink) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = read_list(&r, &index, like);
    sti_index_fini(&index);
    sti_free(r.rows);
    sti_arena_destroy(r.arena);
    return st;
}

static void list_name(const stint_data *data, int64_t index, char *text_out,
                      size_t bytes)
{
    (void)snprintf(text_out, bytes, "%s", data->names + data->samples[index].where);
}

const sti_data_source sti_data_list = {
    .name = "csv",
    .wants = "train.csv or labels.csv with lines of file,label",
    .pairs = true,
    .finds_by_name = true,
    .present = list_present,
    .open = list_open,
    .read = sti_data_read_file,
    .prefetch = sti_data_prefetch_file,
    .name_of = list_name,
};
