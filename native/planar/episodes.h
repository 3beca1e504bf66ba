// Whole episodes with the policy inside: observe, act, advance, reward, until every row is done.
#pragma once

#include "core/policy.h"
#include "planar/rules.h"

namespace evergait::EVERGAIT_ISA {

struct Slot {
  int64_t row;  // -1: nothing left to do
  int elapsed;
  double total, x;
  float action[kMaxActuators];
};

template <int W>
struct Flight {
  const EpisodeJob& job;
  Physics<W>& physics;
  float* packed;   // (W, packed size)
  float* scratch;  // of policy_action
  int64_t packed_floats;
  int n_live;
  State<W> state;
  Lanes<W> applied[kMaxDof];
  Slot slot[W];

  const PlanarModel& model() const { return physics.model; }

  void take_row(int lane) {
    const PlanarModel& m = model();
    Slot& s = slot[lane];
    s.row = __atomic_fetch_add(job.next_row, int64_t(1), __ATOMIC_RELAXED);
    s.elapsed = 0, s.total = 0.0;
    const bool idle = s.row >= job.n;
    for (int i = 0; i < m.n_dof; ++i) {
      // NaN touches nothing: an idle lane never keeps the others waiting for the solver.
      state.q[i][lane] = idle ? __builtin_nan("") : m.dof[i].sign * job.position[s.row * m.n_dof + i];
      state.v[i][lane] = idle ? __builtin_nan("") : m.dof[i].sign * job.velocity[s.row * m.n_dof + i];
      state.acceleration[i][lane] = 0.0;
      applied[i][lane] = 0.0;
    }
    state.root_force[lane] = 0.0;
    if (idle) {
      s.row = -1, --n_live;
      return;
    }
    const uint32_t pair = job.pair[s.row];
    pack_candidate(job.network, job.theta + job.theta_stride * pair, job.sigma * job.sign[s.row], job.noise, pair,
                   packed + lane * packed_floats);
  }

  void finish(int lane, bool bad) {
    const Slot& s = slot[lane];
    job.returns[s.row] = bad ? __builtin_nan("") : s.total;
    job.lengths[s.row] = s.elapsed;
    job.diverged[s.row] = bad;
    take_row(lane);
  }

  // The action of one lane; false if it is not finite.
  bool act(int lane) {
    const PlanarModel& m = model();
    Slot& s = slot[lane];
    double seen[kMaxObservations];
    const int n_seen = int(job.network.layers[0].n_in), n_actions = m.n_actuators;
    const View at = view(m, state, lane);
    s.x = at.position[0];
    observe(job.rules, m, at, seen);
    if (job.rules.observation_noise != 0.0) {
      const NoiseKey key = {job.seed[s.row], 0, job.noise_purpose};
      for_normals(key, uint32_t(s.elapsed), 0, n_seen, [&](int64_t j, int n, const float* z) {
        for (int k = 0; k < n; ++k) seen[j + k] += job.rules.observation_noise * double(z[k]);
      });
    }
    if (job.sums) {
      double* sums = job.sums + s.row * 2 * n_seen;
      for (int i = 0; i < n_seen; ++i) sums[i] += seen[i], sums[n_seen + i] += seen[i] * seen[i];
    }
    if (job.trace)
      for (int i = 0; i < m.n_dof; ++i) job.trace[(s.row * (job.limit + 1) + s.elapsed) * m.n_dof + i] = at.position[i];
    policy_action(job.network, packed + lane * packed_floats, seen, scratch, s.action);
    bool finite = true;
    for (int i = 0; i < n_actions; ++i) finite = finite && s.action[i] - s.action[i] == 0.0f;
    apply_control<W>(m, s.action, lane, applied);
    return finite;
  }

  void judge(int lane) {
    const PlanarModel& m = model();
    Slot& s = slot[lane];
    const View at = view(m, state, lane);
    const bool healthy = is_healthy(job.rules, m, at);
    s.total += reward(job.rules, m, s.x, at, healthy, s.action);
    ++s.elapsed;
    const bool bad = !is_finite(m.n_dof, at) || !(s.total - s.total == 0.0);
    if (job.trace)
      for (int i = 0; i < m.n_dof; ++i) job.trace[(s.row * (job.limit + 1) + s.elapsed) * m.n_dof + i] = at.position[i];
    if (bad || !healthy || s.elapsed >= job.limit) finish(lane, bad);
  }

  void run() {
    n_live = W;
    for (int lane = 0; lane < W; ++lane) take_row(lane);
    while (n_live > 0) {
      for (int lane = 0; lane < W; ++lane)
        while (slot[lane].row >= 0 && !act(lane)) finish(lane, true);
      if (n_live == 0) break;
      physics.advance(state, applied, job.rules.n_frames);
      for (int lane = 0; lane < W; ++lane)
        if (slot[lane].row >= 0) judge(lane);
    }
  }
};

template <int W>
Status run_episodes(const EpisodeJob& job) {
  if (job.n == 0) return kDone;
  const int64_t floats = packed_size(job.network);
  Physics<W> physics = open_physics<W>(job.options);
  float* packed = allocate<float>(W * floats + scratch_size(job.network));
  Flight<W>* flight = allocate<Flight<W>>(1);
  const bool ready = physics.stepper && packed && flight;
  if (ready) {
    new (flight) Flight<W>{job, physics, packed, packed + W * floats, floats, 0, {}, {}, {}};
    flight->run();
  }
  free(flight);
  free(packed);
  close_physics(physics);
  return ready ? kDone : kNoMemory;
}

}  // namespace evergait::EVERGAIT_ISA
