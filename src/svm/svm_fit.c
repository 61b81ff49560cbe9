#include "svm/svm_fit.h"

#include "base/fail.h"
#include "base/memory.h"

bool sti_svm_fit_classifies(const sti_svm_fit *f)
{
    return f->ls ? !f->least_squares.regression
                 : f->smo.type == STI_SVM_C_SVC || f->smo.type == STI_SVM_NU_SVC;
}

sti_comm *sti_svm_fit_comm(const sti_svm_fit *f)
{
    return f->ls ? f->least_squares.comm : f->smo.comm;
}

void sti_svm_fit_set_comm(sti_svm_fit *f, sti_comm *comm)
{
    f->least_squares.comm = f->smo.comm = comm;
}

/* The descriptions, made out for a table. */
static void describe(const sti_svm_fit *f, const sti_table *table, const double *weight,
                     sti_svm_train_desc *ls, sti_smo_desc *smo)
{
    *ls = f->least_squares;
    *smo = f->smo;
    ls->table = smo->table = table;
    ls->weight = smo->weight = weight;
}

stint_status sti_svm_fit_plan(const sti_svm_fit *f, const sti_table *table,
                              sti_svm_plan *plan_out)
{
    sti_svm_train_desc ls;
    sti_smo_desc smo;
    describe(f, table, NULL, &ls, &smo);
    if (table->x.columns <= table->first)
        return sti_fail(STINT_E_INPUT,
                        "no row has a feature; index:value pairs were wanted");
    return f->ls ? sti_svm_plan_training(&ls, plan_out) : sti_smo_plan(&smo, plan_out);
}

/* Factors in the order of the table's classes; NULL where there are none. */
static stint_status make_weights(const sti_svm_fit *f, const sti_table *table,
                                 double **weight_out)
{
    double label[STI_SVM_CLASSES_MOST];
    int64_t classes = 0;
    *weight_out = NULL;
    if (f->weight_count == 0 || !sti_svm_fit_classifies(f))
        return STINT_OK;
    int32_t *class_of = sti_alloc_array(table->x.rows, sizeof *class_of, "svm.classes");
    double *weight =
        sti_alloc_array(STI_SVM_CLASSES_MOST, sizeof *weight, "svm.weights");
    stint_status st = class_of && weight ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_svm_classes_of(table, class_of, label, &classes);
    for (int64_t c = 0; c < classes && st == STINT_OK; c++) {
        weight[c] = 1;
        for (int64_t i = 0; i < f->weight_count; i++)
            if (f->weight[i].label == label[c])
                weight[c] *= f->weight[i].factor;
    }
    sti_free(class_of);
    if (st == STINT_OK)
        *weight_out = weight;
    else
        sti_free(weight);
    return st;
}

stint_status sti_svm_fit_train(const sti_svm_fit *f, const sti_table *table,
                               const sti_svm_plan *plan, sti_svm_model *model_out,
                               sti_svm_fit_result *result_out)
{
    sti_svm_train_desc ls;
    sti_smo_desc smo;
    sti_svm_fit_result result = {{0}, NULL};
    double *weight;
    stint_status st = make_weights(f, table, &weight);
    if (st != STINT_OK)
        return st;
    describe(f, table, weight, &ls, &smo);
    if (f->ls) {
        st = sti_svm_train(&ls, plan, model_out, &result.least_squares);
    } else {
        result.machine =
            sti_alloc_array(plan->machines, sizeof *result.machine, "svm.machines");
        st = result.machine ? sti_smo_train(&smo, plan, model_out, result.machine)
                            : STINT_E_MEMORY;
    }
    sti_free(weight);
    if (st != STINT_OK || !result_out) {
        sti_free(result.machine);
        result.machine = NULL;
    }
    if (result_out)
        *result_out = result;
    return st;
}
