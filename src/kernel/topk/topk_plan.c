/* Which way to go, and how large the parts are: a cost model of one thread, after
 * section 4 of the paper with the costs of a CPU.
 *
 * Delegates of blocks of 2^a elements, m = n / 2^a blocks:
 *   T(a) = n read + m (delegate + select) + k (block + 2^a line)
 * which is convex in a. A sample of s
 * elements has q = k s / n of the winners; three standard deviations, 3 sqrt(q), on
 * either side bound the k-th key well enough that another way is needed only once in
 * hundreds of calls. Only shapes, method and costs decide, so workspace and choice are
 * the same from call to call. */
#include <math.h>

#include "kernel/topk/topk_key.h"

enum {
    EXPONENT_MIN = 4,
    EXPONENT_MAX = 15,
    SAMPLE_MIN = 256,
    SAMPLE_MAX = 1 << 17,
    PIECE_ELEMENTS = 1 << 17,
    PIECES_MAX = 64,
    NARROW_SAMPLE = 1024, /* at most */
    NARROW_NS = 500,      /* of the samples, whatever n */
    CATCH_SMALL = 8,      /* exponent of blocks */
    CATCH_LARGE = 9
};

int64_t sti_topk_pool_segments(const sti_topk_plan *plan)
{
    /* A segment is left when a look may not fit any more, a piece's last one early. */
    return plan->pool / (STI_TOPK_SEGMENT - STI_TOPK_LOOK + 1) + plan->pieces + 1;
}

int64_t sti_topk_piece_begin(const sti_topk_plan *p, int64_t piece)
{
    return p->n / p->pieces * piece + sti_topk_min(piece, p->n % p->pieces);
}

static int least_exponent(sti_topk_form form)
{
    int a = EXPONENT_MIN; /* a cache line */
    for (size_t bytes = sti_topk_element_bytes(form); bytes < 4; bytes *= 2)
        a++;
    return a;
}

static double lines(double elements, sti_topk_form form)
{
    const double bytes = (double)sti_topk_element_bytes(form);
    return elements * (form == STI_TOPK_SUM ? 2 * bytes : bytes) / 64;
}

static bool is_far(const sti_topk_plan *p)
{
    return lines((double)p->n, p->form) * 64 > 1.5e6;
}

static double pass_ns(const sti_topk_plan *p, const sti_topk_costs *c)
{
    return lines((double)p->n, p->form) * (is_far(p) ? c->read_far : c->read_near);
}

/* Nanoseconds a line of `bytes` that one pass leaves and another reads: more where they
 * lie beyond the nearer caches. */
static double list_line_ns(double bytes, const sti_topk_costs *c)
{
    return bytes > 0.75e6 ? fmax(c->scan, c->read_far) : c->scan;
}

/* The first pass, and each block's own work. With the two best it is so much that the
 * read from memory hides behind it, or it behind the read. */
static double first_ns(const sti_topk_plan *p, const sti_topk_costs *c, double blocks,
                       bool two_best)
{
    if (!two_best)
        return pass_ns(p, c) + blocks * c->delegate;
    /* Keys and positions go out to memory, which fetches lines before it takes them. */
    const double out = is_far(p) ? 2 * 10 * blocks / 64 * c->read_far : 0;
    const double work =
        lines((double)p->n, p->form) * c->delegate2_near + blocks * c->delegate2;
    return is_far(p) ? fmax(work, pass_ns(p, c)) + out : work;
}

static double narrow_ns(double bytes, const sti_topk_costs *c)
{
    /* A pass of scanning, one of emission, and a little of both for what is left. */
    return NARROW_NS + 2.2 * bytes / 64 * list_line_ns(bytes, c);
}

/* The best k of a list of delegates. */
static double choose_ns(double count, double k, const sti_topk_costs *c)
{
    return count <= STI_TOPK_NARROW_MOST
               ? narrow_ns(4 * count, c)
               : count / 16 * list_line_ns(4 * count, c) + k * c->select;
}

static double blocks_ns(const sti_topk_plan *p, const sti_topk_costs *c, int a)
{
    const double m = ceil(ldexp((double)p->n, -a)), k = (double)p->k;
    const double again =
        sti_topk_min(p->k << a, p->n) == p->n ? (double)p->n : ldexp(k, a);
    return first_ns(p, c, m, false) + choose_ns(m, k, c) + k * c->block +
           lines(again, p->form) * c->line + k * (c->select + c->emit);
}

/* Catching (topk_catch.c) is for rows out of memory of which few elements win, though
 * not so few that going back to their blocks is nothing. Small blocks are many to write
 * down, large ones long to look at again, and with more winners more of them are. */
static bool may_catch(const sti_topk_plan *p, int a)
{
    const int least = p->k > p->n >> 10 ? CATCH_SMALL - 1 : CATCH_SMALL;
    return p->method == STINT_TOPK_DELEGATE2 && a >= least && a <= CATCH_LARGE &&
           p->n >= STI_TOPK_CATCH_LEAST && p->k <= p->n >> 8 && p->k >= p->n >> 13;
}

/* The rank is so far beyond that of the k-th in a piece that hardly any order of the
 * data between pieces leaves fewer than k elements in all of them. */
static void plan_catching(sti_topk_plan *p)
{
    const double q = (double)p->k / (double)p->pieces;
    const double rank = floor(q + 4 * sqrt(q) + 5);
    p->sample_lo = (int64_t)rank;
    p->pool = (int64_t)(2 * rank) * p->pieces;
}

bool sti_topk_catches(const sti_topk_plan *p)
{
    return p->method == STINT_TOPK_DELEGATE2 && p->sample_lo > 0;
}

int64_t sti_topk_catch_segments(const sti_topk_plan *p)
{
    /* A segment is left when a block may not fit any more, a piece's last one early. */
    const int64_t block = INT64_C(1) << CATCH_LARGE;
    return sti_topk_catches(p)
               ? p->pool / (STI_TOPK_CATCH_SEGMENT - block) + p->pieces + 1
               : 0;
}

/* Nanoseconds for what is caught, in blocks that are still in the caches. */
static double catch_ns(const sti_topk_plan *p, const sti_topk_costs *c, double m, int a)
{
    sti_topk_plan caught = *p;
    plan_catching(&caught);
    const double count = 0.5 * (double)caught.pool;
    return fmin(count * count / (2 * m), count) * lines(ldexp(1, a), p->form) *
               c->line +
           count * c->select;
}

/* With the best's position known, only blocks with two winners are gone back to: about
 * k^2 / 2m of them, and each such block takes in two of the k. Where winners lie
 * together or are equal it is k / 2, so no fewer than half of that are reckoned with.
 */
static double delegate2_ns(const sti_topk_plan *p, const sti_topk_costs *c, int a)
{
    const double m = ceil(ldexp((double)p->n, -a)), k = (double)p->k;
    if (may_catch(p, a))
        return first_ns(p, c, m, true) + catch_ns(p, c, m, a) + k * c->emit;
    const double both = k / m < 1 ? fmax(k * k / (2 * m), k / 4) : k;
    return first_ns(p, c, m, true) + choose_ns(2 * m, k, c) +
           both * (c->block + lines(ldexp(1, a), p->form) * c->line) +
           k * (c->select + c->emit);
}

static void choose_exponent(sti_topk_plan *p, const sti_topk_costs *c, int given)
{
    const int least = least_exponent(p->form);
    const bool fits = given >= least && given <= EXPONENT_MAX &&
                      sti_topk_ceil(p->n, INT64_C(1) << given) > p->k;
    double best = HUGE_VAL;
    const bool two_best = p->method == STINT_TOPK_DELEGATE2;
    for (int a = least; a <= EXPONENT_MAX; a++) {
        const int64_t m = sti_topk_ceil(p->n, INT64_C(1) << a);
        if (m <= p->k || (fits && a != given))
            continue;
        const double ns = two_best ? delegate2_ns(p, c, a) : blocks_ns(p, c, a);
        if (ns < best) {
            best = ns;
            p->exponent = a;
        }
    }
    p->blocks = sti_topk_ceil(p->n, INT64_C(1) << p->exponent);
    p->predicted_ns = best;
    if (may_catch(p, p->exponent))
        plan_catching(p);
    const int64_t again = p->k << p->exponent;
    p->back = again < (1 << 16)
                  ? 1
                  : sti_topk_min(STI_TOPK_BACK_MAX, sti_topk_max(1, p->k / 16));
}

static int64_t clamp(double x, int64_t least, int64_t most)
{
    return x < (double)least ? least : x > (double)most ? most : (int64_t)x;
}

/* The cost of a larger sample against that of a wider gap between the bounds,
 * s sample + 6 sqrt(k n / s) select, is least at s = (3 select sqrt(k n) / sample)^2/3.
 */
static void choose_sample(sti_topk_plan *p, const sti_topk_costs *c)
{
    const double n = (double)p->n, k = (double)p->k;
    const double s =
        cbrt(9 * (c->select * c->select) / (c->sample * c->sample) * k * n);
    p->sample = clamp(s, sti_topk_min(SAMPLE_MIN, p->n / 4 + 1),
                      sti_topk_min(SAMPLE_MAX, p->n / 4 + 1));
    const double q = k * (double)p->sample / n, spread = 3 * sqrt(q) + 3;
    p->sample_lo = clamp(q + spread + 1, 1, p->sample);
    p->sample_hi = clamp(q - spread, 0, p->sample);
    /* Few winners: they are packed in the one pass. Many: only what lies between the
     * bounds, and a second pass emits. */
    if (k < n / 32)
        p->sample_hi = 0;
    const double between =
        (double)(p->sample_lo - p->sample_hi) / (double)p->sample * n;
    p->pool = clamp(1.3 * between + 4096, 1, p->n);
    const double scan = fmax(lines(n, p->form) * c->scan, pass_ns(p, c));
    p->predicted_ns = (double)p->sample * c->sample + scan + between * c->select;
    p->predicted_ns += p->sample_hi > 0 ? scan + k * c->emit : k * c->emit;
    /* A sample that misses costs the whole of another method. */
    if (q < 16)
        p->predicted_ns *= 1.4;
}

static void choose_pieces(sti_topk_plan *p)
{
    p->pieces = clamp((double)(p->n / PIECE_ELEMENTS), 1, PIECES_MAX);
    p->exponent = 0;
    p->blocks = p->back = p->sample = p->sample_lo = p->sample_hi = 0;
    p->pool = clamp((double)p->n / 64, sti_topk_min(p->n, 4096), p->n);
}

static void fill(sti_topk_plan *p, const sti_topk_costs *c, int exponent)
{
    choose_pieces(p);
    p->predicted_ns = HUGE_VAL;
    switch (p->method) {
    case STINT_TOPK_PACK:
        p->pool = p->n;
        p->predicted_ns =
            pass_ns(p, c) + (double)p->n * c->select + (double)p->k * c->emit;
        break;
    case STINT_TOPK_DELEGATE:
    case STINT_TOPK_DELEGATE2:
        choose_exponent(p, c, exponent);
        break;
    case STINT_TOPK_THRESHOLD:
        choose_sample(p, c);
        break;
    case STINT_TOPK_NARROW:
        p->sample = NARROW_SAMPLE;
        p->pieces = 1;
        p->predicted_ns =
            narrow_ns(64 * lines((double)p->n, p->form), c) + (double)p->k * c->emit;
        break;
    case STINT_TOPK_AUTO:
    case STINT_TOPK_RADIX:
    case STINT_TOPK_METHODS:
        p->method = STINT_TOPK_RADIX;
        p->predicted_ns = 3 * pass_ns(p, c) + 1.2 * (double)p->n * c->histogram +
                          (double)p->k * c->emit;
        break;
    }
}

static bool possible(const sti_topk_plan *p, stint_topk_method method)
{
    const int a = least_exponent(p->form);
    const bool wide = sti_topk_element_bytes(p->form) == 4;
    switch (method) {
    case STINT_TOPK_DELEGATE:
        return p->k < sti_topk_ceil(p->n, INT64_C(1) << a);
    case STINT_TOPK_DELEGATE2:
        return wide && p->k < sti_topk_ceil(p->n, INT64_C(1) << a);
    case STINT_TOPK_NARROW:
        return p->n <= STI_TOPK_NARROW_MOST;
    case STINT_TOPK_PACK:
    case STINT_TOPK_THRESHOLD:
    case STINT_TOPK_RADIX:
    case STINT_TOPK_AUTO:
    case STINT_TOPK_METHODS:
        break;
    }
    return true;
}

sti_topk_plan sti_topk_plan_make(sti_topk_form form, int64_t n, int64_t k,
                                 stint_topk_method method, int exponent,
                                 const sti_topk_costs *costs)
{
    sti_topk_plan best = {.form = form, .n = n, .k = k, .method = method};
    if (method != STINT_TOPK_AUTO && possible(&best, method)) {
        fill(&best, costs, exponent);
        return best;
    }
    if (n <= STI_TOPK_SHORT) {
        best.method = STINT_TOPK_NARROW;
        fill(&best, costs, 0);
        return best;
    }
    best.predicted_ns = HUGE_VAL;
    for (int m = STINT_TOPK_PACK; m < STINT_TOPK_METHODS; m++) {
        sti_topk_plan p = {
            .form = form, .n = n, .k = k, .method = (stint_topk_method)m};
        if (!possible(&p, p.method))
            continue;
        fill(&p, costs, 0);
        if (p.predicted_ns < best.predicted_ns || best.method == STINT_TOPK_AUTO)
            best = p;
    }
    return best;
}

void sti_topk_costs_builtin(sti_topk_costs *costs_out)
{
    *costs_out = (sti_topk_costs){.read_near = 0.9,
                                  .read_far = 2.6,
                                  .delegate = 0.8,
                                  .delegate2_near = 1.9,
                                  .delegate2 = 5.6,
                                  .select = 2.3,
                                  .block = 9,
                                  .line = 5.4,
                                  .sample = 9,
                                  .scan = 3,
                                  .emit = 0.1,
                                  .histogram = 0.8};
}

const char *stint_topk_method_name(stint_topk_method method)
{
    static const char *const names[STINT_TOPK_METHODS] = {
        "auto", "pack", "delegate", "beta", "threshold", "radix", "narrow"};
    return method >= 0 && method < STINT_TOPK_METHODS ? names[method] : "unknown";
}
