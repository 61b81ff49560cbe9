/* What the reader of a model and the reader of a tensor rest on. */
#include <string.h>

#include "base/fail.h"
#include "base/shown.h"
#include "exchange/onnx_priv.h"

stint_status sti_onnx_damaged(const sti_onnx_reader *r, const char *what)
{
    return sti_fail(STINT_E_INPUT, "%s: damaged or no ONNX file, in %s",
                    sti_shown(r->name), what);
}

stint_status sti_onnx_text(sti_onnx_reader *r, const sti_proto_field *field,
                           const char **text_out)
{
    if (field->kind != STI_PROTO_BYTES || field->n_bytes > STI_ONNX_TEXT_MOST ||
        (field->n_bytes && memchr(field->bytes, '\0', field->n_bytes)))
        return sti_onnx_damaged(r, "a name");
    char *text = sti_arena_alloc(r->arena, field->n_bytes + 1);
    if (!text)
        return STINT_E_MEMORY;
    if (field->n_bytes)
        memcpy(text, field->bytes, field->n_bytes);
    *text_out = text;
    return STINT_OK;
}
