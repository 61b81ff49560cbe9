/* Fonts for rendered letters: which installed faces show plain Latin letters and
 * digits, which of them belong together, and which families are kept for testing. */
#ifndef STI_DATA_DATA_FONTS_H
#define STI_DATA_DATA_FONTS_H

#include <ft2build.h>
#include FT_FREETYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/team.h"
#include "stint/status.h"

#define STI_GLYPH_CLASSES 36
extern const char sti_glyph_letters[STI_GLYPH_CLASSES + 1]; /* "0123...XYZ" */

/* How one glyph is drawn. All zero but scale:
 * upright, centred, in the weight it has. */
typedef struct sti_glyph_pose {
    double scale_x, scale_y; /* 1: capitals take 5/8 of the height */
    double angle;            /* radians, small */
    double shear;
    double shift_x, shift_y; /* pixels */
    double weight;           /* pixels added to strokes, may be negative */
} sti_glyph_pose;

/* Draw a letter into out [size, size], 0 to 255. False: no such outline, or it is
 * blank. Positions are computed in doubles without library functions and rounded to
 * 1/64 pixel; the rest is FreeType's integer rasteriser without hinting. */
bool sti_glyph_draw(FT_Library library, FT_Face face, char letter, int64_t cap_height,
                    int size, const sti_glyph_pose *pose, uint8_t *out);

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
