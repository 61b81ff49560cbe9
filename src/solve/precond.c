#include "solve/precond.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "solve/factor.h"
#include "solve/precond_apply.h"
#include "solve/trsv_walk.h"

/* ---- making ---- */

static stint_status find_diagonal(sti_preconditioner *p, const char *name)
{
    const sti_csr *a = p->a;
    p->diagonal = sti_alloc_array(p->n, sizeof *p->diagonal, "solve.diagonal");
    if (!p->diagonal)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < p->n; i++) {
        for (int64_t e = a->start[i]; e < a->start[i + 1]; e++)
            if (a->column[e] == i)
                p->diagonal[i] = a->value[e];
        if (!(fabs(p->diagonal[i]) >= DBL_MIN))
            return sti_fail(STINT_E_INPUT,
                            "%s: the diagonal entry of row %" PRId64
                            " is missing or zero; this preconditioner divides by it",
                            name ? name : "the matrix", i + 1);
    }
    return STINT_OK;
}

static stint_status make_gs(sti_preconditioner *p, const sti_trsv_desc *trsv)
{
    sti_trsv_desc d = *trsv;
    d.a = p->a;
    d.part = true;
    stint_status st = find_diagonal(p, d.name);
    if (st == STINT_OK)
        st = sti_trsv_analyse(&d, &p->forward);
    d.upper = true;
    return st == STINT_OK ? sti_trsv_analyse(&d, &p->backward) : st;
}

static stint_status make_ilu0(sti_preconditioner *p, const sti_trsv_desc *trsv)
{
    sti_trsv_desc d = *trsv;
    stint_status st = sti_csr_copy(p->a, false, &p->factor);
    d.a = &p->factor;
    d.part = d.unit = true;
    if (st == STINT_OK)
        st = sti_trsv_analyse(&d, &p->forward);
    const int64_t start = sti_clock_ns();
    if (st == STINT_OK)
        st = sti_ilu0_factor(&p->factor, p->forward, d.name ? d.name : "the matrix");
    p->factor_s = sti_seconds_since(start);
    if (st == STINT_OK)
        st = sti_trsv_refill(p->forward);
    d.unit = false;
    d.upper = true;
    return st == STINT_OK ? sti_trsv_analyse(&d, &p->backward) : st;
}

static stint_status make_ic0(sti_preconditioner *p, const sti_trsv_desc *trsv)
{
    sti_trsv_desc d = *trsv;
    stint_status st = sti_csr_copy(p->a, true, &p->factor);
    d.a = &p->factor;
    if (st == STINT_OK)
        st = sti_trsv_analyse(&d, &p->forward);
    const int64_t start = sti_clock_ns();
    if (st == STINT_OK)
        st = sti_ic0_factor(p->a, &p->factor, p->forward,
                            d.name ? d.name : "the matrix", &p->shift);
    p->factor_s = sti_seconds_since(start);
    if (st == STINT_OK)
        st = sti_trsv_refill(p->forward);
    d.transpose = true;
    return st == STINT_OK ? sti_trsv_analyse(&d, &p->backward) : st;
}

stint_status sti_preconditioner_init(sti_precond kind, const sti_csr *a,
                                     const sti_trsv_desc *trsv,
                                     sti_preconditioner *p_out)
{
    sti_preconditioner *p = p_out;
    *p = (sti_preconditioner){
        .kind = kind, .n = a->rows, .a = a, .team = {trsv->threads}};
    stint_status st = STINT_OK;
    if (kind == STI_PRECOND_JACOBI)
        st = find_diagonal(p, trsv->name);
    else if (kind == STI_PRECOND_GS)
        st = make_gs(p, trsv);
    else if (kind == STI_PRECOND_IC0)
        st = make_ic0(p, trsv);
    else if (kind == STI_PRECOND_ILU0)
        st = make_ilu0(p, trsv);
    if (st == STINT_OK && trsv->columns > 1 && p->forward) {
        const int64_t count = p->n * trsv->columns;
        p->pack = sti_alloc_array(count, sizeof *p->pack, "solve.pack");
        st = p->pack ? STINT_OK : STINT_E_MEMORY;
    }
    if (st != STINT_OK)
        sti_preconditioner_fini(p);
    return st;
}

void sti_preconditioner_fini(sti_preconditioner *p)
{
    sti_trsv_destroy(p->forward);
    sti_trsv_destroy(p->backward);
    sti_csr_drop(&p->factor);
    sti_free(p->diagonal);
    sti_free(p->pack);
    *p = (sti_preconditioner){0};
}

/* ---- applying ---- */

static stint_status solve(void *user, bool second, int64_t count, const double *b,
                          double *x)
{
    const sti_preconditioner *p = user;
    sti_trsv_solve(second ? p->backward : p->forward, count, b, x);
    return STINT_OK;
}

stint_status sti_preconditioner_apply(void *preconditioner, int64_t count,
                                      const double *const *r, double *const *z)
{
    sti_preconditioner *p = preconditioner;
    return sti_precond_apply(&(sti_precond_steps){.kind = p->kind,
                                                  .team = &p->team,
                                                  .n = p->n,
                                                  .diagonal = p->diagonal,
                                                  .pack = p->pack,
                                                  .solve = solve,
                                                  .user = p},
                             count, r, z);
}
