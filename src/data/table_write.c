/* Tables as LIBSVM text and as ARFF with sparse rows. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/number.h"
#include "base/shown.h"
#include "base/text.h"
#include "data/table_priv.h"

#define CHUNK_BYTES ((size_t)1 << 16)

/* Text on its way into a file. */
typedef struct output {
    sti_writer *writer;
    sti_text text;
} output;

static stint_status flush(output *o, size_t from)
{
    if (o->text.failed)
        return STINT_E_MEMORY;
    if (o->text.length < from)
        return STINT_OK;
    const stint_status st = sti_writer_add(o->writer, o->text.data, o->text.length);
    o->text.length = 0;
    return st;
}

static void add_number(output *o, double value)
{
    char text[STI_NUMBER_BYTES];
    sti_text_add(&o->text, sti_number_text(value, text));
}

static void add_label(output *o, const sti_table *table, int64_t row)
{
    if (table->names)
        sti_text_add(&o->text, table->names[(int64_t)table->y[row]]);
    else
        add_number(o, table->y[row]);
}

/* ---- LIBSVM ---- */

static stint_status check_words(const sti_table *table)
{
    for (int64_t i = 0; i < table->name_count; i++)
        if (table->names[i][0] == '\0' || strpbrk(table->names[i], " \t\r\n:#"))
            return sti_fail(STINT_E_INPUT,
                            "label '%s': LIBSVM text holds no label that is empty or "
                            "has blanks, ':' or '#'; ARFF does",
                            sti_shown(table->names[i]));
    return STINT_OK;
}

static stint_status write_libsvm(const sti_table *table, output *o)
{
    const sti_csr *x = &table->x;
    stint_status st = check_words(table);
    for (int64_t i = 0; i < x->rows && st == STINT_OK; i++) {
        if (table->y)
            add_label(o, table, i);
        for (int64_t e = x->start[i]; e < x->start[i + 1]; e++) {
            sti_text_printf(&o->text, "%s%" PRId32 ":",
                            table->y || e > x->start[i] ? " " : "", x->column[e]);
            add_number(o, x->value[e]);
        }
        /* A row of zeros alone must not be an empty line. */
        if (!table->y && x->start[i] == x->start[i + 1])
            sti_text_printf(&o->text, "%" PRId64 ":0", table->first);
        sti_text_add(&o->text, "\n");
        st = flush(o, CHUNK_BYTES);
    }
    return st;
}

/* ---- ARFF ---- */

static void add_quoted(output *o, const char *word)
{
    sti_text_add(&o->text, "'");
    for (const char *at = word; *at; at++) {
        if (*at == '\'' || *at == '\\')
            sti_text_add(&o->text, "\\");
        sti_text_add_bytes(&o->text, at, 1);
    }
    sti_text_add(&o->text, "'");
}

static stint_status write_head(const sti_table *table, output *o)
{
    stint_status st = STINT_OK;
    sti_text_add(&o->text, "@relation table\n");
    for (int64_t c = table->first; c < table->x.columns && st == STINT_OK; c++) {
        sti_text_printf(&o->text, "@attribute x%" PRId64 " numeric\n", c);
        st = flush(o, CHUNK_BYTES);
    }
    if (table->names) {
        sti_text_add(&o->text, "@attribute class {");
        for (int64_t i = 0; i < table->name_count; i++) {
            sti_text_add(&o->text, i > 0 ? "," : "");
            add_quoted(o, table->names[i]);
        }
        sti_text_add(&o->text, "}\n");
    } else if (table->y) {
        sti_text_add(&o->text, "@attribute class numeric\n");
    }
    sti_text_add(&o->text, "@data\n");
    return st;
}

static stint_status write_arff(const sti_table *table, output *o)
{
    const sti_csr *x = &table->x;
    const int64_t label = x->columns > table->first ? x->columns - table->first : 0;
    stint_status st = write_head(table, o);
    for (int64_t i = 0; i < x->rows && st == STINT_OK; i++) {
        const char *comma = "{";
        for (int64_t e = x->start[i]; e < x->start[i + 1]; e++) {
            sti_text_printf(&o->text, "%s%" PRId64 " ", comma,
                            x->column[e] - table->first);
            add_number(o, x->value[e]);
            comma = ",";
        }
        sti_text_add(&o->text, table->y || *comma == '{' ? comma : "");
        if (table->y) {
            sti_text_printf(&o->text, "%" PRId64 " ", label);
            if (table->names)
                add_quoted(o, table->names[(int64_t)table->y[i]]);
            else
                add_number(o, table->y[i]);
        }
        sti_text_add(&o->text, "}\n");
        st = flush(o, CHUNK_BYTES);
    }
    return st;
}

stint_status sti_table_write(const sti_table *table, const char *path)
{
    output o = {0};
    stint_status st = sti_writer_open(path, &o.writer);
    if (st != STINT_OK)
        return st;
    st = strcasecmp(sti_path_extension(path), ".arff") == 0 ? write_arff(table, &o)
                                                            : write_libsvm(table, &o);
    if (st == STINT_OK)
        st = flush(&o, 0);
    sti_text_fini(&o.text);
    if (st == STINT_OK)
        return sti_writer_commit(o.writer);
    sti_writer_abort(o.writer);
    return st;
}
