#include "cli/cli_seal.h"

#include <inttypes.h>

#include "base/fail.h"
#include "base/units.h"

stint_status sti_cli_seal_check_out(const char *in, const char *out)
{
    if (!out)
        return sti_fail(STINT_E_USAGE,
                        "--out says where the answer goes; it is missing");
    return sti_cli_check_out(in, out);
}

static void add_ports(sti_json *j, const char *key, const stint_seal_port *port,
                      int64_t count)
{
    sti_json_begin_array(j, key);
    for (int64_t i = 0; i < count; i++) {
        sti_json_begin_object(j, NULL);
        sti_json_text(j, "name", port[i].name);
        sti_json_int(j, "bits", port[i].bits);
        sti_json_int(j, "count", port[i].count);
        sti_json_bool(j, "signed", port[i].is_signed);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
}

static void add_json(const char *path, const stint_seal_facts *f, sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_text(&j, "out", path);
    add_ports(&j, "inputs", f->input, f->inputs);
    add_ports(&j, "outputs", f->output, f->outputs);
    sti_json_int(&j, "gates", f->gates);
    sti_json_int(&j, "bootstraps", f->bootstraps);
    sti_json_int(&j, "depth", f->depth);
    sti_json_int(&j, "widest", f->widest);
    sti_json_begin_object(&j, "cells");
    for (int k = 0; k < STINT_SEAL_CELLS; k++)
        if (f->cells[k] > 0)
            sti_json_int(&j, stint_seal_cell_name(k), f->cells[k]);
    sti_json_end_object(&j);
    sti_json_end_object(&j);
}

static void add_words(const char *path, const stint_seal_facts *f, sti_text *out)
{
    sti_text_printf(out, "%s: ", path);
    for (int64_t i = 0; i < f->inputs; i++)
        sti_text_printf(out, "%s%s", i ? ", " : "", f->input[i].name);
    sti_text_add(out, " -> ");
    for (int64_t i = 0; i < f->outputs; i++)
        sti_text_printf(out, "%s%s", i ? ", " : "", f->output[i].name);
    sti_text_printf(out, "\n%s gates, ", sti_count_text(f->gates));
    sti_text_printf(out, "%s bootstrap%s, depth %s, ", sti_count_text(f->bootstraps),
                    sti_s(f->bootstraps), sti_count_text(f->depth));
    sti_text_printf(out, "at most %s side by side\n", sti_count_text(f->widest));
}

stint_status sti_cli_seal_facts(sti_cli_call *call, const char *path,
                                const stint_seal_facts *facts)
{
    sti_text text = {0};
    if (call->common->json)
        add_json(path, facts, &text);
    else
        add_words(path, facts, &text);
    return sti_cli_answer(call, &text);
}

stint_status sti_cli_seal_values(sti_cli_call *call, char *json)
{
    sti_text text = {0};
    sti_text_printf(&text, call->common->json ? "{\"values\":%s}" : "%s\n", json);
    stint_seal_text_free(json);
    return sti_cli_answer(call, &text);
}
