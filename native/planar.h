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
  int64_t theta_stride;  // 0: all rows perturb one θ; else θ of a row begins at theta + theta_stride * pair
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

// Robots of one variant within a vector environment, and how their episodes begin.
struct VectorGroup {
  PlanarModel model;
  TaskRules rules;
  double position[kMaxDof], velocity[kMaxDof];  // before the noise of a reset
  double reset_noise;
};

// What a step tells beside its reward, as columns of length n.
enum VectorInfo {
  kPositionX,
  kPositionY,
  kHeight,
  kDistance,
  kSpeedX,
  kSpeedY,  // of the first two joints; height above the start
  kForward,
  kControl,
  kSurvive,
  kDistancePenalty,
  kVelocityPenalty,  // terms of the reward
  kVectorInfos
};

// Robots that live between calls. Rows that no call names stay as they are.
struct VectorJob {
  const VectorGroup* groups;
  const int32_t* group;  // (n,)
  int64_t n;
  // Of robots
  double *position, *velocity;  // (n, n_dof), as Gymnasium has them
  double* acceleration;         // (n, n_dof) the solver's first guess
  uint64_t* generator;          // (n, 4) of resets
  uint64_t* noise_seed;         // (n,) of the observation noise
  uint32_t* episode;            // (n,) finished since `noise_seed` was given
  int32_t* elapsed;             // (n,) steps of the episode
  // Of a step
  const float* actions;             // (n, n_actuators)
  double* observations;             // (n, n_observations), or
  float* narrow;                    // the same in float32
  double *rewards, *infos;          // (n,), (kVectorInfos, n)
  uint8_t *terminated, *truncated;  // (n,)
  uint8_t* diverged;                // (n,)
  int limit;                        // steps of an episode
  bool ends;                        // when the robot is no longer healthy
  bool normal;                      // velocities begin with normal noise, else uniform
  const double* normal_width;       // (256,) of NumPy's ziggurat
  const uint64_t* normal_bound;     // (256,)
  bool draws;                       // initial states from `generator`; else they are there already
  uint8_t* undrawn;                 // (n,) whose normal noise is one of the few that only NumPy can draw
  uint32_t noise_purpose;
  // Rows to work on, those of one group together, cut into blocks of one group each; threads share `next_block`.
  const int64_t *rows, *blocks;  // block i has rows[blocks[i]] to rows[blocks[i + 1] - 1]
  int64_t n_blocks;
  int64_t* next_block;
};

struct PlanarKernels {
  Status (*step)(const StepJob&);
  Status (*episodes)(const EpisodeJob&);
  Status (*vector_step)(const VectorJob&);
  void (*vector_begin)(const VectorJob&);
  int fewest_lanes, native_lanes;
};

namespace baseline { extern const PlanarKernels planar_kernels; }
namespace avx2 { extern const PlanarKernels planar_kernels; }
namespace avx512 { extern const PlanarKernels planar_kernels; }

}  // namespace evergait
