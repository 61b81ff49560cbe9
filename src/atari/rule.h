/* Rules of a game, read from the console's RAM: its score, lives and end.
 *
 *   value      term { (+|-) term }
 *   term       ram:ADDRESS[,u8|,s8|,bcdN][*FACTOR]  or  NUMBER
 *   condition  test { (| or &) test }, where & binds tighter
 *   test       term (== != < <= > >=) NUMBER
 *
 * ADDRESS lies in 0x80 to 0xFF. bcdN is N bytes of two digits of base ten each, N 1 to
 * 4, the most significant at ADDRESS; a digit above 9 counts as what it is. A reward is
 * what a value grew by since the frame before.
 *
 *   actions    action { , action }      ALE's names, NOOP to DOWNLEFTFIRE */
#ifndef STI_ATARI_RULE_H
#define STI_ATARI_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "stint/status.h"

enum { STI_RULE_TERMS = 16 };

typedef enum sti_term_kind {
    STI_TERM_NUMBER,
    STI_TERM_U8,
    STI_TERM_S8,
    STI_TERM_BCD
} sti_term_kind;

typedef enum sti_compare {
    STI_COMPARE_EQUAL,
    STI_COMPARE_UNEQUAL,
    STI_COMPARE_LESS,
    STI_COMPARE_AT_MOST,
    STI_COMPARE_MORE,
    STI_COMPARE_AT_LEAST
} sti_compare;

typedef struct sti_rule_term {
    sti_term_kind kind;
    uint8_t at, bytes; /* in RAM, from 0 */
    int32_t factor;    /* of a number: the number */
} sti_rule_term;

typedef struct sti_value_rule {
    sti_rule_term term[STI_RULE_TERMS];
    int count; /* 0: there is no rule */
} sti_value_rule;

typedef struct sti_test_rule {
    struct {
        sti_rule_term term;
        sti_compare compare;
        int32_t number;
        bool or_before; /* begins another group, of which one must hold */
    } test[STI_RULE_TERMS];
    int count;
} sti_test_rule;

/* Parse; name is for messages ("reward"). STINT_E_INPUT: the place where the rule stops
 * making sense, and an example. NULL or empty text gives a rule of no terms. */
stint_status sti_value_rule_parse(const char *text, const char *name,
                                  sti_value_rule *rule_out);
stint_status sti_test_rule_parse(const char *text, const char *name,
                                 sti_test_rule *rule_out);
/* A bit each; 0: there is no rule. */
stint_status sti_action_rule_parse(const char *text, const char *name,
                                   uint32_t *actions_out);

int64_t sti_value_rule_read(const sti_value_rule *rule, const uint8_t ram[128]);
bool sti_test_rule_holds(const sti_test_rule *rule, const uint8_t ram[128]);

#endif
