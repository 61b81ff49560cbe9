/* Model files read: LIBSVM's, and PLSSVM's of one class against the rest. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/shown.h"
#include "base/team.h"
#include "base/units.h"
#include "svm/svm.h"
#include "svm/svm_names.h"

#define FILE_MOST ((size_t)1 << 40)

/* Parts of the text that each thread reads, where there is so much for it. */
enum { PARTS_EACH = 4, PART_BYTES = 1 << 18 };

/* A line, word by word. */
typedef struct reader {
    const char *name, *at, *end; /* of the file; the next line; the end */
    const char *word, *stop;     /* what is left of the line */
    int64_t line, total;         /* support vectors that the head tells */
    sti_svm_model *m;
    bool has_type, has_kernel, has_classes, has_total;
    int64_t degree_line, gamma_line, coef0_line; /* 0: there is none */
    int64_t labels, probabilities[3]; /* of probA, probB, prob_density_marks */
    size_t text_bytes, limit_bytes;   /* of text and model; 0: none */
    int64_t columns, first;           /* of the points read, as the model's */
} reader;

/* A word of the file, for a message. */
static const char *shown(const char *from, const char *to)
{
    char copy[40];
    const size_t length = (size_t)(to - from);
    const size_t kept = length < sizeof copy - 1 ? length : sizeof copy - 1;
    memcpy(copy, from, kept);
    copy[kept] = '\0';
    return sti_shown(copy);
}

static stint_status fault(const reader *r, const char *seen, const char *wanted)
{
    return sti_fail(STINT_E_INPUT, "%s:%" PRId64 ": '%s'; %s", r->name, r->line, seen,
                    wanted);
}

static bool next_line(reader *r)
{
    if (r->at >= r->end)
        return false;
    const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
    r->word = r->at;
    r->stop = newline ? newline : r->end;
    r->at = newline ? newline + 1 : r->end;
    r->line++;
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of the line; false: there is none. */
static bool next_word(reader *r, const char **from, const char **to)
{
    while (r->word < r->stop && is_blank(*r->word))
        r->word++;
    *from = r->word;
    while (r->word < r->stop && !is_blank(*r->word))
        r->word++;
    *to = r->word;
    return *from < *to;
}

static bool is_word(const char *from, const char *to, const char *word)
{
    return (size_t)(to - from) == strlen(word) &&
           memcmp(from, word, (size_t)(to - from)) == 0;
}

static bool number_of(const char *from, const char *to, double *value)
{
    const char *after;
    return sti_number_read(from, to, &after, value) && after == to;
}

/* ---- the head ---- */

static stint_status read_whole(reader *r, int64_t least, int64_t most, int64_t *out)
{
    const char *from, *to;
    double value;
    if (!next_word(r, &from, &to) || !number_of(from, to, &value) ||
        !(value >= (double)least && value <= (double)most) ||
        value != (double)(int64_t)value)
        return fault(r, shown(from, to), "a whole number in the range was wanted");
    *out = (int64_t)value;
    return STINT_OK;
}

static stint_status read_real(reader *r, double *out)
{
    const char *from, *to;
    if (!next_word(r, &from, &to) || !number_of(from, to, out))
        return fault(r, shown(from, to), "a finite number was wanted");
    return STINT_OK;
}

static stint_status read_type(reader *r)
{
    const char *from, *to;
    (void)next_word(r, &from, &to);
    for (int i = 0; i < STI_SVM_TYPES; i++)
        if (is_word(from, to, sti_svm_type_names[i])) {
            r->m->type = (sti_svm_type)i;
            r->has_type = true;
            return STINT_OK;
        }
    return fault(r, shown(from, to),
                 "c_svc, nu_svc, one_class, epsilon_svr or nu_svr "
                 "was wanted");
}

static stint_status read_kernel(reader *r)
{
    const char *from, *to;
    (void)next_word(r, &from, &to);
    for (int i = 0; i < STI_GRAM_KINDS; i++)
        if (is_word(from, to, sti_svm_kernel_names[i])) {
            r->m->function.kind = (sti_gram_kind)i;
            r->has_kernel = true;
            return STINT_OK;
        }
    return fault(r, shown(from, to),
                 "linear, polynomial, rbf, sigmoid, precomputed, laplacian or "
                 "chi_squared was wanted");
}

/* Numbers till the line's end, at most `most`. */
static stint_status read_reals(reader *r, int64_t most, double **out, int64_t *count)
{
    const char *from, *to;
    if (*out || !r->has_classes)
        return fault(r, "", "nr_class, then each line once, was wanted");
    double *list = sti_alloc_array(most, sizeof *list, "svm.head");
    if (!list)
        return STINT_E_MEMORY;
    *out = list;
    for (*count = 0; next_word(r, &from, &to); (*count)++)
        if (*count == most || !number_of(from, to, &list[*count]))
            return fault(r, shown(from, to),
                         "a finite number, and no more of them than "
                         "the classes ask for, was wanted");
    return STINT_OK;
}

/* Labels: numbers, or words where one is none. */
static stint_status read_labels(reader *r)
{
    sti_svm_model *m = r->m;
    const char *from, *to, *line = r->word;
    bool words = false;
    double value;
    if (m->label || !r->has_classes)
        return fault(r, "label", "nr_class, then one line of labels, was wanted");
    for (; next_word(r, &from, &to); r->labels++)
        words = words || !number_of(from, to, &value);
    if (r->labels != m->classes)
        return fault(r, "label", "as many labels as classes were wanted");
    m->label = sti_alloc_array(m->classes, sizeof *m->label, "svm.labels");
    if (words)
        m->names = sti_arena_alloc(m->arena, (size_t)m->classes * sizeof *m->names);
    if (!m->label || (words && !m->names))
        return STINT_E_MEMORY;
    r->word = line;
    for (int64_t c = 0; next_word(r, &from, &to); c++) {
        if (!words) {
            (void)number_of(from, to, &m->label[c]);
            continue;
        }
        char *copy = sti_arena_alloc(m->arena, (size_t)(to - from) + 1);
        if (!copy)
            return STINT_E_MEMORY;
        memcpy(copy, from, (size_t)(to - from));
        m->names[c] = copy;
        m->label[c] = (double)c;
    }
    for (int64_t c = 1; c < m->classes; c++)
        for (int64_t b = 0; b < c; b++)
            if (words ? strcmp(m->names[b], m->names[c]) == 0
                      : m->label[b] == m->label[c])
                return fault(r, "label",
                             "a label for every class of its own was wanted");
    return STINT_OK;
}

static stint_status read_counts(reader *r)
{
    sti_svm_model *m = r->m;
    const char *rest;
    int64_t sum = 0;
    stint_status st = STINT_OK;
    if (m->class_count || !r->has_classes || !r->has_total)
        return fault(r, "nr_sv",
                     "nr_class and total_sv, then one line of nr_sv, was "
                     "wanted");
    m->class_count = sti_alloc_array(m->classes, sizeof *m->class_count, "svm.counts");
    if (!m->class_count)
        return STINT_E_MEMORY;
    for (int64_t c = 0; c < m->classes && st == STINT_OK; c++) {
        st = read_whole(r, 0, r->total, &m->class_count[c]);
        sum += m->class_count[c];
    }
    if (st == STINT_OK && (next_word(r, &rest, &rest) || sum != r->total))
        st = fault(r, "nr_sv", "one number a class, total_sv together, was wanted");
    return st;
}

/* A parameter of the kernel, if the line is of one; the kernel may be told later. */
static bool read_parameter(reader *r, const char *from, const char *to,
                           stint_status *st_out)
{
    sti_gram_function *f = &r->m->function;
    if (is_word(from, to, "degree")) {
        r->degree_line = r->line;
        *st_out = read_whole(r, 0, 1000000, &f->degree);
    } else if (is_word(from, to, "gamma")) {
        r->gamma_line = r->line;
        *st_out = read_real(r, &f->gamma);
    } else if (is_word(from, to, "coef0")) {
        r->coef0_line = r->line;
        *st_out = read_real(r, &f->coef0);
    } else {
        return false;
    }
    return true;
}

/* Parameters are those that the kernel has. */
static stint_status judge_parameters(reader *r)
{
    const sti_gram_kind kind = r->m->function.kind;
    const bool bare = kind == STI_GRAM_LINEAR || kind == STI_GRAM_PRECOMPUTED;
    const bool wanted[] = {kind == STI_GRAM_POLYNOMIAL, !bare,
                           kind == STI_GRAM_POLYNOMIAL || kind == STI_GRAM_SIGMOID};
    const int64_t line[] = {r->degree_line, r->gamma_line, r->coef0_line};
    static const char *const names[] = {"degree", "gamma", "coef0"};
    for (int i = 0; i < 3; i++) {
        if (wanted[i] == (line[i] > 0))
            continue;
        if (wanted[i])
            return sti_fail(STINT_E_INPUT, "%s: no %s before 'SV'; a %s kernel has one",
                            r->name, names[i], sti_svm_kernel_names[kind]);
        return sti_fail(STINT_E_INPUT,
                        "%s:%" PRId64 ": %s; a %s kernel has no such number", r->name,
                        line[i], names[i], sti_svm_kernel_names[kind]);
    }
    return STINT_OK;
}

static stint_status read_key(reader *r, const char *from, const char *to)
{
    stint_status st;
    sti_svm_model *m = r->m;
    const int64_t most = m->classes < 2 ? 1 : m->classes * (m->classes - 1) / 2;
    if (read_parameter(r, from, to, &st))
        return st;
    if (is_word(from, to, "svm_type"))
        return read_type(r);
    if (is_word(from, to, "kernel_type"))
        return read_kernel(r);
    if (is_word(from, to, "nr_class") && !r->has_classes) {
        r->has_classes = true;
        return read_whole(r, 1, STI_SVM_CLASSES_MOST, &m->classes);
    }
    if (is_word(from, to, "total_sv")) {
        r->has_total = true;
        return read_whole(r, 0, INT32_MAX, &r->total);
    }
    if (is_word(from, to, "rho"))
        return read_reals(r, most > m->classes ? most : m->classes, &m->rho,
                          &m->rho_count);
    if (is_word(from, to, "label"))
        return read_labels(r);
    if (is_word(from, to, "nr_sv"))
        return read_counts(r);
    if (is_word(from, to, "probA"))
        return read_reals(r, most, &m->prob_a, &r->probabilities[0]);
    if (is_word(from, to, "probB"))
        return read_reals(r, most, &m->prob_b, &r->probabilities[1]);
    if (is_word(from, to, "prob_density_marks"))
        return read_reals(r, STI_SVM_MARKS, &m->marks, &r->probabilities[2]);
    return fault(r, shown(from, to), "a line of a LIBSVM model's head was wanted");
}

static stint_status read_head(reader *r)
{
    const char *from, *to;
    while (next_line(r)) {
        if (!next_word(r, &from, &to))
            continue;
        if (is_word(from, to, "SV")) {
            if (r->has_type && r->has_kernel && r->has_classes && r->has_total &&
                r->m->rho)
                return judge_parameters(r);
            return fault(r, "SV",
                         "svm_type, kernel_type, nr_class, total_sv and rho "
                         "were wanted before");
        }
        const stint_status st = read_key(r, from, to);
        if (st != STINT_OK)
            return st;
    }
    return sti_fail(STINT_E_INPUT, "%s: ends before a line 'SV'", r->name);
}

/* ---- support vectors ---- */

/* Alphas of the first line tell pairs from one against the rest. */
static stint_status judge_classes(reader *r)
{
    sti_svm_model *m = r->m;
    reader ahead = *r;
    const char *from, *to;
    if (next_line(&ahead))
        while (next_word(&ahead, &from, &to) && !memchr(from, ':', (size_t)(to - from)))
            m->coefs++;
    const bool classifies = sti_svm_classifies(m);
    if (r->total == 0) /* a machine may do without: f is -rho */
        m->coefs = classifies ? m->classes - 1 : 1;
    if (classifies && (!m->label || !m->class_count || m->classes < 2))
        return fault(r, "SV",
                     "label and nr_sv of two classes or more were wanted "
                     "before");
    const int64_t pairs = m->classes * (m->classes - 1) / 2;
    if (classifies && m->coefs == m->classes && m->rho_count == m->classes)
        m->classes_by = STI_SVM_REST;
    else if (classifies ? m->coefs != m->classes - 1 || m->rho_count != pairs
                        : m->coefs != 1 || m->rho_count != 1)
        return fault(&ahead, "alphas",
                     "as many of them, and of rho, as the classes ask "
                     "for were wanted");
    return STINT_OK;
}

/* probA and probB a pair each, of numbers probA alone; marks of one class. */
static stint_status judge_probabilities(const reader *r)
{
    const sti_svm_model *m = r->m;
    const bool classifies = sti_svm_classifies(m), one = m->type == STI_SVM_ONE_CLASS;
    if ((m->prob_a && (one || m->classes_by == STI_SVM_REST ||
                       r->probabilities[0] != m->rho_count)) ||
        (m->prob_b && (!classifies || r->probabilities[1] != m->rho_count)) ||
        (classifies && !m->prob_a != !m->prob_b) ||
        (m->marks && (!one || r->probabilities[2] != STI_SVM_MARKS)))
        return fault(r, "SV",
                     "probA and probB, a number for every rho each (of numbers probA "
                     "alone), or ten prob_density_marks of one_class, were wanted");
    return STINT_OK;
}

static stint_status refuse_size(const char *name, size_t bytes, size_t limit)
{
    return sti_fail(STINT_E_BUDGET,
                    "%s: reading the model takes %s or more, --memory leaves %s for it",
                    name, sti_bytes_text(bytes), sti_bytes_text(limit));
}

static stint_status reserve(reader *r)
{
    sti_svm_model *m = r->m;
    int64_t entries = 0, lines = 0;
    for (const char *at = r->at; at < r->end; at++) {
        entries += *at == ':';
        lines += *at == '\n';
    }
    if (r->total > lines + 1)
        return sti_fail(STINT_E_INPUT,
                        "%s: %" PRId64 " support vectors are told by total_sv, %" PRId64
                        " lines follow 'SV'",
                        r->name, r->total, lines);
    r->text_bytes += (size_t)entries * (sizeof(int32_t) + sizeof(double)) +
                     (size_t)r->total * sizeof(double) * (size_t)(m->coefs + 1);
    if (r->limit_bytes > 0 && r->text_bytes > r->limit_bytes)
        return refuse_size(r->name, r->text_bytes, r->limit_bytes);
    m->peak_bytes = r->text_bytes;
    m->x.rows = r->total;
    m->x.start = sti_alloc_array(r->total + 1, sizeof(int64_t), "svm.starts");
    m->x.column = sti_alloc_array(entries, sizeof(int32_t), "svm.columns");
    m->x.value = sti_alloc_array(entries, sizeof(double), "svm.values");
    m->coef = sti_alloc_array(r->total * m->coefs, sizeof(double), "svm.alpha");
    return m->x.start && m->x.column && m->x.value && m->coef ? STINT_OK
                                                              : STINT_E_MEMORY;
}

static stint_status read_entry(reader *r, const char *from, const char *to,
                               int64_t *last, int64_t *at)
{
    sti_csr *x = &r->m->x;
    const char *colon = memchr(from, ':', (size_t)(to - from));
    double index, value;
    if (!colon || !number_of(from, colon, &index) ||
        !number_of(colon + 1, to, &value) ||
        !(index > (double)*last && index < (double)INT32_MAX) ||
        index != (double)(int64_t)index)
        return fault(r, shown(from, to),
                     "index:value was wanted, indices ascending, "
                     "values finite");
    *last = (int64_t)index;
    if (*last == 0)
        r->first = 0;
    r->columns = *last >= r->columns ? *last + 1 : r->columns;
    x->column[*at] = (int32_t)*last;
    x->value[(*at)++] = value;
    return STINT_OK;
}

/* Line i of the points; *at: entries before it, and then before the next. */
static stint_status read_point(reader *r, int64_t i, int64_t *at)
{
    sti_svm_model *m = r->m;
    const char *from, *to;
    stint_status st = STINT_OK;
    int64_t last = -1;
    for (int64_t c = 0; c < m->coefs && st == STINT_OK; c++)
        st = read_real(r, &m->coef[c * r->total + i]);
    while (st == STINT_OK && next_word(r, &from, &to))
        st = read_entry(r, from, to, &last, at);
    m->x.start[i + 1] = *at;
    return st;
}

/* Lines that one thread reads, with the points and entries before them, and what became
 * of them. */
typedef struct part {
    reader r;
    int64_t lines, entries, point, entry;
    stint_status status;
    char words[512];
} part;

typedef struct parts {
    part *part;
    unsigned mode; /* of floats, in which denormals are numbers */
} parts;

static void count_piece(void *arg, int64_t piece, int worker)
{
    part *p = &((parts *)arg)->part[piece];
    (void)worker;
    for (const char *at = p->r.at; at < p->r.end; at++) {
        p->entries += *at == ':';
        p->lines += *at == '\n';
    }
    if (p->r.end > p->r.at && p->r.end[-1] != '\n')
        p->lines++;
}

static void read_piece(void *arg, int64_t piece, int worker)
{
    const parts *all = arg;
    part *p = &all->part[piece];
    reader *r = &p->r;
    const char *from, *to;
    int64_t at = p->entry;
    (void)worker;
    sti_float_mode_leave(all->mode);
    for (int64_t i = p->point; p->status == STINT_OK && next_line(r); i++)
        if (i < r->total)
            p->status = read_point(r, i, &at);
        else if (next_word(r, &from, &to))
            p->status = fault(r, shown(from, to),
                              "the end was wanted: as many lines were "
                              "there as total_sv says");
    if (p->status != STINT_OK)
        (void)snprintf(p->words, sizeof p->words, "%s", stint_last_error());
    (void)sti_float_mode_enter(); /* as pieces of a team are left */
}

/* Text from r->at on, cut at ends of lines. */
static void cut(const reader *r, int64_t count, part *list)
{
    const char *at = r->at;
    for (int64_t i = 0; i < count; i++) {
        const char *stop = r->end - (r->end - at) / (count - i) * (count - i - 1);
        const char *newline =
            stop < r->end ? memchr(stop, '\n', (size_t)(r->end - stop)) : NULL;
        list[i].r = *r;
        list[i].r.at = at;
        list[i].r.end = at = newline ? newline + 1 : r->end;
    }
}

/* What the parts say as one. */
static stint_status join_parts(const reader *r, int64_t count, const part *list)
{
    sti_svm_model *m = r->m;
    int64_t lines = 0;
    m->first = m->x.columns = 1;
    for (int64_t i = 0; i < count; i++) {
        const reader *own = &list[i].r;
        if (list[i].status != STINT_OK)
            return sti_fail(list[i].status, "%s", list[i].words);
        m->first = own->first < m->first ? own->first : m->first;
        m->x.columns = own->columns > m->x.columns ? own->columns : m->x.columns;
        lines += list[i].lines;
    }
    if (lines < r->total)
        return sti_fail(STINT_E_INPUT,
                        "%s: ends after %" PRId64 " support vectors of %" PRId64,
                        r->name, lines, r->total);
    /* A number may be cut and still be one. */
    if (r->end[-1] != '\n')
        return sti_fail(STINT_E_INPUT,
                        "%s: the last line does not end: the file is cut short",
                        r->name);
    return STINT_OK;
}

static stint_status read_points(reader *r, int threads)
{
    const sti_team team = {threads};
    const bool large = r->end - r->at >= PART_BYTES * threads;
    const int64_t count = large ? (int64_t)threads * PARTS_EACH : 1;
    parts all = {sti_alloc_array(count, sizeof *all.part, "svm.parts"),
                 sti_float_mode_enter()};
    sti_float_mode_leave(all.mode);
    if (!all.part)
        return STINT_E_MEMORY;
    r->columns = r->first = 1;
    cut(r, count, all.part);
    sti_team_take(&team, count, count_piece, &all);
    for (int64_t i = 1; i < count; i++) {
        const part *before = &all.part[i - 1];
        all.part[i].point = before->point + before->lines;
        all.part[i].entry = before->entry + before->entries;
        all.part[i].r.line = r->line + all.part[i].point;
    }
    sti_team_take(&team, count, read_piece, &all);
    const stint_status st = join_parts(r, count, all.part);
    sti_free(all.part);
    return st;
}

static stint_status parse_within(const char *text, size_t n_bytes, const char *name,
                                 size_t limit_bytes, int threads,
                                 sti_svm_model *model_out)
{
    reader r = {.name = name,
                .at = text,
                .end = text + n_bytes,
                .m = model_out,
                .text_bytes = n_bytes,
                .limit_bytes = limit_bytes};
    *model_out = (sti_svm_model){.arena = sti_arena_create("svm.names")};
    stint_status st = model_out->arena ? STINT_OK : STINT_E_MEMORY;
    STI_TRY(st);
    STI_TRY(read_head(&r));
    STI_TRY(judge_classes(&r));
    STI_TRY(judge_probabilities(&r));
    STI_TRY(reserve(&r));
    STI_TRY(read_points(&r, threads));
out:
    if (st != STINT_OK)
        sti_svm_model_fini(model_out);
    return st;
}

stint_status sti_svm_model_parse(const char *text, size_t n_bytes, const char *name,
                                 sti_svm_model *model_out)
{
    return parse_within(text, n_bytes, name, 0, 1, model_out);
}

stint_status sti_svm_model_read_within(const char *path, size_t limit_bytes,
                                       int threads, sti_svm_model *model_out)
{
    void *text = NULL;
    size_t bytes;
    const bool limited = limit_bytes > 0 && limit_bytes < FILE_MOST;
    stint_status st =
        sti_file_read(path, limited ? limit_bytes : FILE_MOST, &text, &bytes);
    if (st == STINT_E_INPUT && limited)
        return refuse_size(path, limit_bytes, limit_bytes);
    if (st == STINT_OK)
        st = parse_within(text, bytes, path, limit_bytes, threads, model_out);
    sti_free(text);
    return st;
}

stint_status sti_svm_model_read(const char *path, sti_svm_model *model_out)
{
    return sti_svm_model_read_within(path, 0, 1, model_out);
}
