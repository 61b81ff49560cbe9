/* What the subcommands of net share. */
#ifndef STI_CLI_CLI_LINKS_H
#define STI_CLI_CLI_LINKS_H

#include "base/team.h"
#include "cli/cli.h"
#include "net/link_measure.h"
#include "net/net.h"
#include "net/wire.h"

/* clang-format off */
#define STI_CLI_NET_ROW(args, field, key, kind, text, low, high, unit_text, words) \
    {.name = (key),                                                                \
     .type = (kind),                                                               \
     .default_text = (text),                                                       \
     .min = (low),                                                                 \
     .max = (high),                                                                \
     .offset = offsetof(args, field),                                              \
     .flag = true,                                                                 \
     .unit = (unit_text),                                                          \
     .help = (words)}

/* Options of net simulate and net predict. */
#define STI_CLI_GRADIENT_ROWS(args)                                                \
    STI_CLI_NET_ROW(args, values, "values", STI_OPTION_INT, "25000000", 1, 1e12,   \
                    "N", "values of the gradient"),                                \
    STI_CLI_NET_ROW(args, bits, "bits", STI_OPTION_INT, "4", 1, 32, "N",           \
                    "bits a value: 1 to 8, or 32")
/* clang-format on */

/* Bytes of a value for net simulate and net predict, header included, in buckets of
 * 1024; the check gives STINT_E_USAGE unless 1 to 8 or 32 (float32). */
double sti_cli_bytes_per_value(int64_t bits);
stint_status sti_cli_check_bits(int64_t bits);

/* ---- processes that meet: net measure, net check ---- */

typedef struct sti_cli_links_args {
    const char *out, *root;
    int64_t rank, ranks;
    size_t max_bytes;
    int pattern;
    double time, timeout;
    bool sockets;
    sti_cli_common common;
} sti_cli_links_args;

/* clang-format off */
#define STI_CLI_JOIN_ROWS                                                          \
    STI_CLI_NET_ROW(sti_cli_links_args, root, "net-root", STI_OPTION_TEXT, "",     \
                    0, -1, "ADDRESS",                                              \
                    "where the processes meet: HOST:PORT of rank 0's host, or "    \
                    "@NAME if all are on this host; not needed under mpirun"),     \
    STI_CLI_NET_ROW(sti_cli_links_args, ranks, "net-ranks", STI_OPTION_INT, "0",   \
                    0, WIRE_RANKS, "N", "processes that meet at --net-root"),      \
    STI_CLI_NET_ROW(sti_cli_links_args, rank, "net-rank", STI_OPTION_INT, "0",     \
                    0, WIRE_RANKS - 1, "R", "which of them this one is, from 0"),  \
    STI_CLI_NET_ROW(sti_cli_links_args, timeout, "net-timeout", STI_OPTION_TIME,   \
                    "30s", 0, -1, "TIME",                                          \
                    "a process that gives no sign of life for so long is lost"),   \
    {.name = "net-sockets",                                                        \
     .type = STI_OPTION_BOOL,                                                      \
     .default_text = "false",                                                      \
     .offset = offsetof(sti_cli_links_args, sockets),                              \
     .flag = true,                                                                 \
     .help = "share no memory between processes of a host"}
/* clang-format on */

/* Where a rank runs. */
typedef struct sti_cli_place {
    int64_t at_once, there;         /* CPUs that it may use at a time; of the host */
    uint8_t may[STI_CPUS_MOST / 8]; /* those that it is bound to, a bit each */
} sti_cli_place;

bool sti_cli_place_has(const sti_cli_place *p, int cpu);
/* The CPUs of all ranks, in the call's arena; all ranks call it. */
stint_status sti_cli_gather_places(sti_cli_call *call, stint_net *net,
                                   sti_cli_place **all_out);
/* Are more ranks of its host kept to the CPUs of this one than there are? */
bool sti_cli_is_crowded(sti_comm *comm, const sti_cli_place *all, int rank);

/* What is told on stdout: words, or JSON. */
typedef struct sti_cli_telling {
    sti_text text;
    sti_json json; /* into the text */
} sti_cli_telling;

/* The links of all pairs, told by rank 0, which writes them to `out` unless NULL. */
stint_status sti_cli_measure(sti_cli_call *call, stint_net *net, const char *out,
                             double seconds, sti_cli_telling *tell);
/* Joins, does the work on every rank and lets rank 0 tell of it. */
typedef stint_status sti_cli_ranks_fn(sti_cli_call *call, stint_net *net,
                                      sti_cli_telling *tell);
stint_status sti_cli_run_ranks(sti_cli_call *call, sti_cli_ranks_fn *work);

#endif
