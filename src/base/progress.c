/* The progress line. Written with write(2) from a buffer on the stack: a step of
 * training is to allocate nothing. What cannot be written is dropped: progress is no
 * result. */
#include "base/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/base_priv.h"
#include "base/clock.h"
#include "base/units.h"

#define BAR_EVERY_NS  INT64_C(100000000)
#define LINE_EVERY_NS INT64_C(10000000000)
#define BAR_CELLS     20
#define LINE_BYTES    512

static void put(const char *bytes, int length)
{
    while (length > 0) {
        ssize_t n = write(STDERR_FILENO, bytes, (size_t)length);
        if (n <= 0)
            return;
        bytes += n;
        length -= (int)n;
    }
}

static int terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

static bool is_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

static bool wants_colour(void)
{
    const char *no = getenv("NO_COLOR");
    return !no || !*no;
}

void sti_progress_begin(sti_progress *p, const char *title, const char *unit,
                        int64_t total, bool quiet)
{
    *p = (sti_progress){.title = title, .unit = unit, .total = total, .quiet = quiet};
    p->start_ns = sti_clock_ns();
    p->terminal = !quiet && is_terminal();
    p->width = p->terminal ? terminal_width() : 80;
    /* A bar is drawn by the first update, a line only after the first interval. */
    p->last_ns = p->terminal ? p->start_ns - BAR_EVERY_NS : p->start_ns;
}

/* "  12.3 images/s  34 s left" */
static int add_rate(const sti_progress *p, char *line, size_t size)
{
    const double elapsed = sti_seconds_since(p->start_ns);
    const double made = (double)(p->done - p->from);
    const double rate = elapsed > 0 ? made / elapsed : 0;
    const int64_t left = p->total - p->done;
    int length = 0;
    if (!p->unit || !(rate > 0))
        return 0;
    if (strcmp(p->unit, "B") == 0)
        length += sti_c_snprintf(line, size, "  %s/s", sti_bytes_text((size_t)rate));
    else
        length += sti_c_snprintf(
            line, size, rate < 1000 ? "  %.3g %s/s" : "  %.0f %s/s", rate, p->unit);
    if (left > 0 && p->total > 0)
        length += sti_c_snprintf(line + length, size - (size_t)length, "  %s left",
                                 sti_time_text((double)left / rate));
    else if (p->total > 0)
        length += sti_c_snprintf(line + length, size - (size_t)length, "  in %s",
                                 sti_time_text(elapsed));
    return length;
}

/* "  45 %  12.3 images/s  34 s left  note" */
static int add_figures(const sti_progress *p, const char *note, char *line, size_t size)
{
    int length = 0;
    if (p->total > 0)
        length += sti_c_snprintf(line, size, "%3d %%",
                                 (int)(100.0 * (double)p->done / (double)p->total));
    else
        length += sti_c_snprintf(line, size, "%s", sti_count_text(p->done));
    length += add_rate(p, line + length, size - (size_t)length);
    if (note && *note)
        length += sti_c_snprintf(line + length, size - (size_t)length, "  %s", note);
    return length < (int)size ? length : (int)size - 1;
}

/* Bytes of the first `columns` characters: a UTF-8 sequence is never cut. */
static int cut_columns(const char *text, int length, int columns)
{
    int at = 0;
    for (; at < length; at++)
        if (((unsigned char)text[at] & 0xC0) != 0x80 && columns-- <= 0)
            break;
    return at;
}

static void draw_bar(const sti_progress *p, const char *note)
{
    char figures[LINE_BYTES], head[LINE_BYTES], cells[BAR_CELLS + 1];
    int figure_length = add_figures(p, note, figures, sizeof figures);
    int full = p->total > 0 ? (int)((double)p->done / (double)p->total * BAR_CELLS) : 0;
    if (full > BAR_CELLS)
        full = BAR_CELLS;
    memset(cells, '=', sizeof cells);
    memset(cells + full, '.', (size_t)(BAR_CELLS - full));
    cells[BAR_CELLS] = '\0';
    int title_columns = (int)strlen(p->title) + 1;
    bool bar = p->total > 0 && p->width >= title_columns + BAR_CELLS + 20;
    int room = p->width - 1 - title_columns - (bar ? BAR_CELLS + 3 : 0);
    bool colour = wants_colour();
    int head_length =
        sti_c_snprintf(head, sizeof head, "\r%.100s %s%s%s%s", p->title, bar ? "[" : "",
                       bar && colour ? "\033[32m" : "", bar ? cells : "",
                       bar ? (colour ? "\033[0m] " : "] ") : "");
    put(head, head_length);
    put(figures, cut_columns(figures, figure_length, room > 0 ? room : 0));
    put("\033[K", 3);
}

static void draw_line(const sti_progress *p, const char *note)
{
    char line[LINE_BYTES + 128];
    int length = sti_c_snprintf(line, sizeof line, "%.100s ", p->title);
    length += add_figures(p, note, line + length, LINE_BYTES);
    line[length++] = '\n';
    put(line, length);
}

void sti_progress_update(sti_progress *p, int64_t done, const char *note)
{
    int64_t now = sti_clock_ns();
    bool last = p->total > 0 && done >= p->total && p->done < p->total;
    p->done = done;
    if (p->quiet)
        return;
    if (now - p->last_ns < (p->terminal ? BAR_EVERY_NS : LINE_EVERY_NS) && !last)
        return;
    p->last_ns = now;
    if (p->terminal)
        draw_bar(p, note);
    else
        draw_line(p, note);
}

void sti_progress_clear(sti_progress *p)
{
    if (!p->terminal || p->quiet)
        return;
    put("\r\033[K", 4);
    p->last_ns = sti_clock_ns() - BAR_EVERY_NS;
}
