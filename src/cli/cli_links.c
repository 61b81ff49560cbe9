#include "cli/cli_links.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/units.h"
#include "codec/gradient_codec.h"

/* Header and codes of a value in buckets of 1024. */
double sti_cli_bytes_per_value(int64_t bits)
{
    const sti_gradient_form form = {.bits = (int)bits, .bucket = 1024};
    return bits == 32 ? 4 : (double)sti_gradient_bytes(&form, 1 << 20) / (1 << 20);
}

stint_status sti_cli_check_bits(int64_t bits)
{
    return bits <= 8 || bits == 32
               ? STINT_OK
               : sti_fail(STINT_E_USAGE,
                          "--bits %" PRId64 ": 1 to 8, or 32 for float32", bits);
}

/* ---- where ranks run ---- */

bool sti_cli_place_has(const sti_cli_place *p, int cpu)
{
    return p->may[cpu / 8] >> cpu % 8 & 1;
}

static sti_cli_place own_place(int at_once)
{
    sti_cli_place mine = {.at_once = at_once, .there = sti_cpus_online()};
    sti_cpus_allowed(mine.may);
    return mine;
}

bool sti_cli_is_crowded(sti_comm *comm, const sti_cli_place *all, int rank)
{
    int cpus = 0, ranks = 0;
    for (int c = 0; c < STI_CPUS_MOST; c++)
        cpus += sti_cli_place_has(&all[rank], c);
    for (int r = 0; r < sti_comm_size(comm); r++) {
        bool within = strcmp(sti_comm_host(comm, r), sti_comm_host(comm, rank)) == 0;
        for (int i = 0; i < STI_CPUS_MOST / 8; i++)
            within = within && !(all[r].may[i] & ~all[rank].may[i]);
        ranks += within;
    }
    return ranks > cpus;
}

stint_status sti_cli_gather_places(sti_cli_call *call, stint_net *net,
                                   sti_cli_place **all_out)
{
    sti_comm *comm = sti_net_comm(net);
    int cpus = 1;
    sti_cli_place *all =
        sti_arena_alloc(call->arena, (size_t)sti_comm_size(comm) * sizeof *all);
    stint_status st = all ? sti_threads_choose(0, &cpus, NULL) : STINT_E_MEMORY;
    const sti_cli_place mine = own_place(cpus);
    st = sti_comm_agree(comm, st);
    *all_out = all;
    return st == STINT_OK ? sti_comm_gather_all(comm, &mine, sizeof mine, all) : st;
}

/* ---- what links give ---- */

static void describe(const sti_links *links, sti_comm *comm, sti_text *text)
{
    sti_text_printf(text, "%d ranks over %s, %s; one message at a time\n", links->ranks,
                    links->kind, sti_time_text(links->seconds));
    for (int i = 0; i < links->count; i++) {
        const sti_link_model *m = &links->models[i];
        const sti_link_segment *last = &m->segment[m->count - 1];
        sti_text_printf(text,
                        "%d (%s) to %d (%s): %s, then %s; %d segment%s, median within "
                        "%.1f %%, p95/median %.2f%s%s%s\n",
                        m->from, sti_comm_host(comm, m->from), m->to,
                        sti_comm_host(comm, m->to),
                        sti_time_text(sti_link_seconds(m, 1)),
                        sti_rate_text(8 / fmax(last->beta_s, 1e-15)), m->count,
                        sti_s(m->count), 100 * m->confident, m->spread,
                        m->spread > 2 ? "; varies too much to predict by" : "",
                        last->bounded ? "; alpha held at 0" : "",
                        m->samples < STI_LINK_SIZES_DRAWN * STI_LINK_LEAST_DRAWS
                            ? "; few samples, give more --time"
                            : "");
    }
}

static void json_of_links(const sti_links *links, sti_comm *comm, sti_json *j)
{
    sti_json_int(j, "ranks", links->ranks);
    sti_json_text(j, "kind", links->kind);
    sti_json_float(j, "seconds", links->seconds);
    sti_json_begin_array(j, "links");
    for (int i = 0; i < links->count; i++) {
        const sti_link_model *m = &links->models[i];
        sti_json_begin_object(j, NULL);
        sti_json_int(j, "from", m->from);
        sti_json_text(j, "from_host", sti_comm_host(comm, m->from));
        sti_json_int(j, "to", m->to);
        sti_json_text(j, "to_host", sti_comm_host(comm, m->to));
        sti_json_float(j, "byte_s", sti_link_seconds(m, 1));
        sti_json_float(j, "bits_per_s",
                       8 / fmax(m->segment[m->count - 1].beta_s, 1e-15));
        sti_json_int(j, "segments", m->count);
        sti_json_int(j, "samples", m->samples);
        sti_json_float(j, "median_interval", m->confident);
        sti_json_float(j, "p95_over_median", m->spread);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
}

/* Before minutes of measuring: can the file be written? */
static stint_status try_to_write(const char *path)
{
    sti_writer *writer = NULL;
    const stint_status st = sti_writer_open(path, &writer);
    sti_writer_abort(writer);
    return st;
}

stint_status sti_cli_measure(sti_cli_call *call, stint_net *net, const char *out,
                             double seconds, sti_cli_telling *tell)
{
    const sti_cli_links_args *a = call->args;
    sti_comm *comm = sti_net_comm(net);
    const bool first = stint_net_rank(net) == 0;
    const sti_measure_desc desc = {
        .seconds = seconds, .max_bytes = (int64_t)a->max_bytes, .seed = 1};
    sti_links links;
    stint_status st = sti_comm_agree(comm, first && out ? try_to_write(out) : STINT_OK);
    if (st == STINT_OK)
        st = sti_links_measure(comm, &desc, call->arena, &links);
    if (st == STINT_OK)
        st = sti_comm_agree(comm,
                            first && out ? sti_links_write(&links, out) : STINT_OK);
    if (st != STINT_OK || !first)
        return st;
    if (call->common->json)
        json_of_links(&links, comm, &tell->json);
    else
        describe(&links, comm, &tell->text);
    return STINT_OK;
}

/* ---- ranks ---- */

static stint_status join(const sti_cli_call *call, stint_net **net_out)
{
    const sti_cli_links_args *a = call->args;
    const stint_net_desc desc = {.root = a->root,
                                 .rank = (int)a->rank,
                                 .ranks = (int)a->ranks,
                                 .timeout_s = a->timeout,
                                 .sockets_only = a->sockets,
                                 .purpose = call->command->name};
    const stint_status st = stint_net_join(&desc, net_out);
    if (st == STINT_OK && !*net_out)
        return sti_fail(STINT_E_USAGE,
                        "there is one process only; start several by mpirun -n 2, or "
                        "give --net-root");
    return st;
}

stint_status sti_cli_run_ranks(sti_cli_call *call, sti_cli_ranks_fn *work)
{
    const sti_cli_links_args *a = call->args;
    stint_net *net = NULL;
    sti_cli_telling tell = {.text = {0}};
    if (!(a->time > 0))
        return sti_fail(STINT_E_USAGE, "--time: must be above 0, for example 2s");
    stint_status st = join(call, &net);
    if (st != STINT_OK)
        return st;
    if (call->common->json)
        sti_cli_json_begin(&tell.json, &tell.text);
    st = work(call, net, &tell);
    if (st != STINT_OK || stint_net_rank(net) > 0) {
        sti_text_fini(&tell.text);
    } else if (call->common->json) {
        sti_json_end_object(&tell.json);
        st = sti_cli_answer(call, &tell.text);
    } else {
        st = sti_cli_print(&tell.text);
    }
    return sti_cli_leave(call, net, st);
}
