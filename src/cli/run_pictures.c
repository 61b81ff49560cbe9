/* stint run of an imported network on picture files: the classes of each, or all
 * outputs for as many as the network takes at once. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/shown.h"
#include "cli/run_pictures.h"
#include "data/data.h"

typedef struct picture_run {
    sti_cli_call *call;
    sti_imported *m;
    sti_classifier_ports ports;
    uint8_t *pixels;
    float *scores; /* [classes]; probabilities once they are said */
    int32_t top;
    sti_text text; /* the JSON object; with words, a line at a time */
    sti_json json;
    stint_status first_failure;
} picture_run;

static stint_status put_picture(picture_run *r, int64_t slot, const char *path)
{
    const sti_classifier_ports *p = &r->ports;
    const stint_status st = sti_data_read_image(path, STINT_FIT_SQUASH, p->height,
                                                p->width, p->channels, r->pixels);
    if (st == STINT_OK)
        sti_classifier_put(p, r->m, slot, r->pixels);
    return st;
}

static stint_status pictures_init(picture_run *r)
{
    stint_status st = sti_classifier_find(r->m, &r->ports);
    if (st != STINT_OK)
        return st;
    const sti_classifier_ports *p = &r->ports;
    r->pixels = sti_alloc_array(p->height * p->width, (size_t)p->channels, "pixels");
    r->scores = sti_alloc_array(p->classes + 1, sizeof *r->scores, "scores");
    for (int64_t slot = 0; slot < p->batch; slot++)
        sti_classifier_put(p, r->m, slot, NULL);
    return r->pixels && r->scores ? STINT_OK : STINT_E_MEMORY;
}

static void pictures_fini(picture_run *r)
{
    sti_free(r->pixels);
    sti_free(r->scores);
    sti_text_fini(&r->text);
}

stint_status sti_run_fill_pictures(sti_cli_call *call, sti_imported *m)
{
    picture_run r = {.call = call, .m = m};
    const int64_t count = call->operand_count - 1;
    stint_status st = pictures_init(&r);
    if (st == STINT_OK && count > r.ports.batch)
        st = sti_fail(STINT_E_USAGE,
                      "%" PRId64 " pictures, but outputs are of %" PRId64
                      " at a time; give so many, or import again with --shape",
                      count, r.ports.batch);
    for (int64_t i = 0; i < count && st == STINT_OK; i++)
        st = put_picture(&r, i, call->operands[1 + i]);
    pictures_fini(&r);
    return st;
}

/* ---- classes ---- */

static void to_probabilities(float *score, int32_t classes)
{
    double sum = 0;
    float most = score[0];
    for (int32_t c = 1; c < classes; c++)
        most = score[c] > most ? score[c] : most;
    for (int32_t c = 0; c < classes; c++)
        sum += exp((double)score[c] - (double)most);
    for (int32_t c = 0; c < classes; c++)
        score[c] = (float)(exp((double)score[c] - (double)most) / sum);
}

/* The likeliest class, which is told and then left out: the lowest of equal ones. */
static int32_t take_largest(picture_run *r, float *probability)
{
    int32_t best = 0;
    for (int32_t c = 1; c < r->ports.classes; c++)
        if (r->scores[c] > r->scores[best])
            best = c;
    *probability = r->scores[best];
    r->scores[best] = -1;
    return best;
}

static void add_json(picture_run *r, const char *path, stint_status st)
{
    char name[16];
    float p;
    sti_json_begin_object(&r->json, NULL);
    sti_json_text(&r->json, "file", path);
    if (st != STINT_OK) {
        sti_json_text(&r->json, "error", stint_last_error());
    } else {
        sti_json_begin_array(&r->json, "classes");
        for (int32_t i = 0; i < r->top; i++) {
            snprintf(name, sizeof name, "%d", (int)take_largest(r, &p));
            sti_json_begin_object(&r->json, NULL);
            sti_json_text(&r->json, "class", name);
            sti_json_float(&r->json, "probability", (double)p);
            sti_json_end_object(&r->json);
        }
        sti_json_end_array(&r->json);
    }
    sti_json_end_object(&r->json);
}

static stint_status print_words(picture_run *r, const char *path)
{
    float p;
    sti_text_add_shown(&r->text, path, "");
    for (int32_t i = 0; i < r->top; i++) {
        const int32_t best = take_largest(r, &p);
        sti_text_printf(&r->text, "\t%d %.1f %%", (int)best, 100 * (double)p);
    }
    sti_text_add(&r->text, "\n");
    return sti_cli_print(&r->text);
}

static stint_status classify_one(picture_run *r, const char *path)
{
    stint_status st = put_picture(r, 0, path);
    if (st == STINT_OK) {
        sti_imported_run(r->m, &(sti_team){.threads = r->m->threads});
        sti_classifier_take(&r->ports, r->m, 0, r->scores);
        to_probabilities(r->scores, r->ports.classes);
    }
    if (r->call->common->json)
        add_json(r, path, st);
    else if (st == STINT_OK)
        return print_words(r, path);
    if (st != STINT_OK) {
        sti_cli_tell("stint run: ", stint_last_error(), "");
        if (r->first_failure == STINT_OK)
            r->first_failure = st;
    }
    return st == STINT_E_MEMORY ? st : STINT_OK;
}

static stint_status classify_all(picture_run *r)
{
    sti_cli_call *call = r->call;
    stint_status st = STINT_OK;
    if (call->common->json) {
        sti_cli_json_begin(&r->json, &r->text);
        sti_json_begin_array(&r->json, "predictions");
    }
    for (int i = 1; i < call->operand_count && st == STINT_OK; i++)
        st = classify_one(r, call->operands[i]);
    if (st == STINT_OK && call->common->json) {
        sti_json_end_array(&r->json);
        sti_json_end_object(&r->json);
        st = sti_cli_answer(call, &r->text);
    }
    if (st == STINT_OK && r->first_failure != STINT_OK)
        st = sti_fail(r->first_failure, "some files were not classified, see above");
    return st;
}

bool sti_run_names_classes(const sti_cli_call *call, const sti_imported *m)
{
    const sti_run_args *args = call->args;
    sti_classifier_ports ports;
    return call->operand_count > 1 && !args->out &&
           sti_classifier_find(m, &ports) == STINT_OK && ports.classes > 0;
}

stint_status sti_run_classes(sti_cli_call *call, sti_imported *m)
{
    const sti_run_args *args = call->args;
    picture_run r = {.call = call, .m = m};
    stint_status st = pictures_init(&r);
    r.top = args->top < r.ports.classes ? (int32_t)args->top : r.ports.classes;
    if (st == STINT_OK)
        st = classify_all(&r);
    pictures_fini(&r);
    return st;
}
