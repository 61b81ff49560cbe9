/* net simulate, net predict, net measure, net check: what links between processes give,
 * and what a sum of gradients takes over them. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/team.h"
#include "base/units.h"
#include "cli/cli.h"
#include "codec/gradient_codec.h"
#include "net/link_patterns.h"
#include "net/net.h"
#include "net/rehearse.h"
#include "net/wire.h"

/* Header and codes of a value in buckets of 1024. */
static double bytes_per_value(int64_t bits)
{
    const sti_gradient_form form = {.bits = (int)bits, .bucket = 1024};
    return bits == 32 ? 4 : (double)sti_gradient_bytes(&form, 1 << 20) / (1 << 20);
}

static stint_status check_bits(int64_t bits)
{
    return bits <= 8 || bits == 32
               ? STINT_OK
               : sti_fail(STINT_E_USAGE,
                          "--bits %" PRId64 ": 1 to 8, or 32 for float32", bits);
}

/* clang-format off */
#define ROW(args, field, key, kind, text, low, high, unit_text, words)            \
    {.name = (key), .type = (kind), .default_text = (text), .min = (low),         \
     .max = (high), .offset = offsetof(args, field), .flag = true,                \
     .unit = (unit_text), .help = (words)}
/* clang-format on */

/* ---- simulate ---- */

typedef struct simulate_args {
    int64_t ranks, group, values, bits, leaf;
    int topology, scheme;
    const char *rate, *inside, *trunk;
    double latency, taper, encode, decode;
    bool table, whole;
    sti_cli_common common;
} simulate_args;

static const sti_option simulate_rows[] = {
    {.name = "topology",
     .type = STI_OPTION_CHOICE,
     .choices = "ethernet|dumbbell|fat-tree",
     .default_text = "ethernet",
     .offset = offsetof(simulate_args, topology),
     .flag = true,
     .help = "hosts at one switch; at two with a trunk between; at leaf switches"},
    {.name = "ranks",
     .letter = 'n',
     .type = STI_OPTION_INT,
     .default_text = "64",
     .min = 2,
     .max = 65536,
     .offset = offsetof(simulate_args, ranks),
     .flag = true,
     .unit = "N",
     .help = "processes"},
    ROW(simulate_args, group, "group", STI_OPTION_INT, "1", 1, 65536, "N",
        "processes a host"),
    ROW(simulate_args, values, "values", STI_OPTION_INT, "25000000", 1, 1e12, "N",
        "values of the gradient"),
    ROW(simulate_args, bits, "bits", STI_OPTION_INT, "4", 1, 32, "N",
        "bits a value: 1 to 8, or 32"),
    {.name = "scheme",
     .type = STI_OPTION_CHOICE,
     .choices = "scatter|ring|two-level",
     .default_text = "scatter",
     .offset = offsetof(simulate_args, scheme),
     .flag = true,
     .help = "how a compressed sum travels; float32 goes as exact sums do"},
    ROW(simulate_args, rate, "rate", STI_OPTION_TEXT, "1Gbit", 0, -1, "RATE",
        "of the link of a host, each way"),
    ROW(simulate_args, latency, "latency", STI_OPTION_TIME, "50us", 0, -1, "TIME",
        "from host to host at one switch"),
    ROW(simulate_args, inside, "inside", STI_OPTION_TEXT, "5GB/s", 0, -1, "RATE",
        "between processes of one host"),
    ROW(simulate_args, trunk, "trunk", STI_OPTION_TEXT, "10Gbit", 0, -1, "RATE",
        "of the dumbbell's trunk, each way"),
    ROW(simulate_args, leaf, "leaf", STI_OPTION_INT, "16", 1, 65536, "N",
        "hosts a leaf switch of the fat tree"),
    ROW(simulate_args, taper, "taper", STI_OPTION_FLOAT, "1", 0.01, 1000, "X",
        "leaf switches have 1/X as much upwards as downwards"),
    ROW(simulate_args, encode, "encode", STI_OPTION_TIME, "0.5ns", 0, -1, "TIME",
        "a process needs to encode a value"),
    ROW(simulate_args, decode, "decode", STI_OPTION_TIME, "0.4ns", 0, -1, "TIME",
        "and to decode and add one, or to add a float32"),
    {.name = "whole",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     .offset = offsetof(simulate_args, whole),
     .flag = true,
     .help =
         "the sum in one part, float32 by the scheme, too, so that nothing overlaps"},
    {.name = "table",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     .offset = offsetof(simulate_args, table),
     .flag = true,
     .help = "for 8, 16, ... processes up to --ranks, beside float32"},
    STI_CLI_COMMON_ROWS(simulate_args),
};

static stint_status link_of(const char *rate, double latency_s, sti_link *link)
{
    double bits_per_s = 0;
    const stint_status st = sti_parse_rate(rate, &bits_per_s);
    *link = (sti_link){latency_s, 8 / bits_per_s};
    return st;
}

static stint_status topology_of(const simulate_args *a, sti_topology *t)
{
    *t = (sti_topology){.kind = (sti_topology_kind)a->topology,
                        .ranks = (int)a->ranks,
                        .group = (int)a->group,
                        .leaf = (int)a->leaf,
                        .taper = a->taper};
    stint_status st = check_bits(a->bits);
    if (st == STINT_OK)
        st = link_of(a->rate, a->latency / 2, &t->host);
    if (st == STINT_OK)
        st = link_of(a->inside, 1e-6, &t->inside);
    return st == STINT_OK ? link_of(a->trunk, a->latency / 2, &t->trunk) : st;
}

/* In float32 as training sums exactly; in one part by the scheme, as
 * formulas have it. */
static stint_status rehearse(const simulate_args *a, const sti_topology *t,
                             int64_t bits, sti_rehearsed *out)
{
    sti_rehearsal r = {.scheme = (sti_scheme)a->scheme,
                       .values = a->values,
                       .bytes_per_value = bytes_per_value(bits),
                       .encode_s = bits == 32 ? 0 : a->encode,
                       .decode_s = a->decode};
    if (bits == 32 && !a->whole)
        r = sti_rehearsal_exact(t, a->values, a->decode);
    else if (!a->whole)
        sti_rehearsal_cut(t, &r);
    return sti_rehearse(t, &r, out);
}

static void json_of(sti_json *j, int ranks, int64_t bits, const sti_rehearsed *r)
{
    sti_json_begin_object(j, NULL);
    sti_json_int(j, "ranks", ranks);
    sti_json_int(j, "bits", bits);
    sti_json_float(j, "seconds", r->seconds);
    sti_json_int(j, "parts", r->parts);
    sti_json_int(j, "messages", r->messages);
    sti_json_float(j, "bytes", r->bytes);
    sti_json_float(j, "rank_bytes", r->rank_bytes);
    sti_json_float(j, "busiest_link", r->busiest);
    sti_json_end_object(j);
}

static stint_status simulate_one(const simulate_args *a, int ranks, sti_json *j,
                                 sti_text *text)
{
    sti_topology t;
    sti_rehearsed r, whole;
    stint_status st = topology_of(a, &t);
    t.ranks = ranks;
    if (st == STINT_OK)
        st = rehearse(a, &t, a->bits, &r);
    if (st == STINT_OK)
        st = rehearse(a, &t, 32, &whole);
    if (st != STINT_OK)
        return st;
    if (j) {
        json_of(j, ranks, a->bits, &r);
        json_of(j, ranks, 32, &whole);
    } else {
        sti_text_printf(text, "%7d %10s %10s %8.2f %5d %12" PRId64 " %10s %7.0f %%\n",
                        ranks, sti_time_text(r.seconds), sti_time_text(whole.seconds),
                        whole.seconds / r.seconds, r.parts, r.messages,
                        sti_bytes_text((size_t)r.rank_bytes), 100 * r.busiest);
    }
    return STINT_OK;
}

static stint_status simulate_run(sti_cli_call *call)
{
    const simulate_args *a = call->args;
    sti_text text = {0};
    sti_json json;
    const bool as_json = call->common->json;
    const int64_t first = !a->table ? a->ranks : a->group > 8 ? a->group : 8;
    if (as_json) {
        sti_cli_json_begin(&json, &text);
        sti_json_text(&json, "topology",
                      sti_topology_name((sti_topology_kind)a->topology));
        sti_json_text(&json, "scheme", sti_scheme_name((sti_scheme)a->scheme));
        sti_json_begin_array(&json, "sums");
    } else {
        sti_text_printf(
            &text,
            "%s, %s a host's link, %s; %s of %" PRId64
            " values, simulated\n%7s %6" PRId64 " bits %10s %8s %5s %12s %10s %9s\n",
            sti_topology_name((sti_topology_kind)a->topology), a->rate,
            sti_time_text(a->latency), sti_scheme_name((sti_scheme)a->scheme),
            a->values, "ranks", a->bits, "float32", "times", "parts", "messages",
            "rank sends", "busiest");
    }
    stint_status st = STINT_OK;
    for (int64_t n = first < a->ranks ? first : a->ranks;
         n <= a->ranks && st == STINT_OK; n *= 2)
        st = simulate_one(a, (int)n, as_json ? &json : NULL, &text);
    if (st != STINT_OK) {
        sti_text_fini(&text);
        return st;
    }
    if (!as_json)
        return sti_cli_print(&text);
    sti_json_end_array(&json);
    sti_json_end_object(&json);
    return sti_cli_answer(call, &text);
}

const sti_cli_command sti_cmd_net_simulate = {
    .name = "net simulate",
    .summary = "rehearse sums of gradients over networks that are not there",
    .operands = "",
    .example = "stint net simulate -n 64 --rate 1Gbit\n"
               "stint net simulate --topology fat-tree -n 4096 --group 64 "
               "--scheme two-level --table",
    .about = "The messages of a real sum, one by one, over modelled links that serve "
             "them in order. It goes in parts that overlap, as in training, in fewer "
             "where they would take over 5 million messages. See "
             "docs/network-compression.md for the model.",
    .min_operands = 0,
    .max_operands = 0,
    STI_CLI_ARGS(simulate_rows, simulate_args),
    .run = simulate_run,
};

/* ---- predict ---- */

typedef struct predict_args {
    int64_t ranks, values, bits;
    int scheme;
    sti_cli_common common;
} predict_args;

static const sti_option predict_rows[] = {
    {.name = "ranks",
     .letter = 'n',
     .type = STI_OPTION_INT,
     .default_text = "2",
     .min = 2,
     .max = 65536,
     .offset = offsetof(predict_args, ranks),
     .flag = true,
     .unit = "N",
     .help = "processes, one a host"},
    ROW(predict_args, values, "values", STI_OPTION_INT, "25000000", 1, 1e12, "N",
        "values of the gradient"),
    ROW(predict_args, bits, "bits", STI_OPTION_INT, "4", 1, 32, "N",
        "bits a value: 1 to 8, or 32"),
    {.name = "scheme",
     .type = STI_OPTION_CHOICE,
     .choices = "scatter|ring",
     .default_text = "scatter",
     .offset = offsetof(predict_args, scheme),
     .flag = true,
     .help = "how a compressed sum travels; float32 goes as exact sums do"},
    STI_CLI_COMMON_ROWS(predict_args),
};

/* The slowest link at the size of a slice; every host like it. */
static stint_status predict(const predict_args *a, const sti_links *links, double *out)
{
    const double per_value = bytes_per_value(a->bits);
    const double slice = (double)a->values / (double)a->ranks * per_value;
    const sti_link_model *worst = &links->models[0];
    for (int i = 1; i < links->count; i++)
        if (sti_link_seconds(&links->models[i], slice) > sti_link_seconds(worst, slice))
            worst = &links->models[i];
    const sti_link_segment *s = sti_link_segment_of(worst, slice);
    static const int places[] = {4, 2, 6}; /* median, 5 %, 95 % */
    /* A bounded line is off at its median already; the slope of a stream is not. */
    const double middle = s->bounded ? s->quantile[places[0]] : 1;
    for (int k = 0; k < 3; k++) {
        const double times = s->quantile[places[k]] / (middle > 0 ? middle : 1);
        const sti_topology t = {.kind = STI_TOPOLOGY_ETHERNET,
                                .ranks = (int)a->ranks,
                                .group = 1,
                                .host = {s->alpha_s / 2 * times, s->stream_s * times},
                                .inside = {s->alpha_s, s->stream_s}};
        sti_rehearsal r = {.scheme = (sti_scheme)a->scheme,
                           .values = a->values,
                           .bytes_per_value = per_value,
                           .encode_s = links->encode_s,
                           .decode_s = links->decode_s};
        if (a->bits == 32)
            r = sti_rehearsal_exact(&t, a->values, links->decode_s);
        else
            sti_rehearsal_cut(&t, &r);
        sti_rehearsed sum;
        const stint_status st = sti_rehearse(&t, &r, &sum);
        if (st != STINT_OK)
            return st;
        out[k] = sum.seconds;
    }
    return STINT_OK;
}

static stint_status predict_run(sti_cli_call *call)
{
    const predict_args *a = call->args;
    sti_links links;
    sti_text text = {0};
    double seconds[3];
    const char *way =
        a->bits == 32 ? "the exact sum" : sti_scheme_name((sti_scheme)a->scheme);
    stint_status st = check_bits(a->bits);
    if (st == STINT_OK)
        st = sti_links_read(call->operands[0], call->arena, &links);
    if (st == STINT_OK)
        st = predict(a, &links, seconds);
    if (st != STINT_OK)
        return st;
    if (!call->common->json) {
        sti_text_printf(&text,
                        "%s for %s values in %" PRId64 " bits by %s, %" PRId64
                        " processes; 5 %% to 95 %%: %s to %s\n",
                        sti_time_text(seconds[0]), sti_count_text(a->values), a->bits,
                        way, a->ranks, sti_time_text(seconds[1]),
                        sti_time_text(seconds[2]));
        return sti_cli_print(&text);
    }
    sti_json json;
    sti_cli_json_begin(&json, &text);
    sti_json_float(&json, "seconds", seconds[0]);
    sti_json_float(&json, "seconds_5", seconds[1]);
    sti_json_float(&json, "seconds_95", seconds[2]);
    sti_json_text(&json, "way", way);
    sti_json_end_object(&json);
    return sti_cli_answer(call, &text);
}

const sti_cli_command sti_cmd_net_predict = {
    .name = "net predict",
    .summary = "say from measured links what a sum of gradients takes",
    .operands = "LINKS",
    .example = "stint net predict links.json --values 11000000 --bits 4 -n 8",
    .about =
        "LINKS is what net measure wrote. Every process is taken to have the slowest "
        "of the links in it.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(predict_rows, predict_args),
    .run = predict_run,
};

/* ---- measure and check ---- */

typedef struct measure_args {
    const char *out, *root;
    int64_t rank, ranks;
    size_t max_bytes;
    int pattern;
    double time, timeout;
    bool sockets;
    sti_cli_common common;
} measure_args;

/* clang-format off */
#define JOIN_ROWS                                                                 \
    ROW(measure_args, root, "net-root", STI_OPTION_TEXT, "", 0, -1, "HOST:PORT",  \
        "where the processes meet: an address of rank 0's host; not needed under "\
        "mpirun"),                                                                \
    ROW(measure_args, ranks, "net-ranks", STI_OPTION_INT, "0", 0, WIRE_RANKS,     \
        "N", "processes that meet at --net-root"),                                \
    ROW(measure_args, rank, "net-rank", STI_OPTION_INT, "0", 0, WIRE_RANKS - 1,   \
        "R", "which of them this one is, from 0"),                                \
    ROW(measure_args, timeout, "net-timeout", STI_OPTION_TIME, "30s", 0, -1,      \
        "TIME", "a process that gives no sign of life for so long is lost"),      \
    {.name = "net-sockets", .type = STI_OPTION_BOOL, .default_text = "false",     \
     .offset = offsetof(measure_args, sockets), .flag = true,                     \
     .help = "share no memory between processes of a host"}
/* clang-format on */

static const sti_option measure_rows[] = {
    {.name = "out",
     .letter = 'o',
     .type = STI_OPTION_PATH,
     .default_text = "links.json",
     .offset = offsetof(measure_args, out),
     .flag = true,
     .unit = "FILE",
     .help = "file that rank 0 writes"},
    {.name = "pattern",
     .type = STI_OPTION_CHOICE,
     .choices = "pairs|at-once|neighbours|all-to-all|incast|fan-out|allreduce",
     .default_text = "pairs",
     .offset = offsetof(measure_args, pattern),
     .flag = true,
     .help = "who sends to whom: one message at a time, for the file; or many at once, "
             "told only"},
    ROW(measure_args, time, "time", STI_OPTION_TIME, "10s", 0, -1, "TIME",
        "for all pairs together"),
    ROW(measure_args, max_bytes, "largest", STI_OPTION_BYTES, "4M", 0, -1, "SIZE",
        "largest message, 64K or more"),
    JOIN_ROWS,
    STI_CLI_COMMON_ROWS(measure_args),
};

static stint_status join(const measure_args *a, stint_net **net_out)
{
    const stint_net_desc desc = {.root = a->root,
                                 .rank = (int)a->rank,
                                 .ranks = (int)a->ranks,
                                 .timeout_s = a->timeout,
                                 .sockets_only = a->sockets};
    const stint_status st = stint_net_join(&desc, net_out);
    if (st == STINT_OK && !*net_out)
        return sti_fail(STINT_E_USAGE,
                        "there is one process only; start several by mpirun -n 2, or "
                        "give --net-root");
    return st;
}

/* ---- where ranks run ---- */

typedef struct place {
    int64_t at_once, there;         /* CPUs that it may use at a time; of the host */
    uint8_t may[STI_CPUS_MOST / 8]; /* those that it is bound to, a bit each */
} place;

static bool has_cpu(const place *p, int cpu)
{
    return p->may[cpu / 8] >> cpu % 8 & 1;
}

static place own_place(int at_once)
{
    place mine = {.at_once = at_once, .there = sti_cpus_online()};
    sti_cpus_allowed(mine.may);
    return mine;
}

/* "0-3,8" */
static void list_cpus(const place *p, sti_text *out)
{
    bool any = false;
    for (int c = 0; c < STI_CPUS_MOST; c++) {
        int end = c;
        if (!has_cpu(p, c))
            continue;
        while (end + 1 < STI_CPUS_MOST && has_cpu(p, end + 1))
            end++;
        sti_text_printf(out, "%s%d", any ? "," : "", c);
        if (end > c)
            sti_text_printf(out, "-%d", end);
        any = true;
        c = end;
    }
}

/* Are more ranks of its host kept to the CPUs of this one than there are? */
static bool is_crowded(sti_comm *comm, const place *all, int rank)
{
    int cpus = 0, ranks = 0;
    for (int c = 0; c < STI_CPUS_MOST; c++)
        cpus += has_cpu(&all[rank], c);
    for (int r = 0; r < sti_comm_size(comm); r++) {
        bool within = strcmp(sti_comm_host(comm, r), sti_comm_host(comm, rank)) == 0;
        for (int i = 0; i < STI_CPUS_MOST / 8; i++)
            within = within && !(all[r].may[i] & ~all[rank].may[i]);
        ranks += within;
    }
    return ranks > cpus;
}

static stint_status gather_places(sti_cli_call *call, stint_net *net, place **all_out)
{
    sti_comm *comm = sti_net_comm(net);
    int cpus = 1;
    place *all =
        sti_arena_alloc(call->arena, (size_t)sti_comm_size(comm) * sizeof *all);
    stint_status st = all ? sti_threads_choose(0, &cpus, NULL) : STINT_E_MEMORY;
    const place mine = own_place(cpus);
    st = sti_comm_agree(comm, st);
    *all_out = all;
    return st == STINT_OK ? sti_comm_gather_all(comm, &mine, sizeof mine, all) : st;
}

static void warn_crowded(sti_comm *comm, const place *all)
{
    if (sti_comm_rank(comm) > 0)
        return;
    for (int r = 0; r < sti_comm_size(comm); r++)
        if (is_crowded(comm, all, r)) {
            sti_log(
                STINT_LOG_WARNING,
                "more ranks on %s than CPUs for them: these times are no measure of "
                "the links",
                sti_comm_host(comm, r));
            return;
        }
}

/* What is told on stdout: words, or JSON. */
typedef struct telling {
    sti_text text;
    sti_json json; /* into the text */
} telling;

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
                        m->count == 1 ? "" : "s", 100 * m->confident, m->spread,
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

static stint_status measure_with(sti_cli_call *call, stint_net *net, const char *out,
                                 double seconds, telling *tell)
{
    const measure_args *a = call->args;
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

/* Joins, does the work on every rank and lets rank 0 tell of it. */
static stint_status run_ranks(sti_cli_call *call,
                              stint_status (*work)(sti_cli_call *call, stint_net *net,
                                                   telling *tell))
{
    const measure_args *a = call->args;
    stint_net *net = NULL;
    telling tell = {.text = {0}};
    if (!(a->time > 0))
        return sti_fail(STINT_E_USAGE, "--time: must be above 0, for example 2s");
    stint_status st = join(a, &net);
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

/* ---- many messages at once ---- */

static void describe_rows(const sti_pattern_row *rows, telling *tell, bool as_json)
{
    if (as_json)
        sti_json_begin_array(&tell->json, "sizes");
    else
        sti_text_printf(&tell->text, "%10s %10s %10s %10s %13s %13s\n", "bytes",
                        "median", "5 %", "95 %", "algorithm", "bus");
    for (const sti_pattern_row *r = rows; r < rows + STI_PATTERN_SIZES; r++)
        if (as_json) {
            sti_json_begin_object(&tell->json, NULL);
            sti_json_int(&tell->json, "bytes", r->bytes);
            sti_json_int(&tell->json, "samples", r->samples);
            sti_json_float(&tell->json, "median_s", r->median_s);
            sti_json_float(&tell->json, "low_s", r->low_s);
            sti_json_float(&tell->json, "high_s", r->high_s);
            sti_json_float(&tell->json, "algorithm_bits_per_s",
                           8 * r->algorithm_bytes_per_s);
            sti_json_float(&tell->json, "bus_bits_per_s", 8 * r->bus_bytes_per_s);
            sti_json_end_object(&tell->json);
        } else {
            sti_text_printf(&tell->text, "%10s %10s %10s %10s %13s %13s\n",
                            sti_bytes_text((size_t)r->bytes),
                            sti_time_text(r->median_s), sti_time_text(r->low_s),
                            sti_time_text(r->high_s),
                            sti_rate_text(8 * r->algorithm_bytes_per_s),
                            sti_rate_text(8 * r->bus_bytes_per_s));
        }
    if (as_json)
        sti_json_end_array(&tell->json);
}

static stint_status measure_pattern(const sti_cli_call *call, stint_net *net,
                                    telling *tell)
{
    const measure_args *a = call->args;
    sti_comm *comm = sti_net_comm(net);
    const sti_measure_desc desc = {
        .seconds = a->time, .max_bytes = (int64_t)a->max_bytes, .seed = 1};
    sti_pattern_row rows[STI_PATTERN_SIZES];
    const stint_status st =
        sti_links_pattern(comm, (sti_pattern)a->pattern, &desc, rows);
    if (st != STINT_OK || stint_net_rank(net) > 0)
        return st;
    const char *name = sti_pattern_name((sti_pattern)a->pattern);
    if (call->common->json) {
        sti_json_text(&tell->json, "pattern", name);
        sti_json_int(&tell->json, "ranks", sti_comm_size(comm));
        sti_json_text(&tell->json, "kind", sti_comm_kind(comm));
    } else {
        sti_text_printf(&tell->text, "%s, %d ranks over %s; no file is written\n", name,
                        sti_comm_size(comm), sti_comm_kind(comm));
    }
    describe_rows(rows, tell, call->common->json);
    return STINT_OK;
}

static stint_status measure_work(sti_cli_call *call, stint_net *net, telling *tell)
{
    const measure_args *a = call->args;
    place *all = NULL;
    stint_status st = gather_places(call, net, &all);
    if (st != STINT_OK)
        return st;
    warn_crowded(sti_net_comm(net), all);
    return a->pattern == STI_PATTERN_PAIRS
               ? measure_with(call, net, a->out, a->time, tell)
               : measure_pattern(call, net, tell);
}

static stint_status measure_run(sti_cli_call *call)
{
    const measure_args *a = call->args;
    if (a->max_bytes < STI_LINK_LARGEST_LEAST)
        return sti_fail(STINT_E_USAGE,
                        "--largest: %s is too small to see a link's rate; at least %s",
                        sti_bytes_text(a->max_bytes),
                        sti_bytes_text(STI_LINK_LARGEST_LEAST));
    return run_ranks(call, measure_work);
}

const sti_cli_command sti_cmd_net_measure = {
    .name = "net measure",
    .summary = "measure the links between processes",
    .operands = "",
    .example = "mpirun -n 2 stint net measure -o links.json\n"
               "mpirun -n 4 stint net measure --pattern all-to-all",
    .about = "Round trips of messages of many sizes over the transport that training "
             "uses; every byte is checked. The file is for net predict. Other patterns "
             "are timed as the slowest rank has it; of the two rates \"algorithm\" "
             "counts the operation's bytes, \"bus\" those of the busiest rank's link.",
    .min_operands = 0,
    .max_operands = 0,
    STI_CLI_ARGS(measure_rows, measure_args),
    .run = measure_run,
};

static const sti_option check_rows[] = {
    ROW(measure_args, time, "time", STI_OPTION_TIME, "2s", 0, -1, "TIME",
        "for the links of all pairs together"),
    JOIN_ROWS,
    STI_CLI_COMMON_ROWS(measure_args),
};

static void describe_places(sti_comm *comm, const place *all, telling *tell, bool json)
{
    if (json)
        sti_json_begin_array(&tell->json, "places");
    for (int r = 0; r < sti_comm_size(comm); r++) {
        const bool crowded = is_crowded(comm, all, r);
        sti_text cpus = {0};
        list_cpus(&all[r], &cpus);
        const char *list = cpus.data ? cpus.data : "";
        if (json) {
            sti_json_begin_object(&tell->json, NULL);
            sti_json_int(&tell->json, "rank", r);
            sti_json_text(&tell->json, "host", sti_comm_host(comm, r));
            sti_json_text(&tell->json, "cpus", list);
            sti_json_int(&tell->json, "cpus_at_once", all[r].at_once);
            sti_json_int(&tell->json, "cpus_of_host", all[r].there);
            sti_json_bool(&tell->json, "crowded", crowded);
            sti_json_end_object(&tell->json);
        } else {
            sti_text_printf(
                &tell->text, "rank %d on %s, %" PRId64 " of %" PRId64 " CPUs (%s)%s\n",
                r, sti_comm_host(comm, r), all[r].at_once, all[r].there, list,
                crowded ? "; more ranks here than CPUs: no measure of speed" : "");
        }
        sti_text_fini(&cpus);
    }
    if (json)
        sti_json_end_array(&tell->json);
}

static stint_status check_work(sti_cli_call *call, stint_net *net, telling *tell)
{
    const measure_args *a = call->args;
    place *all = NULL;
    const stint_status st = gather_places(call, net, &all);
    if (st == STINT_OK && stint_net_rank(net) == 0)
        describe_places(sti_net_comm(net), all, tell, call->common->json);
    return st == STINT_OK ? measure_with(call, net, NULL, a->time, tell) : st;
}

static stint_status check_run(sti_cli_call *call)
{
    return run_ranks(call, check_work);
}

const sti_cli_command sti_cmd_net_check = {
    .name = "net check",
    .summary = "say who is there before a training of several processes",
    .operands = "",
    .example = "mpirun -n 2 stint net check",
    .about =
        "Ranks, hosts, the CPUs they are bound to, and the links between them, both "
        "ways.",
    .min_operands = 0,
    .max_operands = 0,
    STI_CLI_ARGS(check_rows, measure_args),
    .run = check_run,
};
