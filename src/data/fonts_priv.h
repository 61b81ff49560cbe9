/* Inside the search for fonts: faces that are not judged yet. */
#ifndef STI_DATA_FONTS_PRIV_H
#define STI_DATA_FONTS_PRIV_H

#include "data/data_fonts.h"

#define FONT_PRINT_SIDE  16
#define FONT_PRINT_BYTES (FONT_PRINT_SIDE * FONT_PRINT_SIDE)
#define FONT_FACE_BYTES  (STI_GLYPH_CLASSES * FONT_PRINT_BYTES)
#define FONT_NAME_BYTES  96

/* A face and the small pictures of its letters. */
typedef struct font_candidate {
    const char *path;
    int32_t index;
    bool usable;
    char family[FONT_NAME_BYTES], style[FONT_NAME_BYTES];
    int64_t cap_height;
    uint8_t *prints; /* [36, 16, 16] */
} font_candidate;

/* All faces of all files, as pointers. */
typedef struct font_pool {
    font_candidate **faces;
    int64_t count;
} font_pool;

/* Sum of the differences of n pixels. */
int64_t sti_font_difference(const uint8_t *a, const uint8_t *b, int64_t n);

/* Leave the faces that show plain letters and are there once (font_judge.c). */
stint_status sti_fonts_judge(font_pool *pool);

/* Join the faces into groups, choose those for testing, and fill the tables of `fonts`,
 * whose arena the caller has made (font_groups.c). */
stint_status sti_fonts_arrange(const font_pool *pool, sti_fonts *fonts);

#endif
