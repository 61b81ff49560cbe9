/* Model files written, in LIBSVM's text format. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/text.h"

#include "svm/svm_names.h"
#include "svm/svm_points.h"
#include "svm/svm_train.h"

const char *const sti_svm_type_names[STI_SVM_TYPES] = {"c_svc", "nu_svc", "one_class",
                                                       "epsilon_svr", "nu_svr"};
const char *const sti_svm_kernel_names[STI_GRAM_KINDS] = {
    "linear",      "polynomial", "rbf",        "sigmoid",
    "precomputed", "laplacian",  "chi_squared"};

bool sti_svm_classifies(const sti_svm_model *model)
{
    return model->type == STI_SVM_C_SVC || model->type == STI_SVM_NU_SVC;
}

void sti_svm_model_fini(sti_svm_model *model)
{
    sti_free(model->label);
    sti_free(model->rho);
    sti_free(model->class_count);
    sti_free(model->coef);
    sti_free(model->order);
    sti_free(model->prob_a);
    sti_free(model->prob_b);
    sti_free(model->marks);
    sti_free(model->number);
    if (!model->borrows) {
        sti_free(model->x.start);
        sti_free(model->x.column);
        sti_free(model->x.value);
    }
    sti_arena_destroy(model->arena);
    *model = (sti_svm_model){0};
}

stint_status sti_svm_model_keep(sti_svm_model *m, const sti_svm_places *places,
                                const int64_t *row)
{
    if (!places->shared)
        return STINT_OK;
    m->number = sti_alloc_array(m->x.rows, sizeof *m->number, "svm.numbers");
    if (!m->number)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < m->x.rows; i++)
        m->number[i] = places->number[row ? row[i] : i];
    m->shared = places->shared;
    return STINT_OK;
}

size_t sti_svm_model_bytes(const sti_svm_model *m)
{
    const size_t rows = (size_t)m->x.rows;
    return (rows + 1) * sizeof(int64_t) +
           (size_t)m->x.start[m->x.rows] * (sizeof(int32_t) + sizeof(double)) +
           rows * (size_t)m->coefs * sizeof(double) +
           (m->order ? rows * sizeof *m->order : 0);
}

/* Text on its way into a file, and the hash of what went. */
typedef struct output {
    sti_writer *writer;
    sti_sha256 hash;
} output;

static stint_status take_text(void *user, const char *text, size_t bytes)
{
    output *o = user;
    sti_sha256_add(&o->hash, text, bytes);
    return sti_writer_add(o->writer, text, bytes);
}

static void add_number(sti_text *out, const char *before, double value)
{
    char text[STI_NUMBER_BYTES];
    sti_text_add(out, before);
    sti_text_add(out, sti_number_text(value, text));
}

static void add_numbers(sti_text *o, const char *key, const double *value,
                        int64_t count)
{
    if (!value)
        return;
    sti_text_add(o, key);
    for (int64_t i = 0; i < count; i++)
        add_number(o, " ", value[i]);
}

static void add_head(sti_text *o, const sti_svm_model *m)
{
    const sti_gram_function *f = &m->function;
    sti_text_printf(o, "svm_type %s\nkernel_type %s\n", sti_svm_type_names[m->type],
                    sti_svm_kernel_names[f->kind]);
    if (f->kind == STI_GRAM_POLYNOMIAL)
        sti_text_printf(o, "degree %" PRId64 "\n", f->degree);
    const bool has_gamma =
        f->kind != STI_GRAM_LINEAR && f->kind != STI_GRAM_PRECOMPUTED;
    if (has_gamma)
        add_number(o, "gamma ", f->gamma);
    if (f->kind == STI_GRAM_POLYNOMIAL || f->kind == STI_GRAM_SIGMOID)
        add_number(o, "\ncoef0 ", f->coef0);
    sti_text_printf(o, "%snr_class %" PRId64 "\ntotal_sv %" PRId64 "\nrho",
                    has_gamma ? "\n" : "", m->classes, m->x.rows);
    for (int64_t i = 0; i < m->rho_count; i++)
        add_number(o, " ", m->rho[i]);
    if (m->label) {
        sti_text_add(o, "\nlabel");
        for (int64_t c = 0; c < m->classes; c++)
            if (m->names)
                sti_text_printf(o, " %s", m->names[(int64_t)m->label[c]]);
            else
                add_number(o, " ", m->label[c]);
    }
    add_numbers(o, "\nprobA", m->prob_a, m->rho_count);
    add_numbers(o, "\nprobB", m->prob_b, m->rho_count);
    add_numbers(o, "\nprob_density_marks", m->marks, STI_SVM_MARKS);
    if (m->label) {
        sti_text_add(o, "\nnr_sv");
        for (int64_t c = 0; c < m->classes; c++)
            sti_text_printf(o, " %" PRId64, m->class_count[c]);
    }
    sti_text_add(o, "\nSV\n");
}

stint_status sti_svm_model_write(const sti_svm_model *model, int threads,
                                 const char *path, char sha256_out[65])
{
    output o = {0};
    sti_text head = {0};
    const sti_team team = {threads};
    stint_status st = sti_writer_open(path, &o.writer);
    if (st != STINT_OK)
        return st;
    sti_sha256_init(&o.hash);
    add_head(&head, model);
    STI_TRY(head.failed ? STINT_E_MEMORY : take_text(&o, head.data, head.length));
    st = sti_svm_points_write(model, &team, take_text, &o);
out:
    sti_text_fini(&head);
    if (st != STINT_OK) {
        sti_writer_abort(o.writer);
        return st;
    }
    sti_sha256_hex(&o.hash, sha256_out);
    return sti_writer_commit(o.writer);
}
