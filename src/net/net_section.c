/* [net] of a recipe: how gradients travel between processes. */
#include "net/net_section.h"

#include <inttypes.h>
#include <string.h>

#include "base/units.h"

#define AT(field) .offset = offsetof(sti_net_values, field)

static const sti_option rows[] = {
    {.name = "bits",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, 32),
     .automatic = true,
     .default_text = "32",
     AT(bits),
     .unit = "N",
     .help =
         "bits a gradient value between processes, 1 to 8; 32: exact; auto: a layer's "
         "own, with the error of 4 bits for all"},
    {.name = "error",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0.001, 1000),
     .default_text = "1",
     AT(error),
     .unit = "X",
     .help =
         "of net.bits = auto: squared error that is allowed, as a multiple of that of "
         "4 bits for all"},
    {.name = "link",
     .type = STI_OPTION_TEXT,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(link),
     .flag = true,
     .flag_name = "net",
     .unit = "RATE",
     .help = "compress gradients for this link; or auto"},
    {.name = "time",
     .type = STI_OPTION_TIME,
     STI_OPTION_NO_BOUND,
     .default_text = "100ms",
     AT(time),
     .unit = "TIME",
     .help = "time that net.link, as 100Mbit, may take a step: bits are chosen to fit"},
    {.name = "every",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, 1000000),
     .default_text = "100",
     AT(every),
     .unit = "STEPS",
     .help = "steps between choices of bits"},
    {.name = "method",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .choices = "maxmin|qsgd|qsgd-max",
     .default_text = "maxmin",
     AT(method),
     .help = "quantiser of gradients"},
    {.name = "rounding",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .choices = "nearest|stochastic|correlated",
     .default_text = "nearest",
     AT(rounding),
     .help = "rounding of gradients; the last two are unbiased"},
    {.name = "bucket",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(8, 65536),
     .default_text = "1024",
     AT(bucket),
     .unit = "VALUES",
     .help = "values that share a scale, a multiple of 8"},
    {.name = "clip",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(clip),
     .help =
         "search each bucket's range for the least squared error (maxmin); pays below "
         "5 bits"},
    {.name = "feedback",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "true",
     AT(feedback),
     .help = "add what rounding took to the next step's gradient, up to 6 bits"},
    {.name = "keep",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1),
     .default_text = "1",
     AT(keep),
     .unit = "SHARE",
     .help = "send only this share of a layer's values, the largest, and feed the rest "
             "back"},
    {.name = "scheme",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .choices = "scatter|ring|two-level",
     .default_text = "scatter",
     AT(scheme),
     .help = "how a compressed sum travels"},
    {.name = "group",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, 65536),
     .default_text = "1",
     AT(group),
     .unit = "N",
     .help = "processes a host, for two-level"},
    {.name = "overlap",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "true",
     AT(overlap),
     .same_weights = true,
     .help =
         "sum over processes while the backward pass still runs, by a thread of its "
         "own; changes no bit"},
};

static void check_quantiser(const sti_net_values *net, sti_complaints *list)
{
    if (net->bits > 8 && net->bits != 32)
        sti_complain(list, "net.bits: %" PRId64 "; 1 to 8, auto, or 32 for exact sums",
                     net->bits);
    if (net->bits == 1 && net->method != 0)
        sti_complain(list, "net.bits: 1 is of method maxmin only; qsgd needs 2");
    if (net->bucket % 8)
        sti_complain(list, "net.bucket: must be a multiple of 8");
    if (net->clip && net->method != 0)
        sti_complain(list, "net.clip: is of method maxmin only");
    if (!(net->keep > 0))
        sti_complain(list, "net.keep: must be above 0, for example 0.01");
    if (net->keep < 1 && !net->feedback)
        sti_complain(list, "net.keep: below 1 needs net.feedback, or the rest is lost");
}

static void check_link(const sti_net_values *net, sti_complaints *list)
{
    double rate;
    if (net->link && strcmp(net->link, "auto") != 0 &&
        sti_parse_rate(net->link, &rate) != STINT_OK)
        sti_complain(list, "net.link: %s", stint_last_error());
    if (net->link && net->bits != 32)
        sti_complain(list, "net.link: chooses the bits; remove net.bits");
    if (net->error != 1 && net->bits != 0)
        sti_complain(list, "net.error: is the budget of net.bits = auto; set that, or "
                           "leave it out");
    if (net->link && !(net->time > 0 && net->time <= 86400))
        sti_complain(list, "net.time: must be above 0 and at most a day, for example "
                           "100ms");
    if (net->keep < 1 && (net->link || net->bits != 32))
        sti_complain(list,
                     "net.keep: below 1 sends float32 of the largest values and leaves "
                     "nothing to compress: remove %s, or net.keep",
                     net->link ? "net.link" : "net.bits");
}

static void check(const stint_recipe *recipe, sti_complaints *list)
{
    const sti_net_values *net = sti_net_section_of(recipe);
    check_quantiser(net, list);
    check_link(net, list);
}

const sti_recipe_section sti_net_section = {
    STI_RECIPE_SECTION("net", rows, sti_net_values),
    .check = check,
};

const sti_net_values *sti_net_section_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &sti_net_section);
}
