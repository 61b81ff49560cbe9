#include "page/pattern.h"

#include <math.h>

enum { SHADES = 5 };

void sti_pattern_count(sti_pattern *pattern, int64_t row, int64_t column)
{
    const int64_t side = pattern->n < STI_PATTERN_SIDE ? pattern->n : STI_PATTERN_SIDE;
    pattern->cell[row * side / pattern->n][column * side / pattern->n]++;
}

static int64_t fullest(const sti_pattern *p)
{
    int64_t most = 1;
    for (int i = 0; i < STI_PATTERN_SIDE; i++)
        for (int j = 0; j < STI_PATTERN_SIDE; j++)
            most = p->cell[i][j] > most ? p->cell[i][j] : most;
    return most;
}

/* 0: nothing is there. Shades go by the logarithm, so that single entries show. */
static int shade_of(int64_t count, int64_t most)
{
    if (count == 0)
        return 0;
    const double share = log1p((double)count) / log1p((double)most);
    const int shade = 1 + (int)(share * SHADES);
    return shade > SHADES ? SHADES : shade;
}

/* Cells of one shade as one path, a run of a row at a time. */
static void add_shade(sti_text *out, const sti_pattern *p, int64_t side, int shade,
                      int64_t most)
{
    sti_text_printf(out, "<path class=\"dot first\" fill-opacity=\"%.2f\" d=\"",
                    (double)shade / SHADES);
    for (int64_t i = 0; i < side; i++)
        for (int64_t j = 0; j < side;) {
            int64_t end = j;
            while (end < side && shade_of(p->cell[i][end], most) == shade)
                end++;
            if (end > j)
                sti_text_printf(out, "M%d %dh%dv1h-%dz", (int)j, (int)i, (int)(end - j),
                                (int)(end - j));
            j = end > j ? end : j + 1;
        }
    sti_text_add(out, "\"/>\n");
}

void sti_pattern_add(sti_text *out, const sti_pattern *pattern, const char *title)
{
    const int64_t side = pattern->n < STI_PATTERN_SIDE ? pattern->n : STI_PATTERN_SIDE;
    const int64_t most = fullest(pattern);
    sti_text_add(out, "<figure class=\"card chart\"><figcaption><b>");
    sti_text_add_html(out, title);
    sti_text_printf(out,
                    "</b></figcaption><svg viewBox=\"0 0 %d %d\" role=\"img\" "
                    "aria-label=\"",
                    (int)side, (int)side);
    sti_text_add_html(out, title);
    sti_text_printf(out,
                    "\" shape-rendering=\"crispEdges\"><rect class=\"rail\" "
                    "stroke-width=\".3\" fill=\"none\" width=\"%d\" height=\"%d\"/>\n",
                    (int)side, (int)side);
    for (int shade = 1; shade <= SHADES; shade++)
        add_shade(out, pattern, side, shade, most);
    sti_text_add(out, "</svg></figure>\n");
}
