#include "svm/smo.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/stop.h"
#include "svm/smo_set.h"

/* Variables of one side of a group that violate most so far: a heap whose root violates
 * least. */
typedef struct worst {
    int64_t count, most;
    double key[STI_SMO_SET];
    int64_t variable[STI_SMO_SET];
} worst;

struct sti_smo {
    const sti_team *team;
    sti_smo_rows *rows;
    const sti_smo_problem *p;
    double *alpha;
    double *v;        /* [variables] -y G */
    double *diagonal; /* [points] */
    double *change;   /* [points] what a set did to K a */
    bool *active;     /* [points] not shrunk */
    int32_t *column;  /* [points] the active ones */
    int64_t columns;
    int8_t *chosen; /* [variables] is in the set that is built */
    /* where the active variables stand, a group each */
    double most[2], least[2];
    sti_smo_set set;
    int64_t last_count; /* of the set before */
    int64_t last[STI_SMO_SET];
    worst worst;
    /* points whose alphas a set changed */
    int32_t moved_point[STI_SMO_SET_ROOM];
    double moved_by[STI_SMO_SET_ROOM];
    double before[STI_SMO_SET_ROOM];
    /* of a call to sti_smo_set_solve */
    double tolerance;
    int64_t left, done;
};

/* ---- life ---- */

/* Rows of a working set's kernel values, at most. */
static int64_t set_rows(int64_t variables)
{
    return variables < STI_SMO_SET ? variables + 16 : STI_SMO_SET_ROOM;
}

size_t sti_smo_bytes(int64_t points, int64_t variables)
{
    return sizeof(sti_smo) + (size_t)variables * (sizeof(double) + 1) +
           (size_t)points * (2 * sizeof(double) + 5) +
           sizeof(float) * STI_SMO_SET_ROOM * (size_t)set_rows(variables);
}

stint_status sti_smo_create(const sti_team *team, sti_smo_rows *rows, int64_t points,
                            int64_t variables, sti_smo **out)
{
    sti_smo *s = sti_alloc(sizeof *s, "svm.smo");
    if (!s)
        return STINT_E_MEMORY;
    s->team = team;
    s->rows = rows;
    s->v = sti_alloc_array(variables, sizeof(double), "svm.violations");
    s->chosen = sti_alloc_array(variables, 1, "svm.chosen");
    s->diagonal = sti_alloc_array(points, sizeof(double), "svm.diagonal");
    s->change = sti_alloc_array(points, sizeof(double), "svm.change");
    s->active = sti_alloc_array(points, sizeof *s->active, "svm.active");
    s->column = sti_alloc_array(points, sizeof *s->column, "svm.columns");
    s->set.k = sti_alloc_array(set_rows(variables), sizeof(float) * STI_SMO_SET_ROOM,
                               "svm.set");
    if (s->v && s->chosen && s->diagonal && s->change && s->active && s->column &&
        s->set.k) {
        *out = s;
        return STINT_OK;
    }
    sti_smo_destroy(s);
    return STINT_E_MEMORY;
}

void sti_smo_destroy(sti_smo *s)
{
    if (!s)
        return;
    sti_free(s->v);
    sti_free(s->chosen);
    sti_free(s->diagonal);
    sti_free(s->change);
    sti_free(s->active);
    sti_free(s->column);
    sti_free(s->set.k);
    sti_free(s);
}

/* ---- variables ---- */

static int32_t point_of(const sti_smo *s, int64_t variable)
{
    const int64_t points = s->p->points;
    return (int32_t)(variable < points ? variable : variable - points);
}

static int group_of(const sti_smo *s, int64_t variable)
{
    return s->p->nu && variable >= s->p->positives;
}

static double sign_of(const sti_smo *s, int64_t variable)
{
    return variable < s->p->positives ? 1 : -1;
}

/* The most and least of the active variables; returns the gap. */
static double survey(sti_smo *s)
{
    for (int g = 0; g < 2; g++) {
        s->most[g] = -(double)INFINITY;
        s->least[g] = (double)INFINITY;
    }
    for (int64_t k = 0; k < s->p->variables; k++) {
        double up, low;
        const int g = group_of(s, k);
        if (!s->active[point_of(s, k)])
            continue;
        sti_smo_free_ways(s->p, k, s->alpha[k], &up, &low);
        s->most[g] = fmax(s->most[g], s->v[k] + up);
        s->least[g] = fmin(s->least[g], s->v[k] + low);
    }
    return fmax(s->most[0] - s->least[0], s->most[1] - s->least[1]);
}

/* v of the columns' variables hears of a change of alphas. */
static void pass_on(sti_smo *s)
{
    for (int64_t k = 0; k < s->p->variables; k++)
        if (s->active[point_of(s, k)])
            s->v[k] -= s->change[point_of(s, k)];
}

/* ---- shrinking ---- */

/* A variable at an end that it will hardly leave: all that may move against it lie on
 * its far side. */
static bool is_bound(const sti_smo *s, int64_t k)
{
    double up, low;
    const int g = group_of(s, k);
    sti_smo_free_ways(s->p, k, s->alpha[k], &up, &low);
    if (up == 0 && low == 0)
        return false;
    return up == 0 ? s->v[k] < s->least[g] : s->v[k] > s->most[g];
}

/* Leave out points all of whose variables are bound, once they are a third or more. */
static void shrink(sti_smo *s)
{
    const int64_t points = s->p->points;
    int64_t stay = 0;
    for (int64_t i = 0; i < s->columns; i++) {
        const int64_t k = s->column[i];
        stay +=
            !(is_bound(s, k) && (s->p->variables == points || is_bound(s, k + points)));
    }
    if (stay > s->columns - s->columns / 3 || stay == 0)
        return;
    int64_t at = 0;
    for (int64_t i = 0; i < s->columns; i++) {
        const int32_t k = s->column[i];
        if (is_bound(s, k) && (s->p->variables == points || is_bound(s, k + points)))
            s->active[k] = false;
        else
            s->column[at++] = k;
    }
    s->columns = at;
    sti_smo_rows_columns(s->rows, s->columns, s->column);
}

/* v of every active variable from all alphas. */
static void make_violations(sti_smo *s)
{
    const int64_t points = s->p->points;
    int64_t count = 0;
    for (int64_t k = 0; k < s->p->variables; k++)
        if (s->active[point_of(s, k)])
            s->v[k] = s->p->linear[k];
    for (int64_t i = 0; i < points; i++) {
        const double second = s->p->variables > points
                                  ? sign_of(s, i + points) * s->alpha[i + points]
                                  : 0;
        const double beta = sign_of(s, i) * s->alpha[i] + second;
        if (beta != 0) {
            s->moved_point[count] = (int32_t)i;
            s->moved_by[count++] = beta;
        }
        if (count == STI_SMO_SET || (i + 1 == points && count > 0)) {
            sti_smo_rows_sum(s->rows, count, s->moved_point, s->moved_by, s->change);
            pass_on(s);
            count = 0;
        }
    }
}

/* All points are active again; those that were not hear of what they missed. */
static void unshrink(sti_smo *s)
{
    const int64_t points = s->p->points;
    s->columns = 0;
    for (int64_t i = 0; i < points; i++) {
        s->active[i] = !s->active[i];
        if (s->active[i])
            s->column[s->columns++] = (int32_t)i;
    }
    sti_smo_rows_columns(s->rows, s->columns, s->column);
    make_violations(s);
    for (int64_t i = 0; i < points; i++) {
        s->active[i] = true;
        s->column[i] = (int32_t)i;
    }
    s->columns = points;
    sti_smo_rows_columns(s->rows, s->columns, s->column);
}

/* ---- working sets ---- */

static void sink(worst *w, int64_t at)
{
    for (;;) {
        int64_t least = at;
        for (int64_t child = 2 * at + 1; child < 2 * at + 3 && child < w->count;
             child++)
            if (w->key[child] < w->key[least])
                least = child;
        if (least == at)
            return;
        const double key = w->key[at];
        const int64_t variable = w->variable[at];
        w->key[at] = w->key[least];
        w->variable[at] = w->variable[least];
        w->key[least] = key;
        w->variable[least] = variable;
        at = least;
    }
}

static void offer(worst *w, double key, int64_t variable)
{
    if (w->count < w->most) {
        w->key[w->count] = key;
        w->variable[w->count++] = variable;
        if (w->count == w->most)
            for (int64_t i = w->count / 2; i-- > 0;)
                sink(w, i);
    } else if (key > w->key[0]) {
        w->key[0] = key;
        w->variable[0] = variable;
        sink(w, 0);
    }
}

/* The `most` largest v that may rise (rise), or least that may fall, of a group. */
static int64_t choose_worst(sti_smo *s, int group, bool rise, int64_t most)
{
    worst *w = &s->worst;
    w->count = 0;
    w->most = most;
    for (int64_t k = 0; k < s->p->variables && most > 0; k++) {
        double up, low;
        if (s->chosen[k] || group_of(s, k) != group || !s->active[point_of(s, k)])
            continue;
        sti_smo_free_ways(s->p, k, s->alpha[k], &up, &low);
        if ((rise ? up : low) == 0)
            offer(w, rise ? s->v[k] : -s->v[k], k);
    }
    for (int64_t i = 0; i < w->count; i++)
        s->chosen[w->variable[i]] = 1;
    return w->count;
}

/* Variables of the last set stay while there is room: first those that are free. */
static int64_t keep_last(sti_smo *s, int64_t room)
{
    int64_t kept = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < s->last_count && kept < room; i++) {
            const int64_t k = s->last[i];
            const double a = s->alpha[k];
            const bool free = a > 0 && a < s->p->bound[k];
            if (s->chosen[k] || !s->active[point_of(s, k)] || (pass == 0) != free)
                continue;
            s->chosen[k] = 1;
            kept++;
        }
    return kept;
}

/* The groups' chosen variables in ascending order, filled up with fillers. */
static void fill_set(sti_smo *s)
{
    sti_smo_set *set = &s->set;
    const int64_t variables = s->p->variables;
    int64_t at = 0, count = 0;
    set->groups = s->p->nu ? 2 : 1;
    for (int g = 0; g < set->groups; g++) {
        set->begin[g] = at;
        for (int64_t k = 0; k < variables; k++)
            if (s->chosen[k] && group_of(s, k) == g) {
                set->variable[at] = s->last[count++] = k;
                set->point[at] = point_of(s, k);
                set->v[at] = s->v[k];
                set->diagonal[at] = s->diagonal[point_of(s, k)];
                sti_smo_free_ways(s->p, k, s->alpha[k], &set->up[at], &set->low[at]);
                s->before[at++] = s->alpha[k];
            }
        for (; at % 8 != 0; at++) {
            set->variable[at] = -1;
            set->point[at] = set->point[0];
            set->v[at] = set->diagonal[at] = 0;
            set->up[at] = -(double)INFINITY;
            set->low[at] = (double)INFINITY;
        }
    }
    set->begin[set->groups] = set->count = at;
    s->last_count = count;
    memset(s->chosen, 0, (size_t)variables);
}

static void choose_set(sti_smo *s)
{
    const int64_t variables = s->p->variables, most = STI_SMO_SET;
    if (variables <= most) {
        memset(s->chosen, 1, (size_t)variables);
    } else {
        const int groups = s->p->nu ? 2 : 1;
        const int64_t fresh = s->last_count > 0 ? most / 2 : most;
        int64_t count = 0;
        for (int g = 0; g < groups; g++) {
            count += choose_worst(s, g, true, fresh / (2 * groups));
            count += choose_worst(s, g, false, fresh / (2 * groups));
        }
        keep_last(s, most - count);
    }
    fill_set(s);
    sti_smo_rows_block(s->rows, s->set.count, s->set.point, STI_SMO_SET_ROOM, s->set.k);
}

static void set_piece(void *arg, int64_t piece, int worker)
{
    sti_smo *s = arg;
    (void)piece;
    (void)worker;
    s->done = sti_smo_set_solve(&s->set, s->p, s->tolerance, s->left, s->alpha);
}

/* What the set's alphas did, told to all active variables. */
static void tell_others(sti_smo *s)
{
    const sti_smo_set *set = &s->set;
    int64_t count = 0;
    for (int64_t e = 0; e < set->count; e++) {
        const int64_t k = set->variable[e];
        if (k < 0 || s->alpha[k] == s->before[e])
            continue;
        const double by = sign_of(s, k) * (s->alpha[k] - s->before[e]);
        int64_t same = count; /* the other variable of the point, if it moved */
        for (int64_t i = 0; s->p->variables > s->p->points && i < count; i++)
            if (s->moved_point[i] == set->point[e])
                same = i;
        s->moved_point[same] = set->point[e];
        s->moved_by[same] = same < count ? s->moved_by[same] + by : by;
        count += same == count;
    }
    sti_smo_rows_sum(s->rows, count, s->moved_point, s->moved_by, s->change);
    pass_on(s);
}

/* One working set, solved and told. */
static void work(sti_smo *s, double gap)
{
    const bool whole = s->p->variables <= STI_SMO_SET;
    choose_set(s);
    s->tolerance = whole ? s->p->tolerance : fmax(0.5 * s->p->tolerance, 0.1 * gap);
    sti_team_run(s->team, 1, set_piece, s);
    if (!whole) {
        tell_others(s);
        return;
    }
    for (int64_t e = 0; e < s->set.count; e++)
        if (s->set.variable[e] >= 0)
            s->v[s->set.variable[e]] = s->set.v[e];
}

/* ---- the end ---- */

/* LIBSVM's rho and r: means of v over free variables, or the middle of the gap. */
static double middle_of(const sti_smo *s, int group)
{
    double sum = 0;
    int64_t free = 0;
    for (int64_t k = 0; k < s->p->variables; k++)
        if (group_of(s, k) == group && s->alpha[k] > 0 &&
            s->alpha[k] < s->p->bound[k]) {
            sum += s->v[k];
            free++;
        }
    if (free > 0)
        return sum / (double)free;
    const double most = s->most[group], least = s->least[group];
    if (most == -(double)INFINITY || least == (double)INFINITY)
        return most == -(double)INFINITY ? least : most;
    return (most + least) / 2;
}

static void conclude(sti_smo *s, sti_smo_result *r)
{
    const double plus = middle_of(s, 0), minus = s->p->nu ? middle_of(s, 1) : plus;
    r->rho = -(plus + minus) / 2;
    r->r = (minus - plus) / 2;
    r->objective = 0;
    for (int64_t k = 0; k < s->p->variables; k++)
        r->objective -= 0.5 * sign_of(s, k) * s->alpha[k] * (s->v[k] + s->p->linear[k]);
}

static void begin(sti_smo *s, const sti_smo_problem *p, double *alpha)
{
    s->p = p;
    s->alpha = alpha;
    s->last_count = 0;
    s->columns = p->points;
    memset(s->chosen, 0, (size_t)p->variables);
    for (int64_t i = 0; i < p->points; i++) {
        s->active[i] = true;
        s->column[i] = (int32_t)i;
    }
    sti_smo_rows_diagonal(s->rows, s->diagonal);
    make_violations(s);
}

/* Are there numbers to go by? Kernel rows are floats, and what is too large for these
 * would look like a machine that is solved. */
static bool is_finite(const sti_smo *s)
{
    for (int64_t i = 0; i < s->p->points; i++)
        if (!(fabs(s->diagonal[i]) <= (double)FLT_MAX))
            return false;
    return true;
}

stint_status sti_smo_solve(sti_smo *s, const sti_smo_problem *p, double *alpha,
                           sti_smo_progress_fn *progress, void *user,
                           sti_smo_result *result_out)
{
    sti_smo_result r = {0};
    stint_status st = sti_stop_asked();
    begin(s, p, alpha);
    if (st == STINT_OK && !is_finite(s))
        st = STINT_E_FAILED;
    while (st == STINT_OK) {
        r.gap = survey(s);
        if (!(r.gap >= p->tolerance) && s->columns == p->points)
            break;
        if (!(r.gap >= p->tolerance)) {
            unshrink(s);
            continue;
        }
        if (r.iterations >= p->iterations) {
            st = STINT_E_FAILED;
            break;
        }
        if (p->shrink && p->variables > STI_SMO_SET)
            shrink(s);
        s->left = p->iterations - r.iterations;
        work(s, r.gap);
        r.iterations += s->done;
        if (progress)
            progress(user, r.iterations, r.gap);
        st = sti_smo_rows_status(s->rows);
        if (st == STINT_OK)
            st = sti_stop_asked();
    }
    conclude(s, &r);
    if (!isfinite(r.objective) || !isfinite(r.rho) || !is_finite(s)) {
        r.gap = (double)NAN;
        st = st == STINT_OK ? STINT_E_FAILED : st;
    }
    *result_out = r;
    return st;
}
