#include "cli/cli_compare_text.h"

#include <inttypes.h>

#include "base/shown.h"
#include "cli/cli_trust.h"

/* ---- words ---- */

static void add_share(sti_text *out, const char *name, const stint_share *s)
{
    sti_text_printf(out, "%-28s %7.3f %%   %6" PRId64 " tokens, 95 %%: %.3f to %.3f\n",
                    name, 100 * s->rate, s->count, 100 * s->low, 100 * s->high);
}

static void add_parts(sti_text *out, const char *title, const stint_text_part *part,
                      int count)
{
    sti_text_printf(out, "\n%-26s %8s %8s %9s %9s\n", title, "tokens", "other", "loss",
                    "change");
    for (int i = 0; i < count; i++)
        if (part[i].mismatch.n > 0)
            sti_text_printf(out, "%-26s %8" PRId64 " %6.2f %% %9.4f %+9.4f\n",
                            part[i].name, part[i].mismatch.n,
                            100 * part[i].mismatch.rate, part[i].reference_loss,
                            part[i].changed_loss - part[i].reference_loss);
}

static void add_changes(sti_text *out, const stint_text_fidelity *f)
{
    sti_text_add(out, "\nWhere probabilities moved farthest:\n");
    for (int64_t i = 0; i < f->changes; i++) {
        const stint_text_change *c = &f->change[i];
        sti_text_printf(out, "  token %" PRId64 ", %.3g nats: ...", c->at, c->kl);
        sti_text_add_shown(out, c->before, "");
        sti_text_add(out, "\n    follows '");
        sti_text_add_shown(out, c->label_text, "");
        sti_text_add(out, "'; reference '");
        sti_text_add_shown(out, c->reference_text, "");
        sti_text_printf(out, "' (%.2f), new '", c->reference_p);
        sti_text_add_shown(out, c->changed_text, "");
        sti_text_printf(out, "' (%.2f)\n", c->changed_p);
    }
}

static void add_words(const stint_text_fidelity *f, sti_text *out)
{
    sti_text_printf(out, "%-28s %7.3f %%\n%-28s %7.3f %%\n", "accuracy, reference",
                    100 * f->reference_accuracy, "accuracy, new",
                    100 * f->changed_accuracy);
    add_share(out, "other next tokens", &f->mismatch);
    add_share(out, "right before, wrong now", &f->nfr);
    add_share(out, "wrong before, right now", &f->pfr);
    sti_text_printf(out, "%-28s %.3g nats\n", "distance of probabilities", f->kl);
    sti_text_printf(out, "%-28s %.4f, new %.4f nats a token\n", "loss, reference",
                    f->reference_loss, f->changed_loss);
    sti_text_printf(out, "%-28s %+.4f, 95 %%: %+.4f to %+.4f (over windows)\n",
                    "difference", f->loss_difference, f->loss_low, f->loss_high);
    add_parts(out, "place in the window", f->position, STINT_TEXT_POSITIONS);
    add_parts(out, "next token", f->frequency, STINT_TEXT_FREQUENCIES);
    add_changes(out, f);
}

/* ---- JSON ---- */

static void json_parts(sti_json *j, const char *name, const stint_text_part *part,
                       int count)
{
    sti_json_begin_array(j, name);
    for (int i = 0; i < count; i++) {
        sti_json_begin_object(j, NULL);
        sti_json_text(j, "name", part[i].name);
        sti_json_int(j, "tokens", part[i].mismatch.n);
        sti_cli_share_json(j, "mismatch", &part[i].mismatch);
        sti_json_float(j, "reference_loss", part[i].reference_loss);
        sti_json_float(j, "new_loss", part[i].changed_loss);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
}

static void json_changes(sti_json *j, const stint_text_fidelity *f)
{
    sti_json_begin_array(j, "changes");
    for (int64_t i = 0; i < f->changes; i++) {
        const stint_text_change *c = &f->change[i];
        sti_json_begin_object(j, NULL);
        sti_json_int(j, "token", c->at);
        sti_json_float(j, "kl", c->kl);
        sti_json_text(j, "before", c->before);
        sti_json_text(j, "follows", c->label_text);
        sti_json_text(j, "reference", c->reference_text);
        sti_json_float(j, "reference_probability", c->reference_p);
        sti_json_text(j, "new", c->changed_text);
        sti_json_float(j, "new_probability", c->changed_p);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
}

static void add_json(const stint_text_fidelity *f, sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_int(&j, "tokens", f->tokens);
    sti_json_int(&j, "windows", f->windows);
    sti_json_float(&j, "reference_accuracy", f->reference_accuracy);
    sti_json_float(&j, "new_accuracy", f->changed_accuracy);
    sti_json_float(&j, "mismatch_rate", f->mismatch.rate);
    sti_json_float(&j, "nfr", f->nfr.rate);
    sti_json_float(&j, "pfr", f->pfr.rate);
    sti_json_float(&j, "kl", f->kl);
    sti_json_float(&j, "reference_loss", f->reference_loss);
    sti_json_float(&j, "new_loss", f->changed_loss);
    sti_json_float(&j, "loss_difference", f->loss_difference);
    sti_json_float(&j, "loss_low", f->loss_low);
    sti_json_float(&j, "loss_high", f->loss_high);
    sti_cli_share_json(&j, "mismatch", &f->mismatch);
    sti_cli_share_json(&j, "mismatch_reference_right", &f->mismatch_right);
    sti_cli_share_json(&j, "negative_flips", &f->nfr);
    sti_cli_share_json(&j, "positive_flips", &f->pfr);
    json_parts(&j, "per_position", f->position, STINT_TEXT_POSITIONS);
    json_parts(&j, "per_frequency", f->frequency, STINT_TEXT_FREQUENCIES);
    json_changes(&j, f);
    sti_json_end_object(&j);
}

stint_status sti_cli_compare_text_answer(sti_cli_call *call,
                                         const stint_text_fidelity *f)
{
    sti_text text = {0};
    if (call->common->json)
        add_json(f, &text);
    else
        add_words(f, &text);
    return sti_cli_answer(call, &text);
}
