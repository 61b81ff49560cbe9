#include "cli/cli_matrix_info.h"

#include <inttypes.h>

#include "base/shown.h"
#include "base/team.h"
#include "base/units.h"
#include "data/matrix_market.h"
#include "solve/sparse_operator.h"
#include "solve/trsv.h"

typedef struct matrix_info {
    const sti_market *m;
    sti_matrix_kind kind;
    int64_t bandwidth;
    int64_t levels, widest; /* of the lower triangle, or of the upper one alone */
} matrix_info;

static void add_json(const char *path, const matrix_info *i, sti_text *out)
{
    const sti_market *m = i->m;
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_text(&j, "path", path);
    sti_json_text(&j, "format", m->array ? "matrix market, array" : "matrix market");
    sti_json_int(&j, "rows", m->a.rows);
    sti_json_int(&j, "columns", m->a.columns);
    sti_json_int(&j, "nonzeros", m->a.start[m->a.rows]);
    sti_json_text(&j, "field", sti_market_field_names[m->field]);
    sti_json_text(&j, "symmetry", sti_market_symmetry_names[m->symmetry]);
    sti_json_text(&j, "kind", sti_matrix_kind_names[i->kind]);
    sti_json_int(&j, "bandwidth", i->bandwidth);
    sti_json_known(&j, "levels", i->levels);
    sti_json_known(&j, "widest_level", i->widest);
    sti_json_end_object(&j);
}

static void add_words(const char *path, const matrix_info *i, sti_text *out)
{
    const sti_market *m = i->m;
    sti_text_printf(out, "%s (Matrix Market, %s, %s, %s)\n", sti_shown(path),
                    m->array ? "array" : "coordinate", sti_market_field_names[m->field],
                    sti_market_symmetry_names[m->symmetry]);
    sti_text_printf(out, "%s x %s, %s nonzeros, %s, bandwidth %s\n",
                    sti_count_text(m->a.rows), sti_count_text(m->a.columns),
                    sti_count_text(m->a.start[m->a.rows]),
                    sti_matrix_kind_names[i->kind], sti_count_text(i->bandwidth));
    if (i->levels > 0)
        sti_text_printf(out, "%s level%s of the %s triangle, the widest of %s rows\n",
                        sti_count_text(i->levels), sti_s(i->levels),
                        i->kind == STI_MATRIX_UPPER ? "upper" : "lower",
                        sti_count_text(i->widest));
}

stint_status sti_cli_matrix_info(sti_cli_call *call, int threads)
{
    const sti_market_desc d = {
        .path = call->operands[0], .sum = true, .threads = threads};
    sti_market m;
    sti_text text = {0};
    stint_status st = sti_market_read(&d, &m);
    if (st != STINT_OK)
        return st;
    matrix_info i = {.m = &m,
                     .kind = sti_matrix_kind_of(&m.a),
                     .bandwidth = sti_matrix_bandwidth(&m.a)};
    if (m.a.rows == m.a.columns)
        st = sti_trsv_levels(&m.a, i.kind == STI_MATRIX_UPPER, &i.levels, &i.widest);
    if (st == STINT_OK) {
        if (call->common->json)
            add_json(d.path, &i, &text);
        else
            add_words(d.path, &i, &text);
        st = sti_cli_answer(call, &text);
    }
    sti_market_fini(&m);
    return st;
}
