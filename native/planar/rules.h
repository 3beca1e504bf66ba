// What a task makes of a state: observation, health and reward, one robot at a time.
//
// The arithmetic repeats gymnasium/envs/mujoco/*_v5.py operation by operation, in its types: the control cost is a
// float32 sum because actions are float32.
#pragma once

#include "planar/physics.h"

namespace evergait::EVERGAIT_ISA {

constexpr double kHuge = 1e10;  // beyond it MuJoCo calls a state bad

// One robot's state as Gymnasium sees it. After a step, MuJoCo's derived quantities are those of the integrator's last
// evaluation.
struct View {
  double position[kMaxDof], velocity[kMaxDof];
  double evaluated[kMaxDof];  // position at the last evaluation
  double root_force;          // constraint force on the first joint there
};

template <int W>
EVERGAIT_INLINE View view(const PlanarModel& m, const State<W>& state, int lane) {
  View at;
  for (int i = 0; i < m.n_dof; ++i) {
    at.position[i] = m.dof[i].sign * state.q[i][lane];
    at.velocity[i] = m.dof[i].sign * state.v[i][lane];
    at.evaluated[i] = state.evaluated[i][lane];
  }
  at.root_force = m.dof[0].sign * state.root_force[lane];
  return at;
}

inline double clip_to_10(double x) { return x < -10.0 ? -10.0 : (x > 10.0 ? 10.0 : x); }

inline void observe(const TaskRules& rules, const PlanarModel& m, const View& at, double* observation) {
  for (int i = rules.n_hidden; i < m.n_dof; ++i) *observation++ = at.position[i];
  if (rules.kind == kDoublePendulum) {
    observation -= m.n_dof - 1;  // sines and cosines in place of the angles
    for (int i = 1; i < m.n_dof; ++i) {
      Lanes<1> sine, cosine;
      sine_cosine<1>(Lanes<1>{} + at.position[i], sine, cosine);
      observation[i - 1] = sine[0], observation[m.n_dof - 1 + i - 1] = cosine[0];
    }
    observation += 2 * (m.n_dof - 1);
  }
  for (int i = 0; i < m.n_dof; ++i) *observation++ = rules.clips_velocity ? clip_to_10(at.velocity[i]) : at.velocity[i];
  if (rules.kind == kDoublePendulum) *observation = clip_to_10(at.root_force);
}

// Where the tip of the double pendulum was at the last evaluation.
inline void find_tip(const TaskRules& rules, const PlanarModel& m, const View& at, double& x, double& z) {
  Lanes<1> sine = {0.0}, cosine = {1.0};
  double angle = 0.0;
  x = 0.0, z = 0.0;
  for (int i = 0; i < m.n_dof; ++i) {
    const Dof& d = m.dof[i];
    const double shift = at.evaluated[i] - d.reference;
    x += d.anchor_x * cosine[0] + d.anchor_z * sine[0];
    z += d.anchor_z * cosine[0] - d.anchor_x * sine[0];
    if (d.kind == kSlideX) x += shift;
    if (d.kind == kSlideZ) z += shift;
    if (d.kind == kHinge) angle += shift;
    sine_cosine<1>(Lanes<1>{} + angle, sine, cosine);
  }
  x += rules.tip[0] * cosine[0] + rules.tip[1] * sine[0];
  z += rules.tip[1] * cosine[0] - rules.tip[0] * sine[0];
}

inline bool inside(double x, const double* range) { return range[0] < x && x < range[1]; }

inline bool is_healthy(const TaskRules& rules, const PlanarModel& m, const View& at) {
  if (rules.kind == kPendulum) {  // the bound itself is healthy
    const double angle = at.position[1] < 0.0 ? -at.position[1] : at.position[1];
    return !(angle > rules.angle[1]);
  }
  if (rules.kind == kDoublePendulum) {
    double x, z;
    find_tip(rules, m, at, x, z);
    return !(z <= 1.0);
  }
  if (rules.kind == kRunner) return true;
  bool healthy = inside(at.position[1], rules.height) && inside(at.position[2], rules.angle);
  for (int i = 2; i < m.n_dof; ++i) healthy = healthy && inside(at.position[i], rules.state);
  for (int i = 0; i < m.n_dof; ++i) healthy = healthy && inside(at.velocity[i], rules.state);
  return healthy;
}

inline bool is_finite(int n_dof, const View& at) {
  bool finite = true;  // written so that NaN compares as not finite
  for (int i = 0; i < n_dof; ++i) {
    finite = finite && at.position[i] <= kHuge && at.position[i] >= -kHuge;
    finite = finite && at.velocity[i] <= kHuge && at.velocity[i] >= -kHuge;
  }
  return finite;
}

// The sum of squares in NumPy's order: from eight numbers on it has eight partial sums.
inline float sum_of_squares(const float* x, int n) {
  float sum = 0.0f;
  int i = 0;
  if (n >= 8) {
    float part[8] = {};
    for (; i + 8 <= n; i += 8) {
      for (int k = 0; k < 8; ++k) part[k] += x[i + k] * x[i + k];
    }
    sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
  }
  for (; i < n; ++i) sum += x[i] * x[i];
  return sum;
}

inline double reward(const TaskRules& rules, const PlanarModel& m, double x_before, const View& at, bool healthy,
                     const float* action) {
  if (rules.kind == kPendulum) return healthy ? 1.0 : 0.0;
  if (rules.kind == kDoublePendulum) {
    double x, z;
    find_tip(rules, m, at, x, z);
    const double distance = 0.01 * (x * x) + (z - 2.0) * (z - 2.0);
    const double v1 = at.velocity[1], v2 = at.velocity[2];
    const double speed = 1e-3 * (v1 * v1) + 5e-3 * (v2 * v2);
    return (healthy ? rules.healthy_reward : 0.0) - distance - speed;
  }
  double gain = rules.forward_weight * ((at.position[0] - x_before) / rules.dt);
  if (rules.kind == kWalker) gain = gain + (healthy ? rules.healthy_reward : 0.0);
  return gain - static_cast<double>(rules.control_weight * sum_of_squares(action, m.n_actuators));
}

}  // namespace evergait::EVERGAIT_ISA
