#include "cli/cli_eval.h"

#include <inttypes.h>
#include <math.h>

#include "base/shown.h"
#include "base/units.h"
#include "cli/cli_recall.h"

void sti_cli_eval_progress(void *user, const stint_train_progress *p)
{
    sti_eval_view *view = user;
    if (!view->begun) {
        sti_progress_begin(&view->bar, "eval", view->unit, p->to_evaluate, view->quiet);
        view->bar.start_ns = view->start_ns; /* some are done already */
        view->begun = true;
    }
    sti_progress_update(&view->bar, p->evaluated, "");
}

/* NaN where the split has no images of the class. */
static double class_accuracy(const stint_eval_result *r, int32_t c)
{
    return r->class_count[c] ? (double)r->class_correct[c] / (double)r->class_count[c]
                             : (double)NAN;
}

/* Padding of the last window counted in. */
static double tokens_per_s(const stint_model_facts *facts, const stint_eval_result *r)
{
    return r->images_per_s * (double)facts->context;
}

/* The signal to noise of values taken as 0 to 1; they lie from -1 to 1. */
static double psnr_of(const stint_eval_result *r)
{
    return 10 * log10(4 / r->loss);
}

void sti_cli_eval_json(const sti_eval_args *args, const stint_model_facts *facts,
                       const stint_eval_result *r, sti_json *j)
{
    sti_json_float(j, "accuracy", r->accuracy);
    sti_json_float(j, "loss", r->loss);
    sti_json_int(j, "count", r->count);
    sti_json_float(j, "images_per_s", r->images_per_s);
    sti_json_known(j, "planned_peak_bytes", (int64_t)r->planned_peak_bytes);
    sti_json_known(j, "peak_rss_bytes", (int64_t)r->peak_rss_bytes);
    /* (with an adapter the weights are others than the file's) */
    sti_json_text(j, "weights_sha256", args->adapter ? NULL : facts->weights_sha256);
    if (facts->context) {
        sti_json_int(j, "tokens", r->tokens);
        sti_json_float(j, "bits_per_byte", r->bits_per_byte);
        sti_json_float(j, "tokens_per_s", tokens_per_s(facts, r));
        return;
    }
    if (facts->field.coordinates > 0) {
        sti_json_float(j, "test_loss", r->loss);
        sti_json_float(j, "psnr", psnr_of(r));
        sti_json_float(j, "relative_l2", r->relative_l2);
        sti_json_float(j, "points_per_s", r->images_per_s);
        return;
    }
    sti_cli_json_recall(j, r->balanced_accuracy, r->lowest_recall,
                        facts->class_names[r->lowest_class]);
    sti_json_begin_array(j, "per_class");
    for (int32_t c = 0; c < r->classes; c++) {
        sti_json_begin_object(j, NULL);
        sti_json_text(j, "class", facts->class_names[c]);
        sti_json_int(j, "count", r->class_count[c]);
        sti_json_int(j, "correct", r->class_correct[c]);
        sti_json_float(j, "accuracy", class_accuracy(r, c));
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
    if (args->confusion) {
        sti_json_begin_array(j, "confusion");
        for (int32_t row = 0; row < r->classes; row++) {
            sti_json_begin_array(j, NULL);
            for (int32_t c = 0; c < r->classes; c++)
                sti_json_int(j, NULL, r->confusion[(int64_t)row * r->classes + c]);
            sti_json_end_array(j);
        }
        sti_json_end_array(j);
    }
}

/* The most frequent wrong answers, largest first, by repeated search: the table is
 * small. */
static void add_confusions(const stint_model_facts *facts, const stint_eval_result *r,
                           sti_text *out)
{
    int64_t last = INT64_MAX, last_at = -1, cells = (int64_t)r->classes * r->classes;
    for (int shown = 0; shown < 10; shown++) {
        int64_t best = 0, best_at = -1;
        for (int64_t i = 0; i < cells; i++) {
            bool wrong = i / r->classes != i % r->classes;
            bool after =
                r->confusion[i] < last || (r->confusion[i] == last && i > last_at);
            if (wrong && after && r->confusion[i] > best) {
                best = r->confusion[i];
                best_at = i;
            }
        }
        if (best_at < 0)
            break;
        if (shown == 0)
            sti_text_add(out, "\nMost often mistaken:\n");
        sti_text_printf(out, "  %-16s taken for %-16s %6" PRId64 "\n",
                        sti_shown(facts->class_names[best_at / r->classes]),
                        sti_shown(facts->class_names[best_at % r->classes]), best);
        last = best;
        last_at = best_at;
    }
}

void sti_cli_eval_words(const sti_eval_args *args, const stint_model_facts *facts,
                        const stint_eval_result *r, sti_text *out)
{
    if (facts->context) {
        sti_text_printf(out,
                        "loss %.4f nats a token, %.3f bits a byte, over %s tokens; "
                        "%.0f tokens/s\n",
                        r->loss, r->bits_per_byte, sti_count_text(r->tokens),
                        tokens_per_s(facts, r));
        return;
    }
    if (facts->field.coordinates > 0) {
        sti_text_printf(out,
                        "psnr %.2f dB, loss %.4g (mean square) over %s points; %.0f "
                        "points/s\n",
                        psnr_of(r), r->loss, sti_count_text(r->count), r->images_per_s);
        return;
    }
    for (int32_t c = 0; c < r->classes; c++)
        if (r->class_count[c])
            sti_text_printf(out, "  %-16s %6.2f %%  of %" PRId64 "\n",
                            sti_shown(facts->class_names[c]),
                            100 * class_accuracy(r, c), r->class_count[c]);
        else
            sti_text_printf(out, "  %-16s no images\n",
                            sti_shown(facts->class_names[c]));
    if (args->confusion)
        add_confusions(facts, r, out);
    sti_text_printf(out,
                    "accuracy %.2f %% of %s image%s, balanced %.2f %%, loss %.4f, %.0f "
                    "images/s\n",
                    100 * r->accuracy, sti_count_text(r->count), sti_s(r->count),
                    100 * r->balanced_accuracy, r->loss, r->images_per_s);
    sti_cli_add_recall(out, r->balanced_accuracy, r->lowest_recall,
                       facts->class_names[r->lowest_class]);
}

void sti_cli_eval_say_peak(const sti_cli_call *call, const stint_eval_result *r)
{
    const sti_eval_args *args = call->args;
    if (args->memory_bytes > 0 && !call->common->json)
        sti_cli_say(call, "peak %s, planned %s, budget %s",
                    sti_cli_peak_text(r->peak_rss_bytes),
                    sti_bytes_text(r->planned_peak_bytes),
                    sti_bytes_text(args->memory_bytes));
}
