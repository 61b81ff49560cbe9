/* The parser's state and the calls between its files. Private to cc_parse*.c. */
#ifndef STI_SEAL_CC_PARSE_PRIV_H
#define STI_SEAL_CC_PARSE_PRIV_H

#include "seal/cc_priv.h"

typedef enum cc_name_kind {
    CC_IS_VARIABLE,
    CC_IS_TYPE,
    CC_IS_NUMBER, /* of an enum */
    CC_IS_TAG     /* struct NAME */
} cc_name_kind;

typedef struct cc_known {
    const char *name;
    int length;
    cc_name_kind kind;
    cc_variable *variable;
    cc_type *type;
    int64_t number;
} cc_known;

typedef struct cc_parser cc_parser;
struct cc_parser {
    cc_program *program;
    /* A constant expression: types have some in them, and expressions have types. */
    stint_status (*number)(cc_parser *p, int64_t *out);
    const cc_token *at;
    cc_known *known; /* names in scope, innermost last */
    int64_t knowns, known_capacity;
    int64_t scope; /* first name of the innermost scope */
    cc_function *function;
    int depth; /* of nested expressions, statements and types */
};

enum { CC_MAX_DEPTH = 200 };

/* cc_parse_names.c */
void *sti_cc_new(cc_parser *p, size_t bytes);
stint_status sti_cc_append(cc_parser *p, void *list, int64_t *count, int64_t *capacity,
                           void *item);
stint_status sti_cc_wrong(const cc_parser *p, const char *wanted);
bool sti_cc_take(cc_parser *p, const char *text);
stint_status sti_cc_expect(cc_parser *p, const char *text);
stint_status sti_cc_expect_name(cc_parser *p, cc_token *out);
stint_status sti_cc_deeper(cc_parser *p);
cc_known *sti_cc_find(cc_parser *p, const cc_token *name, bool tags);
stint_status sti_cc_know(cc_parser *p, const cc_token *name, cc_known known);
cc_node *sti_cc_node(cc_parser *p, cc_node_kind kind);

/* cc_parse_type.c */
typedef struct cc_specifiers {
    const cc_type *type;
    bool is_const, is_static, is_typedef;
} cc_specifiers;
bool sti_cc_begins_type(cc_parser *p);
stint_status sti_cc_specifiers(cc_parser *p, cc_specifiers *out);
/* Array suffixes; first_open: the first may be empty, count -1. */
stint_status sti_cc_suffixes(cc_parser *p, const cc_type *element, bool first_open,
                             const cc_type **out);
/* A type in brackets, of a cast or sizeof. */
stint_status sti_cc_type_name(cc_parser *p, const cc_type **out);

/* cc_parse_expr.c */
stint_status sti_cc_expression(cc_parser *p, cc_node **out); /* with commas */
stint_status sti_cc_assignment(cc_parser *p, cc_node **out); /* without */
stint_status sti_cc_number(cc_parser *p, int64_t *out);      /* a constant expression */

/* cc_parse.c */
stint_status sti_cc_initialiser(cc_parser *p, cc_node **out);

#endif
