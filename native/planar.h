// Plain data shared by the bindings and the planar engine, and the table of its functions for one instruction set.
#pragma once

#include "kernels.h"
#include "planar/model.h"

namespace evergait {

struct PlanarOptions {
  const PlanarModel* model;
  int n_lanes;    // fewest_lanes or native_lanes below; 0: the latter
  bool any_tree;  // do not use code specialised for Gymnasium's robots (for tests: it must not matter)
};

struct StepJob {
  PlanarOptions options;
  int64_t begin, end;           // rows
  int n_frames;                 // MuJoCo steps
  double *position, *velocity;  // (n, n_dof), in and out
  const double* control;        // (n, n_actuators)
};

// Swimmer and HalfCheetah run; Hopper and Walker2d must also stay upright.
enum TaskKind { kRunner = 0, kWalker = 1, kPendulum = 2, kDoublePendulum = 3 };

// How a Gymnasium environment turns states into observations, rewards and endings.
struct TaskRules {
  int kind;
  int n_frames;         // MuJoCo steps per environment step
  int n_hidden;         // leading positions that the policy does not see
  bool clips_velocity;  // to +-10 in the observation
  double dt, forward_weight, healthy_reward;
  float control_weight;
  double height[2], angle[2], state[2];  // healthy ranges of position 1, position 2, all the rest of the state
  double tip[2];                         // of the double pendulum, from its last anchor
  double observation_noise;
};

// Whole episodes, one per row. Threads share `next_row`; a lane takes the next row when its episode ends.
struct EpisodeJob {
  PlanarOptions options;
  TaskRules rules;
  Network network;
  const float* theta;
  float sigma;
  NoiseKey noise;
  const uint32_t* pair;               // (n,)
  const float* sign;                  // (n,)
  const uint32_t* seed;               // (n,) of the observation noise
  const double *position, *velocity;  // (n, n_dof) initial states
  int64_t n;
  int limit;               // steps
  uint32_t noise_purpose;  // of observation noise
  double* returns;         // (n,)
  int32_t* lengths;        // (n,)
  uint8_t* diverged;       // (n,)
  double* sums;            // (n, 2, n_observations) or null
  double* trace;           // (n, limit + 1, n_dof) positions or null
  int64_t* next_row;
};

struct PlanarKernels {
  Status (*step)(const StepJob&);
  Status (*episodes)(const EpisodeJob&);
  int fewest_lanes, native_lanes;
};

namespace baseline { extern const PlanarKernels planar_kernels; }
namespace avx2 { extern const PlanarKernels planar_kernels; }
namespace avx512 { extern const PlanarKernels planar_kernels; }

}  // namespace evergait
