/* Drawing letters by FreeType's outlines and its rasteriser. */
#if defined(STINT_HAVE_FREETYPE)

#include "data/glyph_draw.h"

#include <string.h>
#include FT_OUTLINE_H

const char sti_glyph_letters[STI_GLYPH_CLASSES + 1] =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

static bool load_outline(FT_Face face, char letter)
{
    FT_UInt glyph = FT_Get_Char_Index(face, (FT_ULong)letter);
    return glyph != 0 &&
           FT_Load_Glyph(face, glyph, FT_LOAD_NO_SCALE | FT_LOAD_IGNORE_TRANSFORM) ==
               0 &&
           face->glyph->format == FT_GLYPH_FORMAT_OUTLINE &&
           face->glyph->outline.n_points > 2;
}

int64_t sti_glyph_cap_height(FT_Face face)
{
    FT_BBox box;
    if (!load_outline(face, 'H'))
        return 0;
    FT_Outline_Get_CBox(&face->glyph->outline, &box);
    return box.yMax > 0 ? box.yMax : 0;
}

static FT_Fixed to_fixed(double value)
{
    return (FT_Fixed)(value * 65536.0 + (value < 0 ? -0.5 : 0.5));
}

bool sti_glyph_draw(FT_Library library, FT_Face face, char letter, int64_t cap_height,
                    int size, const sti_glyph_pose *pose, uint8_t *out)
{
    FT_BBox box;
    if (cap_height <= 0 || !load_outline(face, letter))
        return false;
    FT_Outline *outline = &face->glyph->outline;
    FT_Outline_Get_CBox(outline, &box);
    double width = (double)(box.xMax - box.xMin),
           height = (double)(box.yMax - box.yMin);
    if (width <= 0 || height <= 0)
        return false;
    double scale =
        0.625 * size * 64.0 / (double)cap_height; /* 1/64 pixel a font unit */
    double most = 0.875 * size * 64.0, longer = width > height ? width : height;
    if (scale * longer > most)
        scale = most / longer;
    FT_Outline_Translate(outline, -(box.xMin + box.xMax) / 2,
                         -(FT_Pos)(cap_height / 2));
    /* Sine and cosine of a small angle by their series. */
    double a = pose->angle, sine = a - a * a * a / 6.0, cosine = 1.0 - a * a / 2.0;
    double x = scale * pose->scale_x, y = scale * pose->scale_y;
    FT_Matrix matrix = {.xx = to_fixed(x * cosine),
                        .xy = to_fixed(y * (cosine * pose->shear - sine)),
                        .yx = to_fixed(x * sine),
                        .yy = to_fixed(y * (cosine + sine * pose->shear))};
    FT_Outline_Transform(outline, &matrix);
    FT_Pos weight = (FT_Pos)(pose->weight * 64.0);
    if (weight != 0) {
        (void)FT_Outline_Embolden(outline, weight);
        FT_Outline_Translate(outline, -weight / 2,
                             -weight / 2); /* it grows right and up */
    }
    FT_Outline_Translate(outline, (FT_Pos)((size / 2.0 + pose->shift_x) * 64.0),
                         (FT_Pos)((size / 2.0 + pose->shift_y) * 64.0));
    FT_Bitmap bitmap = {.rows = (unsigned)size,
                        .width = (unsigned)size,
                        .pitch = size,
                        .buffer = out,
                        .num_grays = 256,
                        .pixel_mode = FT_PIXEL_MODE_GRAY};
    memset(out, 0, (size_t)size * (size_t)size);
    return FT_Outline_Get_Bitmap(library, outline, &bitmap) == 0;
}

#endif /* STINT_HAVE_FREETYPE */
