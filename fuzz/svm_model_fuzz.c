/* Any text as a model of a support vector machine: refused, or one that answers. */
#include <stdint.h>
#include <stdlib.h>

#include "svm/svm_predict.h"
#include "svm/svm_probability.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Probabilities of a row with these values, where the model has them. */
static void ask_probabilities(const sti_svm_model *model, const double *value)
{
    double *p = malloc(sizeof *p *
                       (size_t)(model->classes + sti_svm_probabilities_scratch(model)));
    if (!p)
        exit(1);
    if (model->marks)
        (void)sti_svm_density(model, value[0]);
    else if (model->prob_b)
        (void)sti_svm_probabilities(model, value, p, p + model->classes);
    free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char row[] = "1 1:0.5\n";
    sti_svm_model model;
    sti_table table;
    double answer;
    if (sti_svm_model_parse((const char *)data, size, "x.model", &model) != STINT_OK)
        return 0;
    double *value = malloc(sizeof *value * (size_t)sti_svm_values(&model));
    if (!value || sti_table_parse(row, sizeof row - 1, "row", STI_TABLE_LIBSVM,
                                  &table) != STINT_OK)
        exit(1);
    /* Wide models are sound but slow. */
    if (model.x.columns < 1 << 16 && model.x.rows * model.x.columns < 1 << 20 &&
        sti_svm_predict(&model, &table, 1, value, &answer) == STINT_OK &&
        model.classes < 100)
        ask_probabilities(&model, value);
    free(value);
    sti_table_fini(&table);
    sti_svm_model_fini(&model);
    return 0;
}
