// Time integration: MuJoCo's RK4, and its semi-implicit Euler with joint damping taken implicitly.
#pragma once

#include "planar/solver.h"

namespace evergait::EVERGAIT_ISA {

// State of W robots. `acceleration` is only the solver's first guess, carried along as MuJoCo's warm start is.
template <int W>
struct State {
  Lanes<W> q[kMaxDof], v[kMaxDof], acceleration[kMaxDof];
  // Left over from the last evaluation of accelerations: its positions, and the force of the first joint's limit.
  Lanes<W> evaluated[kMaxDof], root_force;
};

template <class Tree, int W>
struct Stepper {
  using V = Lanes<W>;
  static constexpr int N = Tree::capacity;
  const PlanarModel& m;
  const Tree tree;
  Rows<Tree, W> rows;
  V mass[N][N];

  explicit Stepper(const PlanarModel& model) : m(model), tree(model) {}

  __attribute__((noinline)) void accelerate(const V* q, const V* v, const V* applied, V* a) {
    Pose<Tree, W> pose;
    V force[N];
    move_links(tree, m, q, v, pose);
    inertia_and_force(tree, m, pose, q, v, applied, mass, force);
    find_limits(tree, m, q, v, rows);
    find_floor_contacts(tree, m, pose, v, rows);
    find_pair_contacts(tree, m, pose, v, rows);
    Solver<Tree, W>{tree, rows, mass, force}.solve(a);
  }

  V root_force(const V* a) const {
    const LimitRow<W>& row = rows.limit[0];
    if (!row.present) return V{};
    return row.direction * keep<W>(row.active, row.weight * (row.target - row.direction * a[0]));
  }

  void runge_kutta(State<W>& s, const V* applied) {
    const double h = m.timestep;
    V q[N], v[N], a[N], sum_v[N], sum_a[N];
    each_down(tree, [&](auto i) EVERGAIT_LAMBDA { a[i] = s.acceleration[i]; });
    accelerate(s.q, s.v, applied, a);
    each_down(tree, [&](auto i) EVERGAIT_LAMBDA {
      sum_v[i] = s.v[i] * (1.0 / 6.0), sum_a[i] = a[i] * (1.0 / 6.0);
      q[i] = s.q[i] + h * (0.5 * s.v[i]), v[i] = s.v[i] + h * (0.5 * a[i]);
    });
    accelerate(q, v, applied, a);
    each_down(tree, [&](auto i) EVERGAIT_LAMBDA {
      sum_v[i] += v[i] * (1.0 / 3.0), sum_a[i] += a[i] * (1.0 / 3.0);
      q[i] = s.q[i] + h * (0.5 * v[i]), v[i] = s.v[i] + h * (0.5 * a[i]);
    });
    accelerate(q, v, applied, a);
    each_down(tree, [&](auto i) EVERGAIT_LAMBDA {
      sum_v[i] += v[i] * (1.0 / 3.0), sum_a[i] += a[i] * (1.0 / 3.0);
      q[i] = s.q[i] + h * v[i], v[i] = s.v[i] + h * a[i];
    });
    accelerate(q, v, applied, a);
    each_down(tree, [&](auto i) EVERGAIT_LAMBDA {
      sum_v[i] += v[i] * (1.0 / 6.0), sum_a[i] += a[i] * (1.0 / 6.0);
      s.q[i] += h * sum_v[i], s.v[i] += h * sum_a[i];
      s.acceleration[i] = a[i], s.evaluated[i] = q[i];
    });
    s.root_force = root_force(a);
  }

  // (M + h B) a' = M a: at the solution M a is the sum of all forces.
  void euler(State<W>& s, const V* applied) {
    const double h = m.timestep;
    V a[N], rate[N];
    each_down(tree, [&](auto i) EVERGAIT_LAMBDA { a[i] = s.acceleration[i]; });
    accelerate(s.q, s.v, applied, a);
    if (m.implicit_damping) {
      V copy[N][N];
      each_down(tree, [&](auto i) EVERGAIT_LAMBDA { rate[i] = mass[i][i] * a[i]; });
      each_down(tree, [&](auto i) EVERGAIT_LAMBDA {
        copy[i][i] = mass[i][i] + h * m.dof[i].damping;
        fill_above(tree, i, [&](auto k) EVERGAIT_LAMBDA {
          copy[i][k] = mass[i][k];
          rate[i] += mass[i][k] * a[k], rate[k] += mass[i][k] * a[i];
        });
      });
      factor_and_solve<Tree, W>(tree, copy, rate);
    } else {
      each_down(tree, [&](auto i) EVERGAIT_LAMBDA { rate[i] = a[i]; });
    }
    each_down(tree, [&](auto i) EVERGAIT_LAMBDA {
      s.evaluated[i] = s.q[i];
      s.v[i] += h * rate[i];
      s.q[i] += h * s.v[i];
      s.acceleration[i] = a[i];
    });
    s.root_force = root_force(a);
  }

  void advance(State<W>& s, const V* applied, int n_frames) {
    for (int frame = 0; frame < n_frames; ++frame) {
      if (m.runge_kutta) {
        runge_kutta(s, applied);
      } else {
        euler(s, applied);
      }
    }
  }
};

}  // namespace evergait::EVERGAIT_ISA
