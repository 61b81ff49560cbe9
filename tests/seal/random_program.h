/* Random programs of the C that circuits are made of, defined wherever they go: shifts
 * are masked, divisors positive, indices masked, loops end. */
#ifndef STINT_TEST_RANDOM_PROGRAM_H
#define STINT_TEST_RANDOM_PROGRAM_H

#include <stdint.h>

#include "base/rng.h"
#include "base/text.h"

enum { PROGRAM_LOCALS = 6 };

typedef struct program {
    sti_text *text;
    uint64_t seed, count; /* of numbers drawn */
    int depth, loops, indent;
    int loop_at[4]; /* names of counters in use */
    int in_loop;
} program;

static inline uint32_t draw(program *p, uint32_t below)
{
    uint32_t word[4];
    sti_random4(p->seed, STI_STREAM_TEST, p->count++, 0, word);
    return sti_below(word[0], below);
}

#define ADD(...) sti_text_printf(p->text, __VA_ARGS__)

static const char *const program_types[] = {
    "int8_t",  "uint8_t",  "int16_t", "uint16_t", "int32_t", "uint32_t",
    "int64_t", "uint64_t", "int",     "_Bool",    "char",    "unsigned"};

static void add_expression(program *p, int depth);

static void add_leaf(program *p)
{
    switch (draw(p, 9)) {
    case 0:
        ADD("%d", (int)draw(p, 400) - 200);
        break;
    case 1:
        ADD("0x%x%s", draw(p, 1u << 31), draw(p, 2) ? "u" : "L");
        break;
    case 2:
        ADD("in[");
        if (p->loops > 0 && draw(p, 2))
            ADD("i%d & 3]", p->loop_at[draw(p, (uint32_t)p->loops)]);
        else
            ADD("%u]", draw(p, 4));
        break;
    case 3:
        ADD("table[v%u & 7]", draw(p, PROGRAM_LOCALS));
        break;
    case 4:
        ADD(draw(p, 2) ? "s.x" : "s.y[v%u & 1].z", draw(p, PROGRAM_LOCALS));
        break;
    case 5:
        ADD("%c", "abcd"[draw(p, 4)]);
        break;
    case 6:
        if (p->loops > 0) {
            ADD("i%d", p->loop_at[draw(p, (uint32_t)p->loops)]);
            break;
        }
        /* fall through */
    default:
        ADD("v%u", draw(p, PROGRAM_LOCALS));
    }
}

static void add_binary(program *p, int depth)
{
    static const char *const plain[] = {"+", "-",  "*",  "&",  "|",  "^",  "<",
                                        ">", "<=", ">=", "==", "!=", "&&", "||"};
    const uint32_t kind = draw(p, 18);
    ADD("(");
    add_expression(p, depth - 1);
    if (kind < 14) {
        ADD(" %s ", plain[kind]);
        add_expression(p, depth - 1);
    } else if (kind < 16) {
        ADD(kind == 14 ? " << (" : " >> (");
        add_expression(p, depth - 1);
        ADD(" & 7)");
    } else {
        ADD(kind == 16 ? " / ((" : " %% ((");
        add_expression(p, depth - 2);
        ADD(draw(p, 2) ? " & 15) + 1)" : " & 1) * 7 + 1)");
    }
    ADD(")");
}

static void add_expression(program *p, int depth)
{
    const uint32_t kind = draw(p, 10);
    if (depth <= 0 || kind < 2) {
        add_leaf(p);
    } else if (kind < 7) {
        add_binary(p, depth);
    } else if (kind == 7) {
        ADD("(%s)(", program_types[draw(p, 12)]);
        add_expression(p, depth - 1);
        ADD(")");
    } else if (kind == 8) {
        ADD("%s(", draw(p, 3) ? (draw(p, 2) ? "-" : "~") : "!");
        add_expression(p, depth - 1);
        ADD(")");
    } else if (draw(p, 2)) {
        ADD("(");
        add_expression(p, depth - 1);
        ADD(" ? ");
        add_expression(p, depth - 1);
        ADD(" : ");
        add_expression(p, depth - 1);
        ADD(")");
    } else {
        ADD("helper(");
        add_expression(p, depth - 2);
        ADD(", ");
        add_expression(p, depth - 2);
        ADD(")");
    }
}

static void add_target(program *p)
{
    switch (draw(p, 6)) {
    case 0:
        ADD("table[v%u & 7]", draw(p, PROGRAM_LOCALS));
        break;
    case 1:
        ADD("out[v%u & 1]", draw(p, PROGRAM_LOCALS));
        break;
    case 2:
        ADD(draw(p, 2) ? "s.x" : "s.y[%u].z", draw(p, 2));
        break;
    default:
        ADD("v%u", draw(p, PROGRAM_LOCALS));
    }
}

static void add_statement(program *p, int depth);

static void add_block(program *p, int depth)
{
    ADD("{\n");
    for (uint32_t n = 1 + draw(p, 3); n > 0; n--)
        add_statement(p, depth - 1);
    ADD("}\n");
}

static void add_loop(program *p, int depth)
{
    const int name = p->loops;
    const uint32_t kind = draw(p, 3);
    p->loop_at[p->loops] = name;
    if (kind == 0) {
        ADD("for (int i%d = 0; i%d < %u; i%d++) ", name, name, 1 + draw(p, 4), name);
    } else if (kind == 1) {
        ADD("{ int i%d = 0;\n#pragma stint bound 4\nwhile (i%d < 4 && ", name, name);
        add_expression(p, 1);
        ADD(") { i%d++; ", name);
    } else {
        ADD("{ int i%d = v%u & 3;\n#pragma stint bound 4\ndo { ", name,
            draw(p, PROGRAM_LOCALS));
    }
    p->loops++;
    p->in_loop++;
    add_block(p, depth);
    p->in_loop--;
    p->loops--;
    if (kind == 1)
        ADD("} }\n");
    else if (kind == 2)
        ADD("} while (i%d-- > 0); }\n", name);
}

static void add_switch(program *p, int depth)
{
    ADD("switch (");
    add_expression(p, 1);
    ADD(" & 3) {\n");
    for (int i = 0; i < 3; i++) {
        ADD(i == 2 && draw(p, 2) ? "default:\n" : "case %d:\n", i);
        add_statement(p, depth - 1);
        if (draw(p, 3))
            ADD("break;\n");
    }
    ADD("}\n");
}

static void add_statement(program *p, int depth)
{
    static const char *const assign[] = {"=", "=", "+=", "-=", "^=", "|=", "&=", "*="};
    const uint32_t kind = draw(p, depth > 0 ? 12 : 4);
    if (kind < 4) {
        add_target(p);
        ADD(" %s ", assign[draw(p, 8)]);
        add_expression(p, 2);
        ADD(";\n");
    } else if (kind < 7) {
        ADD("if (");
        add_expression(p, 2);
        ADD(") ");
        add_block(p, depth);
        if (draw(p, 2)) {
            ADD("else ");
            add_block(p, depth);
        }
    } else if (kind == 7) {
        ADD("v%u%s;\n", draw(p, PROGRAM_LOCALS), draw(p, 2) ? "++" : "--");
    } else if (kind == 8) {
        add_switch(p, depth);
    } else if (kind == 9 && p->loops < 3 && depth > 1) {
        add_loop(p, depth);
    } else if (kind == 10) {
        ADD("if (");
        add_expression(p, 1);
        /* `continue` would go past the counter of the loops that count at the end. */
        ADD(") %s;\n", p->in_loop && draw(p, 4) ? "break" : "return v0");
    } else {
        ADD("if ((v%u += ", draw(p, PROGRAM_LOCALS));
        add_expression(p, 1);
        ADD(") && v%u-- > 3) ", draw(p, PROGRAM_LOCALS));
        add_block(p, depth);
    }
}

/* Function f<number>, with a helper of its own, and statements before the random ones
 * that no program is without. */
static inline void make_program(program *p, int number)
{
    ADD("static int32_t helper%d(int16_t x, uint8_t y) {\n"
        "  for (int i = 0; i < 3; i++) {\n    if (x > i * %u) continue;\n"
        "    if (y == %u) break;\n    if ((x ^ y) & %u) return x - y * i;\n    x += "
        "y;\n"
        "  }\n  return x;\n}\n",
        number, 1 + draw(p, 60), draw(p, 256), 1 + draw(p, 15));
    ADD("#define helper helper%d\n", number);
    ADD("int64_t f%d(int8_t a, uint16_t b, int32_t c, uint64_t d, const int16_t in[4], "
        "int32_t out[2]) {\n",
        number);
    ADD("struct { int8_t x; struct { uint16_t z; } y[2]; } s = {3, {{1}, {2}}};\n"
        "uint8_t table[8] = {1, 7, 200, 13, 255, 0, 99, 128};\nout[0] = out[1] = 0;\n");
    for (int i = 0; i < PROGRAM_LOCALS; i++) {
        ADD("%s v%d = ", program_types[draw(p, 12)], i);
        ADD(i == 0   ? "a"
            : i == 1 ? "b"
            : i == 2 ? "c"
            : i == 3 ? "d"
                     : "in[%d]",
            i - 3);
        ADD(";\n");
    }
    for (uint32_t n = 3 + draw(p, 5); n > 0; n--)
        add_statement(p, 3);
    ADD("return ");
    add_expression(p, 3);
    ADD(" + v0 + v1 * 3 + v2 + v3 + v4 + v5 + s.x + s.y[0].z + table[3] + "
        "table[7];\n}\n"
        "#undef helper\n");
}

#undef ADD

#endif
