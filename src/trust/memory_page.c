#include "trust/memory_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/npy.h"
#include "base/units.h"
#include "page/page.h"
#include "page/table.h"
#include "train/report_image.h"

enum {
    LISTED = 500, /* images with their names: tars are walked for each */
    SHOWN = 60,
    PAIRS_SHOWN = 40,
    BARS = 10
};

typedef struct output {
    const char *folder;
    sti_arena *arena;
    const sti_memory_bits *bits;
    const stint_memory *m;
    const stint_data *train, *test;
    stint_memory_pair *strong; /* [strongs], strongest first */
    int64_t strongs;
    sti_data_decoders *train_decoders, *test_decoders;
    uint8_t *pixels;
} output;

/* ---- arrays ---- */

static stint_status write_array(const output *o, const char *name, const char *descr,
                                int64_t rows, int64_t columns, const void *data)
{
    const int64_t dim[] = {rows, columns};
    const char *path = sti_path_join(o->arena, o->folder, name);
    return path ? sti_npy_write(path, descr, columns > 0 ? 2 : 1, dim, data,
                                (size_t)(rows * (columns > 0 ? columns : 1)) * 8)
                : STINT_E_MEMORY;
}

static stint_status write_influence(const output *o)
{
    const stint_memory *m = o->m;
    double *strongest = sti_alloc_array(m->test, sizeof *strongest, "influence");
    if (!strongest)
        return STINT_E_MEMORY;
    for (int64_t j = 0; j < m->test; j++) {
        const stint_memory_pair *p = &m->pair[j * m->nearest];
        strongest[j] = p->train >= 0 ? p->influence : -1;
    }
    stint_status st = write_array(o, "influence.npy", "<f8", m->test, 0, strongest);
    sti_free(strongest);
    return st;
}

static stint_status write_arrays(const output *o)
{
    const sti_memory_bits *b = o->bits;
    const double cuts[] = {o->m->memorised_from, o->m->influence_from};
    stint_status st =
        write_array(o, "members.npy", "<u8", b->train, b->words, b->member);
    if (st == STINT_OK)
        st = write_array(o, "train_right.npy", "<u8", b->train, b->words,
                         b->train_right);
    if (st == STINT_OK)
        st = write_array(o, "test_right.npy", "<u8", b->test, b->words, b->test_right);
    if (st == STINT_OK)
        st = write_array(o, "memorisation.npy", "<f8", b->train, 0, o->m->memorisation);
    if (st == STINT_OK)
        st = write_array(o, "cuts.npy", "<f8", 2, 0, cuts);
    return st == STINT_OK ? write_influence(o) : st;
}

/* ---- tables ---- */

static stint_status write_text(const output *o, const char *name, sti_text *text)
{
    const char *path = sti_path_join(o->arena, o->folder, name);
    stint_status st = path && !text->failed
                          ? sti_file_write(path, text->data, text->length)
                          : STINT_E_MEMORY;
    sti_text_fini(text);
    return st;
}

static const char *class_of(const stint_data *data, int64_t i)
{
    return stint_data_describe(data)->class_names[sti_data_label(data, i)];
}

static stint_status write_memorised(const output *o)
{
    const stint_memory *m = o->m;
    sti_text out = {0};
    char name[300];
    sti_text_add(&out, "memorisation\terror\tindex\tclass\tname\n");
    for (int64_t k = 0; k < m->train && k < LISTED; k++) {
        const int64_t i = m->order[k];
        if (!(m->memorisation[i] >= m->memorised_from))
            break;
        sti_data_sample_name(o->train, i, name, sizeof name);
        sti_text_printf(&out, "%.4f\t%.4f\t%" PRId64 "\t%s\t%s\n", m->memorisation[i],
                        m->error[i], i, class_of(o->train, i), name);
    }
    return write_text(o, "memorised.tsv", &out);
}

static int by_influence(const void *a, const void *b)
{
    const stint_memory_pair *x = a, *y = b;
    if (x->influence != y->influence)
        return x->influence < y->influence ? 1 : -1;
    if (x->test != y->test)
        return x->test < y->test ? -1 : 1;
    return (x->train > y->train) - (x->train < y->train);
}

/* Pairs from the cut on among those that were kept. */
static stint_status find_strong(output *o)
{
    const stint_memory *m = o->m;
    o->strong = sti_alloc_array(m->test * m->nearest, sizeof *o->strong, "pairs");
    if (!o->strong)
        return STINT_E_MEMORY;
    for (int64_t k = 0; k < m->test * m->nearest; k++)
        if (m->pair[k].train >= 0 && m->pair[k].influence >= m->influence_from)
            o->strong[o->strongs++] = m->pair[k];
    qsort(o->strong, (size_t)o->strongs, sizeof *o->strong, by_influence);
    return STINT_OK;
}

static stint_status write_pairs(const output *o)
{
    const stint_memory *m = o->m;
    sti_text out = {0};
    sti_text_add(&out,
                 "influence\terror\tmemorisation\ttrain\ttest\tclass\ttest class\n");
    for (int64_t k = 0; k < o->strongs; k++) {
        const stint_memory_pair *p = &o->strong[k];
        sti_text_printf(&out, "%.4f\t%.4f\t%.4f\t%" PRId64 "\t%" PRId64 "\t%s\t%s\n",
                        p->influence, p->error, m->memorisation[p->train], p->train,
                        p->test, class_of(o->train, p->train),
                        class_of(o->test, p->test));
    }
    return write_text(o, "influence.tsv", &out);
}

/* ---- page ---- */

/* A card with a share or with a number of three digits. */
static void add_figure(sti_text *out, const char *meaning, double value, bool percent)
{
    char words[32];
    if (percent)
        (void)snprintf(words, sizeof words, "%.2f %%", 100 * value);
    else
        (void)snprintf(words, sizeof words, "%.3g", value);
    sti_page_figure(out, words, meaning);
}

static void add_count(sti_text *out, const char *meaning, int64_t count)
{
    sti_page_figure(out, sti_count_text(count), meaning);
}

static void add_figures(const output *o, sti_text *out)
{
    const stint_memory *m = o->m;
    sti_page_figures_begin(out);
    add_count(out, "runs", m->runs);
    add_figure(out, "accuracy on images left out", m->train_accuracy, true);
    if (m->test > 0)
        add_figure(out, "accuracy on test images", m->test_accuracy, true);
    add_count(out, "memorised images", m->memorised);
    add_figure(out, "of these expected by chance", m->memorised_chance, true);
    add_figure(out, "largest standard error", m->error_bound, false);
    if (m->test > 0)
        add_count(out, "strong influences", m->influences);
    sti_page_figures_end(out);
}

static void add_count_row(sti_text *out, const char *what, int64_t count)
{
    sti_table_row(out);
    sti_table_words(out, what, NULL);
    sti_table_number(out, "%" PRId64, count);
    sti_table_row_end(out);
}

/* How many images lie in each tenth; [0] counts those below zero. */
static void count_tenths(const stint_memory *m, int64_t count[BARS + 1])
{
    for (int64_t i = 0; i < m->train; i++) {
        if (isnan(m->memorisation[i]))
            continue;
        const int bar =
            m->memorisation[i] < 0 ? 0 : 1 + (int)(m->memorisation[i] * BARS);
        count[bar < BARS ? bar : BARS]++;
    }
}

static void add_distribution(const output *o, sti_text *out)
{
    static const sti_table_column columns[] = {
        {.name = "memorisation"}, {.name = "training images", .number = true}};
    const stint_memory *m = o->m;
    int64_t count[BARS + 1] = {0};
    char range[32];
    count_tenths(m, count);
    sti_page_section(out, "How much is memorised");
    sti_page_card_begin(out);
    sti_table_begin(out, columns, 2);
    add_count_row(out, "below 0", count[0]);
    for (int bar = 1; bar <= BARS; bar++) {
        (void)snprintf(range, sizeof range, "%.1f to %.1f", (double)(bar - 1) / BARS,
                       (double)bar / BARS);
        add_count_row(out, range, count[bar]);
    }
    if (m->undefined > 0)
        add_count_row(out, "too few runs with or without", m->undefined);
    sti_table_end(out);
    sti_page_card_end(out);
    sti_page_section_end(out);
}

/* The class of a training image, and a number with its standard error. */
static void add_caption(const output *o, int64_t train, double value, double error,
                        sti_text *out)
{
    sti_text html = {0};
    sti_text_add(&html, "<b>");
    sti_text_add_html(&html, class_of(o->train, train));
    sti_text_printf(&html, "</b><br>%.2f &plusmn; %.2f", value, error);
    sti_page_picture_end(out, html.data ? html.data : "");
    out->failed |= html.failed;
    sti_text_fini(&html);
}

static stint_status add_memorised(const output *o, sti_page_file *page)
{
    const stint_memory *m = o->m;
    sti_text *out = &page->text;
    stint_status st = STINT_OK;
    sti_page_section(out, "Most memorised");
    sti_page_note(out,
                  "Training images that networks get right if they have seen them, and "
                  "wrong if not. %" PRId64 " are at %.2f or more; up to %d are shown.",
                  m->memorised, m->memorised_from, SHOWN);
    sti_page_sheet_begin(out);
    for (int64_t k = 0; k < m->train && k < SHOWN && st == STINT_OK; k++) {
        const int64_t i = m->order[k];
        if (!(m->memorisation[i] >= m->memorised_from))
            break;
        sti_page_picture_begin(out);
        st = sti_report_image(o->train, o->train_decoders, i, NULL, o->pixels, out);
        add_caption(o, i, m->memorisation[i], m->error[i], out);
        if (st == STINT_OK)
            st = sti_page_file_flush(page);
    }
    sti_page_sheet_end(out);
    sti_page_section_end(out);
    return st;
}

static stint_status add_pair(const output *o, const stint_memory_pair *p,
                             sti_page_file *page)
{
    sti_text *out = &page->text;
    sti_page_picture_begin(out);
    stint_status st =
        sti_report_image(o->train, o->train_decoders, p->train, NULL, o->pixels, out);
    if (st == STINT_OK)
        st = sti_report_image(o->test, o->test_decoders, p->test, NULL, o->pixels, out);
    add_caption(o, p->train, p->influence, p->error, out);
    return st == STINT_OK ? sti_page_file_flush(page) : st;
}

static stint_status add_pairs(const output *o, sti_page_file *page)
{
    sti_text *out = &page->text;
    stint_status st = STINT_OK;
    if (o->m->test == 0)
        return st;
    sti_page_section(out, "Strongest influences");
    sti_page_note(out,
                  "Above, a memorised training image; below it, a test image that "
                  "networks get right because of it. %" PRId64 " of %" PRId64
                  " pairs are above the cut; up to %d are shown.",
                  o->m->influences, o->m->pairs, PAIRS_SHOWN);
    sti_page_sheet_begin(out);
    for (int64_t k = 0; k < o->strongs && k < PAIRS_SHOWN && st == STINT_OK; k++)
        st = add_pair(o, &o->strong[k], page);
    sti_page_sheet_end(out);
    sti_page_section_end(out);
    return st;
}

static stint_status fill_page(const output *o, sti_page_file *page)
{
    sti_text *out = &page->text;
    char lead[128];
    sti_page_begin(out, "Stint: What was memorised", "What was memorised");
    (void)snprintf(lead, sizeof lead,
                   "%" PRId64 " networks, each trained on %" PRId64 " of %" PRId64
                   " images",
                   o->m->runs, o->m->members, o->m->train);
    sti_page_lead(out, lead);
    add_figures(o, out);
    add_distribution(o, out);
    stint_status st = add_memorised(o, page);
    if (st == STINT_OK)
        st = add_pairs(o, page);
    sti_page_end(out, NULL);
    return st;
}

static stint_status write_page(output *o)
{
    const stint_data_info *info = stint_data_describe(o->train);
    const char *path = sti_path_join(o->arena, o->folder, "memory.html");
    sti_page_file page;
    o->pixels =
        sti_alloc((size_t)(info->height * info->width * info->channels), "page");
    stint_status st = path && o->pixels
                          ? sti_data_decoders_create(o->train, 1, &o->train_decoders)
                          : STINT_E_MEMORY;
    if (st == STINT_OK && o->test)
        st = sti_data_decoders_create(o->test, 1, &o->test_decoders);
    if (st == STINT_OK)
        st = sti_page_file_open(&page, path);
    return st == STINT_OK ? sti_page_file_close(&page, fill_page(o, &page)) : st;
}

stint_status sti_memory_write(const char *folder, const sti_memory_bits *bits,
                              const stint_memory *memory, const stint_data *train,
                              const stint_data *test)
{
    output o = {.folder = folder,
                .bits = bits,
                .m = memory,
                .train = train,
                .test = test,
                .arena = sti_arena_create("memorisation")};
    stint_status st = o.arena ? find_strong(&o) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = write_arrays(&o);
    if (st == STINT_OK)
        st = write_memorised(&o);
    if (st == STINT_OK)
        st = write_pairs(&o);
    if (st == STINT_OK)
        st = write_page(&o);
    sti_data_decoders_destroy(o.train_decoders);
    sti_data_decoders_destroy(o.test_decoders);
    sti_free(o.pixels);
    sti_free(o.strong);
    sti_arena_destroy(o.arena);
    return st;
}
