#include "svm/smo_set.h"

#include <math.h>

#include "base/stop.h"
#include "kernel/pair/pair.h"

enum { STOP_EVERY = 4096 }; /* pairs between two looks */

void sti_smo_free_ways(const sti_smo_problem *p, int64_t variable, double alpha,
                       double *up, double *low)
{
    const bool positive = variable < p->positives;
    const bool grows = alpha<p->bound[variable], shrinks = alpha> 0;
    *up = (positive ? grows : shrinks) ? 0 : -(double)INFINITY;
    *low = (positive ? shrinks : grows) ? 0 : (double)INFINITY;
}

/* How far y a may go up, or down. */
static double room_up(const sti_smo_problem *p, int64_t k, const double *alpha)
{
    return k < p->positives ? p->bound[k] - alpha[k] : alpha[k];
}

static double room_down(const sti_smo_problem *p, int64_t k, const double *alpha)
{
    return k < p->positives ? alpha[k] : p->bound[k] - alpha[k];
}

/* y a of entry e moves by `step`, to its end where that is all its room. */
static void move_entry(sti_smo_set *s, const sti_smo_problem *p, int64_t e, double step,
                       bool all, double *alpha)
{
    const int64_t k = s->variable[e];
    const bool grows = (k < p->positives) == (step > 0);
    const double end = grows ? p->bound[k] : 0,
                 next = alpha[k] + (grows ? 1 : -1) * fabs(step);
    alpha[k] = all || (grows ? next > end : next < end) ? end : next;
    sti_smo_free_ways(p, k, alpha[k], &s->up[e], &s->low[e]);
}

/* The pair first (which rises) and second; the step. */
static double move_pair(sti_smo_set *s, const sti_smo_problem *p, int64_t first,
                        int64_t second, double *alpha)
{
    const int64_t i = s->variable[first], j = s->variable[second];
    const double bend = s->diagonal[first] + s->diagonal[second] -
                        2 * (double)s->k[first * STI_SMO_SET_ROOM + second];
    const double up = room_up(p, i, alpha), down = room_down(p, j, alpha);
    double step = (s->v[first] - s->v[second]) / (bend > 0 ? bend : 1e-12);
    step = step > up ? up : step;
    step = step > down ? down : step;
    move_entry(s, p, first, step, step == up, alpha);
    move_entry(s, p, second, -step, step == down, alpha);
    return step;
}

static void tell_states(sti_smo_set *s, double step, const float *row_first,
                        const float *row_second, sti_pair_state state[2])
{
    for (int64_t g = 0; g < s->groups; g++) {
        const int64_t b = s->begin[g];
        state[g] = sti_pair_move(s->begin[g + 1] - b, step, row_first + b,
                                 row_second + b, s->v + b, s->up + b, s->low + b);
    }
}

/* The best pair of the groups that are not done; false: there is none. */
static bool choose_pair(const sti_smo_set *s, const sti_pair_state state[2],
                        double tolerance, int64_t *first_out, int64_t *second_out)
{
    double best = 0, gap = -(double)INFINITY;
    bool found = false;
    for (int64_t g = 0; g < s->groups; g++)
        gap = fmax(gap, state[g].most - state[g].least);
    if (!(gap >= tolerance))
        return false;
    for (int64_t g = 0; g < s->groups; g++) {
        const int64_t b = s->begin[g], first = b + state[g].first;
        double gain;
        if (state[g].first < 0)
            continue;
        const int64_t second =
            sti_pair_second(s->begin[g + 1] - b, s->v[first], s->diagonal[first],
                            s->k + first * STI_SMO_SET_ROOM + b, s->diagonal + b,
                            s->v + b, s->low + b, &gain);
        if (second >= 0 && gain >= best) {
            best = gain;
            *first_out = first;
            *second_out = b + second;
            found = true;
        }
    }
    return found;
}

int64_t sti_smo_set_solve(sti_smo_set *s, const sti_smo_problem *p, double tolerance,
                          int64_t iterations, double *alpha)
{
    sti_pair_state state[2];
    int64_t first, second, moved = 0;
    tell_states(s, 0, s->k, s->k, state);
    for (; moved < iterations && choose_pair(s, state, tolerance, &first, &second);
         moved++) {
        if (moved % STOP_EVERY == STOP_EVERY - 1 && sti_stop_asked() != STINT_OK)
            break;
        const double step = move_pair(s, p, first, second, alpha);
        tell_states(s, step, s->k + first * STI_SMO_SET_ROOM,
                    s->k + second * STI_SMO_SET_ROOM, state);
    }
    return moved;
}
