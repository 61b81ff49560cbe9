/* The stored measurement: which figures it holds. */
#include "base/fail.h"
#include "kernel/machine/figures.h"
#include "kernel/machine/machine.h"

#define FIGURE(field, ...)                                                  \
    {                                                                       \
        .name = #field, .offset = offsetof(sti_machine, field), __VA_ARGS__ \
    }

static const sti_figure rows[] = {
    FIGURE(f32_flop_per_s, .whole = false),
    FIGURE(bf16_flop_per_s, .may_be_zero = true),
    FIGURE(int8_op_per_s, .may_be_zero = true),
    FIGURE(l1_bytes_per_s, .whole = false),
    FIGURE(l2_bytes_per_s, .whole = false),
    FIGURE(llc_bytes_per_s, .whole = false),
    FIGURE(dram_bytes_per_s, .whole = false),
    FIGURE(dram_all_bytes_per_s, .whole = false),
    FIGURE(fork_s, .whole = false),
    FIGURE(tile_flop_per_s, .whole = false),
    FIGURE(tile_s, .whole = false),
    FIGURE(pack_bytes_per_s, .whole = false),
    FIGURE(l1_bytes, .whole = true),
    FIGURE(l2_bytes, .whole = true),
    FIGURE(llc_bytes, .whole = true),
    FIGURE(threads, .whole = true),
};

static const sti_figures figures = {.title = "stint machine 3",
                                    .file = "machine.txt",
                                    .again = "stint bench step and stint tune",
                                    .figure = rows,
                                    .count = sizeof rows / sizeof rows[0]};

void sti_machine_write(const sti_machine *machine, sti_text *out)
{
    sti_figures_write(&figures, machine, out);
}

bool sti_machine_parse(char *text, sti_machine *machine_out, const char **why_out)
{
    sti_machine machine = {0};
    const bool good = sti_figures_parse(&figures, text, &machine, why_out);
    if (good)
        *machine_out = machine;
    return good;
}

bool sti_machine_stored(sti_machine *machine_out)
{
    sti_machine machine = {0};
    const bool good = sti_figures_load(&figures, &machine);
    if (good)
        *machine_out = machine;
    return good;
}

stint_status sti_machine_now(sti_machine *machine_out)
{
    if (sti_machine_stored(machine_out))
        return STINT_OK;
    sti_log(STINT_LOG_INFO, "measuring this machine, once, for about two seconds");
    const stint_status status = sti_machine_measure(machine_out);
    if (status == STINT_OK)
        sti_figures_keep(&figures, machine_out);
    return status;
}
