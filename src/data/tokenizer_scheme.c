#include "data/tokenizer_scheme.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/fail.h"

bool sti_text_scheme_is_plain(const sti_token_scheme *s)
{
    return s->words == STI_WORDS_GPT2 && s->number == 0 && !s->prefix && !s->pieces &&
           !s->whole_words && s->steps == 0;
}

bool sti_text_scheme_is_by_words(const sti_token_scheme *s)
{
    return !s->pieces && s->steps == 0 && s->prefix == STI_PREFIX_NEVER;
}

/* ---- our own JSON ---- */

static const char *const words_names[] = {"gpt2", "llama3", "whole", "spaces"};
static const char *const prefix_names[] = {"never", "first", "always", "double"};
static const char *const step_names[] = {"nfc", "nfkc", "nmt", "spaces"};

void sti_text_scheme_print(const sti_token_scheme *s, const char *key, sti_json *j)
{
    sti_json_begin_object(j, key);
    sti_json_text(j, "words", words_names[s->words]);
    sti_json_int(j, "number", s->number);
    sti_json_text(j, "prefix", prefix_names[s->prefix]);
    sti_json_bool(j, "pieces", s->pieces);
    sti_json_bool(j, "whole_words", s->whole_words);
    sti_json_bool(j, "fuse_unknown", s->fuse_unknown);
    sti_json_begin_array(j, "normal");
    for (int i = 0; i < s->steps; i++)
        sti_json_text(j, NULL, step_names[s->step[i]]);
    sti_json_end_array(j);
    sti_json_int(j, "unknown", s->unknown);
    sti_json_end_object(j);
}

/* Place of a word among names, or -1. */
static int place_of(const json_t *value, const char *const *names, int count)
{
    const char *word = json_string_value(value);
    for (int i = 0; word && i < count; i++)
        if (strcmp(word, names[i]) == 0)
            return i;
    return -1;
}

stint_status sti_text_scheme_parse(const json_t *object, const char *where,
                                   sti_token_scheme *out)
{
    const json_t *normal = json_object_get(object, "normal");
    const json_int_t number = json_integer_value(json_object_get(object, "number"));
    const int words =
        place_of(json_object_get(object, "words"), words_names, STI_WORDS_KINDS);
    const int prefix =
        place_of(json_object_get(object, "prefix"), prefix_names, STI_PREFIX_KINDS);
    bool sound = words >= 0 && prefix >= 0 && number >= 0 &&
                 number <= STI_NUMBER_MOST &&
                 json_array_size(normal) <= STI_NORMAL_STEPS;
    sti_token_scheme s = {
        .words = (sti_words)words,
        .prefix = (sti_prefix)prefix,
        .number = (int)number,
        .pieces = json_is_true(json_object_get(object, "pieces")),
        .whole_words = json_is_true(json_object_get(object, "whole_words")),
        .fuse_unknown = json_is_true(json_object_get(object, "fuse_unknown")),
        .unknown = -1};
    for (size_t i = 0; sound && i < json_array_size(normal); i++) {
        const int step =
            place_of(json_array_get(normal, i), step_names, STI_NORMAL_KINDS);
        sound = step >= 0;
        s.step[s.steps++] = (sti_normal_step)step;
    }
    if (!sound)
        return sti_fail(STINT_E_INPUT,
                        "%s: \"scheme\" does not say how text is normalised and cut",
                        where);
    const json_int_t unknown = json_integer_value(json_object_get(object, "unknown"));
    if (unknown >= 0 && unknown <= INT32_MAX)
        s.unknown = (int32_t)unknown;
    *out = s;
    return STINT_OK;
}

/* ---- tokenizer.json of Hugging Face ---- */

#define LLAMA3(numbers)                                                   \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define GPT2                                        \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| " \
    "?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* A file while it is read: the first complaint stays. */
typedef struct scheme_reader {
    const char *where;
    sti_token_scheme *s;
    stint_status status;
    bool bytes; /* words have become bytes */
    bool cut;   /* a pattern was there */
} scheme_reader;

static void refuse(scheme_reader *r, const char *part, const char *what)
{
    if (r->status == STINT_OK)
        r->status = sti_fail(STINT_E_UNSUPPORTED,
                             "%s: a tokeniser of another kind than those "
                             "known here (its %s has '%.60s')",
                             r->where, part, what ? what : "no type");
}

static const char *word_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static bool is_word(const json_t *object, const char *key, const char *want)
{
    const char *word = word_of(object, key);
    return word && strcmp(word, want) == 0;
}

/* Absent, null, false or "". */
static bool is_off(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return !value || json_is_null(value) || json_is_false(value) ||
           (json_is_string(value) && json_string_length(value) == 0);
}

/* "\u2581", SentencePiece's space. */
#define LOW_LINE "\xe2\x96\x81"

static void add_step(scheme_reader *r, sti_normal_step step)
{
    if (r->s->steps == STI_NORMAL_STEPS)
        refuse(r, "normalizer", "more steps than there is room for");
    else
        r->s->step[r->s->steps++] = step;
}

static void read_replace(scheme_reader *r, const json_t *n)
{
    const json_t *pattern = json_object_get(n, "pattern");
    if (is_word(pattern, "String", " ") && is_word(n, "content", LOW_LINE))
        r->s->pieces = true;
    else if (is_word(pattern, "Regex", " {2,}") && is_word(n, "content", " "))
        add_step(r, STI_NORMAL_SPACES);
    else
        refuse(r, "normalizer", "Replace");
}

static void read_normalizer(scheme_reader *r, const json_t *n)
{
    const char *type = word_of(n, "type");
    if (!n || json_is_null(n))
        return;
    if (type && strcmp(type, "Sequence") == 0) {
        const json_t *list = json_object_get(n, "normalizers");
        for (size_t i = 0; i < json_array_size(list); i++)
            read_normalizer(r, json_array_get(list, i));
    } else if (type && strcmp(type, "NFC") == 0) {
        add_step(r, STI_NORMAL_NFC);
    } else if (type && strcmp(type, "NFKC") == 0) {
        add_step(r, STI_NORMAL_NFKC);
    } else if (type && strcmp(type, "Nmt") == 0) {
        add_step(r, STI_NORMAL_NMT);
    } else if (type && strcmp(type, "Replace") == 0) {
        read_replace(r, n);
    } else if (type && strcmp(type, "Prepend") == 0 &&
               is_word(n, "prepend", LOW_LINE)) {
        r->s->prefix = STI_PREFIX_DOUBLE;
        r->s->pieces = true;
    } else {
        refuse(r, "normalizer", type);
    }
}

static void read_split(scheme_reader *r, const json_t *p)
{
    const char *regex = word_of(json_object_get(p, "pattern"), "Regex");
    const bool plain = is_word(p, "behavior", "Isolated") && is_off(p, "invert");
    r->cut = true;
    r->s->words = STI_WORDS_LLAMA3;
    if (regex && plain && strcmp(regex, LLAMA3("\\p{N}{1,3}")) == 0)
        r->s->number = 3;
    else if (regex && plain && strcmp(regex, LLAMA3("\\p{N}")) == 0)
        r->s->number = 1;
    else if (regex && plain && strcmp(regex, GPT2) == 0)
        r->s->words = STI_WORDS_GPT2;
    else
        refuse(r, "pre_tokenizer", regex ? regex : "Split");
}

static void read_byte_level(scheme_reader *r, const json_t *p)
{
    const bool regex = !json_is_false(json_object_get(p, "use_regex"));
    if (!is_off(p, "add_prefix_space"))
        refuse(r, "pre_tokenizer", "add_prefix_space");
    if (regex && r->cut)
        refuse(r, "pre_tokenizer", "two patterns");
    if (!regex && !r->cut)
        r->s->words = STI_WORDS_WHOLE;
    r->bytes = true;
}

static void read_metaspace(scheme_reader *r, const json_t *p)
{
    const char *scheme = word_of(p, "prepend_scheme");
    const bool older = !scheme && json_is_true(json_object_get(p, "add_prefix_space"));
    if (!is_word(p, "replacement", LOW_LINE))
        refuse(r, "pre_tokenizer", "another replacement");
    r->s->pieces = true;
    r->s->words =
        json_is_false(json_object_get(p, "split")) ? STI_WORDS_WHOLE : STI_WORDS_SPACES;
    if (older || (scheme && strcmp(scheme, "always") == 0))
        r->s->prefix = STI_PREFIX_ALWAYS;
    else if (scheme && strcmp(scheme, "first") == 0)
        r->s->prefix = STI_PREFIX_FIRST;
    else if (scheme && strcmp(scheme, "never") != 0)
        refuse(r, "pre_tokenizer", scheme);
}

static void read_pre_tokenizer(scheme_reader *r, const json_t *p)
{
    const char *type = word_of(p, "type");
    if (!p || json_is_null(p))
        return;
    if (type && strcmp(type, "Sequence") == 0) {
        const json_t *list = json_object_get(p, "pretokenizers");
        for (size_t i = 0; i < json_array_size(list); i++)
            read_pre_tokenizer(r, json_array_get(list, i));
    } else if (type && strcmp(type, "ByteLevel") == 0) {
        read_byte_level(r, p);
    } else if (type && strcmp(type, "Split") == 0 && !r->bytes && !r->s->number) {
        read_split(r, p);
    } else if (type && strcmp(type, "Digits") == 0 && !r->bytes && !r->cut &&
               json_is_true(json_object_get(p, "individual_digits"))) {
        r->s->number = 1;
    } else if (type && strcmp(type, "Metaspace") == 0 && !r->s->pieces) {
        read_metaspace(r, p);
    } else {
        refuse(r, "pre_tokenizer", type);
    }
}

stint_status sti_text_scheme_of_hf(const json_t *root, const char *where,
                                   sti_token_scheme *out)
{
    const json_t *model = json_object_get(root, "model");
    sti_token_scheme s = {.unknown = -1};
    scheme_reader r = {.where = where, .s = &s};
    read_normalizer(&r, json_object_get(root, "normalizer"));
    if (s.pieces) /* unless the next says otherwise */
        s.words = STI_WORDS_WHOLE;
    const bool replaced = s.pieces;
    s.pieces = false;
    read_pre_tokenizer(&r, json_object_get(root, "pre_tokenizer"));
    s.pieces |= replaced;
    if (s.pieces == r.bytes)
        refuse(&r, "pre_tokenizer", s.pieces ? "pieces of bytes" : "no kind of words");
    s.whole_words = !is_off(model, "ignore_merges");
    s.fuse_unknown = !is_off(model, "fuse_unk");
    static const char *const options[] = {"continuing_subword_prefix",
                                          "end_of_word_suffix", "dropout"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (!is_off(model, options[i]))
            refuse(&r, "model", options[i]);
    *out = s;
    return r.status;
}
