#include "model/field_terms.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/units.h"
#include "op/op.h"

static const char *const set_keys[STI_TERMS] = {"field.inside", "field.border",
                                                "field.start", "field.data"};

/* ---- reading ---- */

static stint_status parse_range(const char *text, size_t length, float *low,
                                float *high)
{
    char word[64];
    double a, b;
    if (length < sizeof word) {
        memcpy(word, text, length);
        word[length] = '\0';
        char *colon = strchr(word, ':');
        if (colon)
            *colon++ = '\0';
        if (colon && sti_parse_float(word, &a) == STINT_OK &&
            sti_parse_float(colon, &b) == STINT_OK && isfinite(a) && isfinite(b) &&
            a < b) {
            *low = (float)a;
            *high = (float)b;
            return STINT_OK;
        }
    }
    return sti_fail(STINT_E_USAGE, "field.domain: '%.*s'; LOW:HIGH was wanted, as -1:1",
                    (int)(length < 60 ? length : 60), text);
}

static stint_status parse_domain(const char *text, int coordinates, sti_field_box *box)
{
    int count = 0;
    for (int c = 0; c < STI_FIELD_COORDINATES; c++) {
        box->low[c] = -1;
        box->high[c] = 1;
    }
    while (text && *text) {
        text += strspn(text, " ,");
        const size_t length = strcspn(text, " ,");
        if (length == 0)
            break;
        if (count == coordinates)
            return sti_fail(STINT_E_USAGE,
                            "field.domain: more ranges than the %d coordinates",
                            coordinates);
        const stint_status st =
            parse_range(text, length, &box->low[count], &box->high[count]);
        if (st != STINT_OK)
            return st;
        text += length;
        count++;
    }
    if (count != 0 && count != coordinates)
        return sti_fail(STINT_E_USAGE, "field.domain: %d range%s for %d coordinates",
                        count, sti_s(count), coordinates);
    return STINT_OK;
}

static stint_status check_set(int set, const sti_expressions *e)
{
    for (int i = 0; i < e->count; i++) {
        if (!e->expression[i].has_output)
            return sti_fail(STINT_E_USAGE,
                            "%s: expression %d has no output in it, so that nothing "
                            "could make it zero",
                            set_keys[set], i + 1);
        if (e->expression[i].has_target && set != STI_TERMS_DATA)
            return sti_fail(STINT_E_USAGE,
                            "%s: expression %d asks for data (a name in capitals), "
                            "which there is in field.data alone",
                            set_keys[set], i + 1);
    }
    return STINT_OK;
}

static stint_status check_exact(const sti_expressions *e, int outputs)
{
    for (int i = 0; i < e->count; i++)
        if (e->expression[i].has_output || e->expression[i].has_target)
            return sti_fail(STINT_E_USAGE,
                            "field.exact: a solution is one of coordinates alone");
    return e->count == 0 || e->count == outputs
               ? STINT_OK
               : sti_fail(STINT_E_USAGE, "field.exact: %d expression%s for %d output%s",
                          e->count, sti_s(e->count), outputs, sti_s(outputs));
}

stint_status sti_field_terms_parse(const sti_field_values *values,
                                   const sti_field_names *names,
                                   sti_field_terms *terms_out)
{
    sti_field_terms t = {.any = false};
    stint_status st;
    STI_TRY(parse_domain(values->domain, names->coordinates, &t.domain));
    for (int s = 0; s < STI_TERMS; s++) {
        STI_TRY(sti_expressions_parse(set_keys[s], values->term[s], names, &t.set[s]));
        STI_TRY(check_set(s, &t.set[s]));
        t.any = t.any || t.set[s].count > 0;
    }
    STI_TRY(sti_expressions_parse("field.exact", values->exact, names, &t.exact));
    STI_TRY(check_exact(&t.exact, names->outputs));
    *terms_out = t;
    return STINT_OK;
out:
    sti_field_terms_fini(&t);
    return st;
}

void sti_field_terms_fini(sti_field_terms *terms)
{
    for (int s = 0; s < STI_TERMS; s++)
        sti_expressions_fini(&terms->set[s]);
    sti_expressions_fini(&terms->exact);
}

/* ---- columns of the data ---- */

/* Behind the outputs: all first differences, output by output, then all second ones. */
int sti_field_target_column(const sti_field_names *names, int output, int order,
                            const int8_t *along)
{
    const int d = names->coordinates, k = names->outputs;
    if (order == 0)
        return output;
    if (order == 1)
        return k + output * d + along[0];
    const int first = along[0], second = along[1];
    const int pair = first * d - first * (first - 1) / 2 + second - first;
    return k + k * d + output * (d * (d + 1) / 2) + pair;
}

bool sti_field_has_normals(const sti_field_terms *terms)
{
    for (int i = 0; i < terms->set[STI_TERMS_DATA].count; i++)
        if (terms->set[STI_TERMS_DATA].expression[i].has_normal)
            return true;
    return false;
}

int sti_field_target_order(const sti_field_terms *terms)
{
    int order = 0;
    for (int i = 0; i < terms->set[STI_TERMS_DATA].count; i++) {
        const sti_expression *e = &terms->set[STI_TERMS_DATA].expression[i];
        order = e->target_order > order ? e->target_order : order;
    }
    return order;
}
