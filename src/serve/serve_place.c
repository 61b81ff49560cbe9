/* Where partitions lie. Units that are shares of CPUs do not add up freely: a share of
 * a CPU lies on one, for a thread that runs on two in turn would take from the
 * neighbours on both. */
#include "serve/paris_priv.h"

int sti_serve_cut_units(const sti_serve_tables *tables, const sti_serve_cut *cut)
{
    int units = 0;
    for (int k = 0; k < tables->sizes; k++)
        units += cut->count[k] * tables->size[k];
    return units;
}

int sti_serve_cut_partitions(const sti_serve_tables *tables, const sti_serve_cut *cut)
{
    int count = 0;
    for (int k = 0; k < tables->sizes; k++)
        count += cut->count[k];
    return count;
}

int sti_serve_size_cpus(const sti_serve_tables *tables, int units)
{
    return units * tables->cpus / tables->units;
}

/* A CPU with room for so many units more; -1: none. */
static int find_cpu(const int *used, int from, int cpus, int units, int room)
{
    for (int c = from; c < cpus; c++)
        if (used[c] + units <= room)
            return c;
    return -1;
}

/* Shares go to the first CPU that has room, the largest first. */
bool sti_serve_cut_place(const sti_serve_tables *tables, const sti_serve_cut *cut,
                         int *first_cpu_out)
{
    int used[STI_SERVE_UNITS] = {0};
    const int room = tables->cpus ? tables->units / tables->cpus : 0;
    int last = sti_serve_cut_partitions(tables, cut), whole = 0;
    if (sti_serve_cut_units(tables, cut) > tables->units)
        return false;
    if (!tables->cpus && !first_cpu_out)
        return true;
    for (int k = tables->sizes - 1; k >= 0; k--)
        for (int i = 0; i < cut->count[k]; i++) {
            const int units = tables->size[k];
            const int cpus = tables->cpus ? sti_serve_size_cpus(tables, units) : units;
            int at = whole;
            if (cpus > 0)
                whole += cpus;
            else if ((at = find_cpu(used, whole, tables->cpus, units, room)) >= 0)
                used[at] += units;
            if (at < 0 || (tables->cpus && whole > tables->cpus))
                return false;
            if (first_cpu_out)
                first_cpu_out[--last] = at;
        }
    return true;
}
