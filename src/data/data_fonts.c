/* Finding fonts and judging them.
 *
 * A face is usable when it has outlines for all 36 letters, when these are not blank,
 * differ from each other, and look like the letters they stand for. What a letter looks
 * like is learned from the faces themselves: the median over all faces of each letter's
 * small picture. A face whose pictures are mostly nearer to another letter's median
 * shows symbols, bar codes or ornaments.
 *
 * Near copies are common: one design under two names, or a family split into several by
 * width. Families that share their first word, or have a face whose pictures nearly
 * coincide, form a group, and groups are what the test split is made of: a test family
 * is new in its shapes, not just in its name. */
#if defined(STINT_HAVE_FREETYPE)

#include "data/data_fonts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include FT_OUTLINE_H

#include "base/fail.h"
#include "base/file.h"
#include "stint/data.h"

const char sti_glyph_letters[STI_GLYPH_CLASSES + 1] =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

#define PRINT_SIDE  16
#define PRINT_BYTES (PRINT_SIDE * PRINT_SIDE)
#define FACE_BYTES  (STI_GLYPH_CLASSES * PRINT_BYTES)
#define MAX_IN_FILE 32 /* faces of one collection */
#define MAX_DEPTH   8
#define NAME_BYTES  96
/* Mean difference of two faces' pictures, of 255, below which they are one design:
 * Carlito and the Lato that it was made from differ by less than 4. */
#define SAME_DESIGN 4
/* Letters of 36 that must look like themselves:
 * symbols reach 3, condensed italics 20. */
#define LEAST_RIGHT 18

/* ---- drawing ---- */

static bool load_outline(FT_Face face, char letter)
{
    FT_UInt glyph = FT_Get_Char_Index(face, (FT_ULong)letter);
    return glyph != 0 &&
           FT_Load_Glyph(face, glyph, FT_LOAD_NO_SCALE | FT_LOAD_IGNORE_TRANSFORM) ==
               0 &&
           face->glyph->format == FT_GLYPH_FORMAT_OUTLINE &&
           face->glyph->outline.n_points > 2;
}

/* Height of a capital H in font units, 0 when there is none. */
static int64_t cap_height_of(FT_Face face)
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

/* ---- finding files ---- */

typedef struct file_list {
    sti_arena *arena;
    char **paths;
    int64_t count, capacity;
} file_list;

static bool is_font(const char *name)
{
    static const char *const endings[] = {".ttf", ".otf", ".ttc",
                                          ".otc", ".pfb", ".t1"};
    const char *extension = sti_path_extension(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(extension, endings[i]) == 0)
            return true;
    return false;
}

static stint_status add_path(file_list *list, char *path)
{
    if (list->count == list->capacity) {
        int64_t more = list->capacity ? 2 * list->capacity : 256;
        char **paths =
            sti_realloc(list->paths, (size_t)more * sizeof *paths, "fonts.paths");
        if (!paths)
            return STINT_E_MEMORY;
        list->paths = paths;
        list->capacity = more;
    }
    list->paths[list->count++] = path;
    return STINT_OK;
}

/* A folder that cannot be read has no fonts for us: that is no error here. */
static stint_status walk_folder(file_list *list, const char *folder, int depth)
{
    char **names = NULL;
    int64_t count = 0;
    stint_status st = STINT_OK;
    if (depth > MAX_DEPTH || !sti_path_is_dir(folder) ||
        sti_dir_list(list->arena, folder, &names, &count) != STINT_OK)
        return STINT_OK;
    for (int64_t i = 0; i < count && st == STINT_OK; i++) {
        char *path = sti_path_join(list->arena, folder, names[i]);
        if (!path)
            return STINT_E_MEMORY;
        if (is_font(names[i]) && sti_path_is_file(path))
            st = add_path(list, path);
        else if (sti_path_is_dir(path))
            st = walk_folder(list, path, depth + 1);
    }
    return st;
}

static stint_status walk_folders(file_list *list, const char *folders)
{
    char *copy, *rest = NULL;
    const char *home = getenv("HOME");
    stint_status st = STINT_OK;
    copy = folders
               ? sti_arena_strdup(list->arena, folders)
               : sti_arena_printf(list->arena,
                                  "/usr/share/fonts:/usr/local/share/fonts:%s/.fonts:"
                                  "%s/.local/share/fonts",
                                  home ? home : "", home ? home : "");
    if (!copy)
        return STINT_E_MEMORY;
    for (char *folder = strtok_r(copy, ":", &rest); folder && st == STINT_OK;
         folder = strtok_r(NULL, ":", &rest))
        st = walk_folder(list, folder, 0);
    return st;
}

/* ---- pictures of every face ---- */

typedef struct candidate {
    const char *path;
    int32_t index;
    bool usable;
    char family[NAME_BYTES], style[NAME_BYTES];
    int64_t cap_height;
    uint8_t *prints; /* [36, 16, 16] */
} candidate;

/* What one file gave. */
typedef struct font_file {
    candidate *faces;
    int32_t count;
    bool failed; /* for memory */
} font_file;

typedef struct print_job {
    char **paths;
    font_file *files;
} print_job;

static void copy_name(char out[NAME_BYTES], const char *name)
{
    (void)snprintf(out, NAME_BYTES, "%s", name ? name : "");
}

static bool take_prints(FT_Library library, FT_Face face, candidate *c)
{
    static const sti_glyph_pose plain = {.scale_x = 1, .scale_y = 1};
    copy_name(c->family, face->family_name);
    copy_name(c->style, face->style_name);
    c->cap_height = cap_height_of(face);
    if (!FT_IS_SCALABLE(face) || !c->family[0])
        return false;
    for (int k = 0; k < STI_GLYPH_CLASSES; k++) {
        uint8_t *print = c->prints + k * PRINT_BYTES;
        int64_t ink = 0;
        if (!sti_glyph_draw(library, face, sti_glyph_letters[k], c->cap_height,
                            PRINT_SIDE, &plain, print))
            return false;
        for (int i = 0; i < PRINT_BYTES; i++)
            ink += print[i];
        if (ink < 255 * 4)
            return false;
    }
    return true;
}

static stint_status print_file(FT_Library library, const char *path, font_file *file)
{
    int32_t count = 1;
    stint_status st = STINT_OK;
    for (int32_t i = 0; i < count && st == STINT_OK; i++) {
        FT_Face face = NULL;
        if (FT_New_Face(library, path, i, &face) != 0)
            break; /* damaged, or no font at all: one less */
        count = face->num_faces < MAX_IN_FILE ? (int32_t)face->num_faces : MAX_IN_FILE;
        if (!file->faces)
            file->faces = sti_alloc_array(count, sizeof *file->faces, "fonts.faces");
        candidate *c = file->faces ? &file->faces[i] : NULL;
        if (c && (c->prints = sti_alloc(FACE_BYTES, "fonts.prints"))) {
            c->path = path;
            c->index = i;
            c->usable = take_prints(library, face, c);
            file->count = i + 1;
        } else {
            st = STINT_E_MEMORY;
        }
        FT_Done_Face(face);
    }
    return st;
}

static void print_piece(void *arg, int64_t piece, int worker)
{
    print_job *job = arg;
    FT_Library library = NULL;
    (void)worker;
    job->files[piece].failed =
        FT_Init_FreeType(&library) != 0 ||
        print_file(library, job->paths[piece], &job->files[piece]) != STINT_OK;
    if (library)
        FT_Done_FreeType(library);
}

/* ---- judging ---- */

/* All faces of all files, as pointers. */
typedef struct pool {
    candidate **faces;
    int64_t count;
} pool;

static int64_t difference(const uint8_t *a, const uint8_t *b, int64_t n)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += abs(a[i] - b[i]);
    return sum;
}

/* Letters that cannot be told apart: a font of one case of symbols, or of blanks. */
static bool letters_differ(const candidate *c)
{
    int same = 0;
    for (int i = 0; i < STI_GLYPH_CLASSES; i++)
        for (int k = 0; k < i; k++)
            same += difference(c->prints + i * PRINT_BYTES, c->prints + k * PRINT_BYTES,
                               PRINT_BYTES) < 255;
    return same < 2;
}

/* Median picture of each letter, pixel by pixel: [36, 16, 16]. */
static void take_medians(const pool *p, uint8_t *medians)
{
    for (int64_t at = 0; at < FACE_BYTES; at++) {
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

static bool looks_like_letters(const candidate *c, const uint8_t *medians)
{
    int right = 0;
    for (int i = 0; i < STI_GLYPH_CLASSES; i++) {
        int64_t best = INT64_MAX;
        int nearest = -1;
        for (int k = 0; k < STI_GLYPH_CLASSES; k++) {
            int64_t d = difference(c->prints + i * PRINT_BYTES,
                                   medians + k * PRINT_BYTES, PRINT_BYTES);
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
static void drop_repeats(pool *p)
{
    for (int64_t i = 0; i < p->count; i++) {
        candidate *a = p->faces[i];
        for (int64_t k = 0; a->usable && k < i; k++) {
            candidate *b = p->faces[k];
            if (b->usable && strcmp(a->family, b->family) == 0 &&
                strcmp(a->style, b->style) == 0)
                a->usable = false;
        }
    }
}

static stint_status judge(pool *p)
{
    uint8_t *medians = sti_alloc(FACE_BYTES, "fonts.medians");
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

/* ---- groups and splits ---- */

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

static bool same_design(const candidate *a, const candidate *b)
{
    int64_t sum = 0, most = (int64_t)SAME_DESIGN * FACE_BYTES;
    for (int k = 0; k < STI_GLYPH_CLASSES && sum <= most; k++)
        sum += difference(a->prints + k * PRINT_BYTES, b->prints + k * PRINT_BYTES,
                          PRINT_BYTES);
    return sum <= most;
}

/* parent [count]: faces joined into groups, each represented by its first face. */
static void join_groups(const pool *p, int32_t *parent)
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
    const candidate *face;
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
        const candidate *c = faces[i].face;
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

static stint_status arrange_faces(const pool *p, sti_fonts *fonts)
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

/* ---- all together ---- */

static stint_status gather(const font_file *files, int64_t file_count, pool *p)
{
    int64_t total = 0;
    for (int64_t i = 0; i < file_count; i++) {
        if (files[i].failed)
            return sti_fail(STINT_E_MEMORY, "no memory to look at the fonts");
        total += files[i].count;
    }
    p->faces = sti_alloc_array(total, sizeof(candidate *), "fonts.faces");
    if (!p->faces)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < file_count; i++)
        for (int32_t k = 0; k < files[i].count; k++)
            p->faces[p->count++] = &files[i].faces[k];
    return STINT_OK;
}

static void free_files(font_file *files, int64_t count)
{
    for (int64_t i = 0; files && i < count; i++) {
        for (int32_t k = 0; k < files[i].count; k++)
            sti_free(files[i].faces[k].prints);
        sti_free(files[i].faces);
    }
    sti_free(files);
}

static stint_status print_all(const file_list *list, const sti_team *team,
                              sti_fonts *fonts)
{
    pool p = {0};
    stint_status st = STINT_E_MEMORY;
    print_job job = {.paths = list->paths};
    if (!(job.files = sti_alloc_array(list->count, sizeof *job.files, "fonts.files")))
        return st;
    sti_team_run(team, list->count, print_piece, &job);
    if ((st = gather(job.files, list->count, &p)) == STINT_OK) {
        int64_t seen = p.count;
        if ((st = judge(&p)) == STINT_OK)
            st = arrange_faces(&p, fonts);
        fonts->rejected = (int32_t)(seen - p.count);
    }
    sti_free(p.faces);
    free_files(job.files, list->count);
    return st;
}

stint_status sti_fonts_find(const char *folders, int min_faces, const sti_team *team,
                            sti_fonts *fonts_out)
{
    file_list list = {.arena = sti_arena_create("fonts.paths")};
    sti_fonts fonts = {.arena = sti_arena_create("fonts")};
    stint_status st = STINT_E_MEMORY;
    if (list.arena && fonts.arena && (st = walk_folders(&list, folders)) == STINT_OK)
        st = print_all(&list, team, &fonts);
    if (st == STINT_OK && (fonts.count < min_faces || fonts.splits[0].count == 0 ||
                           fonts.splits[1].count == 0))
        st = sti_fail(
            STINT_E_INPUT,
            "%d usable font faces of at least two makes are wanted, %d found (%d "
            "more show other scripts or symbols); install some, on Debian: apt "
            "install fonts-dejavu-core fonts-liberation fonts-freefont-ttf "
            "fonts-lato fonts-adf-gillius fonts-adf-baskervald fonts-comfortaa, or "
            "lower --min-faces",
            min_faces, fonts.count, fonts.rejected);
    sti_free(list.paths);
    sti_arena_destroy(list.arena);
    if (st == STINT_OK)
        *fonts_out = fonts;
    else
        sti_fonts_fini(&fonts);
    return st;
}

void sti_fonts_fini(sti_fonts *fonts)
{
    sti_arena_destroy(fonts->arena);
    *fonts = (sti_fonts){0};
}

#endif /* STINT_HAVE_FREETYPE */
