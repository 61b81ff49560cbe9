/* Letters drawn from the outlines of a font, the same to the bit everywhere. */
#ifndef STI_DATA_GLYPH_DRAW_H
#define STI_DATA_GLYPH_DRAW_H

#include <ft2build.h>
#include FT_FREETYPE_H

#include <stdbool.h>
#include <stdint.h>

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

/* Height of a capital H in font units, 0 when there is none. */
int64_t sti_glyph_cap_height(FT_Face face);

/* Draw a letter into out [size, size], 0 to 255. False: no such outline, or it is
 * blank. Positions are computed in doubles without library functions and rounded to
 * 1/64 pixel; the rest is FreeType's integer rasteriser without hinting. */
bool sti_glyph_draw(FT_Library library, FT_Face face, char letter, int64_t cap_height,
                    int size, const sti_glyph_pose *pose, uint8_t *out);

#endif
