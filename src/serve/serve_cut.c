/* Cuts: which there are, and as text. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/shown.h"
#include "serve/paris_priv.h"

/* An A100's eight slices of memory: partitions of 1 and 2 take as many, 3 and 4 take
 * four, 7 takes all. */
const int sti_mig7_cut[STI_MIG7_CUTS][8] = {
    {[7] = 1},
    {[4] = 1, [3] = 1},
    {[4] = 1, [2] = 1, [1] = 1},
    {[4] = 1, [1] = 3},
    {[3] = 2},
    {[3] = 1, [2] = 2},
    {[3] = 1, [2] = 1, [1] = 2},
    {[3] = 1, [1] = 4},
    {[2] = 3, [1] = 1},
    {[2] = 2, [1] = 3},
    {[2] = 1, [1] = 5},
    {[1] = 7},
};

void sti_mig7_count(const sti_serve_tables *tables, sti_serve_cut *cut)
{
    for (int k = 0; k < tables->sizes; k++) {
        cut->count[k] = 0;
        for (int c = 0; c < STI_MIG7_CUTS; c++)
            cut->count[k] += cut->device[c] * sti_mig7_cut[c][tables->size[k]];
    }
}

/* Units of a full cut that are wanted and not there yet. */
static double fits(const sti_serve_tables *tables, const double *lacking, int c)
{
    double units = 0;
    for (int k = 0; k < tables->sizes; k++) {
        const double have = sti_mig7_cut[c][tables->size[k]];
        const double need = lacking[k] > 0 ? lacking[k] : 0;
        units += tables->size[k] * (have < need ? have : need);
    }
    return units;
}

void sti_mig7_fit(const sti_serve_tables *tables, const double *wanted,
                  sti_serve_cut *cut)
{
    double lacking[STI_SERVE_SIZES];
    *cut = (sti_serve_cut){.count = {0}};
    memcpy(lacking, wanted, (size_t)tables->sizes * sizeof *lacking);
    for (int d = 0; d < tables->units / 7; d++) {
        int best = 0;
        for (int c = 1; c < STI_MIG7_CUTS; c++)
            if (fits(tables, lacking, c) > fits(tables, lacking, best))
                best = c;
        cut->device[best]++;
        for (int k = 0; k < tables->sizes; k++)
            lacking[k] -= sti_mig7_cut[best][tables->size[k]];
    }
    sti_mig7_count(tables, cut);
}

bool sti_serve_cut_equal(const sti_serve_tables *tables, int size, sti_serve_cut *cut)
{
    *cut = (sti_serve_cut){.count = {0}};
    int k = 0;
    while (k < tables->sizes && tables->size[k] != size)
        k++;
    if (k == tables->sizes)
        return false;
    if (!tables->mig7) {
        cut->count[k] = tables->units / size;
        while (!sti_serve_cut_place(tables, cut, NULL))
            cut->count[k]--;
        return true;
    }
    /* The full cut with most of that size; what is beside it is not used. */
    int best = 0;
    for (int c = 1; c < STI_MIG7_CUTS; c++)
        if (sti_mig7_cut[c][size] > sti_mig7_cut[best][size])
            best = c;
    cut->device[best] = tables->units / 7;
    cut->count[k] = cut->device[best] * sti_mig7_cut[best][size];
    return true;
}

/* ---- as text ---- */

/* Devices that hold the partitions, largest first: is there one for each? */
static bool packs_mig7(const sti_serve_tables *tables, sti_serve_cut *cut)
{
    double wanted[STI_SERVE_SIZES];
    sti_serve_cut fit;
    for (int k = 0; k < tables->sizes; k++)
        wanted[k] = cut->count[k];
    sti_mig7_fit(tables, wanted, &fit);
    for (int k = 0; k < tables->sizes; k++)
        if (fit.count[k] < cut->count[k])
            return false;
    memcpy(cut->device, fit.device, sizeof fit.device);
    return true;
}

static stint_status add_part(const sti_serve_tables *tables, const char *text, long n,
                             long size, sti_serve_cut *cut)
{
    for (int k = 0; k < tables->sizes; k++)
        if (tables->size[k] == size && n > 0 && n <= tables->units) {
            cut->count[k] += (int)n;
            return STINT_OK;
        }
    return sti_fail(STINT_E_USAGE,
                    "cut: %s has partitions of %ld units, of which there is no table",
                    sti_shown(text), size);
}

stint_status sti_serve_cut_parse(const sti_serve_tables *tables, const char *text,
                                 sti_serve_cut *cut_out)
{
    stint_status st = STINT_OK;
    *cut_out = (sti_serve_cut){.count = {0}};
    for (const char *at = text; st == STINT_OK;) {
        char *end;
        long n = 1, size = strtol(at, &end, 10);
        if (end != at && *end == 'x') {
            n = size;
            at = end + 1;
            size = strtol(at, &end, 10);
        }
        if (end == at || (*end && *end != ','))
            return sti_fail(STINT_E_USAGE,
                            "cut: %s; sizes such as 1,1 or 4x1,5x2 were wanted",
                            sti_shown(text));
        st = add_part(tables, text, n, size, cut_out);
        if (!*end)
            break;
        at = end + 1;
    }
    if (st == STINT_OK && (!sti_serve_cut_place(tables, cut_out, NULL) ||
                           (tables->mig7 && !packs_mig7(tables, cut_out))))
        return sti_fail(STINT_E_USAGE, "cut: %s does not go into %d units%s",
                        sti_shown(text), tables->units,
                        tables->cpus ? ", a share of a CPU on one of them" : "");
    return st;
}

void sti_serve_cut_text(const sti_serve_tables *tables, const sti_serve_cut *cut,
                        sti_text *out)
{
    const char *comma = "";
    for (int k = 0; k < tables->sizes; k++) {
        if (cut->count[k] == 0)
            continue;
        if (cut->count[k] == 1)
            sti_text_printf(out, "%s%d", comma, tables->size[k]);
        else
            sti_text_printf(out, "%s%dx%d", comma, cut->count[k], tables->size[k]);
        comma = ",";
    }
}
