// Rows of the constraint problem: joint limits, and contacts with pyramidal friction cones.
//
// A contact of dimension 3 has the four rows n + mu t, n - mu t and twice n (the tangent out of the plane moves
// nothing), all with the same weight D; dimension 1 has n alone. Contacts are kept as (normal, tangent) Jacobians and
// the rows formed on the fly.
#pragma once

#include "planar/dynamics.h"

namespace evergait::EVERGAIT_ISA {

template <int W>
struct LimitRow {
  bool present;        // in some lane
  Lanes<W> direction;  // the Jacobian's only entry: +1 at the lower limit, -1 at the upper
  Lanes<W> weight, target;
  LaneMask<W> active;
};

// A contact's Jacobian has an entry per joint on the path of its link. Slides need none stored for contacts with the
// floor.
template <int N, int W>
struct Contact {
  Lanes<W> normal[N], tangent[N];
  Lanes<W> edge_weight, middle_weight;                // of n +- mu t, and of n
  Lanes<W> target_plus, target_minus, target_middle;  // reference accelerations
  LaneMask<W> plus, minus, middle;                    // rows active at the current acceleration
  double friction;
};

template <class Tree, int W>
struct Rows {
  static constexpr int N = Tree::capacity;
  int n_contacts, n_pair_contacts;
  bool any_limit;
  LimitRow<W> limit[N];
  int first[N + 1], last[N];  // contacts with the floor, by link
  Contact<N, W> contact[kMaxPoints];
  int pair_link[kMaxPairContacts];  // the deeper of the two links
  Contact<N, W> pair_contact[kMaxPairContacts];
  bool none() const { return !any_limit && n_contacts == 0 && n_pair_contacts == 0; }
};

// MuJoCo's solimp curve at |distance - margin|.
template <int W>
EVERGAIT_INLINE Lanes<W> impedance(const Softness& s, Lanes<W> violation) {
  using V = Lanes<W>;
  if (s.width == 0.0) return broadcast<W>(s.d_min);  // flat: Python has put the mean into d_min
  const V x = absolute(violation) / s.width;
  V y;
  if (s.power == 1.0) {
    y = x;
  } else {
    const double rise = 1.0 / s.midpoint, fall = 1.0 / (1.0 - s.midpoint);
    const V rest = 1.0 - x;
    y = x <= s.midpoint ? rise * (x * x) : 1.0 - fall * (rest * rest);
  }
  const V d = s.d_min + y * (s.d_max - s.d_min);
  return x >= 1.0 ? broadcast<W>(s.d_max) : (x <= 0.0 ? broadcast<W>(s.d_min) : d);
}

template <int W>
EVERGAIT_INLINE Lanes<W> row_weight(const Softness& s, Lanes<W> d) {
  return 1.0 / larger((1.0 - d) * s.weight / d, broadcast<W>(1e-15));  // MuJoCo's mjMINVAL
}

template <class Tree, int W>
EVERGAIT_INLINE void find_limits(const Tree& tree, const PlanarModel& m, const Lanes<W>* q, const Lanes<W>* v,
                                 Rows<Tree, W>& rows) {
  using V = Lanes<W>;
  rows.any_limit = false;
  each_down(tree, [&](auto i) EVERGAIT_LAMBDA {
    const Dof& d = m.dof[i];
    LimitRow<W>& row = rows.limit[i];
    row.present = false;
    if (!d.limited) return;
    const V above_lower = q[i] - d.lower, below_upper = d.upper - q[i];
    const V distance = smaller(above_lower, below_upper);
    const LaneMask<W> exists = distance < d.limit.margin;
    if (!any<W>(exists)) return;
    row.present = true, rows.any_limit = true;
    row.direction = above_lower < below_upper ? broadcast<W>(1.0) : broadcast<W>(-1.0);
    const V violation = distance - d.limit.margin;
    const V imp = impedance<W>(d.limit, violation);
    row.weight = keep<W>(exists, row_weight<W>(d.limit, imp));
    row.target = -d.limit.damping * (row.direction * v[i]) - d.limit.stiffness * imp * violation;
  });
}

// Fills in weights and targets; vn and vt are the contact's normal and tangential velocity.
template <int N, int W>
EVERGAIT_INLINE void soften(Contact<N, W>& c, const Softness& s, int dimension, double friction, LaneMask<W> exists,
                            Lanes<W> distance, Lanes<W> vn, Lanes<W> vt) {
  using V = Lanes<W>;
  const V violation = distance - s.margin;
  const V imp = impedance<W>(s, violation);
  const V weight = keep<W>(exists, row_weight<W>(s, imp));
  const V push = s.stiffness * imp * violation;
  c.friction = friction;
  c.edge_weight = dimension == 3 ? weight : V{};
  c.middle_weight = dimension == 3 ? 2.0 * weight : weight;
  c.target_plus = -s.damping * (vn + friction * vt) - push;
  c.target_minus = -s.damping * (vn - friction * vt) - push;
  c.target_middle = -s.damping * vn - push;
}

template <class Tree, int W>
EVERGAIT_INLINE void find_floor_contacts(const Tree& tree, const PlanarModel& m, const Pose<Tree, W>& pose,
                                         const Lanes<W>* v, Rows<Tree, W>& rows) {
  using V = Lanes<W>;
  int n = 0;
  each_down(tree, [&](auto i) EVERGAIT_LAMBDA {
    rows.first[i] = n;
    const Dof& d = m.dof[i];
    const int end = d.first_point + d.n_points;
    for (int index = d.first_point; index < end; ++index) {
      const Point& point = m.point[index];
      V pz;
      if (tree.kind(i) == kHinge) {
        pz = point.z * pose.cosine[i] - point.x * pose.sine[i];
      } else {
        pz = broadcast<W>(point.z);
      }
      const V height = (pose.z[i] + pz) + pose.slide_z[i];
      const V distance = height - point.floor_height - point.radius;
      const LaneMask<W> exists = distance < point.contact.margin;
      if (!any<W>(exists)) continue;
      V px;
      if (tree.kind(i) == kHinge) {
        px = point.x * pose.cosine[i] + point.z * pose.sine[i];
      } else {
        px = broadcast<W>(point.x);
      }
      Contact<Tree::capacity, W>& c = rows.contact[n++];
      const V cx = pose.x[i] + px;
      const V cz = (pose.z[i] + pz) - (point.radius + 0.5 * distance);
      V vn = V{}, vt = V{};
      path(tree, i, [&](auto k) EVERGAIT_LAMBDA {
        if (tree.kind(k) == kHinge) {
          c.normal[k] = pose.x[k] - cx;
          c.tangent[k] = cz - pose.z[k];
          vn += c.normal[k] * v[k], vt += c.tangent[k] * v[k];
        } else if (tree.kind(k) == kSlideX) {
          vt += v[k];
        } else {
          vn += v[k];
        }
      });
      soften<Tree::capacity, W>(c, point.contact, point.dimension, point.friction, exists, distance, vn, vt);
    }
    rows.last[i] = n;
  });
  rows.n_contacts = n;
}

}  // namespace evergait::EVERGAIT_ISA
