/* A field over a stream of points: lanes take tiles in turn, and rows of results are
 * handed on in the order of the points. What is in memory does not depend on how many
 * points there are. */
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"
#include "field/field_net.h"
#include "field/field_pipeline.h"

typedef struct field_run {
    const sti_field_choice *choice;
    const sti_field_stream *stream;
    sti_infer *infer;
    float *factor; /* [columns] */
    float *rows;   /* [lanes, tile, columns] */
    float *points; /* [lanes, tile, coordinates] */
    int64_t first; /* point that this round begins with */
} field_run;

static int64_t points_of(const field_run *r, int64_t lane)
{
    const int64_t tile = r->choice->plan.tile;
    const int64_t left = r->stream->points - r->first - lane * tile;
    return left < tile ? left : tile;
}

/* Columns from where the graph left them into rows. */
static void take_columns(const field_run *r, const sti_exec *exec, int64_t count,
                         float *rows)
{
    const int64_t columns = r->choice->list.count;
    for (int64_t c = 0; c < columns; c++) {
        const sti_column *column = &r->choice->net.columns[c];
        const float *from =
            (const float *)sti_exec_address(exec, column->value) + column->offset;
        const float factor = r->factor[c];
        for (int64_t i = 0; i < count; i++)
            rows[i * columns + c] = factor * from[i * column->step];
    }
}

static void run_lane(void *arg, int64_t lane, int worker)
{
    const field_run *r = arg;
    const int64_t tile = r->choice->plan.tile,
                  coordinates = r->choice->list.coordinates;
    const int64_t count = points_of(r, lane);
    sti_exec *exec = r->infer->lanes.lane[lane].exec;
    float *input = sti_exec_address(exec, r->choice->net.net.input);
    (void)worker;
    memset(input, 0, (size_t)(tile * coordinates) * sizeof *input);
    memcpy(input, r->points + lane * tile * coordinates,
           (size_t)(count * coordinates) * sizeof *input);
    sti_exec_run(exec, &sti_team_serial, &(sti_step){.step = 0});
    take_columns(r, exec, count, r->rows + lane * tile * r->choice->list.count);
}

/* As many tiles side by side as there are threads. */
static stint_status run_round(field_run *r)
{
    const int64_t tile = r->choice->plan.tile,
                  coordinates = r->choice->list.coordinates;
    const sti_team team = {r->choice->plan.threads};
    int64_t lanes = 0;
    stint_status st = STINT_OK;
    for (; lanes < team.threads && points_of(r, lanes) > 0; lanes++)
        STI_TRY(r->stream->give(r->stream->user, r->first + lanes * tile,
                                points_of(r, lanes),
                                r->points + lanes * tile * coordinates));
    sti_team_run(&team, lanes, run_lane, r);
    for (int64_t lane = 0; lane < lanes; lane++)
        STI_TRY(r->stream->take(r->stream->user,
                                r->rows + lane * tile * r->choice->list.count,
                                points_of(r, lane)));
    if (sti_stop_asked() != STINT_OK)
        st = sti_fail(sti_stop_asked(), "stopped while asking the field");
out:
    r->first += lanes * tile;
    return st;
}

/* What a column is multiplied by: the factorials of jets, and the scale once an order.
 */
static void find_factors(field_run *r)
{
    const double scale = r->stream->scale > 0 ? r->stream->scale : 1;
    for (int64_t c = 0; c < r->choice->list.count; c++) {
        const sti_derivative *row = &r->choice->list.row[c];
        double factor = (double)r->choice->net.columns[c].factor;
        for (int i = 0; i < (row->laplacian ? 2 : row->order); i++)
            factor /= scale;
        r->factor[c] = (float)factor;
    }
}

/* Stages side by side; weights are all that lanes would have had in common. */
static stint_status run_stages(const stint_model_file *model, field_run *r)
{
    const sti_network *net = &r->choice->net.net;
    const size_t *bytes = net->plan->region_bytes;
    void *params = sti_alloc(bytes[STI_REGION_PARAM], "parameters");
    void *states = sti_alloc(bytes[STI_REGION_STATE], "states");
    stint_status st = params && states ? STINT_OK : STINT_E_MEMORY;
    r->factor =
        sti_alloc_array(r->choice->list.count, sizeof *r->factor, "field.factors");
    if (st == STINT_OK && !r->factor)
        st = STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_model_load(model, net, params, states);
    if (st == STINT_OK) {
        find_factors(r);
        st = sti_field_pipeline_run(r->choice->pipeline, r->stream, params, r->factor);
    }
    sti_free(r->factor);
    sti_free(params);
    sti_free(states);
    sti_stop_clear();
    return st;
}

stint_status sti_field_run(const stint_model_file *model,
                           const sti_field_choice *choice,
                           const sti_field_stream *stream)
{
    field_run r = {.choice = choice, .stream = stream};
    const int threads = choice->plan.threads;
    const int64_t points = threads * choice->plan.tile;
    stint_status st;
    if (choice->pipeline)
        return run_stages(model, &r);
    STI_TRY(sti_infer_create(&choice->net.net, threads, threads, &r.infer));
    STI_TRY(sti_model_load(model, &choice->net.net, r.infer->params, r.infer->states));
    r.factor = sti_alloc_array(choice->list.count, sizeof *r.factor, "field.factors");
    r.rows = sti_alloc_array(points * choice->list.count, sizeof *r.rows, "field.rows");
    r.points =
        sti_alloc_array(points * choice->list.coordinates, sizeof *r.points, "points");
    st = r.factor && r.rows && r.points ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        find_factors(&r);
    while (st == STINT_OK && r.first < stream->points)
        st = run_round(&r);
out:
    sti_free(r.factor);
    sti_free(r.rows);
    sti_free(r.points);
    sti_infer_destroy(r.infer);
    sti_stop_clear();
    return st;
}
