/* Fonts for rendered letters: which installed faces show plain Latin letters and
 * digits, which of them belong together, and which families are kept for testing. */
#ifndef STI_DATA_DATA_FONTS_H
#define STI_DATA_DATA_FONTS_H

#include <stdint.h>

#include "base/memory.h"
#include "base/team.h"
#include "data/glyph_draw.h"
#include "stint/status.h"

typedef struct sti_face {
    const char *path;
    int32_t index; /* in a collection */
    const char *family, *style;
    int64_t cap_height;
    int32_t group; /* families of one make: they go into the same split */
} sti_face;

/* A tree to draw from evenly: groups of a split, their families, their faces. */
typedef struct sti_font_range {
    int32_t first, count;
} sti_font_range;

typedef struct sti_fonts {
    sti_arena *arena;
    sti_face *faces; /* sorted: split, group, family, path */
    int32_t count;
    sti_font_range *families; /* of faces */
    sti_font_range *groups;   /* of families */
    sti_font_range splits[2]; /* of groups, by stint_data_split */
    int32_t split_families[2], split_faces[2];
    int32_t rejected;
} sti_fonts;

/* Find and judge the fonts under `folders` (colon-separated; NULL: the system's
 * places). STINT_E_INPUT when fewer than min_faces are usable. */
stint_status sti_fonts_find(const char *folders, int min_faces, const sti_team *team,
                            sti_fonts *fonts_out);
void sti_fonts_fini(sti_fonts *fonts);

#endif
