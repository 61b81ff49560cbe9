/* The titles that have rules of their own: where their programs keep score, lives and
 * the end, which actions they take, and how they are started, in one function and one
 * row each. That is what the Arcade Learning Environment reads of RAM, too, so rewards
 * can be compared; a title's image is the user's to bring. */
#include "atari/game.h"

#define AT(address) ram[(address)&0x7f]

/* Two digits of base ten a byte; the lowest byte first. */
static int64_t digits1(const uint8_t *ram, int low)
{
    return (AT(low) >> 4) * 10 + (AT(low) & 15);
}

static int64_t digits2(const uint8_t *ram, int low, int high)
{
    return digits1(ram, low) + 100 * digits1(ram, high);
}

static int64_t digits3(const uint8_t *ram, int low, int middle, int high)
{
    return digits2(ram, low, middle) + 10000 * digits1(ram, high);
}

/* A digit in four bits, where 10 is a blank. */
static int64_t digit(int bits)
{
    return bits == 10 ? 0 : bits;
}

/* One such digit a byte, the lowest first. */
static int64_t plain_digits(const uint8_t *ram, int low, int count)
{
    int64_t number = 0;
    for (int i = count - 1; i >= 0; i--)
        number = number * 10 + digit(AT(low + i) & 15);
    return number;
}

static void gain(sti_score *s, int64_t score)
{
    s->reward = score - s->score;
    s->score = score;
}

static void adventure(const uint8_t *ram, sti_score *s)
{
    const bool home = AT(0xb9) == 0x12; /* the chalice in the yellow castle */
    if (home)
        s->reward = 1;
    s->over = home || AT(0xe0) == 2; /* or the player eaten */
}

static void air_raid(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0xaa, 0xa9, 0xa8));
    s->over = AT(0xa7) == 0xff;
}

static void alien(const uint8_t *ram, sti_score *s)
{
    int64_t score = 0;
    for (int at = 0x83; at <= 0x8b; at += 2) /* eights of digits, 0x80 for a blank */
        score = score * 10 + (AT(at) == 0x80 ? 0 : AT(at) >> 3);
    gain(s, score * 10);
    s->lives = AT(0xc0) & 15;
    s->over = s->lives == 0;
}

static void amidar(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0xd9, 0xda, 0xdb));
    s->over = AT(0xd6) == 0x80;
    s->lives = AT(0xd6) & 15;
}

static void assault(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0x82, 0x81, 0x80));
    s->lives = AT(0xe5);
    s->over = s->lives == 0;
}

static void asterix(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0xe0, 0xdf, 0xde));
    s->lives = AT(0xd3) & 15;
    s->over = AT(0xc7) == 1 && s->lives == 1;
}

static void asteroids(const uint8_t *ram, sti_score *s)
{
    gain(s, 10 * digits2(ram, 0xbe, 0xbd));
    if (s->reward < 0)
        s->reward += 100000;
    s->lives = AT(0xbc) >> 4;
    s->over = s->lives == 0;
}

static void atlantis(const uint8_t *ram, sti_score *s)
{
    const int64_t before = s->score;
    gain(s, 100 * digits3(ram, 0xa2, 0xa3, 0xa1));
    s->lives = AT(0xf1);
    s->over = s->lives == 0xff;
    if (s->over) { /* the score is gone by then */
        s->reward = 0;
        s->score = before;
    }
}

static void bank_heist(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0xda, 0xd9, 0xd8));
    s->lives = AT(0xd5);
    s->over = AT(0xce) == 1 && s->lives == 0;
}

static void battle_zone(const uint8_t *ram, sti_score *s)
{
    const int64_t low = digit(AT(0x9d) >> 4), middle = digit(AT(0x9e) & 15);
    gain(s, 1000 * (low + 10 * middle + 100 * digit(AT(0x9e) >> 4)));
    s->lives = AT(0xba) & 15;
    s->over = s->lives == 0;
}

static void beam_rider(const uint8_t *ram, sti_score *s)
{
    const int lives = AT(0x85) + 1;
    gain(s, digits3(ram, 0x89, 0x8a, 0x8b));
    if (lives != s->lives - 1 || AT(0x8c) == 1)
        s->lives = lives;
    s->over = AT(0x85) == 0xff;
}

static void berzerk(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0xdf, 0xde, 0xdd));
    s->over = AT(0xda) == 0xff;
    s->lives = AT(0xda) + 1;
}

static void bowling(const uint8_t *ram, sti_score *s)
{
    gain(s, digits2(ram, 0xa1, 0xa6));
    s->over = AT(0xa4) > 0x10;
}

static void boxing(const uint8_t *ram, sti_score *s)
{
    const int64_t mine = AT(0x92) == 0xc0 ? 100 : digits1(ram, 0x92);
    const int64_t theirs = AT(0x93) == 0xc0 ? 100 : digits1(ram, 0x93);
    gain(s, mine - theirs);
    s->over = mine == 100 || theirs == 100 || (AT(0x90) >> 4 == 0 && AT(0x91) == 0);
}

static void breakout(const uint8_t *ram, sti_score *s)
{
    gain(s, digits1(ram, 0xcd) + 100 * (AT(0xcc) & 15));
    s->lives = AT(0xb9);
    s->started |= s->lives == 5;
    s->over = s->started && s->lives == 0;
}

static void carnival(const uint8_t *ram, sti_score *s)
{
    gain(s, 10 * digits2(ram, 0xae, 0xad));
    s->over = AT(0x83) < 1;
}

static void centipede(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0xf6, 0xf5, 0xf4));
    s->reward = s->reward < 0 ? 0 : s->reward;
    s->lives = (AT(0xed) >> 4 & 7) + 1;
    s->over = AT(0xa6) & 0x40;
}

static void chopper_command(const uint8_t *ram, sti_score *s)
{
    gain(s, 100 * digits2(ram, 0xee, 0xec));
    s->lives = AT(0xe4) & 15;
    s->started |= AT(0xc2) & 1; /* once it has looked to the right */
    s->over = s->started && s->lives == 0;
}

static void crazy_climber(const uint8_t *ram, sti_score *s)
{
    gain(s, 100 * (AT(0x82) + 10 * AT(0x83) + 100 * AT(0x84) + 1000 * AT(0x85)));
    s->reward = s->reward < 0 ? 0 : s->reward;
    s->lives = AT(0xaa);
    s->over = s->lives == 0;
}

static void defender(const uint8_t *ram, sti_score *s)
{
    gain(s, plain_digits(ram, 0x9c, 6));
    s->lives = AT(0xc2);
    s->over = s->lives == 0;
}

static void demon_attack(const uint8_t *ram, sti_score *s)
{
    const bool title = AT(0x81) == 0xab && AT(0x83) == 0xcd && AT(0x85) == 0xea;
    gain(s, title ? 0 : digits3(ram, 0x85, 0x83, 0x81));
    s->over = AT(0xf2) == 0 && AT(0xf1) == 0xbd && !s->other;
    s->lives = AT(0xf2) + 1;
    s->other = 0;
}

static void double_dunk(const uint8_t *ram, sti_score *s)
{
    const int64_t mine = digits1(ram, 0xf6), theirs = digits1(ram, 0xf7);
    gain(s, mine - theirs);
    s->over = (mine >= 24 || theirs >= 24) && AT(0xfe) == 0xe7;
}

static void elevator_action(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0x89, 0x88, 0x87));
    s->lives = AT(0x83);
    s->over = s->lives == 0 && AT(0x81) != 0;
}

static void enduro(const uint8_t *ram, sti_score *s)
{
    const int level = AT(0xad); /* 200 cars the first day, then 300 */
    int64_t score = 0;
    if (level != 0)
        score = (level == 1 ? 200 : 300) - digits2(ram, 0xab, 0xac);
    if (level >= 2)
        score += 200 + (level - 2) * 300;
    gain(s, score);
    s->over = AT(0xaf) == 0xff;
}

static void fishing_derby(const uint8_t *ram, sti_score *s)
{
    gain(s, digits1(ram, 0xbd) - digits1(ram, 0xbe));
    s->over = AT(0xbd) == 0x99 || AT(0xbe) == 0x99;
}

static void freeway(const uint8_t *ram, sti_score *s)
{
    gain(s, digits1(ram, 0xe7));
    s->reward = s->reward < 0 ? 0 : s->reward > 1 ? 1 : s->reward;
    s->over = AT(0x96) == 1;
}

static void frostbite(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0xca, 0xc9, 0xc8));
    s->over = (AT(0xcc) & 15) == 0 && AT(0xf1) & 0x80;
    s->lives = (AT(0xcc) & 15) + 1;
}

static void gopher(const uint8_t *ram, sti_score *s)
{
    static const uint8_t carrots[8] = {0, 1, 1, 2, 1, 2, 2, 3};
    gain(s, digits3(ram, 0xb2, 0xb1, 0xb0));
    s->lives = carrots[AT(0xb4) & 7];
    s->over = s->lives == 0;
}

static void gravitar(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0x89, 0x88, 0x87));
    s->over = AT(0x81) == 1;
    s->lives = AT(0x81) == 0 ? 6 : AT(0x84) + 1;
}

static void hero(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0xb9, 0xb8, 0xb7));
    s->lives = AT(0xb3);
    s->over = s->lives == 0;
}

static void ice_hockey(const uint8_t *ram, sti_score *s)
{
    gain(s, digits1(ram, 0x8a) - digits1(ram, 0x8b));
    s->reward = s->reward > 1 ? 1 : s->reward;
    s->over = AT(0x87) == 0 && AT(0x86) == 0;
}

static void jamesbond(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0xdc, 0xdd, 0xde));
    s->lives = (AT(0x86) & 15) + 1;
    s->over = s->lives == 1 && AT(0x8c) == 0x68;
}

static void journey_escape(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0x92, 0x91, 0x90));
    s->reward = s->reward == 50000 ? 0 : s->reward; /* what one begins with */
    s->over = AT(0x95) == 0 && AT(0x96) == 0;
}

static void kaboom(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0xa5, 0xa4, 0xa3));
    s->over = AT(0xa1) == 0 || s->score == 999999;
}

static void kangaroo(const uint8_t *ram, sti_score *s)
{
    gain(s, 100 * digits2(ram, 0xa8, 0xa7));
    s->over = AT(0xad) == 0xff;
    s->lives = (AT(0xad) & 7) + 1;
}

static void krull(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0x9e, 0x9d, 0x9c));
    s->over = AT(0x9f) == 0 && AT(0xa2) == 3 && AT(0x80) == 0x80;
    s->lives = (AT(0x9f) & 7) + 1;
}

static void kung_fu_master(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0x9a, 0x99, 0x98));
    s->over = AT(0x9d) == 0xff;
    s->lives = (AT(0x9d) & 7) + 1;
}

static void montezuma_revenge(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0x95, 0x94, 0x93));
    s->over = AT(0xba) == 0 && AT(0xfe) == 0x60;
    s->lives = (AT(0xba) & 7) + 1;
}

static void ms_pacman(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0xf8, 0xf9, 0xfa));
    s->over = (AT(0xfb) & 15) == 0 && AT(0xa7) == 0x53;
    s->lives = (AT(0xfb) & 7) + 1;
}

static void name_this_game(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0xc6, 0xc5, 0xc4));
    s->lives = AT(0xc7) & 7;
    s->over = s->lives == 0;
}

static void phoenix(const uint8_t *ram, sti_score *s)
{
    gain(s, 10 * (10 * digits2(ram, 0xc8, 0xc9) + (AT(0xc7) >> 4)));
    s->over = AT(0xcc) == 0x80;
    s->lives = AT(0xcb) & 7;
}

static void pitfall(const uint8_t *ram, sti_score *s)
{
    const int lives = AT(0x80) >> 4;
    gain(s, digits3(ram, 0xd7, 0xd6, 0xd5));
    s->over = lives == 0 && AT(0x9e) != 0;
    s->lives = lives == 10 ? 3 : lives == 8 ? 2 : 1;
}

static void pong(const uint8_t *ram, sti_score *s)
{
    gain(s, AT(0x8e) - AT(0x8d));
    s->over = AT(0x8d) == 21 || AT(0x8e) == 21;
}

static void pooyan(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0x8a, 0x89, 0x88));
    s->over = AT(0x96) == 0 && AT(0x98) == 5;
    s->lives = (AT(0x96) & 7) + 1;
}

static void private_eye(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0xca, 0xc9, 0xc8));
    s->over = AT(0xc2) > 1;
}

static void qbert(const uint8_t *ram, sti_score *s)
{
    const int lives = (int8_t)AT(0x88);
    s->over = AT(0x88) == 0xfe || (lives == 2 && s->other == -1);
    if (s->other - 1 == lives)
        s->lives--;
    s->other = lives;
    if (s->over)
        s->reward = 0;
    else
        gain(s, digits3(ram, 0xdb, 0xda, 0xd9));
}

static void riverraid(const uint8_t *ram, sti_score *s)
{
    const int lives = AT(0xc0); /* eights */
    int64_t score = 0;
    for (int at = 0xcd; at <= 0xd7; at += 2) /* eights of digits */
        score = score * 10 + (AT(at) % 8 == 0 && AT(at) <= 72 ? AT(at) / 8 : 0);
    gain(s, score);
    s->over = lives == 0x58 && s->other == 0x59;
    s->other = lives;
    s->lives = lives == 0x58 ? 4 : lives == 0x59 ? 1 : lives / 8 + 1;
}

static void road_runner(const uint8_t *ram, sti_score *s)
{
    gain(s, 100 * plain_digits(ram, 0xc9, 4));
    s->lives = (AT(0xc4) & 7) + 1;
    s->over = s->lives == 1 && (AT(0xb9) != 0 || AT(0xbd) != 0);
}

static void robotank(const uint8_t *ram, sti_score *s)
{
    gain(s, 12 * AT(0xb6) + AT(0xb5));
    s->over = AT(0xa8) == 0 && AT(0xb4) == 0xff;
    s->lives = (AT(0xa8) & 15) + 1;
}

static void seaquest(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0xba, 0xb9, 0xb8));
    s->over = AT(0xa3) != 0;
    s->lives = AT(0xbb) + 1;
}

static void skiing(const uint8_t *ram, sti_score *s)
{
    gain(s, -(6000 * AT(0xe8) + digits2(ram, 0xea, 0xe9))); /* hundredths of seconds */
    s->over = AT(0x91) == 0xff;
}

static void solaris(const uint8_t *ram, sti_score *s)
{
    gain(s, 10 * digits3(ram, 0xdc, 0xdd, 0xde));
    s->over = AT(0xd9) == 0;
    s->lives = AT(0xd9) & 15;
}

static void space_invaders(const uint8_t *ram, sti_score *s)
{
    const int64_t before = s->score;
    gain(s, digits2(ram, 0xe8, 0xe6));
    if (s->reward < 0)
        s->reward = 10000 - before + s->score;
    s->lives = AT(0xc9);
    s->over = AT(0x98) & 0x80 || s->lives == 0;
}

static void star_gunner(const uint8_t *ram, sti_score *s)
{
    gain(s, 100 * plain_digits(ram, 0x83, 4));
    s->over = AT(0x87) == 0;
    s->started |= AT(0x87) == 5;
    s->lives = s->started ? AT(0x87) & 15 : 5;
}

static void tennis(const uint8_t *ram, sti_score *s)
{
    const int mine = AT(0xc7), theirs = AT(0xc8), ahead = mine - theirs;
    const int games = AT(0xc5) - AT(0xc6);
    s->reward = s->other != ahead ? ahead - s->other : games - s->score;
    s->other = ahead;
    s->score = games;
    s->over = (mine >= 6 && ahead >= 2) || (theirs >= 6 && ahead <= -2) || mine == 7 ||
              theirs == 7;
}

static void time_pilot(const uint8_t *ram, sti_score *s)
{
    gain(s, 100 * digits2(ram, 0x8d, 0x8f));
    s->over = AT(0xa0) != 0;
    if ((AT(0x80) & 15) == 2)
        s->lives = (AT(0x8b) & 7) + 1;
}

static void tutankham(const uint8_t *ram, sti_score *s)
{
    gain(s, digits2(ram, 0x9c, 0x9a));
    s->over = AT(0x9e) == 0 && AT(0x81) != 0x84;
    s->lives = AT(0x9e) & 3;
}

static void up_n_down(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0x82, 0x81, 0x80));
    s->lives = (AT(0x86) & 15) + 1;
    s->over = AT(0x94) > 0x40 && s->lives == 1;
}

static void venture(const uint8_t *ram, sti_score *s)
{
    gain(s, 100 * digits2(ram, 0xc8, 0xc7));
    s->over = AT(0xc6) == 0 && AT(0xcd) == 0xff && AT(0xbf) & 0x80;
    s->lives = (AT(0xc6) & 7) + 1;
}

static void video_pinball(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0xb0, 0xb2, 0xb4));
    s->over = AT(0xaf) & 1;
    s->lives = 4 + (AT(0xa8) & 1) - (AT(0x99) & 7);
}

static void wizard_of_wor(const uint8_t *ram, sti_score *s)
{
    int64_t score = digits2(ram, 0x86, 0x88);
    score -= score >= 8000 ? 8000 : 0;
    gain(s, 100 * score);
    s->over = (AT(0x8d) & 15) == 0 && AT(0xf4) == 0xf8;
    if (!(AT(0xd7) & 1)) /* waiting */
        s->lives = AT(0x8d) & 15;
}

static void yars_revenge(const uint8_t *ram, sti_score *s)
{
    gain(s, digits3(ram, 0xe2, 0xe1, 0xe0));
    s->lives = AT(0x9e) >> 4;
    s->over = s->lives == 0;
}

static void zaxxon(const uint8_t *ram, sti_score *s)
{
    gain(s, 100 * digits2(ram, 0xe9, 0xe8));
    s->lives = AT(0xea) & 7;
    s->over = s->lives == 0;
}

const sti_title sti_titles[] = {
    {.name = "adventure",
     .md5 = "4b27f5397c442d25f0c418ccdacf1926",
     .first = {.lives = 1},
     .step = adventure,
     .lives = "over",
     .mode = {.at = 0xdd, .mode = 0, .shift = 1, .mask = 3, .frames = 2}},
    {.name = "air_raid",
     .md5 = "35be55426c1fec32dfb503b4f0651572",
     .minimal = 0x0181b,
     .first = {.lives = 1},
     .step = air_raid,
     .start = {1, 1},
     .mode = {.at = 0xaa, .mode = 1, .frames = 10, .before = 20}},
    {.name = "alien",
     .md5 = "f1a0a23e6464d954e3a9579c4ccd01c8",
     .first = {.lives = 3},
     .step = alien,
     .lives = "over",
     .mode = {.at = 0x81, .mode = 0}},
    {.name = "amidar",
     .md5 = "acb7750b4d0c4bd34969802a7deb2990",
     .minimal = 0x03c3f,
     .first = {.lives = 3},
     .step = amidar},
    {.name = "assault",
     .md5 = "de78b3a064d374390ac0710f95edde92",
     .minimal = 0x0181f,
     .first = {.lives = 4},
     .step = assault},
    {.name = "asterix",
     .md5 = "89a68746eff7f266bbf08de2483abe55",
     .minimal = 0x003fd,
     .first = {.lives = 3},
     .step = asterix,
     .start = {1, 1}},
    {.name = "asteroids",
     .md5 = "ccbd36746ed4525821a8083b0d6d2c2c",
     .minimal = 0x0fcff,
     .first = {.lives = 4},
     .step = asteroids,
     .mode = {.at = 0x80, .mode = 0, .frames = 2},
     .frame = {.no_hmove_blank = true}},
    {.name = "atlantis",
     .md5 = "9ad36e699ef6f45d9eb6c4cf90475c9f",
     .minimal = 0x01803,
     .first = {.lives = 6},
     .step = atlantis,
     .mode = {.at = 0x8d, .mode = 0, .frames = 2}},
    {.name = "bank_heist",
     .md5 = "00ce0bdd43aed84a983bef38fe7f5ee3",
     .first = {.lives = 5},
     .step = bank_heist,
     .mode = {.at = 0x80, .mode = 0}},
    {.name = "battle_zone",
     .md5 = "41f252a66c6301f1e8ab3612c19bc5d4",
     .first = {.lives = 5},
     .step = battle_zone,
     .mode = {.at = 0xa1, .mode = 1, .frames = 2},
     .frame = {.no_hmove_blank = true}},
    {.name = "beam_rider",
     .md5 = "79ab4123a83dc11d468fb2108ea09e2e",
     .minimal = 0x018df,
     .first = {.lives = 3},
     .step = beam_rider,
     .start = {3, 1}},
    {.name = "berzerk",
     .md5 = "136f75c4dd02c29283752b7e5799f978",
     .first = {.lives = 3},
     .step = berzerk,
     .mode = {.at = 0x80, .mode = 1, .frames = 2, .noops = 20}},
    {.name = "bowling",
     .md5 = "c9b7afad3bfd922e006a6bfc1d4f3fe7",
     .minimal = 0x02427,
     .step = bowling,
     .lives = "0",
     .mode = {.at = 0x82, .mode = 0, .frames = 2}},
    {.name = "boxing",
     .md5 = "c3ef5c4653212088eda54dc91d787870",
     .step = boxing,
     .lives = "0"},
    {.name = "breakout",
     .md5 = "f34f08e5eb96e500e851a80be3277a56",
     .minimal = 0x0001b,
     .first = {.lives = 5},
     .step = breakout,
     .mode = {.at = 0xb2, .mode = 0},
     .frame = {.paddles = true}},
    {.name = "carnival",
     .md5 = "028024fb8e5e5f18ea586652f9799c96",
     .minimal = 0x0181b,
     .step = carnival,
     .lives = "0",
     .frame = {.first_line = 26, .lines = 214}},
    {.name = "centipede",
     .md5 = "91c2098e88a6b13f977af8c003e0bca5",
     .first = {.lives = 3},
     .step = centipede,
     .mode = {.at = 0xa7, .mode = 0x16, .frames = 2}},
    {.name = "chopper_command",
     .md5 = "c1cb228470a87beb5f36e90ac745da26",
     .first = {.lives = 3},
     .step = chopper_command,
     .lives = "over",
     .mode = {.at = 0xe0, .mode = 0, .frames = 2}},
    {.name = "crazy_climber",
     .md5 = "55ef7b65066428367844342ed59f956c",
     .minimal = 0x003fd,
     .first = {.lives = 5},
     .step = crazy_climber,
     .mode = {.at = 0x80, .mode = 0, .frames = 2}},
    {.name = "defender",
     .md5 = "0f643c34e40e3f1daafd9c524d3ffe64",
     .first = {.lives = 3},
     .step = defender,
     .mode = {.at = 0x9b, .mode = 1, .frames = 2}},
    {.name = "demon_attack",
     .md5 = "f0e0addc07971561ab80d9abe1b8d333",
     .minimal = 0x0181b,
     .first = {.lives = 4},
     .step = demon_attack,
     .mode = {.at = 0xea, .mode = 1, .sets_other = true}},
    {.name = "double_dunk",
     .md5 = "368d88a6c071caba60b4f778615aae94",
     .step = double_dunk,
     .lives = "0",
     .start = {10, 1},
     .mode = {.menu = true}},
    {.name = "elevator_action",
     .md5 = "71f8bacfbdca019113f3f0801849057e",
     .first = {.lives = 4},
     .step = elevator_action,
     .start = {1, 16}},
    {.name = "enduro",
     .md5 = "94b92a882f6dbaa6993a46e2dcc58402",
     .minimal = 0x01b3b,
     .step = enduro,
     .lives = "0",
     .start = {1, 1}},
    {.name = "fishing_derby",
     .md5 = "b8865f05676e64f3bec72b9defdacfa7",
     .step = fishing_derby,
     .lives = "0"},
    {.name = "freeway",
     .md5 = "8e0ab801b1705a740b476b7f588c6d16",
     .minimal = 0x00025,
     .step = freeway,
     .lives = "0",
     .mode = {.at = 0x80, .mode = 0}},
    {.name = "frostbite",
     .md5 = "4ca73eb959299471788f0b685c3ba0b5",
     .first = {.lives = 4},
     .step = frostbite,
     .mode = {.at = 0x80, .mode = 0}},
    {.name = "gopher",
     .md5 = "c16c79aad6272baffb8aae9a7fff0864",
     .minimal = 0x01c1f,
     .first = {.lives = 3},
     .step = gopher,
     .start = {1, 1},
     .mode = {.at = 0xd3, .mode = 0, .frames = 5, .reset = true}},
    {.name = "gravitar",
     .md5 = "8ac18076d01a6b63acf6e2cab4968940",
     .first = {.lives = 6},
     .step = gravitar,
     .start = {1, 16},
     .mode = {.at = 0x80, .mode = 0, .frames = 10}},
    {.name = "hero",
     .md5 = "fca4a5be1251927027f2c24774a02160",
     .first = {.lives = 4},
     .step = hero,
     .mode = {.at = 0x80, .mode = 0}},
    {.name = "ice_hockey",
     .md5 = "a4c08c4994eb9d24fb78be1793e82e26",
     .step = ice_hockey,
     .lives = "0",
     .mode = {.at = 0x80, .mode = 0, .frames = 2}},
    {.name = "jamesbond",
     .md5 = "e51030251e440cffaab1ac63438b44ae",
     .first = {.lives = 6},
     .step = jamesbond,
     .mode = {.at = 0x8c, .mode = 0, .also = 0x48, .frames = 20}},
    {.name = "journey_escape",
     .md5 = "718ae62c70af4e5fd8e932fee216948a",
     .minimal = 0x3fbfd,
     .step = journey_escape,
     .lives = "0",
     .start = {1, 1},
     .frame = {.lines = 230}},
    {.name = "kaboom",
     .md5 = "5428cdfada281c569c74c7308c7f2c26",
     .minimal = 0x0001b,
     .first = {.lives = 1},
     .step = kaboom,
     .start = {1, 1},
     .frame = {.paddles = true}},
    {.name = "kangaroo",
     .md5 = "4326edb70ff20d0ee5ba58fa5cb09d60",
     .first = {.lives = 3},
     .step = kangaroo,
     .mode = {.at = 0xba, .mode = 0, .also = 0x80, .frames = 2}},
    {.name = "krull",
     .md5 = "4baada22435320d185c95b7dd2bcdb24",
     .first = {.lives = 3},
     .step = krull},
    {.name = "kung_fu_master",
     .md5 = "5b92a93b23523ff16e2789b820e2a4c5",
     .minimal = 0x3fb3d,
     .first = {.lives = 4},
     .step = kung_fu_master},
    {.name = "montezuma_revenge",
     .md5 = "3347a6dd59049b15a38394aa2dafa585",
     .first = {.lives = 6},
     .step = montezuma_revenge},
    {.name = "ms_pacman",
     .md5 = "87e79cd41ce136fd4f72cc6e2c161bee",
     .minimal = 0x003fd,
     .first = {.lives = 3},
     .step = ms_pacman,
     .mode = {.at = 0x99, .mode = 1, .with_at = 0xa1, .with = 1, .frames = 10},
     .frame = {.no_hmove_blank = true}},
    {.name = "name_this_game",
     .md5 = "36306070f0c90a72461551a7a4f3a209",
     .minimal = 0x0181b,
     .first = {.lives = 3},
     .step = name_this_game,
     .mode = {.at = 0xde, .mode = 8, .frames = 2}},
    {.name = "phoenix",
     .md5 = "7e52a95074a66640fcfde124fffd491a",
     .minimal = 0x0383b,
     .first = {.lives = 5},
     .step = phoenix},
    {.name = "pitfall",
     .md5 = "3e90cf23106f2e08b2781e41299de556",
     .first = {.score = 2000, .lives = 3},
     .step = pitfall,
     .start = {2, 1}},
    {.name = "pong",
     .md5 = "60e0ea3cbe0913d39803477945e9e5ec",
     .minimal = 0x0181b,
     .step = pong,
     .lives = "0",
     .mode = {.at = 0x96, .mode = 0, .frames = 2},
     .frame = {.paddles = true, .paddles_swapped = true}},
    {.name = "pooyan",
     .md5 = "4799a40b6e889370b7ee55c17ba65141",
     .minimal = 0x02427,
     .first = {.lives = 3},
     .step = pooyan,
     .mode = {.at = 0xbd, .mode = 0x0a, .frames = 2, .before = 2},
     .frame = {.first_line = 26, .lines = 220}},
    {.name = "private_eye",
     .md5 = "ef3a4f64b6494ba770862768caf04b86",
     .first = {.score = 1000},
     .step = private_eye,
     .lives = "0",
     .start = {2, 1},
     .mode = {.at = 0x80, .mode = 0, .frames = 2}},
    {.name = "qbert",
     .md5 = "484b0076816a104875e00467d431c2d2",
     .minimal = 0x0003f,
     .first = {.lives = 4, .other = 2},
     .step = qbert,
     .frame = {.first_line = 40}},
    {.name = "riverraid",
     .md5 = "393948436d1f4cc3192410bb918f9724",
     .first = {.other = 0x58, .lives = 4},
     .step = riverraid},
    {.name = "road_runner",
     .md5 = "ce5cc62608be2cd3ed8abd844efb8919",
     .first = {.lives = 3},
     .step = road_runner},
    {.name = "robotank",
     .md5 = "4f618c2429138e0280969193ed6c107e",
     .first = {.lives = 4},
     .step = robotank},
    {.name = "seaquest",
     .md5 = "240bfbac5163af4df5ae713985386f92",
     .first = {.lives = 4},
     .step = seaquest},
    {.name = "skiing",
     .md5 = "b76fbadc8ffb1f83e2ca08b6fb4d6c9f",
     .minimal = 0x00019,
     .step = skiing,
     .lives = "0",
     .start = {5, 16},
     .no_fire = true},
    {.name = "solaris",
     .md5 = "e72eb8d4410152bdcb69e7fba327b420",
     .first = {.lives = 3},
     .step = solaris},
    {.name = "space_invaders",
     .md5 = "72ffbef6504b75e69ee1045af9075f66",
     .minimal = 0x0181b,
     .first = {.lives = 3},
     .step = space_invaders,
     .mode = {.at = 0xdc, .mode = 0, .frames = 2}},
    {.name = "star_gunner",
     .md5 = "a3c1c70024d7aabb41381adbfb6d3b25",
     .first = {.lives = 5},
     .step = star_gunner,
     .mode = {.at = 0xf4, .mode = 0, .frames = 15}},
    {.name = "tennis",
     .md5 = "42cdd6a9e42a3639e190722b8ea3fc51",
     .step = tennis,
     .lives = "0",
     .mode = {.at = 0x80, .mode = 0, .frames = 2}},
    {.name = "time_pilot",
     .md5 = "fc2104dd2dadf9a6176c1c1c8f87ced9",
     .minimal = 0x03c3f,
     .first = {.lives = 5},
     .step = time_pilot},
    {.name = "tutankham",
     .md5 = "085322bae40d904f53bdcc56df0593fc",
     .minimal = 0x01c3d,
     .first = {.lives = 3},
     .step = tutankham,
     .mode = {.at = 0xab, .mode = 0, .frames = 2}},
    {.name = "up_n_down",
     .md5 = "a499d720e7ee35c62424de882a3351b6",
     .minimal = 0x02427,
     .first = {.lives = 5},
     .step = up_n_down,
     .start = {1, 1},
     .frame = {.first_line = 30}},
    {.name = "venture",
     .md5 = "3e899eba0ca8cd2972da1ae5479b4f0d",
     .first = {.lives = 4},
     .step = venture},
    {.name = "video_pinball",
     .md5 = "107cc025334211e6d29da0b6be46aec7",
     .minimal = 0x01c3f,
     .first = {.lives = 3},
     .step = video_pinball,
     .mode = {.at = 0xc1, .mode = 0, .frames = 2}},
    {.name = "wizard_of_wor",
     .md5 = "7e8aa18bc9502eb57daaf5e7c1e94da7",
     .minimal = 0x03c3f,
     .first = {.lives = 3},
     .step = wizard_of_wor,
     .frame = {.ports_swapped = true}},
    {.name = "yars_revenge",
     .md5 = "c5930d0e8cdae3e037349bfa08e871be",
     .first = {.lives = 4},
     .step = yars_revenge,
     .start = {1, 1},
     .mode = {.at = 0xe3, .mode = 0, .before = 2}},
    {.name = "zaxxon",
     .md5 = "eea0da9b987d661264cce69a7c13c3bd",
     .first = {.lives = 5},
     .step = zaxxon,
     .mode = {.at = 0x82, .mode = 0, .frames = 10}},
};

const int sti_title_count = sizeof sti_titles / sizeof sti_titles[0];
