#include <math.h>

#include "kernel/gemm/panels.h"
#include "kernel/gemm/panels_row.h"

static void panel_row(int64_t k, const float *x, const float *panel, float *y)
{
    for (int64_t j = 0; j < STI_PANEL_COLUMNS; j++) {
        float sum = 0.0f;
        for (int64_t i = 0; i < k; i++)
            sum = fmaf(x[i], panel[i * STI_PANEL_COLUMNS + j], sum);
        y[j] = sum;
    }
}

const sti_panels_kernels sti_panels_kernels_ref = {.row = panel_row};
