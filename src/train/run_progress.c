/* What the host of a run is told of it, now and then. */
#include "base/clock.h"
#include "base/memory.h"
#include "train/run.h"
#include "train/train_section.h"

#define PROGRESS_NS 100000000 /* between two calls of the host */

double sti_run_images_per_s(int64_t images, double seconds)
{
    return seconds > 0 ? (double)images / seconds : 0;
}

static double seconds_left(const sti_run *run)
{
    const sti_course *course = &run->job.course;
    const int64_t step = run->position.step;
    int64_t left =
        sti_course_images(course, run->job.steps) - sti_course_images(course, step);
    double each = run->images ? run->step_s / (double)run->images : 0;
    int64_t every = sti_train_section_of(run->recipe)->eval_every;
    int64_t epochs_left = run->job.epochs - sti_course_epoch(course, step);
    double tests = every > 0 ? (double)(epochs_left / every) : 0;
    return (double)left * each + tests * run->evaluation_s;
}

static stint_train_progress progress_now(sti_run *run)
{
    const sti_position *p = &run->position;
    double images = (double)p->epoch_images;
    return (stint_train_progress){
        .step = p->step,
        .steps = run->job.steps,
        .epoch = p->step > 0 ? sti_course_epoch(&run->job.course, p->step) : 1,
        .epochs = run->job.epochs,
        .loss = images > 0 ? p->epoch_loss / images : p->train_loss,
        .accuracy = images > 0 ? p->epoch_correct / images : p->train_accuracy,
        .images_per_s = sti_run_images_per_s(run->images, run->step_s),
        .context = run->job.inputs.network.context,
        .rss_bytes = run->rss_bytes,
        .seconds_left = seconds_left(run),
        .test_loss = p->test_loss,
        .test_accuracy = p->test_accuracy};
}

static void send_progress(sti_run *run, const stint_train_progress *progress)
{
    run->progress_ns = sti_clock_ns();
    run->desc->progress(run->desc->user, progress);
}

/* Now and then; `important` ones always. */
static bool progress_due(const sti_run *run, bool important)
{
    return run->desc->progress &&
           (important || sti_clock_ns() - run->progress_ns >= PROGRESS_NS);
}

void sti_run_tell_progress(sti_run *run, bool epoch_done)
{
    if (!progress_due(run, epoch_done))
        return;
    run->rss_bytes = sti_process_now_bytes();
    stint_train_progress progress = progress_now(run);
    progress.epoch_done = epoch_done;
    send_progress(run, &progress);
}

void sti_run_tell_evaluated(void *user, int64_t done, int64_t total)
{
    sti_run *run = user;
    if (!progress_due(run, false))
        return;
    stint_train_progress progress = progress_now(run);
    progress.evaluating = true;
    progress.evaluated = done;
    progress.to_evaluate = total;
    send_progress(run, &progress);
}
