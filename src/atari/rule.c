#include "atari/rule.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "atari/vcs.h"
#include "base/fail.h"

typedef struct rule_reader {
    const char *text, *at, *name, *example;
} rule_reader;

static stint_status stopped(const rule_reader *r, const char *wanted)
{
    return sti_fail(STINT_E_INPUT, "%s = %.200s: %s is wanted at '%.20s'; as in %s",
                    r->name, r->text, wanted, *r->at ? r->at : "the end", r->example);
}

static void skip_blanks(rule_reader *r)
{
    while (*r->at == ' ' || *r->at == '\t')
        r->at++;
}

static bool take(rule_reader *r, const char *word)
{
    const size_t length = strlen(word);
    skip_blanks(r);
    if (strncmp(r->at, word, length) != 0)
        return false;
    r->at += length;
    return true;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

/* Decimal, or hexadecimal after 0x; below 10^9. */
static stint_status take_number(rule_reader *r, int32_t *out)
{
    const bool negative = take(r, "-");
    const bool hex = take(r, "0x") || take(r, "0X");
    const int base = hex ? 16 : 10;
    int64_t number = 0;
    int digits = 0;
    for (; digit_of(*r->at) < base; r->at++, digits++) {
        number = number * base + digit_of(*r->at);
        if (number >= 1000000000)
            return stopped(r, "a number below 1000000000");
    }
    if (digits == 0)
        return stopped(r, "a number");
    *out = (int32_t)(negative ? -number : number);
    return STINT_OK;
}

static stint_status take_kind(rule_reader *r, sti_rule_term *term)
{
    term->kind = STI_TERM_U8;
    term->bytes = 1;
    if (!take(r, ",") || take(r, "u8"))
        return STINT_OK;
    if (take(r, "s8")) {
        term->kind = STI_TERM_S8;
        return STINT_OK;
    }
    if (!take(r, "bcd") || *r->at < '1' || *r->at > '4')
        return stopped(r, "u8, s8 or bcd1 to bcd4");
    term->kind = STI_TERM_BCD;
    term->bytes = (uint8_t)(*r->at++ - '0');
    return STINT_OK;
}

static stint_status take_term(rule_reader *r, sti_rule_term *term)
{
    int32_t address = 0;
    stint_status st = STINT_OK;
    *term = (sti_rule_term){.factor = 1};
    if (!take(r, "ram:")) {
        skip_blanks(r);
        if (digit_of(*r->at) > 9)
            return stopped(r, "ram:ADDRESS or a number");
        return take_number(r, &term->factor);
    }
    STI_TRY(take_number(r, &address));
    STI_TRY(take_kind(r, term));
    if (address < 0x80 || address + term->bytes > 0x100)
        return sti_fail(
            STINT_E_INPUT,
            "%s = %.200s: %d byte%s at 0x%X %s outside of the console's RAM, "
            "0x80 to 0xFF",
            r->name, r->text, term->bytes, term->bytes == 1 ? "" : "s",
            (unsigned)address, term->bytes == 1 ? "is" : "are");
    term->at = (uint8_t)(address - 0x80);
    if (take(r, "*"))
        STI_TRY(take_number(r, &term->factor));
out:
    return st;
}

static stint_status value_rule_read_all(rule_reader *r, sti_value_rule *rule)
{
    bool negative = take(r, "-");
    for (;;) {
        stint_status st = STINT_OK;
        if (rule->count == STI_RULE_TERMS)
            return stopped(r, "the end (16 terms at most)");
        st = take_term(r, &rule->term[rule->count]);
        if (st != STINT_OK)
            return st;
        if (negative)
            rule->term[rule->count].factor = -rule->term[rule->count].factor;
        rule->count++;
        skip_blanks(r);
        if (!*r->at)
            return STINT_OK;
        negative = take(r, "-");
        if (!negative && !take(r, "+"))
            return stopped(r, "+, - or the end");
    }
}

stint_status sti_value_rule_parse(const char *text, const char *name,
                                  sti_value_rule *rule_out)
{
    rule_reader r = {text, text, name, "ram:0xA1,bcd3 or ram:0x8D-ram:0x8E"};
    sti_value_rule rule = {0};
    stint_status st = STINT_OK;
    if (text && *text)
        st = value_rule_read_all(&r, &rule);
    if (st == STINT_OK)
        *rule_out = rule;
    return st;
}

static bool take_compare(rule_reader *r, sti_compare *out)
{
    static const struct {
        const char *sign;
        sti_compare compare;
    } signs[] = {{"==", STI_COMPARE_EQUAL},   {"!=", STI_COMPARE_UNEQUAL},
                 {"<=", STI_COMPARE_AT_MOST}, {">=", STI_COMPARE_AT_LEAST},
                 {"<", STI_COMPARE_LESS},     {">", STI_COMPARE_MORE}};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (take(r, signs[i].sign)) {
            *out = signs[i].compare;
            return true;
        }
    return false;
}

static stint_status test_rule_read_all(rule_reader *r, sti_test_rule *rule)
{
    bool or_before = false;
    for (;;) {
        stint_status st = STINT_OK;
        if (rule->count == STI_RULE_TERMS)
            return stopped(r, "the end (16 tests at most)");
        st = take_term(r, &rule->test[rule->count].term);
        if (st == STINT_OK && !take_compare(r, &rule->test[rule->count].compare))
            st = stopped(r, "==, !=, <, <=, > or >=");
        if (st == STINT_OK)
            st = take_number(r, &rule->test[rule->count].number);
        if (st != STINT_OK)
            return st;
        rule->test[rule->count++].or_before = or_before;
        skip_blanks(r);
        if (!*r->at)
            return STINT_OK;
        or_before = take(r, "|");
        if (!or_before && !take(r, "&"))
            return stopped(r, "|, & or the end");
    }
}

stint_status sti_test_rule_parse(const char *text, const char *name,
                                 sti_test_rule *rule_out)
{
    rule_reader r = {text, text, name, "ram:0xA8==2 | ram:0xB0>=21"};
    sti_test_rule rule = {0};
    stint_status st = STINT_OK;
    if (text && *text)
        st = test_rule_read_all(&r, &rule);
    if (st == STINT_OK)
        *rule_out = rule;
    return st;
}

static int action_named(const char *name, size_t length)
{
    for (int action = 0; action < STI_ACTIONS; action++) {
        const char *known = sti_action_name(action);
        if (strlen(known) == length && strncasecmp(known, name, length) == 0)
            return action;
    }
    return -1;
}

stint_status sti_action_rule_parse(const char *text, const char *name,
                                   uint32_t *actions_out)
{
    rule_reader r = {text, text, name, "NOOP,UP,DOWN"};
    uint32_t actions = 0;
    *actions_out = 0;
    if (!text || !*text)
        return STINT_OK;
    do {
        skip_blanks(&r);
        const char *end = r.at;
        while (isalpha((unsigned char)*end))
            end++;
        const int action = action_named(r.at, (size_t)(end - r.at));
        if (action < 0)
            return stopped(&r, "the name of an action (stint play info lists them)");
        actions |= 1u << action;
        r.at = end;
    } while (take(&r, ","));
    skip_blanks(&r);
    if (*r.at)
        return stopped(&r, "a comma or the end");
    *actions_out = actions;
    return STINT_OK;
}

static int64_t read_term(const sti_rule_term *term, const uint8_t ram[128])
{
    int64_t value = 0;
    switch (term->kind) {
    case STI_TERM_NUMBER:
        return term->factor;
    case STI_TERM_U8:
        value = ram[term->at];
        break;
    case STI_TERM_S8:
        value = (int8_t)ram[term->at];
        break;
    case STI_TERM_BCD:
        for (int i = 0; i < term->bytes; i++)
            value =
                value * 100 + (ram[term->at + i] >> 4) * 10 + (ram[term->at + i] & 15);
        break;
    }
    return value * term->factor;
}

int64_t sti_value_rule_read(const sti_value_rule *rule, const uint8_t ram[128])
{
    int64_t sum = 0;
    for (int i = 0; i < rule->count; i++)
        sum += read_term(&rule->term[i], ram);
    return sum;
}

static bool holds(sti_compare compare, int64_t left, int64_t right)
{
    switch (compare) {
    case STI_COMPARE_EQUAL:
        return left == right;
    case STI_COMPARE_UNEQUAL:
        return left != right;
    case STI_COMPARE_LESS:
        return left < right;
    case STI_COMPARE_AT_MOST:
        return left <= right;
    case STI_COMPARE_MORE:
        return left > right;
    case STI_COMPARE_AT_LEAST:
        return left >= right;
    }
    return false;
}

bool sti_test_rule_holds(const sti_test_rule *rule, const uint8_t ram[128])
{
    bool group = rule->count > 0, any = false;
    for (int i = 0; i < rule->count; i++) {
        if (rule->test[i].or_before) {
            any |= group;
            group = true;
        }
        group &= holds(rule->test[i].compare, read_term(&rule->test[i].term, ram),
                       rule->test[i].number);
    }
    return any || group;
}
