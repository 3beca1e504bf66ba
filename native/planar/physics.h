// Physics<W>: a stepper for W robots behind two function pointers, so that only the stepper itself is compiled per
// robot.
#pragma once

#include <new>

#include "core/isa.h"
#include "planar.h"
#include "planar/stepper.h"

namespace evergait::EVERGAIT_ISA {

constexpr int kNativeLanes = EVERGAIT_VECTOR_BYTES / 8;

template <int W>
struct Physics {
  const PlanarModel& model;
  void* stepper;  // null if there is no memory for it
  void (*advance_)(void* stepper, State<W>&, const Lanes<W>* applied, int n_frames);

  void advance(State<W>& state, const Lanes<W>* applied, int n_frames) { advance_(stepper, state, applied, n_frames); }
};

template <class Tree, int W>
Physics<W> use_stepper(const PlanarModel& model) {
  using S = Stepper<Tree, W>;
  S* memory = allocate<S>(1);
  return {model, memory ? new (memory) S(model) : nullptr,
          [](void* stepper, State<W>& state, const Lanes<W>* applied, int n_frames) {
            static_cast<S*>(stepper)->advance(state, applied, n_frames);
          }};
}

template <int W>
Physics<W> open_physics(const PlanarOptions& options) {
  const PlanarModel& model = *options.model;
#if !defined(EVERGAIT_RUNTIME_TREES)  // defined where compiling matters more than speed, as under sanitizers
  if constexpr (W == kNativeLanes) {
    if (!options.any_tree) {
      if (StaticTree<ChainOf5>::matches(model)) return use_stepper<StaticTree<ChainOf5>, W>(model);
      if (StaticTree<ChainOf6>::matches(model)) return use_stepper<StaticTree<ChainOf6>, W>(model);
      if (StaticTree<TwoLegs>::matches(model)) return use_stepper<StaticTree<TwoLegs>, W>(model);
    }
  }
#endif
  return use_stepper<RuntimeTree, W>(model);
}

template <int W>
void close_physics(Physics<W>& physics) {
  free(physics.stepper);
}

// Torques of one lane from its controls; a control beyond its range is clamped, as MuJoCo does with a copy.
template <int W, class T>
EVERGAIT_INLINE void apply_control(const PlanarModel& m, const T* control, int lane, Lanes<W>* applied) {
  for (int i = 0; i < m.n_dof; ++i) applied[i][lane] = 0.0;
  for (int a = 0; a < m.n_actuators; ++a) {
    const Actuator& actuator = m.actuator[a];
    double u = static_cast<double>(control[a]);
    if (actuator.limited) u = u < actuator.lower ? actuator.lower : (u > actuator.upper ? actuator.upper : u);
    applied[actuator.dof][lane] += actuator.gain * u;
  }
}

}  // namespace evergait::EVERGAIT_ISA
