/* net simulate: sums of gradients over networks that are not there. */
#include <inttypes.h>

#include "base/fail.h"
#include "base/units.h"
#include "cli/cli_links.h"
#include "net/rehearse.h"

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
    STI_CLI_NET_ROW(simulate_args, group, "group", STI_OPTION_INT, "1", 1, 65536, "N",
                    "processes a host"),
    STI_CLI_GRADIENT_ROWS(simulate_args),
    {.name = "scheme",
     .type = STI_OPTION_CHOICE,
     .choices = "scatter|ring|two-level",
     .default_text = "scatter",
     .offset = offsetof(simulate_args, scheme),
     .flag = true,
     .help = "how a compressed sum travels; float32 goes as exact sums do"},
    STI_CLI_NET_ROW(simulate_args, rate, "rate", STI_OPTION_TEXT, "1Gbit", 0, -1,
                    "RATE", "of the link of a host, each way"),
    STI_CLI_NET_ROW(simulate_args, latency, "latency", STI_OPTION_TIME,
                    STI_USUAL_LATENCY, 0, -1, "TIME",
                    "from host to host at one switch"),
    STI_CLI_NET_ROW(simulate_args, inside, "inside", STI_OPTION_TEXT, STI_USUAL_INSIDE,
                    0, -1, "RATE", "between processes of one host"),
    STI_CLI_NET_ROW(simulate_args, trunk, "trunk", STI_OPTION_TEXT, "10Gbit", 0, -1,
                    "RATE", "of the dumbbell's trunk, each way"),
    STI_CLI_NET_ROW(simulate_args, leaf, "leaf", STI_OPTION_INT, "16", 1, 65536, "N",
                    "hosts a leaf switch of the fat tree"),
    STI_CLI_NET_ROW(simulate_args, taper, "taper", STI_OPTION_FLOAT, "1", 0.01, 1000,
                    "X", "leaf switches have 1/X as much upwards as downwards"),
    STI_CLI_NET_ROW(simulate_args, encode, "encode", STI_OPTION_TIME, STI_USUAL_ENCODE,
                    0, -1, "TIME", "a process needs to encode a value"),
    STI_CLI_NET_ROW(simulate_args, decode, "decode", STI_OPTION_TIME, STI_USUAL_DECODE,
                    0, -1, "TIME", "and to decode and add one, or to add a float32"),
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
    stint_status st = sti_cli_check_bits(a->bits);
    if (st == STINT_OK)
        st = link_of(a->rate, a->latency / 2, &t->host);
    if (st == STINT_OK)
        st = link_of(a->inside, STI_USUAL_INSIDE_LATENCY, &t->inside);
    return st == STINT_OK ? link_of(a->trunk, a->latency / 2, &t->trunk) : st;
}

/* In float32 as training sums exactly; in one part by the scheme, as
 * formulas have it. */
static stint_status rehearse(const simulate_args *a, const sti_topology *t,
                             int64_t bits, sti_rehearsed *out)
{
    sti_rehearsal r = {.scheme = (sti_scheme)a->scheme,
                       .values = a->values,
                       .bytes_per_value = sti_cli_bytes_per_value(bits),
                       .encode_s = bits == 32 ? 0 : a->encode,
                       .decode_s = a->decode};
    if (bits == 32 && !a->whole)
        r = sti_rehearsal_exact(t, a->values, 0, a->decode);
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
