// Robots that live between calls and are stepped with actions from outside: what a vector environment needs.
//
// Rewards and endings are those of episodes.h, by the same rules.h.
#pragma once

#include "core/noise.h"
#include "planar/rules.h"

namespace evergait::EVERGAIT_ISA {

inline void tell(const VectorJob& job, int64_t row, int column, double value) {
  job.infos[column * job.n + row] = value;
}

inline void show(const VectorJob& job, const VectorGroup& group, int64_t row, const View& at) {
  const PlanarModel& m = group.model;
  double seen[kMaxObservations];
  observe(group.rules, m, at, seen);
  const int n_seen = 2 * m.n_dof - group.rules.n_hidden + (group.rules.kind == kDoublePendulum ? m.n_dof : 0);
  if (group.rules.observation_noise != 0.0) {
    const NoiseKey key = {job.noise_seed[row], job.episode[row], job.noise_purpose};
    for_normals(key, uint32_t(job.elapsed[row]), 0, n_seen, [&](int64_t j, int n, const float* z) {
      for (int k = 0; k < n; ++k) seen[j + k] += group.rules.observation_noise * double(z[k]);
    });
  }
  for (int i = 0; i < n_seen; ++i) {
    if (job.observations) job.observations[row * n_seen + i] = seen[i];
    if (job.narrow) job.narrow[row * n_seen + i] = float(seen[i]);
  }
  const double x = at.position[0], y = m.n_dof > 1 ? at.position[1] : 0.0;
  tell(job, row, kPositionX, x), tell(job, row, kPositionY, y);
  tell(job, row, kHeight, m.n_dof > 1 ? y - group.position[1] : 0.0);
  tell(job, row, kDistance, __builtin_sqrt(x * x + y * y));
}

// The terms of a reward, each as Gymnasium tells it.
inline void tell_terms(const VectorJob& job, const VectorGroup& group, int64_t row, double vx, double vy,
                       const View& at, bool healthy) {
  const TaskRules& rules = group.rules;
  const int n = group.model.n_actuators;
  const float squares = sum_of_squares(job.actions + row * n, n);
  tell(job, row, kSpeedX, vx), tell(job, row, kSpeedY, vy);
  tell(job, row, kForward, rules.forward_weight * vx);
  tell(job, row, kControl, -static_cast<double>(rules.control_weight * squares));
  tell(job, row, kSurvive, !healthy ? 0.0 : rules.kind == kPendulum ? 1.0 : rules.healthy_reward);
  if (rules.kind != kDoublePendulum) return;
  double x, z;
  find_tip(rules, group.model, at, x, z);
  const double v1 = at.velocity[1], v2 = at.velocity[2];
  tell(job, row, kDistancePenalty, -(0.01 * (x * x) + (z - 2.0) * (z - 2.0)));
  tell(job, row, kVelocityPenalty, -(1e-3 * (v1 * v1) + 5e-3 * (v2 * v2)));
}

inline void judge_row(const VectorJob& job, const VectorGroup& group, int64_t row, const View& at) {
  const PlanarModel& m = group.model;
  double *position = job.position + row * m.n_dof, *velocity = job.velocity + row * m.n_dof;
  job.truncated[row] = ++job.elapsed[row] >= job.limit;
  job.diverged[row] = !is_finite(m.n_dof, at);
  if (job.diverged[row]) {  // the robot stays where it was last seen, and its episode is over
    job.rewards[row] = 0.0, job.terminated[row] = true;
    return;
  }
  const double x = position[0], y = m.n_dof > 1 ? position[1] : 0.0;
  const bool healthy = is_healthy(group.rules, m, at);
  job.rewards[row] = reward(group.rules, m, x, at, healthy, job.actions + row * m.n_actuators);
  job.terminated[row] = job.ends && !healthy;
  for (int i = 0; i < m.n_dof; ++i) position[i] = at.position[i], velocity[i] = at.velocity[i];
  const double dt = group.rules.dt;
  tell_terms(job, group, row, (at.position[0] - x) / dt, m.n_dof > 1 ? (at.position[1] - y) / dt : 0.0, at, healthy);
  show(job, group, row, at);
}

template <int W>
void step_block(const VectorJob& job, const VectorGroup& group, Physics<W>& physics, const int64_t* rows, int64_t n) {
  const PlanarModel& m = group.model;
  State<W> state;
  Lanes<W> applied[kMaxDof];
  for (int64_t first = 0; first < n; first += W) {
    for (int lane = 0; lane < W; ++lane) {
      const int64_t row = rows[first + lane < n ? first + lane : n - 1];  // spare lanes repeat the last row
      for (int i = 0; i < m.n_dof; ++i) {
        state.q[i][lane] = m.dof[i].sign * job.position[row * m.n_dof + i];
        state.v[i][lane] = m.dof[i].sign * job.velocity[row * m.n_dof + i];
        state.acceleration[i][lane] = job.acceleration[row * m.n_dof + i];
      }
      apply_control<W>(m, job.actions + row * m.n_actuators, lane, applied);
    }
    physics.advance(state, applied, group.rules.n_frames);
    for (int lane = 0; lane < W && first + lane < n; ++lane) {
      const int64_t row = rows[first + lane];
      for (int i = 0; i < m.n_dof; ++i) job.acceleration[row * m.n_dof + i] = state.acceleration[i][lane];
      judge_row(job, group, row, view(m, state, lane));
    }
  }
}

inline int64_t take_block(const VectorJob& job) {
  return __atomic_fetch_add(job.next_block, int64_t(1), __ATOMIC_RELAXED);
}

template <int W>
Status vector_step(const VectorJob& job) {
  auto group_of = [&](int64_t block) { return job.group[job.rows[job.blocks[block]]]; };
  for (int64_t block = take_block(job); block < job.n_blocks;) {
    const int32_t opened = group_of(block);
    Physics<W> physics = open_physics<W>({&job.groups[opened].model, 0, false});
    if (!physics.stepper) return kNoMemory;
    for (; block < job.n_blocks && group_of(block) == opened; block = take_block(job)) {
      const int64_t begin = job.blocks[block], end = job.blocks[block + 1];
      step_block<W>(job, job.groups[opened], physics, job.rows + begin, end - begin);
    }
    close_physics(physics);
  }
  return kDone;
}

// Position and velocity at the start of an episode; false, with the generator as it was, if NumPy must draw them.
inline bool draw_start(const VectorJob& job, const VectorGroup& group, int64_t row) {
  const int n = group.model.n_dof;
  const double scale = group.reset_noise;
  uint64_t words[4];
  for (int i = 0; i < 4; ++i) words[i] = job.generator[4 * row + i];
  for (int i = 0; i < n; ++i) job.position[row * n + i] = group.position[i] + pcg64_uniform(words, -scale, scale);
  for (int i = 0; i < n; ++i) {
    double z = 0.0;
    if (job.normal && !pcg64_normal(words, job.normal_width, job.normal_bound, z)) return false;
    job.velocity[row * n + i] = group.velocity[i] + (job.normal ? scale * z : pcg64_uniform(words, -scale, scale));
  }
  for (int i = 0; i < 4; ++i) job.generator[4 * row + i] = words[i];
  return true;
}

// A new episode in every row: what `reset` shows.
inline void vector_begin(const VectorJob& job) {
  for (int64_t k = 0; k < job.blocks[job.n_blocks]; ++k) {
    const int64_t row = job.rows[k];
    const VectorGroup& group = job.groups[job.group[row]];
    const int n = group.model.n_dof;
    job.undrawn[row] = job.draws && !draw_start(job, group, row);
    if (job.undrawn[row]) continue;
    View at = {};
    for (int i = 0; i < n; ++i) {
      at.position[i] = job.position[row * n + i], at.velocity[i] = job.velocity[row * n + i];
      job.acceleration[row * n + i] = 0.0;
    }
    job.elapsed[row] = 0, job.diverged[row] = false;
    for (int column = 0; column < kVectorInfos; ++column) tell(job, row, column, 0.0);
    show(job, group, row, at);
  }
}

}  // namespace evergait::EVERGAIT_ISA
