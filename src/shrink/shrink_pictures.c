/* Parts of the page that are pictures: shapes of kernels, images with other answers. */
#include <inttypes.h>
#include <stdio.h>

#include "base/fail.h"
#include "data/data.h"
#include "infer/eval_run.h"
#include "media/image_encode.h"
#include "shrink/shrinker.h"
#include "train/report_image.h"

/* ---- shapes ---- */

enum { CELL = 9, GAP = 1, SIDE = 3 * CELL + 4 * GAP };

/* Three by three cells, dark where a tap is left. */
static stint_status draw_shape(unsigned shape, sti_text *png)
{
    static const uint8_t grid[3] = {255, 255, 255}, left[3] = {47, 111, 208},
                         gone[3] = {222, 223, 226};
    uint8_t pixels[SIDE * SIDE * 3];
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            const int row = y / (CELL + GAP), column = x / (CELL + GAP);
            const bool line = y % (CELL + GAP) < GAP || x % (CELL + GAP) < GAP;
            const uint8_t *colour = line                              ? grid
                                    : shape >> (3 * row + column) & 1 ? left
                                                                      : gone;
            for (int c = 0; c < 3; c++)
                pixels[(y * SIDE + x) * 3 + c] = colour[c];
        }
    return sti_png_encode(pixels, SIDE, SIDE, 3, png);
}

void sti_shrink_add_shapes(const sti_shrink_shapes *shapes, sti_text *out)
{
    int64_t all = 0;
    for (int i = 0; i < shapes->count; i++)
        all += shapes->kernels[i];
    if (all == 0)
        return;
    sti_page_section(out, "Shapes of kernels");
    sti_page_note(out, "Taps that are left in kernels of 3 x 3, and the share of the "
                       "kernels that have each shape.");
    sti_page_sheet_begin(out);
    for (int i = 0; i < shapes->count; i++) {
        char words[64];
        sti_text png = {0};
        snprintf(words, sizeof words, "<b>%.1f %%</b><br>%" PRId64 " kernels",
                 100 * (double)shapes->kernels[i] / (double)all, shapes->kernels[i]);
        sti_page_picture_begin(out);
        if (draw_shape(shapes->shape[i], &png) == STINT_OK)
            sti_page_image(out, png.data, png.length, "taps of a kernel");
        else
            out->failed = true;
        sti_page_picture_end(out, words);
        sti_text_fini(&png);
    }
    sti_page_sheet_end(out);
    sti_page_section_end(out);
}

/* ---- changed answers ---- */

enum { SHOWN = 48 };

typedef struct changed {
    const sti_judge *judge;
    const sti_judge_set *set;
    stint_data *data;
    sti_data_decoders *decoders;
    uint8_t *pixels;
    int32_t *answer; /* [set->count] of the chosen model */
    int64_t step;    /* from one image that judges to the next */
} changed;

static bool is_changed(const changed *c, int64_t i)
{
    return c->answer[i] != c->set->answer[i];
}

static bool was_right(const changed *c, int64_t i)
{
    return c->set->answer[i] == c->set->label[i];
}

static void add_caption(const changed *c, int64_t i, sti_text *out)
{
    const char *const *names = stint_data_describe(c->data)->class_names;
    sti_text html = {0};
    sti_text_add(&html, "is <b>");
    sti_text_add_html(&html, names[c->set->label[i]]);
    sti_text_add(&html, "</b><br>was taken for ");
    sti_text_add_html(&html, names[c->set->answer[i]]);
    sti_text_add(&html, "<br>now for <b class=\"bad\">");
    sti_text_add_html(&html, names[c->answer[i]]);
    sti_text_add(&html, "</b>");
    sti_page_picture_end(out, html.data ? html.data : "");
    out->failed |= html.failed;
    sti_text_fini(&html);
}

static stint_status add_pictures(const changed *c, sti_page_file *page)
{
    stint_status st = STINT_OK;
    int shown = 0;
    for (int right = 1; right >= 0; right--)
        for (int64_t i = 0; i < c->set->count && shown < SHOWN && st == STINT_OK;
             i += c->step) {
            if (!is_changed(c, i) || was_right(c, i) != (right == 1))
                continue;
            sti_page_picture_begin(&page->text);
            st =
                sti_report_image(c->data, c->decoders, i, NULL, c->pixels, &page->text);
            add_caption(c, i, &page->text);
            if (st == STINT_OK)
                st = sti_page_file_flush(page);
            shown++;
        }
    return st;
}

static stint_status add_section(const changed *c, sti_page_file *page)
{
    int64_t all = 0, right = 0;
    for (int64_t i = 0; i < c->set->count; i += c->step) {
        all += is_changed(c, i);
        right += is_changed(c, i) && was_right(c, i);
    }
    if (all == 0)
        return STINT_OK;
    sti_page_section(&page->text, "Images with another answer");
    sti_page_note(&page->text,
                  "%" PRId64 " of those that judge, of which the model had %" PRId64
                  " right; up to %d are shown, these first.",
                  all, right, SHOWN);
    sti_page_sheet_begin(&page->text);
    const stint_status st = add_pictures(c, page);
    sti_page_sheet_end(&page->text);
    sti_page_section_end(&page->text);
    return st;
}

static stint_status open_images(const sti_shrinker *s, stint_model_file *model,
                                changed *c)
{
    stint_status st;
    c->answer = sti_alloc_array(c->set->count, sizeof *c->answer, "answers");
    if (!c->answer)
        return STINT_E_MEMORY;
    STI_TRY(sti_judge_answers(c->judge, model, c->answer));
    STI_TRY(sti_model_open_data(s->model, &c->set->desc, &c->data));
    const stint_data_info *info = stint_data_describe(c->data);
    c->pixels =
        sti_alloc((size_t)(info->height * info->width * info->channels), "page");
    if (!c->pixels)
        return STINT_E_MEMORY;
    STI_TRY(sti_data_decoders_create(c->data, 1, &c->decoders));
out:
    return st;
}

stint_status sti_shrink_add_changed(const sti_shrinker *s, sti_page_file *page)
{
    changed c = {
        .judge = &s->judge, .set = &s->judge.judging, .step = s->judge.halves ? 2 : 1};
    stint_model_file *model = NULL;
    stint_status st = stint_model_open(s->model_path, &model);
    if (st == STINT_OK)
        st = open_images(s, model, &c);
    if (st == STINT_OK)
        st = add_section(&c, page);
    sti_data_decoders_destroy(c.decoders);
    stint_data_close(c.data);
    sti_free(c.pixels);
    sti_free(c.answer);
    stint_model_close(model);
    return st;
}
