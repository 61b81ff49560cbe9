#include "seal/values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/secure_random.h"
#include "base/shown.h"

stint_status sti_values_init(sti_values *values, const sti_port *port, int64_t ports)
{
    *values = (sti_values){.port = port, .ports = ports};
    values->bit = sti_alloc_array(sti_ports_bits(port, ports), 1, "seal.values");
    values->given = sti_alloc_array(ports, 1, "seal.values");
    return values->bit && values->given ? STINT_OK : STINT_E_MEMORY;
}

void sti_values_fini(sti_values *values)
{
    if (values->bit)
        sti_secure_wipe(values->bit,
                        (size_t)sti_ports_bits(values->port, values->ports));
    sti_free(values->bit);
    sti_free(values->given);
    *values = (sti_values){0};
}

/* ---- reading ---- */

typedef struct scan {
    const char *where, *at, *end;
} scan;

static void skip_space(scan *s)
{
    while (s->at < s->end &&
           (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
        s->at++;
}

static bool take(scan *s, char c)
{
    skip_space(s);
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static stint_status no_form(const scan *s)
{
    return sti_fail(STINT_E_INPUT,
                    "%s: values are given as {\"a\": 5, \"key\": [1, 2]}, with whole "
                    "numbers in decimal",
                    s->where);
}

static stint_status out_of_range(const scan *s, const sti_port *port)
{
    if (port->is_signed)
        return sti_fail(STINT_E_INPUT,
                        "%s: a value of '%s' is out of range: from -2^%d to 2^%d - 1",
                        s->where, port->name, port->bits - 1, port->bits - 1);
    return sti_fail(STINT_E_INPUT,
                    "%s: a value of '%s' is out of range: from 0 to 2^%d - 1", s->where,
                    port->name, port->bits);
}

/* A number of the port's type, as its bits. */
static stint_status scan_number(scan *s, const sti_port *port, uint64_t *out)
{
    uint64_t size = 0;
    const bool negative = take(s, '-');
    const uint64_t most = port->is_signed
                              ? (UINT64_C(1) << (port->bits - 1)) - !negative
                          : negative ? 0
                                     : UINT64_MAX >> (64 - port->bits);
    const char *begin = s->at;
    if (s->at == s->end || *s->at < '0' || *s->at > '9')
        return no_form(s);
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++) {
        const uint64_t digit = (uint64_t)(*s->at - '0');
        if (digit > most || size > (most - digit) / 10)
            return out_of_range(s, port);
        size = 10 * size + digit;
    }
    if ((*begin == '0' && s->at - begin > 1) ||
        (s->at < s->end && (*s->at == '.' || *s->at == 'e' || *s->at == 'E')))
        return no_form(s);
    *out = negative ? 0 - size : size;
    return STINT_OK;
}

static void put_element(sti_values *v, int64_t port, int64_t element, uint64_t number)
{
    const int32_t bits = v->port[port].bits;
    uint8_t *bit = v->bit + sti_ports_bits(v->port, port) + element * bits;
    for (int32_t i = 0; i < bits; i++)
        bit[i] = (uint8_t)(number >> i & 1);
}

/* The elements, with `comma` between them; the list ends at `close`. */
static stint_status scan_elements(scan *s, sti_values *v, int64_t port, int64_t count)
{
    uint64_t number = 0;
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < count; i++) {
        if (i > 0 && !take(s, ','))
            return sti_fail(STINT_E_INPUT,
                            "%s: '%s' has %" PRId64 " elements, %" PRId64 " are wanted",
                            s->where, v->port[port].name, i, count);
        skip_space(s);
        STI_TRY(scan_number(s, &v->port[port], &number));
        put_element(v, port, i, number);
    }
    if (take(s, ','))
        return sti_fail(STINT_E_INPUT, "%s: '%s' has more than %" PRId64 " element%s",
                        s->where, v->port[port].name, count, count == 1 ? "" : "s");
out:
    return st;
}

/* The port of a name; naming all that there are where there is none. */
static stint_status find_port(const scan *s, sti_values *v, const char *name,
                              size_t length, int64_t *out)
{
    char list[256] = "", shown[64];
    size_t used = 0;
    for (int64_t i = 0; i < v->ports; i++) {
        if (strlen(v->port[i].name) == length &&
            memcmp(v->port[i].name, name, length) == 0) {
            *out = i;
            if (v->given[i])
                return sti_fail(STINT_E_INPUT, "%s: '%s' is given twice", s->where,
                                v->port[i].name);
            v->given[i] = 1;
            return STINT_OK;
        }
        if (used < sizeof list - 1)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                     i ? ", " : "", v->port[i].name);
    }
    snprintf(shown, sizeof shown, "%.*s", length < 60 ? (int)length : 60, name);
    return sti_fail(STINT_E_INPUT, "%s: there is no value '%s'; there are: %s",
                    s->where, sti_shown(shown), list);
}

static stint_status scan_value(scan *s, sti_values *v, int64_t port)
{
    const int64_t count = v->port[port].count;
    stint_status st;
    skip_space(s);
    if (!take(s, '[')) {
        if (count != 1 || v->port[port].is_array)
            return sti_fail(STINT_E_INPUT,
                            "%s: '%s' is an array: [1, 2, ...], %" PRId64 " elements",
                            s->where, v->port[port].name, count);
        uint64_t number = 0;
        st = scan_number(s, &v->port[port], &number);
        if (st == STINT_OK)
            put_element(v, port, 0, number);
        return st;
    }
    st = scan_elements(s, v, port, count);
    return st == STINT_OK && !take(s, ']') ? no_form(s) : st;
}

stint_status sti_values_parse(sti_values *values, const char *where, const char *text,
                              size_t n_bytes)
{
    scan s = {where, text, text + n_bytes};
    stint_status st = STINT_OK;
    if (!take(&s, '{'))
        return no_form(&s);
    bool more = !take(&s, '}');
    while (more) {
        int64_t port = 0;
        if (!take(&s, '"'))
            return no_form(&s);
        const char *name = s.at;
        while (s.at < s.end && *s.at != '"')
            s.at++;
        const size_t length = (size_t)(s.at - name);
        if (!take(&s, '"'))
            return no_form(&s);
        STI_TRY(find_port(&s, values, name, length, &port));
        if (!take(&s, ':'))
            return no_form(&s);
        STI_TRY(scan_value(&s, values, port));
        more = take(&s, ',');
        if (!more && !take(&s, '}'))
            return no_form(&s);
    }
    skip_space(&s);
    if (s.at != s.end)
        return no_form(&s);
out:
    return st;
}

stint_status sti_values_put(sti_values *values, const char *option,
                            const char *assignment)
{
    const char *equals = strchr(assignment, '=');
    scan s = {option, assignment, assignment + strlen(assignment)};
    int64_t port = 0;
    stint_status st;
    if (!equals)
        return sti_fail(STINT_E_USAGE, "%s: wants NAME=NUMBER, or NAME=1,2,3", option);
    STI_TRY(find_port(&s, values, assignment, (size_t)(equals - assignment), &port));
    s.at = equals + 1;
    STI_TRY(scan_elements(&s, values, port, values->port[port].count));
    skip_space(&s);
    st = s.at == s.end ? STINT_OK : no_form(&s);
out:
    return st;
}

stint_status sti_values_check(const sti_values *values)
{
    for (int64_t i = 0; i < values->ports; i++)
        if (!values->given[i])
            return sti_fail(STINT_E_INPUT,
                            "no value for '%s' (%s%d bits, %" PRId64
                            " element%s); give it in --values or by --value",
                            values->port[i].name,
                            values->port[i].is_signed ? "signed, " : "",
                            values->port[i].bits, values->port[i].count,
                            values->port[i].count == 1 ? "" : "s");
    return STINT_OK;
}

/* ---- writing ---- */

static void write_number(const sti_port *port, const uint8_t *bit, sti_text *out)
{
    uint64_t number = 0;
    for (int32_t i = 0; i < port->bits; i++)
        number |= (uint64_t)bit[i] << i;
    if (port->is_signed && bit[port->bits - 1])
        sti_text_printf(out, "%" PRId64,
                        (int64_t)(number | ~(UINT64_MAX >> (64 - port->bits))));
    else
        sti_text_printf(out, "%" PRIu64, number);
    sti_secure_wipe(&number, sizeof number);
}

void sti_values_write(const sti_values *values, sti_text *out)
{
    const uint8_t *bit = values->bit;
    sti_text_add(out, "{");
    for (int64_t i = 0; i < values->ports; i++) {
        const sti_port *port = &values->port[i];
        sti_text_printf(out, "%s\"%s\":%s", i ? "," : "", port->name,
                        port->is_array ? "[" : "");
        for (int64_t k = 0; k < port->count; k++, bit += port->bits) {
            if (k > 0)
                sti_text_add(out, ",");
            write_number(port, bit, out);
        }
        if (port->is_array)
            sti_text_add(out, "]");
    }
    sti_text_add(out, "}");
}
