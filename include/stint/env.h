/** Environments for reinforcement learning: many at once, stepped together.
 *
 *  A vector environment holds `envs` environments of one kind. Kinds are "atari"
 * (consoles that run one cartridge, frames or RAM observed as the Arcade Learning
 * Environment's vector environment has them) and "chain" (a Markov chain whose values
 * are known, for tests of learners).
 *
 *      stint_env *env = NULL;
 *      stint_env_desc desc = {.kind = "atari", .rom = "rally.bin", .game = "none",
 *                             .reward = "ram:0x81-ram:0x80", .done = "ram:0x81==21",
 * .envs = 64}; stint_env_open(&desc, &env); stint_env_reset(env, NULL, NULL);
 *      stint_env_step(env, actions, &(stint_env_step_result){.reward = reward, .ended =
 * ended}); stint_env_observe(env, observations);
 *
 *  Chance is a function of (seed, environment, step), so results depend on neither
 * threads nor time. A call serves one thread at a time; two objects are independent.
 * Where an episode has ended, the next step begins another one, its action is not
 * looked at and its reward is 0 (the next-step mode of gymnasium's vector
 * environments). */
#ifndef STINT_ENV_H
#define STINT_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A vector environment. Owned by the caller of stint_env_open.
 *
 *  An environment takes env_bytes of memory: for "atari" with frames 28 KiB of
 * observations and half a KiB of console, with RAM observed about one KiB. */
typedef struct stint_env stint_env;

/** What to open. A field that is zero means: choose for me. Texts are read during the
 * call and not kept.
 *
 *  Rules read the console's RAM. A value is a sum of terms
 * `ram:ADDRESS[,u8|,s8|,bcdN][*FACTOR]` and numbers, ADDRESS from 0x80 to 0xFF and bcdN
 * being N bytes of two digits each, the most significant first. A reward is what the
 * value grew by since the frame before. `done` is made of tests `TERM==NUMBER` (or !=,
 * <, <=, >, >=), joined by & and |, of which & binds tighter. */
typedef struct stint_env_desc {
    /** "atari" (NULL) or "chain" */
    const char *kind;
    int64_t envs;  /**< how many; 0: 1 */
    uint64_t seed; /**< environment i draws from (seed, i) until a reset names seeds */
    int threads;   /**< 0: every CPU that the process may run on */

    /* The rest is of "atari" alone. */
    /** Path of the image: 2 to 512 KiB, its mapper found by size and signature. */
    const char *rom;
    /** Title whose rules hold; "none": no title's; "auto" (NULL): that of the image or,
     * as ALE does it, of the file's name. */
    const char *game;
    /** Rules of one's own, each in the place of the title's; NULL: the title's. */
    const char *reward, *lives, *done;
    /** ALE's names of the actions there are, "NOOP,UP,DOWN"; NULL: the title's. */
    const char *actions;
    int frameskip; /**< frames a step; 0: 4 */
    int stack;     /**< observations that lie one behind the other; 0: 4 */
    /** Side of an observed frame in pixels; 0: 84, which is the one there is. */
    int size;
    /** "frames" (NULL): [84, 84] grey; "ram": [128] bytes. */
    const char *observe;
    double sticky; /**< chance that a frame repeats the action before, 0 to 1 */
    int noop_max;  /**< an episode begins after 0 to noop_max - 1 idle frames; 0: 30 */
    bool fire_reset;    /**< FIRE is pressed first, where the game has it */
    bool episodic_life; /**< a lost life ends the episode */
    bool clip_reward;   /**< to -1, 0 and 1 */
    int64_t max_frames; /**< cut an episode off after so many; 0: 108000 */
} stint_env_desc;

/** What was opened.
 *
 *  An observation of "atari" is, for frames, the grey level 0 to 255 of the larger of
 * the last two frames of a step, reduced to 84 x 84 by area, exact to the nearest
 * level; for RAM the 128 bytes after the step. That of "chain" is the state, one-hot,
 * 255 for the one. Action k is the k-th of those that the game takes, in ALE's order,
 * for a program without a title all 18. */
typedef struct stint_env_facts {
    /** Name of the kind. */
    const char *kind;
    int64_t envs;
    int actions;              /**< action numbers are 0 to actions - 1 */
    int stack;                /**< observations behind each other */
    int height, width;        /**< of one; RAM and chains are of height 1 */
    int frameskip;            /**< raw frames a step */
    size_t observation_bytes; /**< stack * height * width */
    size_t state_bytes;       /**< of a snapshot of one environment */
    size_t env_bytes; /**< memory of one environment, its observations included */
    /** SHA-256 of kind, image, rules and all else that the course of an episode depends
     * on: states may be exchanged where it is equal, also between processes. */
    char identity[65];
} stint_env_facts;

/** Opens environments, none of which has begun: reset all first.
 *  STINT_E_USAGE: a field out of its range; STINT_E_INPUT, STINT_E_IO: an image, a
 * title or a rule that does not do (the message says what would); STINT_E_MEMORY. The
 * caller closes *env_out. */
STINT_API stint_status stint_env_open(const stint_env_desc *desc, stint_env **env_out);

/** Frees all of it, and what was given out by stint_env_describe, _frame and _ram with
 * it. NULL is fine. No other call may be under way. */
STINT_API void stint_env_close(stint_env *env);

/** Facts, valid till the environment is closed.
 *  Threads may call it while a step is under way. */
STINT_API const stint_env_facts *stint_env_describe(const stint_env *env);

/** Begins new episodes, as ALE begins them: power on, 60 idle frames, RESET for 4, the
 * title's mode, RESET for 4, its start actions; then FIRE if asked, and the idle frames
 * that noop_max allows, by chance. All of that was done once at the opening: what a
 * reset does is to copy one of the states that came of it. mask [envs]: which (not 0);
 * NULL: all. seeds [envs]: of those; NULL: each keeps its own. The k-th episode of a
 * seed is the same whenever it is begun. */
STINT_API stint_status stint_env_reset(stint_env *env, const uint8_t *mask,
                                       const uint64_t *seeds);

/** Where a step's results go. Of a step that begins an episode reward is 0, and neither
 * flag is set: arrays of the caller's, [envs] each; NULL ones are not written. */
typedef struct stint_env_step_result {
    float *reward;      /**< sum over the step's frames, clipped if asked */
    uint8_t *ended;     /**< 1: the episode is over by its own rules */
    uint8_t *truncated; /**< 1: it was cut off at max_frames */
    int32_t *lives;     /**< that are left */
} stint_env_step_result;

/** One step of all environments, which must have been reset.
 *  A step is `frameskip` frames with one action. It ends early with its episode; an
 * observation then shows what was drawn last. An opcode that stops a processor ends
 * that episode alone, and a program that makes no VSYNC is cut at ALE's safety stop,
 * frame by frame. actions [envs]. Nothing is allocated. STINT_E_USAGE: one is not 0 to
 * actions - 1 (its place is named; nothing was stepped). */
STINT_API stint_status stint_env_step(stint_env *env, const int32_t *actions,
                                      const stint_env_step_result *result);

/** Where what is ready goes: arrays of the caller's with room for `most`, in the order
 * in which environments became ready; NULL ones are not written. */
typedef struct stint_env_ready {
    int32_t *env; /**< which environment */
    stint_env_step_result result;
} stint_env_ready;

/** Hands an action each to `count` environments and returns at once; threads of the
 * object's own step them, each as soon as a thread is free. Until it is received, an
 * environment is nobody else's: no other call may name it, and its observations are not
 * to be read. envs and actions [count]. What an environment brings is what
 * stint_env_step would have brought. STINT_E_USAGE: an environment that has an action
 * already, or is named twice, or was never reset; an action that is not there (nothing
 * was sent); STINT_E_MEMORY. */
STINT_API stint_status stint_env_send(stint_env *env, int64_t count,
                                      const int32_t *envs, const int32_t *actions);

/** Waits until at least `least` of those that were sent are ready, and takes up to
 * `most`: which are first depends on time. *count_out: how many. Their observations may
 * be read now (stint_env_frame). STINT_E_USAGE: fewer than `least` are under way. */
STINT_API stint_status stint_env_recv(stint_env *env, int64_t least, int64_t most,
                                      const stint_env_ready *ready, int64_t *count_out);

/** Copies the observations of all environments, for whoever wants them in one block. A
 * learner that reads them where they lie (stint_env_frame) needs no copy. Oldest first:
 * out [envs, stack, height, width]. Before an episode has `stack` observations the
 * older ones are 0. */
STINT_API void stint_env_observe(const stint_env *env, uint8_t *out);

/** The observation of environment i that is `age` steps old (0: the newest), [height,
 * width], where it lies: every one is kept once. Valid till the next step or reset. */
STINT_API const uint8_t *stint_env_frame(const stint_env *env, int64_t i, int age);

/** What a program keeps its game in, for rules that one looks for and for rewards of
 * one's own. The console's 128 bytes of RAM; of a chain its state. Valid till the next
 * step or reset. */
STINT_API const uint8_t *stint_env_ram(const stint_env *env, int64_t i);

/** Copies environment i with all that its future depends on but its older observations
 * into state_bytes of the caller's; and back, in this process or another. load:
 * STINT_E_INPUT where it is a state of other environments (facts.identity), which
 * leaves i as it was. */
STINT_API void stint_env_save(const stint_env *env, int64_t i, void *state_out);
STINT_API stint_status stint_env_load(stint_env *env, int64_t i, const void *state);

/** Raw frames emulated and drawn since the opening (of a chain: steps, and 0). Frames
 * that enter no observation are not drawn, and those of an episode's beginning, which
 * are shared, count for nobody. */
STINT_API void stint_env_frames(const stint_env *env, int64_t *emulated_out,
                                int64_t *drawn_out);

#ifdef __cplusplus
}
#endif

#endif
