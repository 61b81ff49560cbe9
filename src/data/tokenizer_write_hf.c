/* tokenizer.json of Hugging Face's `tokenizers` for tokenisers that GPT-2's two files
 * cannot hold: other words, pieces, unigrams. */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "data/tokenizer.h"

#define SPACE "\xe2\x96\x81" /* U+2581 stands for one */
#define LLAMA3(numbers)                                                   \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

typedef struct printer {
    const stint_tokenizer *t;
    sti_json j;
    sti_text text, other; /* working space */
} printer;

static bool is_special(const stint_tokenizer *t, int32_t token)
{
    for (int32_t i = 0; i < t->special_count; i++)
        if (t->special[i].token == token)
            return true;
    return false;
}

/* A token as a vocabulary names it, kept in `text`. */
static const char *name_of(const printer *p, int32_t token, sti_text *text)
{
    const stint_tokenizer *t = p->t;
    size_t n_bytes;
    const char *bytes = stint_tokenizer_token(t, token, &n_bytes);
    text->length = 0;
    if (is_special(t, token)) {
        sti_text_add_bytes(text, bytes, n_bytes);
    } else if (!t->scheme.pieces) {
        sti_byte_alphabet_add(bytes, n_bytes, text);
    } else if (n_bytes == 1 && t->byte_token[(uint8_t)*bytes] == token) {
        sti_text_printf(text, "<0x%02X>", (uint8_t)*bytes);
    } else if (sti_token_index_find(t, &t->index, bytes, n_bytes) != token) {
        sti_text_add_bytes(text, bytes, n_bytes); /* reads like another */
    } else {
        for (size_t i = 0; i < n_bytes; i++)
            sti_text_add_bytes(text, bytes[i] == ' ' ? SPACE : bytes + i,
                               bytes[i] == ' ' ? strlen(SPACE) : 1);
    }
    return text->data ? text->data : "";
}

static void begin(printer *p, const char *key, const char *type)
{
    sti_json_begin_object(&p->j, key);
    sti_json_text(&p->j, "type", type);
}

static void print_added(printer *p)
{
    static const char *const options[] = {"single_word", "lstrip", "rstrip",
                                          "normalized"};
    sti_json_begin_array(&p->j, "added_tokens");
    for (int32_t token = 0; token < p->t->info.vocabulary; token++) {
        if (!is_special(p->t, token))
            continue;
        sti_json_begin_object(&p->j, NULL);
        sti_json_int(&p->j, "id", token);
        sti_json_text(&p->j, "content", name_of(p, token, &p->text));
        for (size_t i = 0; i < sizeof options / sizeof *options; i++)
            sti_json_bool(&p->j, options[i], false);
        sti_json_bool(&p->j, "special", true);
        sti_json_end_object(&p->j);
    }
    sti_json_end_array(&p->j);
}

static void print_replace(printer *p, const char *kind, const char *from,
                          const char *to)
{
    begin(p, NULL, "Replace");
    sti_json_begin_object(&p->j, "pattern");
    sti_json_text(&p->j, kind, from);
    sti_json_end_object(&p->j);
    sti_json_text(&p->j, "content", to);
    sti_json_end_object(&p->j);
}

static void print_normalizer(printer *p)
{
    static const char *const types[] = {"NFC", "NFKC", "Nmt"};
    const sti_token_scheme *s = &p->t->scheme;
    begin(p, "normalizer", "Sequence");
    sti_json_begin_array(&p->j, "normalizers");
    for (int i = 0; i < s->steps; i++)
        if (s->step[i] == STI_NORMAL_SPACES) {
            print_replace(p, "Regex", " {2,}", " ");
        } else {
            begin(p, NULL, types[s->step[i]]);
            sti_json_end_object(&p->j);
        }
    if (s->pieces && s->prefix == STI_PREFIX_DOUBLE) {
        begin(p, NULL, "Prepend");
        sti_json_text(&p->j, "prepend", SPACE);
        sti_json_end_object(&p->j);
        print_replace(p, "String", " ", SPACE);
    }
    sti_json_end_array(&p->j);
    sti_json_end_object(&p->j);
}

static void print_byte_level(printer *p, const char *key, bool regex)
{
    begin(p, key, "ByteLevel");
    sti_json_bool(&p->j, "add_prefix_space", false);
    sti_json_bool(&p->j, "trim_offsets", true);
    sti_json_bool(&p->j, "use_regex", regex);
    sti_json_end_object(&p->j);
}

static void print_word_bytes(printer *p)
{
    const sti_token_scheme *s = &p->t->scheme;
    begin(p, "pre_tokenizer", "Sequence");
    sti_json_begin_array(&p->j, "pretokenizers");
    if (s->words == STI_WORDS_LLAMA3) {
        begin(p, NULL, "Split");
        sti_json_begin_object(&p->j, "pattern");
        sti_json_text(&p->j, "Regex",
                      s->number == 1 ? LLAMA3("\\p{N}") : LLAMA3("\\p{N}{1,3}"));
        sti_json_end_object(&p->j);
        sti_json_text(&p->j, "behavior", "Isolated");
        sti_json_bool(&p->j, "invert", false);
        sti_json_end_object(&p->j);
    } else if (s->number) {
        begin(p, NULL, "Digits");
        sti_json_bool(&p->j, "individual_digits", true);
        sti_json_end_object(&p->j);
    }
    print_byte_level(p, NULL, s->words == STI_WORDS_GPT2);
    sti_json_end_array(&p->j);
    sti_json_end_object(&p->j);
}

static void print_pre_tokenizer(printer *p)
{
    static const char *const prefixes[] = {"never", "first", "always"};
    const sti_token_scheme *s = &p->t->scheme;
    if (!s->pieces) {
        print_word_bytes(p);
        return;
    }
    if (s->prefix == STI_PREFIX_DOUBLE) { /* the normaliser has done it */
        sti_json_text(&p->j, "pre_tokenizer", NULL);
        return;
    }
    begin(p, "pre_tokenizer", "Metaspace");
    sti_json_text(&p->j, "replacement", SPACE);
    sti_json_text(&p->j, "prepend_scheme", prefixes[s->prefix]);
    sti_json_bool(&p->j, "split", s->words == STI_WORDS_SPACES);
    sti_json_end_object(&p->j);
}

static void print_template(printer *p)
{
    const int32_t token = p->t->info.begin_token;
    if (token < 0) {
        sti_json_text(&p->j, "post_processor", NULL);
        return;
    }
    const char *name = name_of(p, token, &p->text);
    begin(p, "post_processor", "TemplateProcessing");
    static const char *const forms[] = {"single", "pair"};
    for (int f = 0; f < 2; f++) {
        sti_json_begin_array(&p->j, forms[f]);
        for (int part = 0; part < 2 * (f + 1); part++) {
            sti_json_begin_object(&p->j, NULL);
            sti_json_begin_object(&p->j, part % 2 ? "Sequence" : "SpecialToken");
            sti_json_text(&p->j, "id", part % 2 ? (part == 1 ? "A" : "B") : name);
            sti_json_int(&p->j, "type_id", part / 2);
            sti_json_end_object(&p->j);
            sti_json_end_object(&p->j);
        }
        sti_json_end_array(&p->j);
    }
    sti_json_begin_object(&p->j, "special_tokens");
    sti_json_begin_object(&p->j, name);
    sti_json_text(&p->j, "id", name);
    sti_json_begin_array(&p->j, "ids");
    sti_json_int(&p->j, NULL, token);
    sti_json_end_array(&p->j);
    sti_json_begin_array(&p->j, "tokens");
    sti_json_text(&p->j, NULL, name);
    sti_json_end_array(&p->j);
    sti_json_end_object(&p->j);
    sti_json_end_object(&p->j);
    sti_json_end_object(&p->j);
}

static void print_decoder(printer *p)
{
    const sti_token_scheme *s = &p->t->scheme;
    if (!s->pieces) {
        print_byte_level(p, "decoder", true);
        return;
    }
    begin(p, "decoder", "Sequence");
    sti_json_begin_array(&p->j, "decoders");
    print_replace(p, "String", SPACE, " ");
    static const char *const parts[] = {"ByteFallback", "Fuse"};
    for (int i = 0; i < 2; i++) {
        begin(p, NULL, parts[i]);
        sti_json_end_object(&p->j);
    }
    if (s->prefix != STI_PREFIX_NEVER) {
        begin(p, NULL, "Strip");
        sti_json_text(&p->j, "content", " ");
        sti_json_int(&p->j, "start", 1);
        sti_json_int(&p->j, "stop", 0);
        sti_json_end_object(&p->j);
    }
    sti_json_end_array(&p->j);
    sti_json_end_object(&p->j);
}

static bool has_bytes(const stint_tokenizer *t)
{
    return t->scheme.pieces && t->byte_token[0] >= 0;
}

static void print_unigram(printer *p)
{
    const stint_tokenizer *t = p->t;
    begin(p, "model", "Unigram");
    if (t->scheme.unknown >= 0)
        sti_json_int(&p->j, "unk_id", t->scheme.unknown);
    else
        sti_json_text(&p->j, "unk_id", NULL);
    sti_json_begin_array(&p->j, "vocab");
    for (int32_t i = 0; i < t->info.vocabulary; i++) {
        sti_json_begin_array(&p->j, NULL);
        sti_json_text(&p->j, NULL, name_of(p, i, &p->text));
        sti_json_float(&p->j, NULL, t->score[i]);
        sti_json_end_array(&p->j);
    }
    sti_json_end_array(&p->j);
    sti_json_bool(&p->j, "byte_fallback", has_bytes(t));
    sti_json_end_object(&p->j);
}

static void print_pairs(printer *p)
{
    const stint_tokenizer *t = p->t;
    const int32_t unknown = t->scheme.pieces ? t->scheme.unknown : -1;
    begin(p, "model", "BPE");
    sti_json_text(&p->j, "unk_token",
                  unknown >= 0 ? name_of(p, unknown, &p->text) : NULL);
    sti_json_bool(&p->j, "fuse_unk", t->scheme.fuse_unknown);
    sti_json_bool(&p->j, "byte_fallback", has_bytes(t));
    sti_json_bool(&p->j, "ignore_merges", t->scheme.whole_words);
    sti_json_begin_object(&p->j, "vocab");
    for (int32_t i = 0; i < t->info.vocabulary; i++)
        sti_json_int(&p->j, name_of(p, i, &p->text), i);
    sti_json_end_object(&p->j);
    sti_json_begin_array(&p->j, "merges");
    for (int32_t i = 0; i < t->merge_count; i++) {
        p->other.length = 0;
        sti_text_add(&p->other, name_of(p, t->merge[i][0], &p->text));
        sti_text_add(&p->other, " ");
        sti_text_add(&p->other, name_of(p, t->merge[i][1], &p->text));
        sti_json_text(&p->j, NULL, p->other.data ? p->other.data : "");
    }
    sti_json_end_array(&p->j);
    sti_json_end_object(&p->j);
}

stint_status sti_tokenizer_write_hf(const stint_tokenizer *t, const char *path)
{
    sti_text out = {0};
    printer p = {.t = t, .j = {.out = &out}};
    sti_json_begin_object(&p.j, NULL);
    sti_json_text(&p.j, "version", "1.0");
    sti_json_text(&p.j, "truncation", NULL);
    sti_json_text(&p.j, "padding", NULL);
    print_added(&p);
    print_normalizer(&p);
    print_pre_tokenizer(&p);
    print_template(&p);
    print_decoder(&p);
    if (t->info.kind == STINT_TOKENIZER_UNIGRAM)
        print_unigram(&p);
    else
        print_pairs(&p);
    sti_json_end_object(&p.j);
    sti_text_add(&out, "\n");
    const bool failed = out.failed || p.text.failed || p.other.failed;
    const stint_status status =
        failed ? STINT_E_MEMORY : sti_file_write(path, out.data, out.length);
    sti_text_fini(&out);
    sti_text_fini(&p.text);
    sti_text_fini(&p.other);
    return status;
}
