/* Walking a nest. Every loop has a range that is still open, at[] .. to[]; a level
 * narrows the range of its loop to one of its steps and goes on with the level below,
 * so blocking, clipping and the body's own extent are all the same thing. */
#include "kernel/loop/loop.h"

typedef struct walk {
    const sti_loop *loop;
    sti_loop_body *body;
    void *arg;
    sti_loop_where where;
    int place[3];          /* of this thread in the grid */
    int levels;            /* walk down to here */
    int64_t first, beyond; /* ordinals of the shared group that are this thread's */
    int64_t at[STI_LOOPS_MAX], to[STI_LOOPS_MAX];
} walk;

static void walk_level(walk *w, int level);

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t steps_in(int64_t from, int64_t to, int64_t step)
{
    return to > from ? (to - from - 1) / step + 1 : 0;
}

/* floor(total * i / parts) without the overflow. */
static int64_t share_begin(int64_t total, int64_t i, int64_t parts)
{
    return total / parts * i + total % parts * i / parts;
}

static void walk_below(walk *w, int level)
{
    if (level + 1 == w->levels)
        w->body(w->arg, w->at, w->to, w->where);
    else
        walk_level(w, level + 1);
}

/* The steps of a level from `from` on, up to `to`. */
static void walk_steps(walk *w, int level, int64_t from, int64_t to)
{
    const sti_loop_level *l = &w->loop->level[level];
    const int x = l->loop;
    const int64_t at = w->at[x], end = w->to[x], step = l->step;
    for (int64_t left = to - from; left > 0; left -= step, from += step) {
        w->at[x] = from;
        w->to[x] = from + least(step, left);
        walk_below(w, level);
    }
    w->at[x] = at;
    w->to[x] = end;
}

static void walk_grid(walk *w, int level)
{
    const sti_loop_level *l = &w->loop->level[level];
    const int64_t from = w->at[l->loop], to = w->to[l->loop];
    const int64_t tasks = steps_in(from, to, l->step);
    const int64_t chunk = (tasks + l->ways - 1) / l->ways;
    const int64_t first = least(w->place[l->axis] * chunk, tasks);
    const int64_t beyond = least(first + chunk, tasks);
    if (beyond > first)
        walk_steps(w, level, from + first * l->step,
                   beyond == tasks ? to : from + beyond * l->step);
}

/* Steps of a level of the group as they are counted: a loop that occurs twice in it
 * counts as if no block were clipped; the steps that are not there are passed over. */
static int64_t shared_steps(const walk *w, int level, int64_t block)
{
    const sti_loop_level *l = &w->loop->level[level];
    return l->again ? (block + l->step - 1) / l->step
                    : steps_in(w->at[l->loop], w->to[l->loop], l->step);
}

/* The step of the level above in the group of the same loop. */
static int64_t block_above(const walk *w, int level)
{
    const sti_loop_level *l = w->loop->level;
    int above = level - 1;
    while (above > 0 && l[above].loop != l[level].loop)
        above--;
    return above < 0 ? 1 : l[above].step;
}

/* Ordinals of the group under one step of `level`. */
static int64_t shared_below(const walk *w, int level)
{
    int64_t cells = 1;
    for (int i = level + 1; i <= w->loop->last_shared; i++)
        cells *= shared_steps(w, i, block_above(w, i));
    return cells;
}

/* Levels of the group; the first ordinal below is `ordinal`. */
static void walk_shared(walk *w, int level, int64_t ordinal)
{
    const sti_loop_level *l = &w->loop->level[level];
    const int x = l->loop;
    const int64_t at = w->at[x], end = w->to[x];
    const int64_t below = shared_below(w, level), steps = steps_in(at, end, l->step);
    if (below == 0 || w->beyond <= ordinal)
        return;
    const int64_t first = w->first > ordinal ? (w->first - ordinal) / below : 0;
    const int64_t beyond = least((w->beyond - ordinal - 1) / below + 1, steps);
    for (int64_t i = first; i < beyond; i++) {
        w->at[x] = at + i * l->step;
        w->to[x] = w->at[x] + least(l->step, end - w->at[x]);
        if (level < w->loop->last_shared)
            walk_shared(w, level + 1, ordinal + i * below);
        else
            walk_below(w, level);
    }
    w->at[x] = at;
    w->to[x] = end;
}

static void walk_group(walk *w, int level)
{
    const sti_loop_level *l = &w->loop->level[level];
    const int64_t total =
        shared_below(w, level) * steps_in(w->at[l->loop], w->to[l->loop], l->step);
    w->first = share_begin(total, w->where.thread, w->loop->threads);
    w->beyond = share_begin(total, w->where.thread + 1, w->loop->threads);
    if (w->beyond > w->first)
        walk_shared(w, level, 0);
}

static void walk_curve(walk *w, int level)
{
    const sti_loop_level *l = &w->loop->level[level];
    const int x = l->loop, y = l->other;
    const sti_loop_spec *sx = &w->loop->spec[x], *sy = &w->loop->spec[y];
    const int64_t width = steps_in(sx->start, sx->end, sx->step);
    const int64_t height = steps_in(sy->start, sy->end, sy->step);
    const int64_t beyond =
        share_begin(width * height, w->where.thread + 1, w->loop->threads);
    for (int64_t d = share_begin(width * height, w->where.thread, w->loop->threads);
         d < beyond; d++) {
        int64_t i, j;
        sti_loop_curve(width, height, d, &i, &j);
        w->at[x] = sx->start + i * sx->step;
        w->at[y] = sy->start + j * sy->step;
        w->to[x] = w->at[x] + least(sx->step, sx->end - w->at[x]);
        w->to[y] = w->at[y] + least(sy->step, sy->end - w->at[y]);
        walk_below(w, level);
    }
    w->at[x] = sx->start, w->to[x] = sx->end;
    w->at[y] = sy->start, w->to[y] = sy->end;
}

static void walk_level(walk *w, int level)
{
    const sti_loop_level *l = &w->loop->level[level];
    switch (l->kind) {
    case STI_LOOP_GRID:
        walk_grid(w, level);
        return;
    case STI_LOOP_SHARED:
        walk_group(w, level);
        return;
    case STI_LOOP_CURVE:
        walk_curve(w, level);
        return;
    case STI_LOOP_SERIAL:
        break;
    }
    walk_steps(w, level, w->at[l->loop], w->to[l->loop]);
}

static walk walk_begin(const sti_loop *loop, sti_loop_body *body, void *arg)
{
    walk w = {.loop = loop, .body = body, .arg = arg, .levels = loop->levels};
    for (int i = 0; i < loop->loops; i++) {
        w.at[i] = loop->spec[i].start;
        w.to[i] = loop->spec[i].end;
    }
    return w;
}

/* False: beyond the grid, nothing to do. */
static bool walk_as(walk *w, int thread, int worker)
{
    const int *ways = w->loop->ways;
    w->where = (sti_loop_where){.thread = thread, .worker = worker};
    if (!w->loop->grids)
        return true;
    const int inside = thread % (ways[0] * ways[1]);
    w->place[0] = inside / ways[1];
    w->place[1] = inside % ways[1];
    w->place[2] = thread / (ways[0] * ways[1]);
    return w->place[2] < ways[2];
}

/* A string whose loops are all serial is one thread's work. */
static bool has_part(const sti_loop *loop, int thread)
{
    if (thread == 0)
        return true;
    for (int i = 0; i < loop->levels; i++)
        if (loop->level[i].kind != STI_LOOP_SERIAL)
            return true;
    return false;
}

void sti_loop_walk(const sti_loop *loop, int thread, sti_loop_body *body, void *arg)
{
    walk w = walk_begin(loop, body, arg);
    if (has_part(loop, thread) && walk_as(&w, thread, 0))
        walk_level(&w, 0);
}

/* ---- on a team ---- */

typedef struct team_job {
    const sti_loop *loop;
    const sti_team *team;
    sti_loop_body *body;
    sti_loop_hook *begin, *end;
    void *arg;
    const walk *from; /* where the levels outside barriers stand */
} team_job;

static void part_piece(void *arg, int64_t piece, int worker)
{
    const team_job *job = arg;
    walk w = *job->from;
    w.body = job->body;
    w.arg = job->arg;
    w.levels = job->loop->levels;
    if (job->begin)
        job->begin(job->arg, (sti_loop_where){(int)piece, worker});
    if (has_part(job->loop, (int)piece) && walk_as(&w, (int)piece, worker))
        walk_level(&w, job->loop->phase_levels);
    if (job->end)
        job->end(job->arg, (sti_loop_where){(int)piece, worker});
}

static void hook_piece(void *arg, int64_t piece, int worker)
{
    const team_job *job = arg;
    job->begin(job->arg, (sti_loop_where){(int)piece, worker});
}

static void run_hook(const team_job *job, sti_loop_hook *hook)
{
    team_job copy = *job;
    copy.begin = hook;
    if (hook)
        sti_team_run(job->team, job->loop->threads, hook_piece, &copy);
}

static void run_parts(void *arg, const int64_t *at, const int64_t *to,
                      sti_loop_where where)
{
    team_job job = *(const team_job *)arg;
    walk from = walk_begin(job.loop, NULL, NULL);
    (void)where;
    for (int i = 0; i < job.loop->loops; i++) {
        from.at[i] = at[i];
        from.to[i] = to[i];
    }
    job.from = &from;
    sti_team_run(job.team, job.loop->threads, part_piece, &job);
}

void sti_loop_run(const sti_loop *loop, const sti_team *team, sti_loop_body *body,
                  sti_loop_hook *begin, sti_loop_hook *end, void *arg)
{
    team_job job = {.loop = loop, .team = team, .body = body, .arg = arg};
    walk outside = walk_begin(loop, run_parts, &job);
    outside.levels = loop->phase_levels;
    if (loop->phase_levels == 0) { /* a barrier at the end of all is the join */
        job.begin = begin;
        job.end = end;
        run_parts(&job, outside.at, outside.to, (sti_loop_where){0, 0});
        return;
    }
    run_hook(&job, begin);
    walk_level(&outside, 0);
    run_hook(&job, end);
}
