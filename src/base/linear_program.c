#include "base/linear_program.h"

#include "base/fail.h"

#ifdef STINT_HAVE_GLPK
#include <glpk.h>

#include "base/library.h"
#include "base/memory.h"

/* The few calls that we make. */
typedef struct glpk_calls {
    glp_prob *(*create)(void);
    void (*destroy)(glp_prob *);
    int (*term_out)(int);
    void (*direction)(glp_prob *, int);
    int (*add_rows)(glp_prob *, int);
    int (*add_columns)(glp_prob *, int);
    void (*row_bounds)(glp_prob *, int, int, double, double);
    void (*column_bounds)(glp_prob *, int, int, double, double);
    void (*coefficient)(glp_prob *, int, double);
    void (*load)(glp_prob *, int, const int[], const int[], const double[]);
    void (*basis)(glp_prob *, int);
    void (*settings)(glp_smcp *);
    int (*simplex)(glp_prob *, const glp_smcp *);
    int (*status)(glp_prob *);
    double (*value)(glp_prob *);
    double (*primal)(glp_prob *, int);
} glpk_calls;

static stint_status load_glpk(glpk_calls *g)
{
    const sti_library_call calls[] = {
        {"glp_create_prob", &g->create},       {"glp_delete_prob", &g->destroy},
        {"glp_term_out", &g->term_out},        {"glp_set_obj_dir", &g->direction},
        {"glp_add_rows", &g->add_rows},        {"glp_add_cols", &g->add_columns},
        {"glp_set_row_bnds", &g->row_bounds},  {"glp_set_col_bnds", &g->column_bounds},
        {"glp_set_obj_coef", &g->coefficient}, {"glp_load_matrix", &g->load},
        {"glp_adv_basis", &g->basis},          {"glp_init_smcp", &g->settings},
        {"glp_simplex", &g->simplex},          {"glp_get_status", &g->status},
        {"glp_get_obj_val", &g->value},        {"glp_get_col_prim", &g->primal}};
    return sti_library_load("libglpk.so.40",
                            "GLPK solves linear programmes and is not installed (on "
                            "Debian: apt install libglpk40)",
                            calls, sizeof calls / sizeof *calls);
}

bool sti_linear_program_known(void)
{
    glpk_calls g;
    return load_glpk(&g) == STINT_OK;
}

/* The nonzeros of A, counted from 1 as GLPK counts. */
static stint_status load_matrix(const glpk_calls *g, const sti_linear_program *lp,
                                glp_prob *p)
{
    const int64_t most = (int64_t)lp->rows * lp->columns + 1;
    int *row = sti_alloc_array(most, sizeof *row, "linear programme");
    int *column = sti_alloc_array(most, sizeof *column, "linear programme");
    double *value = sti_alloc_array(most, sizeof *value, "linear programme");
    const bool made = row && column && value;
    int count = 0;
    for (int i = 0; made && i < lp->rows * lp->columns; i++) {
        const double a = lp->matrix[i];
        if (a < 0 || a > 0) {
            row[++count] = i / lp->columns + 1;
            column[count] = i % lp->columns + 1;
            value[count] = a;
        }
    }
    if (made)
        g->load(p, count, row, column, value);
    sti_free(row);
    sti_free(column);
    sti_free(value);
    return made ? STINT_OK : STINT_E_MEMORY;
}

static void set_bounds(const glpk_calls *g, const sti_linear_program *lp, glp_prob *p)
{
    g->direction(p, GLP_MAX);
    g->add_rows(p, lp->rows);
    g->add_columns(p, lp->columns);
    for (int r = 0; r < lp->rows; r++)
        g->row_bounds(p, r + 1, lp->equal[r] ? GLP_FX : GLP_UP, lp->bound[r],
                      lp->bound[r]);
    for (int c = 0; c < lp->columns; c++) {
        g->column_bounds(p, c + 1, GLP_LO, 0, 0);
        g->coefficient(p, c + 1, lp->objective[c]);
    }
}

static stint_status answer(const glpk_calls *g, glp_prob *p,
                           const sti_linear_program *lp, double *value_out,
                           double *x_out)
{
    const int status = g->status(p);
    if (status == GLP_NOFEAS || status == GLP_INFEAS)
        return sti_fail(STINT_E_BUDGET, "no solution meets all rows");
    if (status != GLP_OPT)
        return sti_fail(STINT_E_FAILED, "the linear programme has no largest value");
    *value_out = g->value(p);
    for (int c = 0; x_out && c < lp->columns; c++)
        x_out[c] = g->primal(p, c + 1);
    return STINT_OK;
}

stint_status sti_linear_program_solve(const sti_linear_program *lp, double *value_out,
                                      double *x_out)
{
    glpk_calls g;
    glp_smcp settings;
    glp_prob *p = NULL;
    stint_status st;
    STI_TRY(load_glpk(&g));
    g.term_out(GLP_OFF);
    p = g.create();
    set_bounds(&g, lp, p);
    STI_TRY(load_matrix(&g, lp, p));
    g.settings(&settings);
    settings.msg_lev = GLP_MSG_OFF;
    g.basis(p, 0);
    if (g.simplex(p, &settings) != 0)
        STI_TRY(sti_fail(STINT_E_FAILED, "the linear programme was not solved"));
    STI_TRY(answer(&g, p, lp, value_out, x_out));
out:
    if (p)
        g.destroy(p);
    return st;
}

#else

static stint_status none(void)
{
    return sti_fail(STINT_E_UNSUPPORTED,
                    "this build has no solver of linear programmes; install "
                    "libglpk-dev and build again");
}

bool sti_linear_program_known(void)
{
    return none() == STINT_OK;
}

stint_status sti_linear_program_solve(const sti_linear_program *lp, double *value_out,
                                      double *x_out)
{
    (void)lp;
    (void)value_out;
    (void)x_out;
    return none();
}

#endif
