/* From string to levels. The string is read once, left to right; then the levels are
 * checked and numbered. Every misuse has its own sentence. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "kernel/loop/loop.h"

typedef struct parser {
    const char *text, *p;
    sti_loop *loop;
    int seen[STI_LOOPS_MAX]; /* occurrences so far */
    bool own[STI_LOOPS_MAX]; /* has an inline range */
} parser;

static char letter_of(int loop)
{
    return (char)('a' + loop);
}

/* ---- pieces of text ---- */

/* A number of at most 18 digits, with a sign where one may stand. */
static bool read_number(parser *ps, int64_t *value_out)
{
    const char *p = ps->p;
    const bool minus = *p == '-';
    p += minus;
    const char *digits = p;
    int64_t value = 0;
    for (; isdigit((unsigned char)*p) && p - digits < 18; p++)
        value = 10 * value + (*p - '0');
    if (p == digits || isdigit((unsigned char)*p))
        return false;
    ps->p = p;
    *value_out = minus ? -value : value;
    return true;
}

static bool read_char(parser *ps, char c)
{
    if (*ps->p != c)
        return false;
    ps->p++;
    return true;
}

static stint_status fail_at(const parser *ps, const char *what)
{
    return sti_fail(STINT_E_USAGE, "loops '%s': at '%.12s', character %d: %s", ps->text,
                    ps->p, (int)(ps->p - ps->text) + 1, what);
}

/* "{R:4}", after the letter at level l. */
static stint_status read_grid(parser *ps, sti_loop_level *l)
{
    static const char axes[] = "RCL";
    int64_t ways;
    if (!read_char(ps, '{'))
        return STINT_OK;
    const char *axis = *ps->p ? strchr(axes, *ps->p) : NULL;
    if (!axis)
        return fail_at(ps, "a grid is written {R:ways}, {C:ways} or {L:ways}");
    ps->p++;
    if (!read_char(ps, ':') || !read_number(ps, &ways) || !read_char(ps, '}'))
        return fail_at(ps, "a grid is written {R:ways}, with a whole number of ways");
    if (ways < 1 || ways > 4096)
        return fail_at(ps, "a grid has 1 to 4096 ways, before this");
    if (l->kind == STI_LOOP_SERIAL)
        return fail_at(ps, "a small letter is serial and takes no grid, before this; "
                           "write the letter as a capital");
    l->kind = STI_LOOP_GRID;
    l->axis = (int)(axis - axes);
    l->ways = (int)ways;
    return STINT_OK;
}

static stint_status read_blocks(parser *ps, sti_loop_spec *spec)
{
    spec->blocks = 0;
    do {
        if (spec->blocks == STI_LOOP_BLOCKS_MAX)
            return fail_at(ps, "more than 5 block sizes");
        if (!read_number(ps, &spec->block[spec->blocks++]))
            return fail_at(ps, "a block size is a whole number");
    } while (read_char(ps, ','));
    return read_char(ps, ')') ? STINT_OK : fail_at(ps, "the block sizes end with ')'");
}

/* "[0,64,1,(16,4)]": a range in place of the loop's own. */
static stint_status read_inline(parser *ps, int x)
{
    sti_loop_spec *spec = &ps->loop->spec[x];
    if (!read_char(ps, '['))
        return STINT_OK;
    if (ps->seen[x] > 0)
        return fail_at(ps, "only the first occurrence of a letter takes a range");
    if (!read_number(ps, &spec->start) || !read_char(ps, ',') ||
        !read_number(ps, &spec->end) || !read_char(ps, ',') ||
        !read_number(ps, &spec->step))
        return fail_at(ps, "a range is written [start,end,step] or "
                           "[start,end,step,(blocks)]");
    spec->blocks = 0;
    if (read_char(ps, ',')) {
        if (!read_char(ps, '('))
            return fail_at(ps, "block sizes are written in parentheses");
        stint_status status = read_blocks(ps, spec);
        if (status != STINT_OK)
            return status;
    }
    ps->own[x] = true;
    return read_char(ps, ']') ? STINT_OK : fail_at(ps, "a range ends with ']'");
}

static stint_status read_item(parser *ps)
{
    sti_loop *loop = ps->loop;
    const char c = *ps->p;
    const int x = tolower((unsigned char)c) - 'a';
    if (!isalpha((unsigned char)c))
        return fail_at(ps, "a loop is a letter, small or capital");
    if (x >= loop->loops)
        return sti_fail(STINT_E_USAGE,
                        "loops '%s': letter %c has no loop; there are %d, a to %c",
                        ps->text, c, loop->loops, letter_of(loop->loops - 1));
    if (ps->seen[x] > STI_LOOP_BLOCKS_MAX)
        return sti_fail(STINT_E_USAGE,
                        "loops '%s': letter %c occurs more than %d times, which is all "
                        "the blocking there is",
                        ps->text, letter_of(x), STI_LOOP_BLOCKS_MAX + 1);
    sti_loop_level *l = &loop->level[loop->levels];
    *l = (sti_loop_level){.loop = x, .ways = 1};
    l->kind = isupper((unsigned char)c) ? STI_LOOP_SHARED : STI_LOOP_SERIAL;
    ps->p++;
    stint_status status = read_grid(ps, l);
    if (status == STINT_OK)
        status = read_inline(ps, x);
    if (status != STINT_OK)
        return status;
    l->barrier = read_char(ps, '|');
    if (*ps->p == '|')
        return fail_at(ps, "one barrier is enough");
    ps->seen[x]++;
    loop->levels++;
    return STINT_OK;
}

/* After '@': what the authors of this notation hand on to OpenMP. */
static stint_status read_clause(parser *ps)
{
    static const struct {
        const char *name, *why;
    } refused[] = {
        {"schedule(dynamic", "a dynamic schedule lets time decide which thread runs "
                             "what; here shape does: leave it out"},
        {"schedule(guided", "a guided schedule lets time decide which thread runs "
                            "what; here shape does: leave it out"},
        {"schedule(auto", "an automatic schedule is not fixed by the shape: leave it "
                          "out"},
        {"schedule(runtime", "a schedule from the environment is not fixed by the "
                             "shape: leave it out"},
        {"num_threads", "the number of threads is the team's (-j), not the string's"},
        {"reduction", "sums have one order here; they are never reduced over threads"},
        {"collapse", "neighbouring capitals are one loop already: leave it out"},
    };
    if (strcmp(ps->p, "schedule(static)") == 0)
        return STINT_OK;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (strncmp(ps->p, refused[i].name, strlen(refused[i].name)) == 0)
            return fail_at(ps, refused[i].why);
    return fail_at(ps, "the only clause is schedule(static), which is the rule anyway");
}

/* ---- the curve ---- */

/* "sfc{F:4}{L:1}": the two loops that stay, and the one that reduces. */
static stint_status read_curve_words(parser *ps, int64_t *folds)
{
    *folds = 1;
    while (*ps->p) {
        const char which = ps->p[0] == '{' ? ps->p[1] : '\0';
        int64_t value;
        if ((which != 'F' && which != 'L') || ps->p[2] != ':')
            return fail_at(ps, "after sfc come {F:folds} and {L:1} or nothing");
        ps->p += 3;
        if (!read_number(ps, &value) || value < 1 || !read_char(ps, '}'))
            return fail_at(ps, "a whole number from 1 on and '}' are wanted");
        if (which == 'L' && value != 1)
            return fail_at(ps, "more than one layer of results would change the order "
                               "of sums, and so the bits; folds keep them");
        if (which == 'F')
            *folds = value;
    }
    return STINT_OK;
}

static void curve_level(sti_loop *loop, sti_loop_kind kind, int x, int other,
                        int64_t step)
{
    loop->level[loop->levels++] = (sti_loop_level){
        .kind = kind, .loop = x, .other = other, .ways = 1, .step = step};
}

static stint_status read_curve(parser *ps)
{
    sti_loop *loop = ps->loop;
    int stay[2] = {0, 0}, staying = 0, reducing = -1, reduce_count = 0;
    int64_t folds;
    stint_status status = read_curve_words(ps, &folds);
    if (status != STINT_OK)
        return status;
    for (int x = 0; x < loop->loops; x++)
        if (loop->spec[x].reduces) {
            reducing = x;
            reduce_count++;
        } else if (staying++ < 2) {
            stay[staying - 1] = x;
        }
    if (staying != 2 || reduce_count > 1)
        return sti_fail(STINT_E_USAGE,
                        "loops '%s': a curve goes through two loops and at most one "
                        "that reduces; here are %d and %d",
                        ps->text, staying, reduce_count);
    if (reducing >= 0 && folds > 1) {
        const sti_loop_spec *spec = &loop->spec[reducing];
        const int64_t steps = (spec->end - spec->start + spec->step - 1) / spec->step;
        const int64_t each = steps > 0 ? (steps - 1) / folds + 1 : 1;
        curve_level(loop, STI_LOOP_SERIAL, reducing, 0, each * spec->step);
    }
    curve_level(loop, STI_LOOP_CURVE, stay[0], stay[1], loop->spec[stay[0]].step);
    if (reducing >= 0)
        curve_level(loop, STI_LOOP_SERIAL, reducing, 0, loop->spec[reducing].step);
    return STINT_OK;
}

/* ---- checks ---- */

static stint_status check_spec(const parser *ps, int x)
{
    const sti_loop_spec *s = &ps->loop->spec[x];
    const char c = letter_of(x);
    if (s->step < 1)
        return sti_fail(STINT_E_USAGE,
                        "loops '%s': the step of %c is %" PRId64 ", must be 1 or more",
                        ps->text, c, s->step);
    if (s->end < s->start || s->end > INT64_C(1) << 60 ||
        s->start < -(INT64_C(1) << 60))
        return sti_fail(STINT_E_USAGE,
                        "loops '%s': the range of %c, %" PRId64 " to %" PRId64
                        ", is backwards or beyond 2^60",
                        ps->text, c, s->start, s->end);
    if (s->blocks < 0 || s->blocks > STI_LOOP_BLOCKS_MAX)
        return sti_fail(STINT_E_USAGE, "loops '%s': %c has %d block sizes, not 0 to %d",
                        ps->text, c, s->blocks, STI_LOOP_BLOCKS_MAX);
    return STINT_OK;
}

/* Blocks that are used: positive, each a multiple of the next and the last of the step.
 */
static stint_status check_blocks(const parser *ps, int x)
{
    const sti_loop_spec *s = &ps->loop->spec[x];
    const int used = ps->seen[x] - 1;
    const char c = letter_of(x);
    if (used > s->blocks || (ps->own[x] && used < s->blocks))
        return sti_fail(STINT_E_USAGE,
                        "loops '%s': %c occurs %d times, which takes %d block sizes; "
                        "it has %d",
                        ps->text, c, used + 1, used, s->blocks);
    for (int r = 0; r < used; r++) {
        const int64_t next = r + 1 < used ? s->block[r + 1] : s->step;
        if (s->block[r] < 1 || next < 1 || s->block[r] % next != 0)
            return sti_fail(STINT_E_USAGE,
                            "loops '%s': block %d of %c is %" PRId64
                            ", no multiple of the next, %" PRId64,
                            ps->text, r + 1, c, s->block[r], next);
    }
    return STINT_OK;
}

static stint_status check_loops(const parser *ps)
{
    stint_status status = STINT_OK;
    double iterations = 1;
    for (int x = 0; x < ps->loop->loops && status == STINT_OK; x++) {
        const sti_loop_spec *s = &ps->loop->spec[x];
        if (ps->seen[x] == 0)
            return sti_fail(STINT_E_USAGE,
                            "loops '%s': loop %c is missing; every loop occurs at "
                            "least once",
                            ps->text, letter_of(x));
        status = check_spec(ps, x);
        if (status == STINT_OK)
            status = check_blocks(ps, x);
        /* (A group of capitals counts clipped blocks as whole ones.) */
        const int64_t most = ps->seen[x] > 1 ? s->block[0] : s->step;
        iterations *= (double)(s->end - s->start + most) / (double)s->step;
    }
    if (status == STINT_OK && iterations > 0x1p60)
        return sti_fail(STINT_E_USAGE, "loops '%s': more than 2^60 iterations",
                        ps->text);
    return status;
}

/* Steps by occurrence, from the outermost level inwards. */
static void number_levels(parser *ps)
{
    int occurrence[STI_LOOPS_MAX] = {0};
    for (int i = 0; i < ps->loop->levels; i++) {
        sti_loop_level *l = &ps->loop->level[i];
        const sti_loop_spec *s = &ps->loop->spec[l->loop];
        const int r = occurrence[l->loop]++;
        l->step = r + 1 == ps->seen[l->loop] ? s->step : s->block[r];
    }
}

/* The capitals without grid: one group, and none beside grids. */
static stint_status check_sharing(const parser *ps)
{
    sti_loop *loop = ps->loop;
    int first = -1, grids = 0;
    loop->last_shared = -1;
    for (int i = 0; i < loop->levels; i++) {
        sti_loop_level *l = &loop->level[i];
        if (l->kind == STI_LOOP_SERIAL)
            continue;
        if (loop->spec[l->loop].reduces)
            return sti_fail(STINT_E_USAGE,
                            "loops '%s': loop %c adds up and cannot be shared: threads "
                            "would race for the result, and partial results would "
                            "change the order of the sum; write %c",
                            ps->text, letter_of(l->loop), letter_of(l->loop));
        grids += l->kind == STI_LOOP_GRID;
        if (l->kind != STI_LOOP_SHARED)
            continue;
        if (first >= 0 && loop->last_shared != i - 1)
            return sti_fail(STINT_E_USAGE,
                            "loops '%s': two separate groups of capitals, the second "
                            "at %c; put them side by side, or give each a grid, as in "
                            "B{R:2}aC{C:1}",
                            ps->text, toupper(letter_of(l->loop)));
        first = first < 0 ? i : first;
        for (int j = first; j < i; j++)
            l->again = l->again || loop->level[j].loop == l->loop;
        loop->last_shared = i;
    }
    if (first >= 0 && grids > 0)
        return sti_fail(STINT_E_USAGE,
                        "loops '%s': capitals with and without a grid do not mix; give "
                        "all of them one or none",
                        ps->text);
    return STINT_OK;
}

static stint_status check_grid(const parser *ps)
{
    static const char axes[] = "RCL";
    sti_loop *loop = ps->loop;
    bool taken[3] = {false, false, false};
    for (int i = 0; i < 3; i++)
        loop->ways[i] = 1;
    for (int i = 0; i < loop->levels; i++) {
        const sti_loop_level *l = &loop->level[i];
        if (l->kind != STI_LOOP_GRID)
            continue;
        if (taken[l->axis])
            return sti_fail(STINT_E_USAGE,
                            "loops '%s': two loops are cut along %c; each axis of the "
                            "grid cuts one",
                            ps->text, axes[l->axis]);
        taken[l->axis] = true;
        loop->ways[l->axis] = l->ways;
        loop->grids = true;
    }
    const int64_t places = (int64_t)loop->ways[0] * loop->ways[1] * loop->ways[2];
    if (places > loop->threads)
        return sti_fail(STINT_E_USAGE,
                        "loops '%s': the grid of %d x %d x %d takes %" PRId64
                        " threads, there %s %d",
                        ps->text, loop->ways[0], loop->ways[1], loop->ways[2], places,
                        loop->threads == 1 ? "is" : "are", loop->threads);
    return STINT_OK;
}

/* Where the team begins: every barrier ends a loop that the team runs as a whole. */
static stint_status check_barriers(const parser *ps)
{
    sti_loop *loop = ps->loop;
    int shared_from = -1; /* first level that is not serial */
    for (int i = 0; i < loop->levels; i++) {
        const sti_loop_level *l = &loop->level[i];
        if (l->kind != STI_LOOP_SERIAL && shared_from < 0)
            shared_from = i;
        if (!l->barrier)
            continue;
        const bool ends_group = i == loop->last_shared;
        if (shared_from >= 0 && shared_from < i && !ends_group)
            return sti_fail(STINT_E_USAGE,
                            "loops '%s': the barrier after %c is inside a shared loop, "
                            "where threads come a different number of times; put it "
                            "after a loop that is inside serial ones only",
                            ps->text, letter_of(l->loop));
        if (l->kind == STI_LOOP_SHARED && !ends_group)
            return sti_fail(STINT_E_USAGE,
                            "loops '%s': neighbouring capitals are one loop; the "
                            "barrier goes after the last of them",
                            ps->text);
        loop->phase_levels = ends_group ? shared_from : i;
    }
    return STINT_OK;
}

static stint_status read_items(parser *ps)
{
    stint_status status = STINT_OK;
    while (*ps->p && *ps->p != '@' && status == STINT_OK)
        status = read_item(ps);
    if (status == STINT_OK && read_char(ps, '@'))
        status = read_clause(ps);
    if (status == STINT_OK)
        status = check_loops(ps);
    if (status != STINT_OK)
        return status;
    number_levels(ps);
    status = check_sharing(ps);
    if (status == STINT_OK)
        status = check_grid(ps);
    return status == STINT_OK ? check_barriers(ps) : status;
}

static stint_status read_curve_string(parser *ps)
{
    sti_loop *loop = ps->loop;
    stint_status status = STINT_OK;
    for (int x = 0; x < loop->loops && status == STINT_OK; x++) {
        ps->seen[x] = 1;
        status = check_spec(ps, x);
    }
    ps->p += 3;
    loop->last_shared = -1;
    for (int i = 0; i < 3; i++)
        loop->ways[i] = 1;
    if (status == STINT_OK)
        status = check_loops(ps);
    return status == STINT_OK ? read_curve(ps) : status;
}

stint_status sti_loop_bind(const char *text, const sti_loop_spec *specs, int count,
                           int threads, sti_loop *loop_out)
{
    sti_loop loop = {.loops = count, .threads = threads};
    parser ps = {.text = text, .p = text, .loop = &loop};
    if (strlen(text) >= STI_LOOP_TEXT_MAX)
        return sti_fail(STINT_E_USAGE,
                        "loops: a string of %zu characters; at most %d are read",
                        strlen(text), STI_LOOP_TEXT_MAX - 1);
    if (!*text)
        return sti_fail(STINT_E_USAGE, "loops: the string is empty; wanted letters, as "
                                       "in 'BCa', or 'sfc'");
    if (count < 1 || count > STI_LOOPS_MAX)
        return sti_fail(STINT_E_USAGE, "loops '%s': %d loops; 1 to %d can be named",
                        text, count, STI_LOOPS_MAX);
    if (threads < 1)
        return sti_fail(STINT_E_USAGE, "loops '%s': %d threads; at least 1 is wanted",
                        text, threads);
    memcpy(loop.spec, specs, (size_t)count * sizeof *specs);
    const bool curve =
        strncmp(text, "sfc", 3) == 0 && (text[3] == '\0' || text[3] == '{');
    const stint_status status = curve ? read_curve_string(&ps) : read_items(&ps);
    if (status == STINT_OK)
        *loop_out = loop;
    return status;
}

int sti_loop_grid_threads(const char *text)
{
    int64_t threads = 1;
    const char *brace = strncmp(text, "sfc", 3) == 0 ? NULL : strchr(text, '{');
    for (; brace; brace = strchr(brace + 1, '{')) {
        parser ps = {.text = text};
        int64_t ways;
        if (!brace[1] || brace[2] != ':')
            return 1;
        ps.p = brace + 3;
        if (!read_number(&ps, &ways) || ways < 1 || ways > 4096 || threads > 4096)
            return 1;
        threads *= ways;
    }
    return threads > 4096 ? 1 : (int)threads;
}
