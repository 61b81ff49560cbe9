/* Recipes without knowing any key: sections, and a recipe that holds one struct each.
 *
 * A section is a table of option rows, the struct that they write to, and a check. It
 * belongs to the room that reads it and stands in a file pair of its own there,
 * src/ROOM/NAME_section.{h,c}; src/recipe_sections.h has one line for it. Such a file
 * includes headers of base, of its own room, and of other sections of rooms not above
 * it, and calls nothing else: so every section can be linked wherever a recipe is. */
#ifndef STI_BASE_RECIPE_H
#define STI_BASE_RECIPE_H

#include "base/complaints.h"
#include "base/option.h"
#include "stint/recipe.h"

typedef struct sti_recipe_section {
    const char *name;       /* "data" */
    const sti_option *rows; /* .section is filled in; offsets are within the struct */
    int count;
    size_t size;       /* of the struct that the rows write to */
    const char *place; /* the file, for what is to be said about the section itself */
    bool same_weights, local; /* as of a row, of all of them */
    /* What the rows' bounds do not tell, also together with sections of rooms not above
     * this one; or NULL. */
    void (*check)(const stint_recipe *recipe, sti_complaints *complaints);
    /* Does another value of this row leave the weights as they are, as things stand?
     * Or NULL: the rows' flags say all. */
    bool (*free_now)(const stint_recipe *now, const sti_option *row);
    /* Before a recipe is written in full: values that stand for a rule are replaced by
     * what the rule gives. Or NULL. */
    stint_status (*resolve)(const stint_recipe *recipe, sti_arena *arena, void *values);
} sti_recipe_section;

/* The first members of a section. */
#define STI_RECIPE_SECTION(section_name, table, type)                      \
    .name = (section_name), .rows = (table),                               \
    .count = (int)(sizeof(table) / sizeof *(table)), .size = sizeof(type), \
    .place = __FILE__

/* All sections, NULL-ended: src/recipe_sections.c. */
extern const sti_recipe_section *const sti_recipe_sections[];

#define STI_RECIPE_SECTIONS_MAX 64

/* Sections put one after another: one table of rows, one block of values. */
typedef struct sti_recipe_table {
    const sti_recipe_section *section[STI_RECIPE_SECTIONS_MAX];
    size_t start[STI_RECIPE_SECTIONS_MAX]; /* of a section's struct in the block */
    int section_count;
    sti_option row[STI_OPTION_ROWS_MAX]; /* offsets are within the block */
    const sti_recipe_section *section_of[STI_OPTION_ROWS_MAX];
    int count;
    size_t bytes; /* of the block */
} sti_recipe_table;

/* STINT_E_BUG, with both places: a section, key, flag or letter that is there twice. */
stint_status sti_recipe_table_build(const sti_recipe_section *const *sections,
                                    sti_recipe_table *table);
/* The table of sti_recipe_sections, made once; NULL after an error (as above). */
const sti_recipe_table *sti_recipe_table_get(void);

/* The public handle. */
struct stint_recipe {
    const sti_recipe_table *table;
    sti_arena *arena;
    sti_option_set set; /* set.target: the block of values */
    const char *path;   /* where it was read from, which names its runs; or NULL */
};

/* The values of a section; a section's header has a typed call of the first. */
const void *sti_recipe_values(const stint_recipe *recipe,
                              const sti_recipe_section *section);
void *sti_recipe_edit(stint_recipe *recipe, const sti_recipe_section *section);

/* Is this the value of a key, "train.precision", as an INI file has it? For readers in
 * rooms below that of the section; others take its struct. False: no such key, too. */
bool sti_recipe_says(const stint_recipe *recipe, const char *key, const char *value);

/* Resolved INI text. Paths are made absolute; with share, local rows are at their
 * defaults, for files that are handed on. */
stint_status sti_recipe_write(const stint_recipe *recipe, bool share, sti_text *out);
/* The other way: text from a model or checkpoint; `where` names it in messages. */
stint_status sti_recipe_parse(const char *text, const char *where,
                              stint_recipe **recipe_out);
/* The same where the file is at fault, not who gave it: STINT_E_INPUT in the place of
 * STINT_E_USAGE, with all complaints on one line. */
stint_status sti_recipe_parse_stored(const char *text, const char *where,
                                     stint_recipe **recipe_out);

/* A copy with no file of its own: paths in it are absolute. */
stint_status sti_recipe_copy(const stint_recipe *recipe, stint_recipe **copy_out);

/* Keys that decide the weights and differ, "train.batch (now 128, was 64)" where
 * these are the words, comma-separated into `list`; empty when the checkpoint's run may
 * be continued. */
void sti_recipe_differences(const stint_recipe *now, const char *now_word,
                            const stint_recipe *then, const char *then_word,
                            sti_text *list);

/* What the sections' own checks say, in the order of the table. */
void sti_recipe_check_sections(const stint_recipe *recipe, sti_complaints *complaints);

#endif
