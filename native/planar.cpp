// The planar engine, compiled once per instruction set (see core/isa.h).
#include "planar/episodes.h"
#if !defined(__wasm__)  // there are no vector environments in a browser
#include "planar/vector.h"
#endif

namespace evergait::EVERGAIT_ISA {

template <int W>
static Status step_rows(const StepJob& job) {
  Physics<W> physics = open_physics<W>(job.options);
  if (!physics.stepper) return kNoMemory;
  const PlanarModel& m = physics.model;
  State<W> state;
  Lanes<W> applied[kMaxDof];
  for (int64_t first = job.begin; first < job.end; first += W) {
    for (int lane = 0; lane < W; ++lane) {
      const int64_t row = first + lane < job.end ? first + lane : job.end - 1;  // spare lanes repeat the last row
      for (int i = 0; i < m.n_dof; ++i) {
        state.q[i][lane] = m.dof[i].sign * job.position[row * m.n_dof + i];
        state.v[i][lane] = m.dof[i].sign * job.velocity[row * m.n_dof + i];
        state.acceleration[i][lane] = 0.0;
      }
      apply_control<W>(m, job.control + row * m.n_actuators, lane, applied);
    }
    physics.advance(state, applied, job.n_frames);
    for (int lane = 0; lane < W && first + lane < job.end; ++lane) {
      const int64_t row = first + lane;
      for (int i = 0; i < m.n_dof; ++i) {
        job.position[row * m.n_dof + i] = m.dof[i].sign * state.q[i][lane];
        job.velocity[row * m.n_dof + i] = m.dof[i].sign * state.v[i][lane];
      }
    }
  }
  close_physics(physics);
  return kDone;
}

// As many lanes as a register holds; the baseline also has single lanes. More widths per instruction set would serve
// tests alone and double the time to compile.
constexpr bool kHasSingle = kNativeLanes == 2;

static Status step(const StepJob& job) {
  if constexpr (kHasSingle)
    if (job.options.n_lanes == 1) return step_rows<1>(job);
  return step_rows<kNativeLanes>(job);
}

static Status episodes(const EpisodeJob& job) {
  if constexpr (kHasSingle)
    if (job.options.n_lanes == 1) return run_episodes<1>(job);
  return run_episodes<kNativeLanes>(job);
}

#if defined(__wasm__)
extern const PlanarKernels planar_kernels = {step,        episodes, nullptr, nullptr, kHasSingle ? 1 : kNativeLanes,
                                             kNativeLanes};
#else
extern const PlanarKernels planar_kernels = {
    step, episodes, vector_step<kNativeLanes>, vector_begin, kHasSingle ? 1 : kNativeLanes, kNativeLanes};
#endif

}  // namespace evergait::EVERGAIT_ISA
