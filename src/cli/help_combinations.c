#include "cli/help_combinations.h"

#include "train/combinations.h"

void sti_cli_combinations_text(sti_text *out)
{
    sti_text_add(out, "What a training can be made of:\n");
    for (const sti_feature *f = sti_features; f->name; f++)
        sti_text_printf(out, "  %-17s %-22s %s\n", f->name, f->key, f->what);
    sti_text_add(out, "Any two of one kind go together but these:\n");
    for (const sti_refusal *r = sti_refusals; r->a; r++)
        sti_text_printf(out, "  %s, %s\n      %s\n", r->a, r->b, r->why);
}

/* Recommendation models have a page of their own, which says what they take. */
enum { SHOWN = STI_KIND_CLICKS };

static void markdown_row(const sti_feature *f, sti_text *out)
{
    sti_text_printf(out, "| %s | `%s` | %s |", f->name, f->key, f->what);
    for (int i = 0; i < SHOWN; i++)
        sti_text_add(out, f->kinds >> i & 1 ? " yes |" : " |");
    sti_text_add(out, "\n");
}

void sti_cli_combinations_markdown(sti_text *out)
{
    sti_text_add(
        out,
        "# Combinations\n\nAfter this page you know what of a training goes with what. "
        "The first table says what each kind of network has ([recommendation "
        "models](embeddings.md) have a page of their own). Of what a kind has any two "
        "go together, unless the second table has the pair and says why. A recipe that "
        "asks for such a pair is refused before "
        "anything is read, with that sentence.\n\nMade by `stint help "
        "--combinations-markdown`; do not edit. `stint help combinations --json` has "
        "the same for programs.\n\n| feature | asked for by | what it is "
        "| images | text | fields | agents |\n|---|---|---|---|---|---|---|\n");
    for (const sti_feature *f = sti_features; f->name; f++)
        markdown_row(f, out);
    sti_text_add(out, "\n| these two | are refused together |\n|---|---|\n");
    for (const sti_refusal *r = sti_refusals; r->a; r++)
        sti_text_printf(out, "| %s, %s | %s |\n", r->a, r->b, r->why);
}

void sti_cli_combinations_json(sti_json *j)
{
    sti_json_begin_array(j, "features");
    for (const sti_feature *f = sti_features; f->name; f++) {
        sti_json_begin_object(j, NULL);
        sti_json_text(j, "name", f->name);
        sti_json_text(j, "key", f->key);
        sti_json_text(j, "what", f->what);
        sti_json_text(j, "example", f->example);
        sti_json_begin_array(j, "kinds");
        for (int i = 0; i < STI_KINDS; i++)
            if (f->kinds >> i & 1)
                sti_json_text(j, NULL, sti_kind_words[i]);
        sti_json_end_array(j);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
    sti_json_begin_array(j, "refused");
    for (const sti_refusal *r = sti_refusals; r->a; r++) {
        sti_json_begin_object(j, NULL);
        sti_json_text(j, "a", r->a);
        sti_json_text(j, "b", r->b);
        sti_json_text(j, "why", r->why);
        sti_json_int(j, "status", r->unsupported ? STINT_E_UNSUPPORTED : STINT_E_USAGE);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
}
