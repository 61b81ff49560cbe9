/* Meshes by libassimp, which is loaded when the first is read. Points are taken at even
 * steps of the area, at random places of their triangles. */
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

enum { MESH_POINTS = 32768 };

typedef struct mesh_calls {
    const struct aiScene *(*import)(const char *, unsigned);
    void (*release)(const struct aiScene *);
    const char *(*text)(void);
} mesh_calls;

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
    for (int c = 0; c < 3; c++)
        out[c] = a[(c + 1) % 3] * b[(c + 2) % 3] - a[(c + 2) % 3] * b[(c + 1) % 3];
    return sqrt(out[0] * out[0] + out[1] * out[1] + out[2] * out[2]);
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
    double normal[3], sum = 0;
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
                t->area[count] = sum += cross_product(corner, normal);
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

static stint_status take_scene(const struct aiScene *scene, const char *path,
                               sti_field_points *f)
{
    triangles t = {.corner = NULL};
    stint_status st = STINT_OK;
    take_triangles(scene, &t);
    const int64_t faces = t.count;
    t.corner = sti_alloc_array(9 * faces, sizeof *t.corner, "field.mesh");
    t.area = sti_alloc_array(faces, sizeof *t.area, "field.mesh");
    if (!t.corner || !t.area)
        st = STINT_E_MEMORY;
    else
        take_triangles(scene, &t);
    if (st == STINT_OK && t.count == 0)
        st = sti_fail(STINT_E_INPUT, "%s: a mesh without triangles", path);
    if (st == STINT_OK) {
        place_corners(&t);
        st = draw_points(&t, f);
    }
    sti_free(t.corner);
    sti_free(t.area);
    return st;
}

stint_status sti_field_open_mesh(const sti_field_want *want, sti_field_points *f)
{
    mesh_calls calls;
    stint_status st = load_meshes(&calls);
    if (st != STINT_OK)
        return st;
    const struct aiScene *scene = calls.import(
        want->path, aiProcess_Triangulate | aiProcess_PreTransformVertices);
    if (!scene)
        return sti_fail(STINT_E_INPUT, "%s: no mesh that libassimp reads: %s",
                        want->path, calls.text());
    st = take_scene(scene, want->path, f);
    calls.release(scene);
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
