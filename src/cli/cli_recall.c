#include "cli/cli_recall.h"

#include <math.h>

#include "base/shown.h"

#define POINTS_UNDER 20.0

void sti_cli_json_recall(sti_json *j, double balanced, double lowest,
                         const char *lowest_class)
{
    sti_json_float(j, "balanced_accuracy", balanced);
    sti_json_text(j, "lowest_class", isfinite(lowest) ? lowest_class : NULL);
    sti_json_float(j, "lowest_recall", lowest);
}

void sti_cli_add_recall(sti_text *out, double balanced, double lowest,
                        const char *lowest_class)
{
    if (100 * (balanced - lowest) >= POINTS_UNDER) /* false for NaN */
        sti_text_printf(out,
                        "lowest: class '%s', of which %.2f %% are found; for rare "
                        "classes there are data.sampling and loss.class_weights\n",
                        sti_shown(lowest_class), 100 * lowest);
}
