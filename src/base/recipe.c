/* Recipes: defaults, reading and writing, and what two of them differ in. */
#include "base/recipe.h"

#include <string.h>

#include "base/file.h"

static stint_status fill(stint_recipe *r, const char *path)
{
    const sti_recipe_table *table = r->table;
    sti_origin *origin =
        sti_arena_alloc(r->arena, (size_t)(table->count + 1) * sizeof *origin);
    void *block = sti_arena_alloc(r->arena, table->bytes + 1);
    if (!origin || !block)
        return STINT_E_MEMORY;
    r->set = (sti_option_set){.rows = table->row,
                              .count = table->count,
                              .target = block,
                              .arena = r->arena,
                              .origin = origin};
    r->path = path ? sti_arena_strdup(r->arena, path) : NULL;
    if (path && !r->path)
        return STINT_E_MEMORY;
    return sti_options_default(&r->set);
}

static stint_status create(const char *path, stint_recipe **recipe_out)
{
    const sti_recipe_table *table = sti_recipe_table_get();
    if (!table)
        return STINT_E_BUG;
    sti_arena *arena = sti_arena_create("recipe");
    if (!arena)
        return STINT_E_MEMORY;
    stint_recipe *r = sti_arena_alloc(arena, sizeof *r);
    stint_status st = STINT_E_MEMORY;
    if (r) {
        *r = (stint_recipe){.table = table, .arena = arena};
        st = fill(r, path);
    }
    if (st != STINT_OK) {
        sti_arena_destroy(arena);
        return st;
    }
    *recipe_out = r;
    return STINT_OK;
}

stint_status stint_recipe_create(stint_recipe **recipe_out)
{
    return create(NULL, recipe_out);
}

/* The folder of a run is easily given for the recipe in it. */
static stint_status refuse_folder(const stint_recipe *r)
{
    const char *inside = sti_path_join(r->arena, r->path, "recipe.ini");
    if (!inside)
        return STINT_E_MEMORY;
    if (!sti_path_is_file(inside))
        return sti_fail(STINT_E_IO, "%s: is a folder, the file of a recipe is wanted",
                        r->path);
    return sti_fail(STINT_E_IO,
                    "%s: is a folder, the file of a recipe is wanted; that of the run "
                    "in it is %s",
                    r->path, inside);
}

stint_status stint_recipe_load(const char *path, stint_recipe **recipe_out)
{
    stint_recipe *r;
    stint_status st = create(path, &r);
    if (st != STINT_OK)
        return st;
    st = sti_path_is_dir(path) ? refuse_folder(r) : sti_options_read_ini(&r->set, path);
    if (st != STINT_OK) {
        stint_recipe_destroy(r);
        return st;
    }
    *recipe_out = r;
    return STINT_OK;
}

stint_status sti_recipe_parse(const char *text, const char *where,
                              stint_recipe **recipe_out)
{
    stint_recipe *r;
    stint_status st = create(NULL, &r);
    if (st != STINT_OK)
        return st;
    st = sti_options_parse_ini(&r->set, text, where, ".");
    if (st != STINT_OK) {
        stint_recipe_destroy(r);
        return st;
    }
    *recipe_out = r;
    return STINT_OK;
}

stint_status sti_recipe_parse_stored(const char *text, const char *where,
                                     stint_recipe **recipe_out)
{
    sti_text words = {0};
    const stint_status st = sti_recipe_parse(text, where, recipe_out);
    if (st != STINT_E_USAGE)
        return st;
    for (const char *line = stint_last_error(); *line;) {
        const size_t length = strcspn(line, "\n");
        sti_text_add(&words, words.length > 0 ? "; " : "");
        sti_text_add_bytes(&words, line, length);
        line += length + (line[length] == '\n');
    }
    (void)sti_fail(STINT_E_INPUT, "a damaged recipe: %.2000s",
                   words.data ? words.data : "");
    sti_text_fini(&words);
    return STINT_E_INPUT;
}

void stint_recipe_destroy(stint_recipe *recipe)
{
    if (recipe)
        sti_arena_destroy(recipe->arena);
}

/* ---- keys ---- */

/* Row of "section.name", or -1. */
static int find_row(const sti_option_set *set, const char *key)
{
    for (int i = 0; i < set->count; i++) {
        const sti_option *row = &set->rows[i];
        size_t length = strlen(row->section);
        if (strncmp(key, row->section, length) == 0 && key[length] == '.' &&
            strcmp(key + length + 1, row->name) == 0)
            return i;
    }
    return -1;
}

bool sti_recipe_says(const stint_recipe *recipe, const char *key, const char *value)
{
    const int row = find_row(&recipe->set, key);
    return row >= 0 && sti_options_is(&recipe->set, row, value);
}

static stint_status unknown_key(stint_recipe *recipe, const char *key)
{
    const char *names[STI_OPTION_ROWS_MAX];
    const int count = recipe->set.count;
    for (int i = 0; i < count; i++) {
        const sti_option *row = &recipe->set.rows[i];
        names[i] = sti_arena_printf(recipe->arena, "%s.%s", row->section, row->name);
        if (!names[i])
            return STINT_E_MEMORY;
    }
    const char *near = sti_text_nearest(key, names, count);
    if (near)
        return sti_fail(STINT_E_USAGE, "%s: no such recipe key; did you mean %s?", key,
                        near);
    return sti_fail(
        STINT_E_USAGE,
        "%s: no such recipe key; keys are written section.name, for example "
        "train.batch",
        key);
}

stint_status stint_recipe_set(stint_recipe *recipe, const char *key, const char *value)
{
    int row = find_row(&recipe->set, key);
    if (row < 0)
        return unknown_key(recipe, key);
    return sti_options_put(&recipe->set, row, value, STI_FROM_COMMAND, key);
}

void sti_recipe_check_sections(const stint_recipe *recipe, sti_complaints *complaints)
{
    for (int i = 0; i < recipe->table->section_count; i++)
        if (recipe->table->section[i]->check)
            recipe->table->section[i]->check(recipe, complaints);
}

/* ---- writing ---- */

/* Rows that belong to this machine to their defaults. */
static stint_status forget_local(stint_recipe *copy)
{
    stint_status st = STINT_OK;
    for (int i = 0; i < copy->set.count && st == STINT_OK; i++)
        if (copy->set.rows[i].local)
            st = sti_option_default(&copy->set, i);
    return st;
}

static stint_status resolve(const stint_recipe *recipe, stint_recipe *copy)
{
    const sti_recipe_table *table = recipe->table;
    stint_status st = STINT_OK;
    for (int i = 0; i < table->section_count && st == STINT_OK; i++) {
        const sti_recipe_section *section = table->section[i];
        if (section->resolve)
            st = section->resolve(recipe, copy->arena, sti_recipe_edit(copy, section));
    }
    return st;
}

stint_status sti_recipe_write(const stint_recipe *recipe, bool share, sti_text *out)
{
    stint_recipe *copy;
    stint_status st = create(NULL, &copy);
    if (st != STINT_OK)
        return st;
    memcpy(copy->set.target, recipe->set.target, recipe->table->bytes);
    copy->set.origin = NULL; /* all values are written, not only those set */
    st = share ? forget_local(copy) : resolve(recipe, copy);
    if (st == STINT_OK) {
        sti_options_write_ini(&copy->set, out);
        if (out->failed)
            st = sti_fail(STINT_E_MEMORY, "out of memory for the text of a recipe");
    }
    stint_recipe_destroy(copy);
    return st;
}

stint_status sti_recipe_copy(const stint_recipe *recipe, stint_recipe **copy_out)
{
    sti_text text = {0};
    stint_status st = sti_recipe_write(recipe, false, &text);
    if (st == STINT_OK)
        st = sti_recipe_parse(text.data, "the recipe", copy_out);
    sti_text_fini(&text);
    return st;
}

/* ---- differences ---- */

static bool is_free(const stint_recipe *now, int row)
{
    const sti_recipe_section *section = now->table->section_of[row];
    const sti_option *o = &now->set.rows[row];
    return o->same_weights || (section->free_now && section->free_now(now, o));
}

void sti_recipe_differences(const stint_recipe *now, const char *now_word,
                            const stint_recipe *then, const char *then_word,
                            sti_text *list)
{
    for (int i = 0; i < now->set.count; i++) {
        const sti_option *row = &now->set.rows[i];
        if (is_free(now, i))
            continue;
        sti_text a = {0}, b = {0};
        sti_options_value(&now->set, i, &a);
        sti_options_value(&then->set, i, &b);
        const char *new_text = a.data ? a.data : "", *old_text = b.data ? b.data : "";
        if (strcmp(new_text, old_text) != 0)
            sti_text_printf(list, "%s%s.%s (%s %s, %s %s)", list->length ? ", " : "",
                            row->section, row->name, now_word,
                            *new_text ? new_text : "empty", then_word,
                            *old_text ? old_text : "empty");
        sti_text_fini(&a);
        sti_text_fini(&b);
    }
}
