#include "kernel/gemm/gemm_f64.h"

#include <string.h>

#include "kernel/gemm/gemm_f64_priv.h"
#include "kernel/lane/dispatch.h"

enum { PANEL = STI_GEMM_F64_PANEL, COLUMNS = STI_GEMM_F64_COLUMNS };

/* Columns of b as panels of PANEL, each [k, PANEL], a short one filled with zeros. */
static void pack_panels(int64_t n, int64_t k, sti_view_f64 b, double *packed)
{
    for (int64_t j = 0; j < n; j += PANEL) {
        const int64_t width = n - j < PANEL ? n - j : PANEL;
        const double *from = b.at + j * b.column;
        double *panel = packed + j * k;
        if (width < PANEL)
            memset(panel, 0, sizeof(double) * (size_t)(k * PANEL));
        for (int64_t i = 0; i < width; i++)
            for (int64_t s = 0; s < k; s++)
                panel[s * PANEL + i] = from[s * b.row + i * b.column];
    }
}

/* The last panel of a width below PANEL, whose rows in C are not PANEL long. */
static void short_panel(const sti_gemm_f64_kernels *kernels, int64_t m, int64_t width,
                        int64_t k, sti_view_f64 a, const double *panel, bool accumulate,
                        double *c, int64_t ldc)
{
    double rows[8 * PANEL] = {0};
    for (int64_t i = 0; i < m; i += 8) {
        const int64_t count = m - i < 8 ? m - i : 8;
        const sti_view_f64 part = {a.at + i * a.row, a.row, a.column};
        for (int64_t r = 0; accumulate && r < count; r++)
            memcpy(rows + r * PANEL, c + (i + r) * ldc, sizeof(double) * (size_t)width);
        kernels->panel(count, k, part, panel, accumulate, rows, PANEL);
        for (int64_t r = 0; r < count; r++)
            memcpy(c + (i + r) * ldc, rows + r * PANEL, sizeof(double) * (size_t)width);
    }
}

/* At most COLUMNS columns and STI_GEMM_F64_DEPTH steps. */
static void block(const sti_gemm_f64_kernels *kernels, int64_t m, int64_t n, int64_t k,
                  sti_view_f64 a, sti_view_f64 b, bool accumulate, double *c,
                  int64_t ldc, double *packed)
{
    pack_panels(n, k, b, packed);
    for (int64_t j = 0; j < n; j += PANEL)
        if (n - j >= PANEL)
            kernels->panel(m, k, a, packed + j * k, accumulate, c + j, ldc);
        else
            short_panel(kernels, m, n - j, k, a, packed + j * k, accumulate, c + j,
                        ldc);
}

void sti_gemm_f64(int64_t m, int64_t n, int64_t k, sti_view_f64 a, sti_view_f64 b,
                  bool accumulate, double *c, int64_t ldc, void *scratch)
{
    const sti_gemm_f64_kernels *kernels = STI_KERNELS_NOW(sti_gemm_f64_kernels);
    for (int64_t j = 0; j < n; j += COLUMNS) {
        const int64_t width = n - j < COLUMNS ? n - j : COLUMNS;
        int64_t s = 0;
        do { /* once also for no steps at all, whose sum is 0 */
            const int64_t left = k - s;
            const int64_t depth = left < STI_GEMM_F64_DEPTH ? left : STI_GEMM_F64_DEPTH;
            block(kernels, m, width, depth,
                  (sti_view_f64){a.at + s * a.column, a.row, a.column},
                  (sti_view_f64){b.at + s * b.row + j * b.column, b.row, b.column},
                  accumulate || s > 0, c + j, ldc, scratch);
            s += depth;
        } while (s < k);
    }
}
