// Plain data shared by bindings.cpp and the planar engine, and the table of its functions for one instruction set.
#pragma once

#include "kernels.h"

namespace evergait {

struct PlanarOptions {
  const double* description;   // see planar_model.h
  int n_lanes;                 // 1, 2, 4, 8; 0: as many as a register holds
  bool any_tree;               // do not use code specialised for Gymnasium's robots (for tests: it must not matter)
};

struct StepJob {
  PlanarOptions options;
  int64_t begin, end;          // rows
  int n_frames;                // MuJoCo steps
  double *position, *velocity; // (n, n_dof), in and out
  const double* control;       // (n, n_actuators)
};

struct PlanarKernels {
  void (*step)(const StepJob&);
};

namespace baseline { extern const PlanarKernels planar_kernels; }
namespace avx2 { extern const PlanarKernels planar_kernels; }
namespace avx512 { extern const PlanarKernels planar_kernels; }

}  // namespace evergait
