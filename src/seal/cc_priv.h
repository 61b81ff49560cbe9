/* The compiler's own types: tokens, types, the tree. Private to cc_*.c. */
#ifndef STI_SEAL_CC_PRIV_H
#define STI_SEAL_CC_PRIV_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"
#include "base/memory.h"
#include "seal/cc.h"

/* ---- tokens ---- */

typedef enum cc_token_kind {
    CC_END,
    CC_NAME,
    CC_NUMBER,
    CC_MARK,  /* an operator or bracket */
    CC_BOUND, /* #pragma stint bound N */
    CC_TEXT   /* a string, or a number with a point: refused by the parser */
} cc_token_kind;

typedef struct cc_token {
    cc_token_kind kind;
    const char *text;
    int length;
    int32_t line;
    uint64_t number;
    bool is_unsigned, is_long; /* of a number */
} cc_token;

typedef struct cc_tokens {
    cc_token *token; /* ends with CC_END */
    int64_t count;
} cc_tokens;

/* Tokens after macros, in memory that the caller frees. */
stint_status sti_cc_tokens(const char *path, const char *text, size_t n_bytes,
                           cc_tokens *out);
bool sti_cc_is(const cc_token *token, const char *text);

/* ---- types ---- */

typedef enum cc_type_kind {
    CC_VOID,
    CC_INTEGER,
    CC_BOOL,
    CC_ARRAY,
    CC_STRUCT
} cc_type_kind;

typedef struct cc_type cc_type;
typedef struct cc_field {
    const char *name;
    int length;
    const cc_type *type;
    int64_t at; /* bits from the begin of the struct */
} cc_field;

struct cc_type {
    cc_type_kind kind;
    bool is_signed;
    int64_t bits; /* that a value takes in a store: of a struct those of its fields */
    int64_t bytes, align;   /* as gcc has them on x86-64 */
    const cc_type *element; /* of an array */
    int64_t count;          /* -1: not given (a parameter) */
    cc_field *field;        /* [count] of a struct */
    const char *tag;
    int tag_length;
};

/* bool, char, short, int, long and their unsigned forms. */
const cc_type *sti_cc_integer(int bits, bool is_signed);
extern const cc_type sti_cc_bool, sti_cc_void;

static inline bool sti_cc_is_scalar(const cc_type *type)
{
    return type->kind == CC_INTEGER || type->kind == CC_BOOL;
}

/* ---- the tree ---- */

typedef enum cc_node_kind {
    /* expressions */
    CC_CONSTANT,
    CC_VARIABLE,
    CC_INDEX,  /* a[b] */
    CC_MEMBER, /* a.name, a->name */
    CC_CALL,   /* list: arguments */
    CC_UNARY,  /* op a */
    CC_BINARY, /* a op b */
    CC_LOGIC,  /* a && b, a || b */
    CC_CHOICE, /* a ? b : c */
    CC_ASSIGN, /* a op= b; op 0: a = b */
    CC_STEP,   /* ++a, --a, a++, a-- */
    CC_CAST,
    CC_COMMA,
    CC_DEREFERENCE, /* *a, which is a[0] */
    CC_ADDRESS,     /* &a, as an argument only */
    CC_BRACES,      /* an initialiser: list */
    /* statements */
    CC_EXPRESSION, /* a */
    CC_DECLARE,    /* variable, a: initialiser or NULL */
    CC_BLOCK,      /* list */
    CC_IF,         /* a, b, c */
    CC_WHILE,      /* a, b */
    CC_DO,         /* b, a */
    CC_FOR,        /* init a, condition b, step c, body d */
    CC_SWITCH,     /* a, b */
    CC_CASE,       /* number; op 'd' for default */
    CC_BREAK,
    CC_CONTINUE,
    CC_RETURN, /* a or NULL */
    CC_NOTHING
} cc_node_kind;

/* Operators by their characters: '<' + 256 * '<' for "<<". */
#define CC_OP2(a, b) ((a) + 256 * (b))

typedef struct cc_variable {
    const char *name;
    int length;
    const cc_type *type;
    bool is_global, is_const;
    bool by_reference; /* an array parameter */
    int64_t slot;      /* of its function, or of the globals */
    int64_t at;        /* bits from the begin of the function's or the globals' store */
    struct cc_node *initial; /* of a global */
    int32_t line;
} cc_variable;

typedef struct cc_node cc_node;
struct cc_node {
    cc_node_kind kind;
    int32_t line;
    int depth; /* of the expression below it */
    int op;
    bool after;    /* of a step: a++ */
    int64_t bound; /* of a loop: iterations of its pragma; 0: none */
    uint64_t number;
    const cc_type *type; /* of a constant, a cast */
    cc_variable *variable;
    const char *name; /* member, called function */
    int name_length;
    cc_node *a, *b, *c, *d;
    cc_node **list;
    int64_t count;
};

typedef struct cc_function {
    const char *name;
    int length;
    const cc_type *result;
    cc_variable **parameter;
    int64_t parameters;
    int64_t slots, bits; /* of all its variables */
    cc_node *body;       /* NULL: only declared */
    bool running;
    int32_t line;
} cc_function;

typedef struct cc_program {
    const char *path;
    sti_arena *arena;
    cc_function **function;
    int64_t functions, function_capacity;
    cc_variable **global;
    int64_t globals, global_capacity;
    int64_t global_bits;
} cc_program;

/* Parse tokens into program->arena, which the caller made. */
stint_status sti_cc_parse(const cc_tokens *tokens, cc_program *program);
void sti_cc_program_fini(cc_program *program);
cc_function *sti_cc_find_function(const cc_program *program, const char *name,
                                  int length);

/* A complaint with path and line. */
#define CC_FAIL(program, at, ...) sti_cc_fail((program)->path, (at), __VA_ARGS__)
stint_status sti_cc_fail(const char *path, int32_t line, const char *format, ...)
    STI_PRINTF(3, 4);

/* The most bits that all variables of a function, or all globals, may take. */
#define CC_MAX_BITS (INT64_C(1) << 24)

#endif
