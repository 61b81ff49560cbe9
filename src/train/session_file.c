/* Sessions in files: weights, moments, position, and what the caller adds. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/numerics.h"
#include "base/units.h"
#include "store/checkpoint_file.h"
#include "train/session_priv.h"

#define KEY_STEP "session.step"

/* Rows of a session's tensors; of the model alone, or all. */
static stint_status list_tensors(const stint_session *s, bool model, int extra,
                                 sti_tensor_list *list)
{
    static const char *const prefixes[] = {STI_TENSOR_MOMENT_0, STI_TENSOR_MOMENT_1};
    stint_status st;
    STI_TRY(sti_tensor_list_init(list, list->arena,
                                 4 * sti_graph_value_count(s->net.graph) + extra));
    STI_TRY(sti_tensor_list_add_network(list, &s->net, STI_ROLE_PARAM, "",
                                        s->engine->params));
    STI_TRY(sti_tensor_list_add_network(list, &s->net, STI_ROLE_STATE, "",
                                        s->engine->states));
    for (int i = 0; i < s->desc.moments && !model; i++)
        STI_TRY(sti_tensor_list_add_network(list, &s->net, STI_ROLE_PARAM, prefixes[i],
                                            s->engine->moments[i]));
out:
    return st;
}

static void hash(const stint_session *session, bool model, char hex_out[65])
{
    sti_tensor_list list = {.arena = sti_arena_create("hash")};
    sti_sha256 state;
    sti_sha256_init(&state);
    hex_out[0] = '\0';
    if (list.arena && list_tensors(session, model, 0, &list) == STINT_OK) {
        sti_tensor_list_add_sha256(&list, 0, list.count, &state);
        sti_sha256_hex(&state, hex_out);
    }
    sti_arena_destroy(list.arena);
}

void stint_session_sha256(const stint_session *session, char hex_out[65])
{
    hash(session, true, hex_out);
}

void stint_session_state_sha256(const stint_session *session, char hex_out[65])
{
    hash(session, false, hex_out);
}

static void add_blobs(sti_tensor_list *list, const stint_session_blob *blobs, int count)
{
    for (int i = 0; i < count; i++)
        sti_tensor_list_add_vector(list, blobs[i].name, STI_TENSOR_U8,
                                   (int64_t)blobs[i].bytes, blobs[i].bytes,
                                   blobs[i].data);
}

static stint_status add_texts(const stint_session_text *texts, int count,
                              sti_meta_texts *out)
{
    if (count > STINT_SESSION_MOST)
        return sti_fail(STINT_E_BUG, "%d texts; at most %d go into a file", count,
                        STINT_SESSION_MOST);
    for (int i = 0; i < count; i++)
        sti_meta_add(out, texts[i].key, texts[i].text);
    return STINT_OK;
}

/* ---- bytes that come and go by pieces ---- */

typedef struct pieces {
    const stint_session_blob *blob; /* [count] */
    int count;
} pieces;

static const stint_session_blob *find_pieces(const pieces *p, const sti_tensor_row *row)
{
    for (int i = 0; i < p->count && !row->data; i++)
        if (p->blob[i].piece_bytes > 0 && strcmp(p->blob[i].name, row->name) == 0)
            return &p->blob[i];
    return NULL;
}

/* Each piece in turn goes into one of writer and hash; the other is NULL. */
static stint_status make_pieces(const stint_session_blob *blob, sti_writer *writer,
                                sti_sha256 *sha)
{
    void *piece = sti_alloc(blob->piece_bytes, "session.piece");
    if (!piece)
        return STINT_E_MEMORY;
    for (size_t k = 0; k < blob->bytes / blob->piece_bytes; k++) {
        blob->make(blob->user, (int64_t)k, piece);
        if (writer)
            sti_writer_add(writer, piece, blob->piece_bytes);
        else
            sti_sha256_add(sha, piece, blob->piece_bytes);
    }
    sti_free(piece);
    return STINT_OK;
}

/* A failure to write stays in the writer until it is committed. */
static stint_status write_row(void *user, const sti_tensor_row *row, sti_writer *writer)
{
    const stint_session_blob *blob = find_pieces(user, row);
    if (blob)
        return make_pieces(blob, writer, NULL);
    sti_writer_add(writer, row->data, row->bytes);
    return STINT_OK;
}

/* ---- of a whole checkpoint, so that one that was damaged is not gone on from ---- */

static void add_head(sti_sha256 *sha, const char *name, size_t bytes)
{
    const uint64_t n = bytes;
    sti_sha256_add(sha, name, strlen(name) + 1);
    sti_sha256_add(sha, &n, sizeof n);
}

static stint_status hash_list(const sti_tensor_list *list, const pieces *p,
                              const char *step, char hex_out[65])
{
    stint_status st = STINT_OK;
    sti_sha256 sha;
    sti_sha256_init(&sha);
    add_head(&sha, KEY_STEP, strlen(step));
    sti_sha256_add(&sha, step, strlen(step));
    for (int64_t i = 0; i < list->count && st == STINT_OK; i++) {
        const sti_tensor_row *row = &list->rows[i];
        const stint_session_blob *blob = find_pieces(p, row);
        if (row->bytes == 0)
            continue; /* has no place in a file's order */
        add_head(&sha, row->name, row->bytes);
        if (blob)
            st = make_pieces(blob, NULL, &sha);
        else
            sti_sha256_add(&sha, row->data, row->bytes);
    }
    sti_sha256_hex(&sha, hex_out);
    return st;
}

static stint_status hash_file(const sti_tensor_file *file, char hex_out[65])
{
    const char *step = sti_tensor_file_text(file, KEY_STEP);
    stint_status st = STINT_OK;
    sti_sha256 sha;
    sti_sha256_init(&sha);
    add_head(&sha, KEY_STEP, strlen(step));
    sti_sha256_add(&sha, step, strlen(step));
    for (int64_t i = 0; i < sti_tensor_file_count(file) && st == STINT_OK; i++) {
        const sti_tensor_row *row = sti_tensor_file_row(file, i);
        if (row->bytes == 0)
            continue;
        add_head(&sha, row->name, row->bytes);
        st = sti_tensor_file_add_sha256(file, row, &sha);
    }
    sti_sha256_hex(&sha, hex_out);
    return st;
}

/* One of an older Stint has no hash, and is taken as it is. */
static stint_status check_whole(const sti_tensor_file *file)
{
    char have[65];
    const char *want = sti_tensor_file_text(file, STI_META_CHECKPOINT);
    const stint_status st = want ? hash_file(file, have) : STINT_OK;
    if (st != STINT_OK || !want || strcmp(want, have) == 0)
        return st;
    return sti_fail(STINT_E_INPUT,
                    "%s: it is damaged: its bytes are not those that were written",
                    sti_tensor_file_path(file));
}

stint_status stint_session_save(const stint_session *s, const char *path, bool model,
                                const stint_session_blob *blobs, int blob_count,
                                const stint_session_text *texts, int text_count)
{
    sti_tensor_list list = {.arena = sti_arena_create("session file")};
    sti_meta_texts meta = {.count = 0};
    pieces made = {blobs, blob_count};
    char step[32], sha[65];
    stint_status st = list.arena ? STINT_OK : STINT_E_MEMORY;
    if (st != STINT_OK)
        return st;
    STI_TRY(list_tensors(s, model, blob_count, &list));
    if (!model)
        add_blobs(&list, blobs, blob_count);
    sti_meta_add(&meta, STI_META_VERSION, stint_version());
    sti_meta_add(&meta, STI_META_KIND, model ? "model" : "checkpoint");
    sti_meta_add(&meta, STI_META_NUMERICS, STI_NUMERICS_VERSION);
    snprintf(step, sizeof step, "%" PRId64, s->step);
    sti_meta_add(&meta, KEY_STEP, step);
    if (!model) {
        STI_TRY(hash_list(&list, &made, step, sha));
        sti_meta_add(&meta, STI_META_CHECKPOINT, sha);
    }
    STI_TRY(add_texts(texts, text_count, &meta));
    STI_TRY(sti_tensor_file_write_made(path, list.rows, list.count, meta.row,
                                       meta.count, write_row, &made));
out:
    sti_arena_destroy(list.arena);
    return st;
}

/* ---- reading ---- */

static stint_status check_texts(const sti_tensor_file *file,
                                const stint_session_text *texts, int count)
{
    for (int i = 0; i < count; i++) {
        const char *have = sti_tensor_file_text(file, texts[i].key);
        if (!have || strcmp(have, texts[i].text) != 0)
            return sti_fail(STINT_E_INPUT, "%s: %s is '%.200s' there, '%.200s' here",
                            sti_tensor_file_path(file), texts[i].key,
                            have ? have : "absent", texts[i].text);
    }
    return STINT_OK;
}

static stint_status read_step(const sti_tensor_file *file, int64_t *step_out)
{
    double step;
    const char *numerics = sti_tensor_file_text(file, STI_META_NUMERICS);
    if (!sti_meta_numbers(sti_tensor_file_text(file, KEY_STEP), 1, &step) ||
        !(step >= 0 && step < 0x1p53))
        return sti_fail(STINT_E_INPUT, "%s: is no checkpoint of a session",
                        sti_tensor_file_path(file));
    if (!numerics || strcmp(numerics, STI_NUMERICS_VERSION) != 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: was written with numerics %s, this build has %s: a run "
                        "cannot go on to the same bits",
                        sti_tensor_file_path(file), numerics ? numerics : "unknown",
                        STI_NUMERICS_VERSION);
    *step_out = (int64_t)step;
    return STINT_OK;
}

/* All names and sizes before any byte, so that nothing of a wrong file gets in. */
static stint_status check_tensors(const sti_tensor_list *list,
                                  const sti_tensor_file *file)
{
    for (int64_t i = 0; i < list->count; i++) {
        const sti_tensor_row *have = sti_tensor_file_find(file, list->rows[i].name);
        if (!have || have->bytes != list->rows[i].bytes)
            return sti_fail(STINT_E_INPUT, "%s: has no '%s' of %s",
                            sti_tensor_file_path(file), list->rows[i].name,
                            sti_bytes_text(list->rows[i].bytes));
    }
    return STINT_OK;
}

static stint_status read_pieces(const stint_session_blob *blob,
                                const sti_tensor_row *row, const sti_tensor_file *file)
{
    void *piece = sti_alloc(blob->piece_bytes, "session.piece");
    stint_status st = piece ? STINT_OK : STINT_E_MEMORY;
    for (size_t k = 0; k < blob->bytes / blob->piece_bytes && st == STINT_OK; k++) {
        st = sti_tensor_file_read_part(file, row, (int64_t)(k * blob->piece_bytes),
                                       blob->piece_bytes, piece);
        if (st == STINT_OK)
            st = blob->take(blob->user, (int64_t)k, piece);
    }
    sti_free(piece);
    return st;
}

static stint_status read_tensors(const sti_tensor_list *list, const pieces *p,
                                 const sti_tensor_file *file)
{
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < list->count && st == STINT_OK; i++) {
        const stint_session_blob *blob = find_pieces(p, &list->rows[i]);
        const sti_tensor_row *row;
        if (!blob)
            st = sti_tensor_list_read(list, i, file);
        else if ((st = sti_tensor_list_find(list, i, file, &row)) == STINT_OK)
            st = read_pieces(blob, row, file);
    }
    return st;
}

stint_status stint_session_load(stint_session *s, const char *path,
                                const stint_session_blob *blobs, int blob_count,
                                const stint_session_text *texts, int text_count)
{
    sti_tensor_list list = {.arena = sti_arena_create("session file")};
    sti_tensor_file *file = NULL;
    int64_t step = 0;
    stint_status st = list.arena ? STINT_OK : STINT_E_MEMORY;
    if (st != STINT_OK)
        return st;
    STI_TRY(sti_tensor_file_open(path, &file));
    STI_TRY(check_texts(file, texts, text_count));
    STI_TRY(read_step(file, &step));
    STI_TRY(list_tensors(s, false, blob_count, &list));
    add_blobs(&list, blobs, blob_count);
    STI_TRY(check_tensors(&list, file));
    STI_TRY(check_whole(file));
    STI_TRY(read_tensors(&list, &(pieces){blobs, blob_count}, file));
    s->step = step;
out:
    sti_tensor_file_close(file);
    sti_arena_destroy(list.arena);
    return st;
}

stint_status stint_session_share(stint_session *s)
{
    const sti_step_engine *e = s->engine;
    sti_comm *comm = s->desc.comm;
    stint_status st = STINT_OK;
    if (!comm)
        return STINT_OK;
    STI_TRY(sti_comm_broadcast(comm, 0, &s->step, sizeof s->step));
    STI_TRY(sti_comm_broadcast(comm, 0, e->params, e->sizes.params));
    STI_TRY(sti_comm_broadcast(comm, 0, e->states, e->sizes.states));
    for (int i = 0; i < s->desc.moments; i++)
        STI_TRY(sti_comm_broadcast(comm, 0, e->moments[i], e->sizes.moments));
out:
    return st;
}
