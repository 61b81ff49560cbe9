/* A field asked at a grid or at the rows of a file, to a .npy. */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/npy.h"
#include "data/field.h"
#include "field/field_net.h"

enum { GRID_SIDE_MOST = 1 << 20 };

typedef struct evaluation {
    const stint_field_points *where;
    int64_t coordinates, columns;
    int64_t points;
    int fd; /* of a file of points; -1: a grid */
    int64_t offset;
    sti_writer *writer;
} evaluation;

/* ---- points of a file ---- */

/* Its shape is read through the map, its rows by pread: pages of a map would count as
 * ours. */
static stint_status open_points(evaluation *e)
{
    const char *path = e->where->path;
    sti_npy npy = {0};
    stint_status st = sti_npy_open(path, &npy);
    if (st != STINT_OK)
        return st;
    if (npy.kind != 'f' || npy.item_bytes != 4 || npy.rank != 2 ||
        npy.dim[1] != e->coordinates)
        st = sti_fail(STINT_E_INPUT,
                      "%s: an array of %d axes of %c%d%s; wanted float32 [points, "
                      "%" PRId64 "]",
                      path, npy.rank, npy.kind, npy.item_bytes,
                      npy.rank == 2 ? " with other columns" : "", e->coordinates);
    else if (npy.copy)
        st = sti_fail(STINT_E_INPUT,
                      "%s: in Fortran order, big-endian or in a .npz; write it by "
                      "numpy.save as a C-ordered float32 array",
                      path);
    e->points = npy.dim[0];
    e->offset = st == STINT_OK ? (const char *)npy.data - (const char *)npy.map : 0;
    sti_npy_close(&npy);
    return st == STINT_OK ? sti_file_open(path, &e->fd) : st;
}

static stint_status check_grid(evaluation *e)
{
    const stint_field_points *w = e->where;
    if (w->width < 1 || w->height < 1 || w->width > GRID_SIDE_MOST ||
        w->height > GRID_SIDE_MOST)
        return sti_fail(STINT_E_USAGE,
                        "a grid of %" PRId64 " x %" PRId64
                        " points; wanted 1 to %d each",
                        w->width, w->height, GRID_SIDE_MOST);
    e->points = w->width * w->height;
    return STINT_OK;
}

static void give_grid(const evaluation *e, int64_t first, int64_t count, float *out)
{
    const int64_t width = e->where->width, height = e->where->height;
    for (int64_t i = 0; i < count; i++) {
        out[2 * i] = sti_field_cell((first + i) % width, width);
        out[2 * i + 1] = sti_field_cell((first + i) / width, height);
    }
}

static stint_status give_file(const evaluation *e, int64_t first, int64_t count,
                              float *out)
{
    const int64_t row = e->coordinates * (int64_t)sizeof *out;
    const stint_status st = sti_read_at(e->fd, e->where->path, e->offset + first * row,
                                        out, (size_t)(count * row));
    for (int64_t i = 0; st == STINT_OK && i < count * e->coordinates; i++)
        if (!isfinite(out[i]))
            return sti_fail(
                STINT_E_INPUT, "%s: row %" PRId64 ", column %" PRId64 " is not finite",
                e->where->path, first + i / e->coordinates, i % e->coordinates);
    return st;
}

static stint_status give(void *user, int64_t first, int64_t count, float *out)
{
    const evaluation *e = user;
    if (e->fd >= 0)
        return give_file(e, first, count, out);
    give_grid(e, first, count, out);
    return STINT_OK;
}

static stint_status take(void *user, const float *rows, int64_t count)
{
    const evaluation *e = user;
    return sti_writer_add(e->writer, rows, (size_t)(count * e->columns) * sizeof *rows);
}

/* ---- the whole ---- */

static stint_status open_where(const stint_model_file *model, evaluation *e)
{
    stint_status st = sti_field_check(model, !e->where->path);
    if (st != STINT_OK)
        return st;
    e->coordinates = model->network.field.coordinates;
    return e->where->path ? open_points(e) : check_grid(e);
}

static stint_status write_rows(const stint_model_file *model, evaluation *e,
                               const sti_field_choice *choice, double scale,
                               const char *path)
{
    const sti_field_stream stream = {
        .points = e->points, .scale = scale, .give = give, .take = take, .user = e};
    const int64_t dim[2] = {e->points, choice->list.count};
    e->columns = choice->list.count;
    stint_status st = sti_writer_open(path, &e->writer);
    if (st != STINT_OK)
        return st;
    st = sti_npy_begin(e->writer, "<f4", 2, dim);
    if (st == STINT_OK)
        st = sti_field_run(model, choice, &stream);
    if (st == STINT_OK)
        return sti_writer_commit(e->writer);
    sti_writer_abort(e->writer);
    return st;
}

stint_status stint_field_eval(const stint_model_file *model, const stint_field_ask *ask,
                              const stint_field_points *points, const char *path,
                              stint_field_eval_result *result_out)
{
    const int64_t start_ns = sti_clock_ns();
    evaluation e = {.where = points, .fd = -1};
    sti_field_choice choice = {.plan = {.outputs = 0}};
    stint_status st;
    STI_TRY(open_where(model, &e));
    STI_TRY(sti_field_choose(model, ask, false, &choice));
    STI_TRY(write_rows(model, &e, &choice, ask->scale, path));
    *result_out = (stint_field_eval_result){.plan = choice.plan,
                                            .points = e.points,
                                            .seconds = sti_seconds_since(start_ns),
                                            .peak_rss_bytes = sti_process_peak_bytes()};
    choice.plan = (stint_field_plan_result){.outputs = 0};
out:
    sti_field_choice_fini(&choice);
    if (e.fd >= 0)
        close(e.fd);
    return st;
}
