/* Which faces belong together, and which of them are for testing.
 *
 * Near copies are common: one design under two names, or a family split into several by
 * width. Families that share their first word, or have a face whose pictures nearly
 * coincide, form a group, and groups are what the test split is made of: a test family
 * is new in its shapes, not just in its name. */
#if defined(STINT_HAVE_FREETYPE)

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "data/fonts_priv.h"

/* Mean difference of two faces' pictures, of 255, below which they are one design:
 * Carlito and the Lato that it was made from differ by less than 4. */
#define SAME_DESIGN 4

static int32_t root(int32_t *parent, int32_t i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

/* "DejaVu Sans" and "DejaVu Serif", also "Beteckna" and "BetecknaCondensed". */
static bool same_maker(const char *a, const char *b)
{
    size_t n = strcspn(a, " -_"), m = strcspn(b, " -_"), shorter = n < m ? n : m;
    return (n == m || shorter >= 5) && strncasecmp(a, b, shorter) == 0;
}

static bool same_design(const font_candidate *a, const font_candidate *b)
{
    int64_t sum = 0, most = (int64_t)SAME_DESIGN * FONT_FACE_BYTES;
    for (int k = 0; k < STI_GLYPH_CLASSES && sum <= most; k++)
        sum += sti_font_difference(a->prints + k * FONT_PRINT_BYTES,
                                   b->prints + k * FONT_PRINT_BYTES, FONT_PRINT_BYTES);
    return sum <= most;
}

/* parent [count]: faces joined into groups, each represented by its first face. */
static void join_groups(const font_pool *p, int32_t *parent)
{
    for (int32_t i = 0; i < (int32_t)p->count; i++) {
        parent[i] = i;
        for (int32_t k = 0; k < i; k++) {
            int32_t a = root(parent, i), b = root(parent, k);
            if (a == b || !(same_maker(p->faces[i]->family, p->faces[k]->family) ||
                            same_design(p->faces[i], p->faces[k])))
                continue;
            parent[a > b ? a : b] = a > b ? b : a;
        }
    }
}

/* FNV-1a with a final mix. */
static uint64_t hash_name(const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    h ^= h >> 32;
    h *= UINT64_C(0xd6e8feb86659fd93);
    return h ^ h >> 32;
}

/* A face on its way into order: split, group, family, path. */
typedef struct placed {
    const font_candidate *face;
    int32_t group;
    bool test;
    uint64_t hash; /* of the group's name */
} placed;

static int compare_placed(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (x->test != y->test)
        return x->test ? 1 : -1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    int order = strcmp(x->face->family, y->face->family);
    order = order ? order : strcmp(x->face->path, y->face->path);
    return order ? order : x->face->index - y->face->index;
}

static int compare_hashes(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The fifth of the groups whose names hash lowest is for testing. Groups are named by
 * the family of their first face, faces being in the order of their paths. */
static stint_status choose_test(placed *faces, int64_t count)
{
    uint64_t *hashes = sti_alloc_array(count, sizeof *hashes, "fonts.split");
    if (!hashes)
        return STINT_E_MEMORY;
    int64_t groups = 0;
    for (int64_t i = 0; i < count; i++) {
        faces[i].hash = hash_name(faces[faces[i].group].face->family);
        if (faces[i].group == i)
            hashes[groups++] = faces[i].hash;
    }
    if (groups > 0)
        qsort(hashes, (size_t)groups, sizeof *hashes, compare_hashes);
    int64_t held = (groups + 2) / 5;
    if (held == 0 && groups > 1)
        held = 1;
    for (int64_t i = 0; i < count; i++)
        faces[i].test = held > 0 && faces[i].hash <= hashes[held - 1];
    sti_free(hashes);
    return STINT_OK;
}

static stint_status alloc_tables(sti_fonts *fonts, int64_t count)
{
    size_t n = (size_t)count;
    fonts->faces = sti_arena_alloc(fonts->arena, n * sizeof *fonts->faces);
    fonts->families = sti_arena_alloc(fonts->arena, n * sizeof *fonts->families);
    fonts->groups = sti_arena_alloc(fonts->arena, n * sizeof *fonts->groups);
    return fonts->faces && fonts->families && fonts->groups ? STINT_OK : STINT_E_MEMORY;
}

/* Ranges of splits, groups and families over the sorted faces. */
static stint_status build_tables(const placed *faces, int64_t count, sti_fonts *fonts)
{
    int32_t families = 0, groups = 0;
    if (alloc_tables(fonts, count) != STINT_OK)
        return STINT_E_MEMORY;
    for (int32_t i = 0; i < (int32_t)count; i++) {
        const font_candidate *c = faces[i].face;
        sti_face *f = &fonts->faces[i];
        *f = (sti_face){.path = sti_arena_strdup(fonts->arena, c->path),
                        .index = c->index,
                        .family = sti_arena_strdup(fonts->arena, c->family),
                        .style = sti_arena_strdup(fonts->arena, c->style),
                        .cap_height = c->cap_height,
                        .group = faces[i].group};
        if (!f->path || !f->family || !f->style)
            return STINT_E_MEMORY;
        bool new_group = i == 0 || f->group != f[-1].group;
        bool new_family = new_group || strcmp(f->family, f[-1].family) != 0;
        sti_font_range *split = &fonts->splits[faces[i].test];
        if (split->count == 0)
            split->first = groups;
        if (new_group) {
            fonts->groups[groups++] = (sti_font_range){families, 0};
            split->count++;
        }
        if (new_family) {
            fonts->families[families++] = (sti_font_range){i, 0};
            fonts->groups[groups - 1].count++;
            fonts->split_families[faces[i].test]++;
        }
        fonts->families[families - 1].count++;
        fonts->split_faces[faces[i].test]++;
    }
    fonts->count = (int32_t)count;
    return STINT_OK;
}

stint_status sti_fonts_arrange(const font_pool *p, sti_fonts *fonts)
{
    int32_t *parent = sti_alloc_array(p->count, sizeof *parent, "fonts.groups");
    placed *faces = sti_alloc_array(p->count, sizeof *faces, "fonts.groups");
    stint_status st = STINT_E_MEMORY;
    if (!parent || !faces)
        goto out;
    join_groups(p, parent);
    for (int32_t i = 0; i < (int32_t)p->count; i++)
        faces[i] = (placed){.face = p->faces[i], .group = root(parent, i)};
    if ((st = choose_test(faces, p->count)) != STINT_OK)
        goto out;
    if (p->count > 1)
        qsort(faces, (size_t)p->count, sizeof *faces, compare_placed);
    st = build_tables(faces, p->count, fonts);
out:
    sti_free(faces);
    sti_free(parent);
    return st;
}

#endif /* STINT_HAVE_FREETYPE */
