/* Which faces show plain letters.
 *
 * A face is usable when it has outlines for all 36 letters, when these are not blank,
 * differ from each other, and look like the letters they stand for. What a letter looks
 * like is learned from the faces themselves: the median over all faces of each letter's
 * small picture. A face whose pictures are mostly nearer to another letter's median
 * shows symbols, bar codes or ornaments. */
#if defined(STINT_HAVE_FREETYPE)

#include <stdlib.h>
#include <string.h>

#include "data/fonts_priv.h"

/* Letters of 36 that must look like themselves:
 * symbols reach 3, condensed italics 20. */
#define LEAST_RIGHT 18

int64_t sti_font_difference(const uint8_t *a, const uint8_t *b, int64_t n)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += abs(a[i] - b[i]);
    return sum;
}

/* Letters that cannot be told apart: a font of one case of symbols, or of blanks. */
static bool letters_differ(const font_candidate *c)
{
    int same = 0;
    for (int i = 0; i < STI_GLYPH_CLASSES; i++)
        for (int k = 0; k < i; k++)
            same += sti_font_difference(c->prints + i * FONT_PRINT_BYTES,
                                        c->prints + k * FONT_PRINT_BYTES,
                                        FONT_PRINT_BYTES) < 255;
    return same < 2;
}

/* Median picture of each letter, pixel by pixel: [36, 16, 16]. */
static void take_medians(const font_pool *p, uint8_t *medians)
{
    for (int64_t at = 0; at < FONT_FACE_BYTES; at++) {
        int64_t counts[256] = {0}, total = 0, seen = 0;
        for (int64_t f = 0; f < p->count; f++) {
            if (p->faces[f]->usable) {
                counts[p->faces[f]->prints[at]]++;
                total++;
            }
        }
        int value = 0;
        while (value < 255 && 2 * (seen += counts[value]) < total)
            value++;
        medians[at] = (uint8_t)value;
    }
}

static bool looks_like_letters(const font_candidate *c, const uint8_t *medians)
{
    int right = 0;
    for (int i = 0; i < STI_GLYPH_CLASSES; i++) {
        int64_t best = INT64_MAX;
        int nearest = -1;
        for (int k = 0; k < STI_GLYPH_CLASSES; k++) {
            int64_t d =
                sti_font_difference(c->prints + i * FONT_PRINT_BYTES,
                                    medians + k * FONT_PRINT_BYTES, FONT_PRINT_BYTES);
            if (d < best) {
                best = d;
                nearest = k;
            }
        }
        right += nearest == i;
    }
    return right >= LEAST_RIGHT;
}

/* The same face in two formats, or installed twice. */
static void drop_repeats(font_pool *p)
{
    for (int64_t i = 0; i < p->count; i++) {
        font_candidate *a = p->faces[i];
        for (int64_t k = 0; a->usable && k < i; k++) {
            font_candidate *b = p->faces[k];
            if (b->usable && strcmp(a->family, b->family) == 0 &&
                strcmp(a->style, b->style) == 0)
                a->usable = false;
        }
    }
}

stint_status sti_fonts_judge(font_pool *p)
{
    uint8_t *medians = sti_alloc(FONT_FACE_BYTES, "fonts.medians");
    if (!medians)
        return STINT_E_MEMORY;
    drop_repeats(p);
    for (int64_t f = 0; f < p->count; f++)
        if (p->faces[f]->usable)
            p->faces[f]->usable = letters_differ(p->faces[f]);
    take_medians(p, medians);
    for (int64_t f = 0; f < p->count; f++)
        if (p->faces[f]->usable)
            p->faces[f]->usable = looks_like_letters(p->faces[f], medians);
    sti_free(medians);
    int64_t kept = 0;
    for (int64_t f = 0; f < p->count; f++)
        if (p->faces[f]->usable)
            p->faces[kept++] = p->faces[f];
    p->count = kept;
    return STINT_OK;
}

#endif /* STINT_HAVE_FREETYPE */
