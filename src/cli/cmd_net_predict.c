/* net predict: what a sum of gradients takes over measured links. */
#include <inttypes.h>

#include "base/fail.h"
#include "base/units.h"
#include "cli/cli_links.h"
#include "net/rehearse.h"

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
    STI_CLI_GRADIENT_ROWS(predict_args),
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
    const double per_value = sti_cli_bytes_per_value(a->bits);
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
            r = sti_rehearsal_exact(&t, a->values, 0, links->decode_s);
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
    stint_status st = sti_cli_check_bits(a->bits);
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
