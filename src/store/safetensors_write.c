/* Writing of safetensors. */
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "store/safetensors.h"

enum { LENGTH_BYTES = 8 }; /* of the header's length, in front of it */

static const char *type_name(sti_tensor_type type)
{
    static const char *const names[] = {"F32", "I32", "I64", "U8", "F16", "BF16"};
    return names[type];
}

static void write_row(sti_json *json, const sti_tensor_row *row, size_t offset)
{
    sti_json_begin_object(json, row->name);
    sti_json_text(json, "dtype", type_name(row->type));
    sti_json_begin_array(json, "shape");
    for (int i = 0; i < row->rank; i++)
        sti_json_int(json, NULL, row->dim[i]);
    sti_json_end_array(json);
    sti_json_begin_array(json, "data_offsets");
    sti_json_int(json, NULL, (int64_t)offset);
    sti_json_int(json, NULL, (int64_t)(offset + row->bytes));
    sti_json_end_array(json);
    sti_json_end_object(json);
}

static stint_status write_header(const sti_tensor_row *rows, int64_t count,
                                 const sti_tensor_text *texts, int64_t text_count,
                                 sti_text *header)
{
    sti_json json = {.out = header};
    size_t offset = 0;
    sti_json_begin_object(&json, NULL);
    if (text_count > 0) {
        sti_json_begin_object(&json, "__metadata__");
        for (int64_t i = 0; i < text_count; i++)
            sti_json_text(&json, texts[i].key, texts[i].text);
        sti_json_end_object(&json);
    }
    for (int64_t i = 0; i < count; i++) {
        write_row(&json, &rows[i], offset);
        offset += rows[i].bytes;
    }
    sti_json_end_object(&json);
    /* So that tensors can be read where they lie in a mapping. */
    while (!header->failed && (LENGTH_BYTES + header->length) % 64 != 0)
        sti_text_add(header, " ");
    return header->failed ? sti_fail(STINT_E_MEMORY, "out of memory for the header")
                          : STINT_OK;
}

static void set_length(uint8_t bytes_out[LENGTH_BYTES], uint64_t length)
{
    for (int i = 0; i < LENGTH_BYTES; i++)
        bytes_out[i] = (uint8_t)(length >> 8 * i);
}

stint_status sti_tensor_file_make(const sti_tensor_row *rows, int64_t count,
                                  const sti_tensor_text *texts, int64_t text_count,
                                  sti_text *out)
{
    sti_text header = {0};
    uint8_t length[LENGTH_BYTES];
    stint_status st = write_header(rows, count, texts, text_count, &header);
    if (st == STINT_OK) {
        set_length(length, header.length);
        sti_text_add_bytes(out, length, sizeof length);
        sti_text_add_bytes(out, header.data, header.length);
        for (int64_t i = 0; i < count; i++)
            sti_text_add_bytes(out, rows[i].data, rows[i].bytes);
        st = out->failed ? sti_fail(STINT_E_MEMORY, "out of memory for a file") : st;
    }
    sti_text_fini(&header);
    return st;
}

stint_status sti_tensor_file_write_made(const char *path, const sti_tensor_row *rows,
                                        int64_t count, const sti_tensor_text *texts,
                                        int64_t text_count, sti_tensor_fill_fn *fill,
                                        void *user)
{
    sti_text header = {0};
    sti_writer *writer = NULL;
    stint_status st = write_header(rows, count, texts, text_count, &header);
    if (st == STINT_OK)
        st = sti_writer_open(path, &writer);
    if (st == STINT_OK) {
        /* A failure to write stays in the writer until it is committed. */
        uint8_t length[LENGTH_BYTES];
        set_length(length, header.length);
        sti_writer_add(writer, length, sizeof length);
        sti_writer_add(writer, header.data, header.length);
    }
    for (int64_t i = 0; i < count && st == STINT_OK; i++)
        st = fill(user, &rows[i], writer);
    if (st == STINT_OK)
        st = sti_writer_commit(writer);
    else
        sti_writer_abort(writer);
    sti_text_fini(&header);
    return st;
}

static stint_status fill_from_memory(void *user, const sti_tensor_row *row,
                                     sti_writer *writer)
{
    (void)user;
    sti_writer_add(writer, row->data, row->bytes);
    return STINT_OK;
}

stint_status sti_tensor_file_write(const char *path, const sti_tensor_row *rows,
                                   int64_t count, const sti_tensor_text *texts,
                                   int64_t text_count)
{
    return sti_tensor_file_write_made(path, rows, count, texts, text_count,
                                      fill_from_memory, NULL);
}
