// The engine as a browser calls it: the kernels of one instruction set as functions of plain numbers and addresses in
// the module's memory, which the page allocates. Descriptions are checked; sizes of other arrays are the page's
// promise.
#include <new>

#include "planar/description.h"
#include "wasm/live.h"
#include "wasm/resets.h"

using namespace evergait;
using namespace evergait::baseline;

#define EXPORT(name) extern "C" __attribute__((export_name(#name))) auto name

namespace {

static_assert(sizeof(Layer) == 5 * sizeof(int64_t), "pages write layers as five whole numbers");

// A robot and what its task makes of it.
struct Task {
  PlanarModel model;
  TaskRules rules;
};

}  // namespace

EXPORT(get_memory)(int n_bytes)->void* { return aligned_alloc(64, size_t(n_bytes + 63) / 64 * 64); }
EXPORT(free_memory)(void* memory)->void { free(memory); }

EXPORT(words)(uint64_t seed, uint32_t generation, uint32_t purpose, uint32_t index, int n, uint32_t* out)->void {
  kernels.words({seed, generation, purpose}, index, n, out);
}

EXPORT(normals)(uint64_t seed, uint32_t generation, uint32_t purpose, uint32_t index, int begin, int end, float* out)
    ->void {
  kernels.normals({seed, generation, purpose}, index, begin, end, out);
}

EXPORT(accumulate)(uint64_t seed, uint32_t generation, uint32_t purpose, const uint32_t* pairs, const double* weights,
                   int n_pairs, int begin, int end, double* gradient)
    ->void {
  kernels.accumulate({seed, generation, purpose}, pairs, weights, n_pairs, begin, end, gradient);
}

EXPORT(approach)(const Layer* layers, int n_layers, const double* mean, const double* scale, const double* theta,
                 int n_theta, const float* observations, const float* targets, const uint32_t* rows, int n_rows,
                 double least, double* gradient)
    ->int {
  return kernels.approach({layers, n_layers, mean, scale, nullptr, nullptr}, theta, n_theta, observations, targets,
                          rows, n_rows, least, gradient);
}

// Null if the numbers describe no robot or no rules.
EXPORT(task_open)(const double* description, int n, const double* rules, int n_rules)->Task* {
  Task* task = allocate<Task>(1);
  if (!task) return nullptr;
  if (read_model(description, n, task->model) || read_rules(rules, n_rules, task->model, task->rules)) {
    free(task);
    return nullptr;
  }
  return task;
}

EXPORT(task_close)(Task* task)->void { free(task); }

// Per row: nominal position and velocity (n_dof each) plus uniform numbers in ±noise, positions first.
EXPORT(draw_resets)(const uint32_t* seeds, int n_rows, int n_dof, double noise, const double* nominal, double* position,
                    double* velocity)
    ->void {
  for (int row = 0; row < n_rows; row++) {
    Pcg64 random(seeds[row]);
    for (int i = 0; i < n_dof; i++) position[row * n_dof + i] = nominal[i] + random.uniform(-noise, noise);
    for (int i = 0; i < n_dof; i++) velocity[row * n_dof + i] = nominal[n_dof + i] + random.uniform(-noise, noise);
  }
}

EXPORT(episodes)(const Task* task, double bonus, const Layer* layers, int n_layers, const double* mean,
                 const double* scale, const float* middle, const float* half_range, const float* theta, float sigma,
                 uint64_t seed, uint32_t generation, uint32_t purpose, const uint32_t* pair, const float* sign,
                 const uint32_t* row_seed, uint32_t noise_purpose, const double* position, const double* velocity,
                 int n_rows, int limit, double* returns, int32_t* lengths, uint8_t* diverged, double* sums)
    ->int {
  int64_t next_row = 0;
  EpisodeJob job = {};
  job.options = {&task->model, 0, false};
  job.rules = task->rules;
  job.rules.healthy_reward *= bonus;
  job.network = {layers, n_layers, mean, scale, middle, half_range};
  job.theta = theta, job.sigma = sigma;
  job.noise = {seed, generation, purpose};
  job.pair = pair, job.sign = sign, job.seed = row_seed, job.noise_purpose = noise_purpose;
  job.position = position, job.velocity = velocity;
  job.n = n_rows, job.limit = limit;
  job.returns = returns, job.lengths = lengths, job.diverged = diverged, job.sums = sums;
  job.next_row = &next_row;
  return planar_kernels.episodes(job);
}

// A robot that lives; see live.h. Task and arrays stay the page's and must outlive it.
EXPORT(live_open)(const Task* task, const Layer* layers, int n_layers, const double* mean, const double* scale,
                  const float* middle, const float* half_range)
    ->Live* {
  const Network network = {layers, n_layers, mean, scale, middle, half_range};
  return new (allocate<Live>(1)) Live(task->model, task->rules, network);
}

EXPORT(live_close)(Live* live)->void {
  live->close();
  free(live);
}

EXPORT(live_policy)(Live* live, const float* theta)->void {
  kernels.pack(live->network, theta, 0.0f, {0, 0, 0}, 0, live->packed);
}

EXPORT(live_world)(Live* live, double gravity, double friction, double mass, double size, double strength)->void {
  live->change_world({gravity, friction, mass, size, strength});
}

EXPORT(live_reset)(Live* live, const double* position, const double* velocity, uint32_t seed, uint32_t noise_purpose)
    ->void {
  live->observation_noise = {seed, 0, noise_purpose};
  live->reset(position, velocity);
}

EXPORT(live_hand)(Live* live, int dof, double x, double z, double target_x, double target_z, double stiffness,
                  double damping)
    ->void {
  live->hand = {dof, x, z, target_x, target_z, stiffness, damping};
}

// Out: anchor x, z and angle of every link, then positions, velocities, return, steps, healthy, finite.
EXPORT(live_step)(Live* live, int n_steps, double* out)->void {
  for (int i = 0; i < n_steps; ++i) live->step();
  const int n = live->model.n_dof;
  live->place(reinterpret_cast<Place*>(out));
  const View at = view(live->model, live->state, 0);
  for (int i = 0; i < n; ++i) out[3 * n + i] = at.position[i], out[4 * n + i] = at.velocity[i];
  out[5 * n] = live->total, out[5 * n + 1] = live->elapsed;
  out[5 * n + 2] = live->healthy, out[5 * n + 3] = live->finite;
}
