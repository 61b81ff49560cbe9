/* Sounds by libsndfile, which is loaded when the first is read. */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/finite.h"
#include "base/library.h"
#include "base/memory.h"
#include "data/field_priv.h"

bool sti_field_is_sound(const char *path)
{
    static const char *const sounds[] = {".wav",  ".flac", ".ogg", ".opus",
                                         ".aiff", ".mp3",  ".au"};
    for (size_t i = 0; i < sizeof sounds / sizeof *sounds; i++)
        if (strcasecmp(sti_path_extension(path), sounds[i]) == 0)
            return true;
    return false;
}

#if STINT_HAVE_SNDFILE
#include <sndfile.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct sound_calls {
    SNDFILE *(*open)(const char *, int, SF_INFO *);
    sf_count_t (*read)(SNDFILE *, float *, sf_count_t);
    const char *(*text)(SNDFILE *);
    int (*close)(SNDFILE *);
} sound_calls;

static stint_status load_sounds(sound_calls *c)
{
    const sti_library_call calls[] = {{"sf_open", &c->open},
                                      {"sf_readf_float", &c->read},
                                      {"sf_strerror", &c->text},
                                      {"sf_close", &c->close}};
    return sti_library_load("libsndfile.so.1",
                            "sounds are read by libsndfile, which is not installed "
                            "(Debian: libsndfile1)",
                            calls, sizeof calls / sizeof *calls);
}

/* The library takes what there is of a file that was cut; its first chunk says how much
 * there should be. */
static stint_status check_length(const char *path)
{
    uint8_t head[12];
    int fd = -1;
    struct stat about;
    stint_status st = sti_file_open(path, &fd);
    if (st != STINT_OK)
        return st;
    const bool there = fstat(fd, &about) == 0 && about.st_size >= 12 &&
                       sti_read_at(fd, path, 0, head, sizeof head) == STINT_OK;
    const int64_t length = there ? about.st_size : 0;
    close(fd);
    const bool little = there && memcmp(head, "RIFF", 4) == 0;
    if (!little && !(there && memcmp(head, "FORM", 4) == 0))
        return STINT_OK;
    uint32_t said = 0;
    for (int i = 0; i < 4; i++)
        said |= (uint32_t)head[little ? 4 + i : 7 - i] << (8 * i);
    return said == UINT32_MAX || (int64_t)said + 8 <= length
               ? STINT_OK
               : sti_fail(STINT_E_INPUT,
                          "%s: cut short: %" PRId64
                          " bytes, of which its head says %" PRIu32 " and 8",
                          path, length, said);
}

/* No format packs more samples than this into a byte: silence in FLAC takes some
 * thirteen for blocks of 65,535. A head that says more would have memory asked for that
 * nothing fills. */
#define FRAMES_A_BYTE 8192

static stint_status check_frames(const char *path, const SF_INFO *info)
{
    struct stat about;
    if (info->channels < 1 || info->channels > STI_FIELD_VALUES_MAX ||
        info->frames < 2 || info->frames > INT32_MAX)
        return sti_fail(STINT_E_INPUT,
                        "%s: %" PRId64 " samples of %d channels; wanted 2 to 2^31 and "
                        "at most %d channels",
                        path, (int64_t)info->frames, info->channels,
                        STI_FIELD_VALUES_MAX);
    if (stat(path, &about) == 0 && info->frames / FRAMES_A_BYTE > about.st_size)
        return sti_fail(STINT_E_INPUT,
                        "%s: %" PRId64 " bytes cannot hold the %" PRId64
                        " samples that its head says",
                        path, (int64_t)about.st_size, (int64_t)info->frames);
    return STINT_OK;
}

static stint_status check_samples(const char *path, const float *in, int64_t frames,
                                  int channels)
{
    const int64_t at = sti_first_not_finite(in, frames * channels);
    return at < 0 ? STINT_OK
                  : sti_fail(STINT_E_INPUT,
                             "%s: sample %" PRId64 " of channel %d is not finite", path,
                             at / channels, (int)(at % channels) + 1);
}

static void keep_frames(const sti_field_want *want, const float *in, int channels,
                        sti_field_points *f)
{
    for (int64_t i = 0; i < f->count; i++) {
        double sum = 0;
        f->points[i] = sti_field_cell(i, f->count);
        for (int c = 0; c < channels; c++)
            sum += (double)in[i * channels + c];
        if (want->channels == 1)
            f->values[i] = (float)(sum / channels);
        else
            memcpy(f->values + i * channels, in + i * channels,
                   (size_t)channels * sizeof *in);
    }
}

static stint_status read_frames(const sti_field_want *want, const sound_calls *calls,
                                SNDFILE *file, const SF_INFO *info, sti_field_points *f)
{
    const char *path = want->path;
    stint_status st = check_frames(path, info);
    if (st != STINT_OK)
        return st;
    f->coordinates = 1;
    f->outputs = f->columns = want->channels == 1 ? 1 : info->channels;
    f->count = info->frames;
    float *in = sti_alloc_array(f->count * info->channels, sizeof *in, "field.sound");
    f->points = sti_alloc_array(f->count, sizeof *f->points, "field.points");
    f->values =
        sti_alloc_array(f->count * f->outputs, sizeof *f->values, "field.values");
    st = in && f->points && f->values ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK && calls->read(file, in, f->count) != f->count)
        st = sti_fail(STINT_E_INPUT, "%s: cut short or damaged: %s", path,
                      calls->text(file));
    if (st == STINT_OK)
        st = check_samples(path, in, f->count, info->channels);
    if (st == STINT_OK)
        keep_frames(want, in, info->channels, f);
    sti_free(in);
    return st;
}

stint_status sti_field_open_sound(const sti_field_want *want, sti_field_points *f)
{
    sound_calls calls;
    SF_INFO info = {.frames = 0};
    stint_status st = load_sounds(&calls);
    if (st == STINT_OK)
        st = check_length(want->path);
    if (st != STINT_OK)
        return st;
    SNDFILE *file = calls.open(want->path, SFM_READ, &info);
    if (!file)
        return sti_fail(STINT_E_INPUT, "%s: no sound that libsndfile reads: %s",
                        want->path, calls.text(NULL));
    st = read_frames(want, &calls, file, &info, f);
    calls.close(file);
    return st;
}
#else
stint_status sti_field_open_sound(const sti_field_want *want, sti_field_points *f)
{
    (void)f;
    return sti_fail(
        STINT_E_UNSUPPORTED,
        "%s: a sound, and this build has no library that reads sounds "
        "(libsndfile1-dev was not there); give a folder with its samples as "
        "points.npy [n, 1] and values.npy",
        want->path);
}
#endif
