/* Finding fonts: every file under the folders, a small picture of every letter of every
 * face in it, and what the judge (font_judge.c) and the groups (font_groups.c) make of
 * them. */
#if defined(STINT_HAVE_FREETYPE)

#include "data/data_fonts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/file.h"
#include "data/fonts_priv.h"

#define MAX_IN_FILE 32 /* faces of one collection */
#define MAX_DEPTH   8

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

/* What one file gave. */
typedef struct font_file {
    font_candidate *faces;
    int32_t count;
    bool failed; /* for memory */
} font_file;

typedef struct print_job {
    char **paths;
    font_file *files;
} print_job;

static void copy_name(char out[FONT_NAME_BYTES], const char *name)
{
    (void)snprintf(out, FONT_NAME_BYTES, "%s", name ? name : "");
}

static bool take_prints(FT_Library library, FT_Face face, font_candidate *c)
{
    static const sti_glyph_pose plain = {.scale_x = 1, .scale_y = 1};
    copy_name(c->family, face->family_name);
    copy_name(c->style, face->style_name);
    c->cap_height = sti_glyph_cap_height(face);
    if (!FT_IS_SCALABLE(face) || !c->family[0])
        return false;
    for (int k = 0; k < STI_GLYPH_CLASSES; k++) {
        uint8_t *print = c->prints + k * FONT_PRINT_BYTES;
        int64_t ink = 0;
        if (!sti_glyph_draw(library, face, sti_glyph_letters[k], c->cap_height,
                            FONT_PRINT_SIDE, &plain, print))
            return false;
        for (int i = 0; i < FONT_PRINT_BYTES; i++)
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
        font_candidate *c = file->faces ? &file->faces[i] : NULL;
        if (c && (c->prints = sti_alloc(FONT_FACE_BYTES, "fonts.prints"))) {
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

/* ---- all together ---- */

static stint_status gather(const font_file *files, int64_t file_count, font_pool *p)
{
    int64_t total = 0;
    for (int64_t i = 0; i < file_count; i++) {
        if (files[i].failed)
            return sti_fail(STINT_E_MEMORY, "no memory to look at the fonts");
        total += files[i].count;
    }
    p->faces = sti_alloc_array(total, sizeof(font_candidate *), "fonts.faces");
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
    font_pool p = {0};
    stint_status st = STINT_E_MEMORY;
    print_job job = {.paths = list->paths};
    if (!(job.files = sti_alloc_array(list->count, sizeof *job.files, "fonts.files")))
        return st;
    sti_team_run(team, list->count, print_piece, &job);
    if ((st = gather(job.files, list->count, &p)) == STINT_OK) {
        int64_t seen = p.count;
        if ((st = sti_fonts_judge(&p)) == STINT_OK)
            st = sti_fonts_arrange(&p, fonts);
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
