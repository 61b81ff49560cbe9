/* Meshes by libassimp. Points are taken at even steps of the area, at random places of
 * their triangles.
 *
 * The library asserts what a damaged file can break, and so ends the process that it is
 * in. It reads in a process of its own, therefore, which hands triangles over by a
 * pipe; what it takes of memory is gone with it. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/rng.h"
#include "data/field_priv.h"

bool sti_field_is_mesh(const char *path)
{
    static const char *const meshes[] = {".obj", ".stl", ".ply", ".off",
                                         ".glb", ".fbx", ".dae"};
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++)
        if (strcasecmp(sti_path_extension(path), meshes[i]) == 0)
            return true;
    return false;
}

#if STINT_HAVE_ASSIMP
#include <assimp/cimport.h>
#include <assimp/postprocess.h>
#include <assimp/scene.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The reader has two seconds of CPU, and one more for each so many bytes of the file:
 * some damaged files would keep it for ever. */
enum { MESH_POINTS = 32768, READER_SECONDS = 2, BYTES_A_SECOND = 65536 };

typedef struct mesh_calls {
    const struct aiScene *(*import)(const char *, unsigned);
    void (*release)(const struct aiScene *);
    const char *(*text)(void);
} mesh_calls;

/* What the reader says first: triangles follow, or `words` letters of what went wrong.
 */
typedef struct reader_head {
    int32_t status, words;
    int64_t count;
} reader_head;

/* Triangles of all parts, [count, 3 corners, 3]. */
typedef struct triangles {
    double *corner;
    double *area; /* sums of areas up to and with each */
    int64_t count;
} triangles;

static stint_status load_meshes(mesh_calls *c)
{
    const sti_library_call calls[] = {{"aiImportFile", &c->import},
                                      {"aiReleaseImport", &c->release},
                                      {"aiGetErrorString", &c->text}};
    return sti_library_load("libassimp.so.5",
                            "meshes are read by libassimp, which is not installed "
                            "(Debian: libassimp5)",
                            calls, sizeof calls / sizeof *calls);
}

/* Twice the area, and the normal's direction. */
static double cross_product(const double *corner, double *out)
{
    double a[3], b[3];
    for (int c = 0; c < 3; c++) {
        a[c] = corner[3 + c] - corner[c];
        b[c] = corner[6 + c] - corner[c];
    }
    double most = 0, sum = 0;
    for (int c = 0; c < 3; c++) {
        out[c] = a[(c + 1) % 3] * b[(c + 2) % 3] - a[(c + 2) % 3] * b[(c + 1) % 3];
        most = fmax(most, fabs(out[c]));
        sum += out[c] * out[c];
    }
    if (sum > 1e-290 || !(most > 0))
        return sqrt(sum);
    sum = 0;
    for (int c = 0; c < 3; c++) /* whose squares would be nothing */
        sum += (out[c] / most) * (out[c] / most);
    return most * sqrt(sum);
}

static bool read_corners(const struct aiMesh *mesh, const struct aiFace *face,
                         double *corner)
{
    for (int i = 0; i < 3; i++) {
        if (face->mIndices[i] >= mesh->mNumVertices)
            return false;
        const struct aiVector3D *v = &mesh->mVertices[face->mIndices[i]];
        corner[3 * i] = (double)v->x;
        corner[3 * i + 1] = (double)v->y;
        corner[3 * i + 2] = (double)v->z;
    }
    for (int i = 0; i < 9; i++)
        if (!isfinite(corner[i]))
            return false;
    return true;
}

/* Faces that are triangles with an area; t->corner NULL: counted as faces alone. */
static void take_triangles(const struct aiScene *scene, triangles *t)
{
    int64_t count = 0;
    double normal[3];
    for (unsigned m = 0; m < scene->mNumMeshes; m++)
        for (unsigned i = 0; i < scene->mMeshes[m]->mNumFaces; i++) {
            const struct aiFace *face = &scene->mMeshes[m]->mFaces[i];
            if (face->mNumIndices != 3)
                continue;
            if (t->corner) {
                double *corner = t->corner + 9 * count;
                if (!read_corners(scene->mMeshes[m], face, corner) ||
                    !(cross_product(corner, normal) > 0))
                    continue;
            }
            count++;
        }
    t->count = count;
}

/* The box's longest side becomes 1.8 long about 0. */
static void place_corners(triangles *t)
{
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3], longest = 0;
    for (int c = 0; c < 3; c++) {
        high[c] = -INFINITY;
        for (int64_t i = 0; i < 3 * t->count; i++) {
            low[c] = fmin(low[c], t->corner[3 * i + c]);
            high[c] = fmax(high[c], t->corner[3 * i + c]);
        }
        longest = fmax(longest, high[c] - low[c]);
    }
    for (int64_t i = 0; i < 9 * t->count; i++)
        t->corner[i] = (t->corner[i] - (low[i % 3] + high[i % 3]) / 2) * 1.8 / longest;
}

static void draw_point(const triangles *t, int64_t i, int64_t triangle,
                       sti_field_points *f)
{
    const double *corner = t->corner + 9 * triangle;
    double normal[3];
    uint32_t w[4];
    sti_random4(0, STI_STREAM_SUBSET, (uint64_t)i, 0, w);
    const double r = sqrt((double)sti_uniform(w[0])), s = (double)sti_uniform(w[1]);
    const double length = cross_product(corner, normal);
    f->values[4 * i] = 0;
    for (int c = 0; c < 3; c++) {
        f->points[3 * i + c] =
            (float)((1 - r) * corner[c] + r * (1 - s) * corner[3 + c] +
                    r * s * corner[6 + c]);
        f->values[4 * i + 1 + c] = (float)(normal[c] / length);
    }
}

static stint_status draw_points(const triangles *t, sti_field_points *f)
{
    const double whole = t->area[t->count - 1];
    int64_t triangle = 0;
    f->coordinates = 3;
    f->outputs = 1;
    f->columns = 4;
    f->count = MESH_POINTS;
    f->points = sti_alloc_array(3 * f->count, sizeof *f->points, "field.points");
    f->values = sti_alloc_array(4 * f->count, sizeof *f->values, "field.values");
    if (!f->points || !f->values)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < f->count; i++) {
        const double at = whole * ((double)i + 0.5) / (double)f->count;
        while (triangle + 1 < t->count && t->area[triangle] < at)
            triangle++;
        draw_point(t, i, triangle, f);
    }
    return STINT_OK;
}

/* ---- the reader, in a process of its own ---- */

static stint_status take_scene(const struct aiScene *scene, const char *path,
                               triangles *t)
{
    take_triangles(scene, t);
    t->corner = sti_alloc_array(9 * t->count, sizeof *t->corner, "field.mesh");
    if (!t->corner)
        return STINT_E_MEMORY;
    take_triangles(scene, t);
    return t->count > 0 ? STINT_OK
                        : sti_fail(STINT_E_INPUT, "%s: a mesh without triangles", path);
}

static stint_status import_mesh(const char *path, triangles *t)
{
    mesh_calls calls;
    const stint_status st = load_meshes(&calls);
    if (st != STINT_OK)
        return st;
    const struct aiScene *scene =
        calls.import(path, aiProcess_Triangulate | aiProcess_PreTransformVertices);
    return scene ? take_scene(scene, path, t)
                 : sti_fail(STINT_E_INPUT, "%s: no mesh that libassimp reads: %s", path,
                            calls.text());
}

static void limit_time(const char *path)
{
    struct stat file = {.st_size = 0};
    (void)stat(path, &file);
    const rlim_t seconds = READER_SECONDS + (rlim_t)file.st_size / BYTES_A_SECOND;
    const struct rlimit limit = {seconds, seconds + 1};
    (void)setrlimit(RLIMIT_CPU, &limit);
}

_Noreturn static void run_reader(const char *path, int out)
{
    triangles t = {.corner = NULL};
    const int quiet = open("/dev/null", O_WRONLY);
    if (quiet >= 0)
        (void)dup2(quiet, STDERR_FILENO); /* where it says what it asserts */
    limit_time(path);
    const stint_status st = import_mesh(path, &t);
    const char *words = st == STINT_OK ? "" : stint_last_error();
    const reader_head head = {(int32_t)st, (int32_t)strlen(words),
                              st == STINT_OK ? t.count : 0};
    stint_status sent = sti_write_all(out, path, &head, sizeof head);
    if (sent == STINT_OK)
        sent = sti_write_all(out, path, words, (size_t)head.words);
    if (sent == STINT_OK)
        sent = sti_write_all(out, path, t.corner,
                             (size_t)(9 * head.count) * sizeof *t.corner);
    _exit(sent == STINT_OK ? 0 : 1);
}

/* false: it ended before. */
static bool read_whole(int fd, void *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = read(fd, (char *)to + done, bytes - done);
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            return false;
    }
    return true;
}

static stint_status fail_as_reader(int fd, const reader_head *head)
{
    char words[1024];
    const size_t n =
        (size_t)head->words < sizeof words ? (size_t)head->words : sizeof words - 1;
    words[read_whole(fd, words, n) ? n : 0] = '\0';
    return sti_fail((stint_status)head->status, "%s", words);
}

/* *whole: all that the reader said came through. */
static stint_status take_answer(int fd, triangles *t, bool *whole)
{
    reader_head head;
    *whole = read_whole(fd, &head, sizeof head);
    if (!*whole)
        return STINT_OK;
    if (head.status != STINT_OK)
        return fail_as_reader(fd, &head);
    t->count = head.count;
    t->corner = sti_alloc_array(9 * t->count, sizeof *t->corner, "field.mesh");
    if (!t->corner)
        return STINT_E_MEMORY;
    *whole = read_whole(fd, t->corner, (size_t)(9 * t->count) * sizeof *t->corner);
    return STINT_OK;
}

static stint_status read_apart(const char *path, triangles *t)
{
    int ends[2], how = 0;
    bool whole = false;
    if (pipe(ends) != 0)
        return sti_fail(STINT_E_IO, "%s: no pipe to a reader: %s", path,
                        strerror(errno));
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    const pid_t child = fork();
    if (child == 0)
        run_reader(path, ends[1]);
    close(ends[1]);
    stint_status st = child < 0
                          ? sti_fail(STINT_E_MEMORY, "%s: no process to read it", path)
                          : take_answer(ends[0], t, &whole);
    close(ends[0]);
    while (child > 0 && waitpid(child, &how, 0) < 0 && errno == EINTR)
        continue;
    if (st == STINT_OK && !whole)
        st = sti_fail(STINT_E_INPUT, "%s: libassimp %s on it (signal %d)", path,
                      WIFSIGNALED(how) && WTERMSIG(how) == SIGXCPU ? "took too long"
                                                                   : "broke down",
                      WIFSIGNALED(how) ? WTERMSIG(how) : 0);
    return st;
}

stint_status sti_field_open_mesh(const sti_field_want *want, sti_field_points *f)
{
    triangles t = {.corner = NULL};
    double normal[3], sum = 0;
    stint_status st = sti_path_check_file(want->path);
    if (st == STINT_OK)
        st = read_apart(want->path, &t);
    if (st == STINT_OK) {
        place_corners(&t);
        t.area = sti_alloc_array(t.count, sizeof *t.area, "field.mesh");
        st = t.area ? STINT_OK : STINT_E_MEMORY;
    }
    for (int64_t i = 0; st == STINT_OK && i < t.count; i++)
        t.area[i] = sum += cross_product(t.corner + 9 * i, normal);
    if (st == STINT_OK && !(sum > 0))
        st = sti_fail(STINT_E_INPUT,
                      "%s: triangles without an area, beside the size of the whole",
                      want->path);
    if (st == STINT_OK)
        st = draw_points(&t, f);
    sti_free(t.corner);
    sti_free(t.area);
    return st;
}
#else
stint_status sti_field_open_mesh(const sti_field_want *want, sti_field_points *f)
{
    (void)f;
    return sti_fail(STINT_E_UNSUPPORTED,
                    "%s: a mesh, and this build has no library that reads meshes "
                    "(libassimp-dev was not there); give a folder with points.npy "
                    "[n, 3] and values.npy",
                    want->path);
}
#endif
