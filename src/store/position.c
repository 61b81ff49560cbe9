#include "store/position.h"

#include <math.h>

#include "base/fail.h"
#include "base/units.h"

#define FIELD(name, whole, facts)                                \
    {                                                            \
#name, offsetof(sti_position, name), whole, facts, false \
    }
#define LATE(name, whole)                                       \
    {                                                           \
#name, offsetof(sti_position, name), whole, false, true \
    }
const sti_position_field sti_position_fields[] = {
    FIELD(step, true, true),
    FIELD(epoch_loss, false, false),
    FIELD(epoch_correct, false, false),
    FIELD(epoch_images, true, false),
    FIELD(line_loss, false, false),
    FIELD(line_correct, false, false),
    FIELD(line_images, true, false),
    FIELD(train_loss, false, true),
    FIELD(train_accuracy, false, true),
    FIELD(test_loss, false, true),
    FIELD(test_accuracy, false, true),
    FIELD(chosen_step, true, false),
    FIELD(chosen_right, true, false),
    FIELD(chosen_others, true, false),
    {"shrink_done", offsetof(sti_position, shrink_done), true, false, true},
    {"shrink_step", offsetof(sti_position, shrink_step), true, false, true},
    {"shrink_loss", offsetof(sti_position, shrink_loss), false, false, true},
    LATE(better_step, true),
    LATE(chosen_loss, false),
    LATE(chosen_epoch, true),
    LATE(better_epoch, true),
    LATE(grow_accumulate, true),
    LATE(grow_step, true),
    LATE(grow_epoch, true),
    LATE(grow_image, true),
    LATE(noise_squares, false),
    LATE(noise_trace, false),
    LATE(noise_weight, false),
};
const int sti_position_field_count =
    (int)(sizeof sti_position_fields / sizeof sti_position_fields[0]);

void sti_position_add(const sti_position *position, bool facts_only,
                      sti_meta_texts *texts)
{
    for (int i = 0; i < sti_position_field_count; i++) {
        const sti_position_field *f = &sti_position_fields[i];
        const char *at = (const char *)position + f->offset;
        if (facts_only && !f->facts)
            continue;
        if (f->whole)
            sti_meta_add_int(texts, f->key, *(const int64_t *)(const void *)at);
        else
            sti_meta_add_float(texts, f->key, *(const double *)(const void *)at);
    }
}

static stint_status broken(const sti_tensor_file *file, const char *what)
{
    return sti_fail(STINT_E_INPUT, "%s: %s", sti_tensor_file_path(file), what);
}

static bool parse_field(const sti_position_field *field, const char *text, void *at)
{
    if (field->whole)
        return sti_parse_int(text, at) == STINT_OK;
    *(double *)at = (double)NAN; /* an empty text: not known */
    return *text == '\0' || sti_parse_float(text, at) == STINT_OK;
}

stint_status sti_position_read(const sti_tensor_file *file, sti_position *position)
{
    for (int i = 0; i < sti_position_field_count; i++) {
        const sti_position_field *field = &sti_position_fields[i];
        const char *text = sti_tensor_file_text(file, field->key);
        void *at = (char *)position + field->offset;
        if (!text && field->late)
            *(int64_t *)at = 0;
        else if (!text)
            return broken(file, "its position is incomplete");
        else if (!parse_field(field, text, at))
            return broken(file, "its position cannot be read");
    }
    return position->step >= 0 ? STINT_OK : broken(file, "its step is below 0");
}
