/* stint data glyphs: an OCR set from the fonts of this machine.
 *
 * Sample i of a split draws everything it needs (group of families, family, face, pose)
 * from Philox words of (seed, split, i): any thread may render any sample. Groups are
 * drawn evenly, then families, then faces, so a family of thirty weights counts as one.
 * Images are rendered and compressed in parallel rounds and written in order. */
#include "stint/data.h"

#include "base/fail.h"

#if defined(STINT_HAVE_FREETYPE)

#include <archive.h>
#include <archive_entry.h>
#include <inttypes.h>
#include <png.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/rng.h"
#include "data/data_fonts.h"

#define ROUND      1024
#define OPEN_FACES 64
#define WORDS      16

/* A worker's FreeType, with some faces held open:
 * slot of a face is its number modulo. */
typedef struct pen {
    FT_Library library;
    FT_Face open[OPEN_FACES];
    int32_t number[OPEN_FACES];
    uint8_t *pixels; /* [size, size] */
} pen;

typedef struct picture {
    size_t bytes; /* 0: failed */
    char failure[160];
} picture;

typedef struct render_job {
    const sti_fonts *fonts;
    stint_data_split split;
    uint64_t seed;
    int size;
    int64_t per_class, first; /* of this round */
    pen *pens;                /* [threads] */
    picture *pictures;        /* [ROUND] */
    uint8_t *png;             /* [ROUND, png_bytes] */
    size_t png_bytes;
} render_job;

/* ---- one picture ---- */

static void draw_words(const render_job *job, int64_t sample, uint32_t words[WORDS])
{
    uint64_t id = (uint64_t)job->split << 48 | (uint64_t)sample;
    for (uint64_t k = 0; k < WORDS / 4; k++)
        sti_random4(job->seed, STI_STREAM_GLYPH, id, k, words + 4 * k);
}

static int32_t draw_face(const sti_fonts *fonts, stint_data_split split,
                         const uint32_t words[3])
{
    sti_font_range s = fonts->splits[split];
    int32_t g = s.first + (int32_t)sti_below(words[0], (uint32_t)s.count);
    sti_font_range group = fonts->groups[g];
    int32_t f = group.first + (int32_t)sti_below(words[1], (uint32_t)group.count);
    sti_font_range family = fonts->families[f];
    return family.first + (int32_t)sti_below(words[2], (uint32_t)family.count);
}

/* Uniform in [-1, 1). */
static double spread(uint32_t word)
{
    return 2.0 * (double)sti_uniform(word) - 1.0;
}

static sti_glyph_pose draw_pose(const uint32_t words[8], int size)
{
    double scale = 0.94 + 0.12 * spread(words[0]);
    return (sti_glyph_pose){
        .scale_x = scale * (1.0 + 0.06 * spread(words[1])),
        .scale_y = scale * (1.0 + 0.06 * spread(words[2])),
        .angle = 0.12 * spread(words[3]),
        .shear = 0.12 * spread(words[4]),
        .shift_x = size / 16.0 * spread(words[5]),
        .shift_y = size / 16.0 * spread(words[6]),
        .weight = size / 100.0 * spread(words[7]),
    };
}

/* Ink and paper levels; ink is bright, as in the common digit sets. */
static void tone(uint8_t *pixels, int64_t count, const uint32_t words[2])
{
    uint32_t paper = sti_below(words[0], 40), ink = 255 - sti_below(words[1], 90);
    for (int64_t i = 0; i < count; i++)
        pixels[i] = (uint8_t)(paper + (pixels[i] * (ink - paper) + 127) / 255);
}

static FT_Face open_face(pen *p, const sti_fonts *fonts, int32_t face)
{
    int slot = face % OPEN_FACES;
    if (p->open[slot] && p->number[slot] == face)
        return p->open[slot];
    if (p->open[slot])
        FT_Done_Face(p->open[slot]);
    p->open[slot] = NULL;
    p->number[slot] = face;
    if (FT_New_Face(p->library, fonts->faces[face].path, fonts->faces[face].index,
                    &p->open[slot]) != 0)
        p->open[slot] = NULL;
    return p->open[slot];
}

/* The cheapest compression: half the size for a tenth of the time of the default. */
static size_t write_png(const uint8_t *pixels, int size, uint8_t *out, size_t out_bytes)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)size,
                       .height = (png_uint_32)size,
                       .format = PNG_FORMAT_GRAY,
                       .flags = PNG_IMAGE_FLAG_FAST};
    png_alloc_size_t bytes = out_bytes;
    return png_image_write_to_memory(&image, out, &bytes, 0, pixels, 0, NULL) ? bytes
                                                                              : 0;
}

static void render_piece(void *arg, int64_t piece, int worker)
{
    const render_job *job = arg;
    pen *p = &job->pens[worker];
    picture *out = &job->pictures[piece];
    int64_t sample = job->first + piece;
    char letter = sti_glyph_letters[sample / job->per_class];
    uint32_t words[WORDS];
    draw_words(job, sample, words);
    int32_t number = draw_face(job->fonts, job->split, words);
    sti_glyph_pose pose = draw_pose(words + 3, job->size);
    const sti_face *face = &job->fonts->faces[number];
    FT_Face opened = open_face(p, job->fonts, number);
    out->bytes = 0;
    if (!opened || !sti_glyph_draw(p->library, opened, letter, face->cap_height,
                                   job->size, &pose, p->pixels)) {
        (void)snprintf(out->failure, sizeof out->failure, "cannot draw '%c' of %s",
                       letter, sti_path_name(face->path));
        return;
    }
    tone(p->pixels, (int64_t)job->size * job->size, words + 11);
    out->bytes = write_png(p->pixels, job->size,
                           job->png + (size_t)piece * job->png_bytes, job->png_bytes);
    if (!out->bytes)
        (void)snprintf(out->failure, sizeof out->failure, "no memory to write a PNG");
}

/* ---- writing ---- */

/* libarchive's way out into an atomic file. */
typedef struct tar_out {
    struct archive *archive;
    sti_writer *writer;
    stint_status status; /* of the writer, whose words are recorded */
} tar_out;

static la_ssize_t tar_bytes(struct archive *archive, void *user, const void *bytes,
                            size_t n)
{
    tar_out *out = user;
    (void)archive;
    out->status = sti_writer_add(out->writer, bytes, n);
    return out->status == STINT_OK ? (la_ssize_t)n : -1;
}

static stint_status tar_failure(const tar_out *out)
{
    if (out->status != STINT_OK)
        return out->status;
    const char *why = archive_error_string(out->archive);
    return sti_fail(STINT_E_IO, "cannot write the archive: %s",
                    why ? why : "no memory");
}

static stint_status tar_begin(tar_out *out, const char *path)
{
    stint_status st = sti_writer_open(path, &out->writer);
    if (st != STINT_OK)
        return st;
    out->archive = archive_write_new();
    if (!out->archive)
        return sti_fail(STINT_E_MEMORY, "no memory to write %s", path);
    if (archive_write_set_format_ustar(out->archive) != ARCHIVE_OK ||
        archive_write_open(out->archive, out, NULL, tar_bytes, NULL) != ARCHIVE_OK)
        return tar_failure(out);
    return STINT_OK;
}

static stint_status tar_add(tar_out *out, const char *name, const void *bytes, size_t n)
{
    struct archive_entry *entry = archive_entry_new();
    if (!entry)
        return sti_fail(STINT_E_MEMORY, "no memory to write %s", name);
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, (la_int64_t)n);
    archive_entry_set_mtime(entry, 0, 0); /* equal bytes on every day */
    bool good = archive_write_header(out->archive, entry) == ARCHIVE_OK &&
                archive_write_data(out->archive, bytes, n) == (la_ssize_t)n;
    archive_entry_free(entry);
    return good ? STINT_OK : tar_failure(out);
}

/* Closes the archive and, if all went well, gives the file its name. */
static stint_status tar_end(tar_out *out, stint_status st)
{
    if (out->archive) {
        if (archive_write_close(out->archive) != ARCHIVE_OK && st == STINT_OK)
            st = tar_failure(out);
        archive_write_free(out->archive);
    }
    if (st == STINT_OK)
        return sti_writer_commit(out->writer);
    sti_writer_abort(out->writer);
    return st;
}

static stint_status write_round(const render_job *job, int64_t n, tar_out *out)
{
    char name[64];
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < n && st == STINT_OK; i++) {
        int64_t sample = job->first + i;
        if (!job->pictures[i].bytes)
            return sti_fail(STINT_E_FAILED, "glyphs: %s", job->pictures[i].failure);
        (void)snprintf(name, sizeof name, "%s/%c/%05" PRId64 ".png",
                       job->split == STINT_DATA_TRAIN ? "train" : "test",
                       sti_glyph_letters[sample / job->per_class],
                       sample % job->per_class);
        st = tar_add(out, name, job->png + (size_t)i * job->png_bytes,
                     job->pictures[i].bytes);
    }
    return st;
}

/* ---- all together ---- */

typedef struct glyph_plan {
    const stint_data_glyphs_desc *desc;
    int64_t counts[2], done;
    sti_team team;
} glyph_plan;

static stint_status write_split(render_job *job, glyph_plan *plan,
                                stint_data_split split)
{
    tar_out tar = {0};
    char name[16];
    int64_t count = plan->counts[split];
    (void)snprintf(name, sizeof name, "%s.tar",
                   split == STINT_DATA_TRAIN ? "train" : "test");
    sti_arena *arena = sti_arena_create("glyphs.paths");
    char *path = arena ? sti_path_join(arena, plan->desc->folder, name) : NULL;
    stint_status st = path ? tar_begin(&tar, path) : STINT_E_MEMORY;
    job->split = split;
    job->per_class = count / STI_GLYPH_CLASSES;
    for (job->first = 0; job->first < count && st == STINT_OK; job->first += ROUND) {
        int64_t n = count - job->first < ROUND ? count - job->first : ROUND;
        sti_team_run(&plan->team, n, render_piece, job);
        st = write_round(job, n, &tar);
        plan->done += n;
        if (plan->desc->progress)
            plan->desc->progress(plan->desc->user, plan->done,
                                 plan->counts[0] + plan->counts[1]);
    }
    st = tar_end(&tar, st);
    sti_arena_destroy(arena);
    return st;
}

/* Does the archive begin as ours do: with the first letter, of no one, from 1970? */
static bool is_rendered(const char *path, const char *split)
{
    char head[148] = "", name[32];
    FILE *file = NULL;
    const bool whole = sti_file_open_stream(path, &file) == STINT_OK &&
                       fread(head, 1, sizeof head, file) == sizeof head;
    if (file)
        fclose(file);
    (void)snprintf(name, sizeof name, "%s/%c/00000.png", split, sti_glyph_letters[0]);
    return whole && strncmp(head, name, 100) == 0 &&
           memcmp(head + 136, "00000000000 ", 12) == 0;
}

/* Images that were not rendered here are somebody's, and not to be written over. */
static stint_status check_folder(const char *folder)
{
    static const char *const splits[] = {"train", "test"};
    stint_status st = STINT_OK;
    sti_arena *arena = sti_arena_create("glyphs.paths");
    for (int s = 0; s < 2 && st == STINT_OK; s++) {
        char *path =
            arena ? sti_arena_printf(arena, "%s/%s.tar", folder, splits[s]) : NULL;
        if (!path)
            st = STINT_E_MEMORY;
        else if (sti_path_is_file(path) && !is_rendered(path, splits[s]))
            st = sti_fail(STINT_E_USAGE,
                          "%s was not rendered by Stint and would be written over; "
                          "choose another folder by --out, or move it away",
                          path);
    }
    sti_arena_destroy(arena);
    return st;
}

static void free_job(render_job *job, int threads)
{
    for (int t = 0; job->pens && t < threads; t++) {
        pen *p = &job->pens[t];
        for (int i = 0; i < OPEN_FACES; i++)
            if (p->open[i])
                FT_Done_Face(p->open[i]);
        if (p->library)
            FT_Done_FreeType(p->library);
        sti_free(p->pixels);
    }
    sti_free(job->pens);
    sti_free(job->pictures);
    sti_free(job->png);
}

static stint_status alloc_job(render_job *job, int threads)
{
    size_t pixels = (size_t)job->size * (size_t)job->size;
    job->png_bytes = pixels + pixels / 8 + 1024;
    job->pens = sti_alloc_array(threads, sizeof *job->pens, "glyphs.pens");
    job->pictures = sti_alloc_array(ROUND, sizeof *job->pictures, "glyphs.pictures");
    job->png = sti_alloc_array(ROUND, job->png_bytes, "glyphs.png");
    if (!job->pens || !job->pictures || !job->png)
        return STINT_E_MEMORY;
    for (int t = 0; t < threads; t++) {
        if (!(job->pens[t].pixels = sti_alloc(pixels, "glyphs.pixels")))
            return STINT_E_MEMORY;
        if (FT_Init_FreeType(&job->pens[t].library) != 0)
            return sti_fail(STINT_E_MEMORY, "no memory for FreeType");
    }
    return STINT_OK;
}

static stint_status make_plan(const stint_data_glyphs_desc *desc, glyph_plan *plan)
{
    int64_t train = desc->train_count ? desc->train_count : 20160;
    int64_t test = desc->test_count ? desc->test_count : 3600;
    if (!desc->folder || !*desc->folder)
        return sti_fail(STINT_E_USAGE, "glyphs: name a folder to write train.tar into");
    if (train < 1 || test < 1 || train > 100000000 || test > 100000000)
        return sti_fail(STINT_E_USAGE,
                        "glyphs: counts must be 1 to 100,000,000 images");
    if (desc->size != 0 && (desc->size < 8 || desc->size > 256))
        return sti_fail(STINT_E_USAGE,
                        "glyphs: size %" PRId64 ": wanted 8 to 256 pixels", desc->size);
    plan->desc = desc;
    plan->team.threads = desc->threads > 0 ? desc->threads : 1;
    plan->counts[0] =
        (train + STI_GLYPH_CLASSES - 1) / STI_GLYPH_CLASSES * STI_GLYPH_CLASSES;
    plan->counts[1] =
        (test + STI_GLYPH_CLASSES - 1) / STI_GLYPH_CLASSES * STI_GLYPH_CLASSES;
    return STINT_OK;
}

stint_status stint_data_glyphs(const stint_data_glyphs_desc *desc,
                               stint_data_glyphs_result *result_out)
{
    glyph_plan plan = {0};
    sti_fonts fonts = {0};
    render_job job = {.seed = desc->seed, .size = desc->size ? (int)desc->size : 32};
    stint_status st = make_plan(desc, &plan);
    if (st == STINT_OK)
        st = check_folder(desc->folder);
    if (st != STINT_OK)
        return st;
    st = sti_fonts_find(desc->fonts, desc->min_faces > 0 ? desc->min_faces : 100,
                        &plan.team, &fonts);
    if (st != STINT_OK)
        return st;
    job.fonts = &fonts;
    if ((st = sti_dir_create(desc->folder)) != STINT_OK ||
        (st = alloc_job(&job, plan.team.threads)) != STINT_OK ||
        (st = write_split(&job, &plan, STINT_DATA_TRAIN)) != STINT_OK ||
        (st = write_split(&job, &plan, STINT_DATA_TEST)) != STINT_OK)
        goto out;
    *result_out = (stint_data_glyphs_result){.train_count = plan.counts[0],
                                             .test_count = plan.counts[1],
                                             .train_faces = fonts.split_faces[0],
                                             .test_faces = fonts.split_faces[1],
                                             .train_families = fonts.split_families[0],
                                             .test_families = fonts.split_families[1],
                                             .rejected_faces = fonts.rejected};
out:
    free_job(&job, plan.team.threads);
    sti_fonts_fini(&fonts);
    return st;
}

#else

stint_status stint_data_glyphs(const stint_data_glyphs_desc *desc,
                               stint_data_glyphs_result *result_out)
{
    (void)desc;
    (void)result_out;
    return sti_fail(STINT_E_UNSUPPORTED,
                    "this stint was built without FreeType; install "
                    "libfreetype-dev and build it again");
}

#endif
