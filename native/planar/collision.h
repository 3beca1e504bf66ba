// Contacts between two capsules of the robot (or of the robot and the world), as MuJoCo finds them: nearest points of
// the two segments, then two spheres there; parallel segments give up to two contacts at the ends.
#pragma once

#include "planar/constraints.h"

namespace evergait::EVERGAIT_ISA {

template <int W>
struct Segment {
  Lanes<W> x, z, axis_x, axis_z;
  Lanes<W> slide_x, slide_z;
};

template <class Tree, int W>
EVERGAIT_INLINE Segment<W> place(const Tree& tree, const Capsule& capsule, const Pose<Tree, W>& pose) {
  using V = Lanes<W>;
  Segment<W> s;
  s.x = broadcast<W>(capsule.x), s.z = broadcast<W>(capsule.z);
  s.axis_x = broadcast<W>(capsule.axis_x), s.axis_z = broadcast<W>(capsule.axis_z);
  s.slide_x = s.slide_z = V{};
  each_down(tree, [&](auto i) EVERGAIT_LAMBDA {
    if (i != capsule.dof) return;
    s.slide_x = pose.slide_x[i], s.slide_z = pose.slide_z[i];
    if (tree.kind(i) == kHinge) {
      const V c = pose.cosine[i], n = pose.sine[i];
      s.x = capsule.x * c + capsule.z * n, s.z = capsule.z * c - capsule.x * n;
      s.axis_x = capsule.axis_x * c + capsule.axis_z * n, s.axis_z = capsule.axis_z * c - capsule.axis_x * n;
    }
    s.x += pose.x[i], s.z += pose.z[i];
  });
  return s;
}

template <class V>
EVERGAIT_INLINE V clip(V x, double low, double high) {
  return x < low ? V{} + low : (x > high ? V{} + high : x);
}

template <class Tree, int W>
struct PairFinder {
  using V = Lanes<W>;
  using M = LaneMask<W>;
  const Tree& tree;
  const Pose<Tree, W>& pose;
  const V* v;
  Rows<Tree, W>& rows;

  // Two spheres centred t1, t2 half-lengths along the segments; returns the lanes that touch.
  M spheres(const Pair& pair, const Segment<W>& a, const Segment<W>& b, V t1, V t2, M where) {
    const V ax = a.x + t1 * a.axis_x, az = a.z + t1 * a.axis_z;
    const V bx = b.x + t2 * b.axis_x, bz = b.z + t2 * b.axis_z;
    const V dx = (bx - ax) + (b.slide_x - a.slide_x), dz = (bz - az) + (b.slide_z - a.slide_z);
    const V length = square_root<W>(dx * dx + dz * dz);
    const V distance = length - pair.a.radius - pair.b.radius;
    const M exists = where & (distance < pair.contact.margin);
    if (!any<W>(exists)) return exists;
    // Axes that cross: the distance is zero but for rounding. MuJoCo asks for 1e-15, which its own rounding mostly
    // meets; ours differs, and no real distance is that short.
    const M coincide = length < 1e-13;
    const V nx = keep<W>(~coincide, dx / length), nz = keep<W>(~coincide, dz / length);
    const V reach = pair.a.radius + 0.5 * distance;
    const V px = ax + reach * nx, pz = az + reach * nz;
    add(pair, exists & ~coincide, distance, nx, nz, nz, -nx, px, pz, a);
    if (pair.dimension == 3) {
      // The axes cross: MuJoCo's normal then leaves the plane and moves nothing, but both tangents lie in it.
      const V zero = V{}, one = broadcast<W>(1.0);
      add(pair, exists & coincide, distance, zero, zero, one, zero, px, pz, a);
      add(pair, exists & coincide, distance, zero, zero, zero, one, px, pz, a);
    }
    return exists;
  }

  void add(const Pair& pair, M exists, V distance, V nx, V nz, V tx, V tz, V px, V pz, const Segment<W>& a) {
    constexpr int N = Tree::capacity;
    if (!any<W>(exists)) return;
    const int index = rows.n_pair_contacts++;
    Contact<N, W>& c = rows.pair_contact[index];
    rows.pair_link[index] = pair.a.dof > pair.b.dof ? pair.a.dof : pair.b.dof;
    V vn = V{}, vt = V{};
    each_down(tree, [&](auto k) EVERGAIT_LAMBDA { c.normal[k] = V{}, c.tangent[k] = V{}; });
    // +1 on the path of the second geom, -1 on the first's, nothing where they share a joint.
    double side[N];
    for (int k = 0; k < tree.size(); ++k) side[k] = 0.0;
    for (int k = pair.b.dof; k >= 0; k = tree.parent(k)) side[k] += 1.0;
    for (int k = pair.a.dof; k >= 0; k = tree.parent(k)) side[k] -= 1.0;
    each_down(tree, [&](auto k) EVERGAIT_LAMBDA {
      if (side[k] == 0.0) return;
      V jx, jz;
      if (tree.kind(k) == kHinge) {
        const V rx = (px - pose.x[k]) + (a.slide_x - pose.slide_x[k]);
        const V rz = (pz - pose.z[k]) + (a.slide_z - pose.slide_z[k]);
        jx = rz, jz = -rx;
      } else {
        jx = broadcast<W>(tree.kind(k) == kSlideX ? 1.0 : 0.0), jz = broadcast<W>(tree.kind(k) == kSlideZ ? 1.0 : 0.0);
      }
      c.normal[k] = side[k] * (nx * jx + nz * jz);
      c.tangent[k] = side[k] * (tx * jx + tz * jz);
      vn += c.normal[k] * v[k], vt += c.tangent[k] * v[k];
    });
    soften<N, W>(c, pair.contact, pair.dimension, pair.friction, exists, distance, vn, vt);
  }

  __attribute__((noinline)) void collide(const Pair& pair) {
    const Segment<W> a = place(tree, pair.a, pose), b = place(tree, pair.b, pose);
    const V dx = (a.x - b.x) + (a.slide_x - b.slide_x), dz = (a.z - b.z) + (a.slide_z - b.slide_z);
    const M near = dx * dx + dz * dz <= pair.reach * pair.reach;
    if (!any<W>(near)) return;
    const V zero = V{};
    if (pair.a.length == 0.0 && pair.b.length == 0.0) {
      spheres(pair, a, b, zero, zero, near);
      return;
    }
    const V ma = a.axis_x * a.axis_x + a.axis_z * a.axis_z;
    const V mb = -(a.axis_x * b.axis_x + a.axis_z * b.axis_z);
    const V mc = b.axis_x * b.axis_x + b.axis_z * b.axis_z;
    const V u = -(a.axis_x * dx + a.axis_z * dz), w = b.axis_x * dx + b.axis_z * dz;
    if (pair.a.length == 0.0) {
      spheres(pair, a, b, zero, clip(w / mc, -1.0, 1.0), near);
      return;
    }
    if (pair.b.length == 0.0) {
      spheres(pair, a, b, clip(u / ma, -1.0, 1.0), zero, near);
      return;
    }
    const V cross = a.axis_x * b.axis_z - a.axis_z * b.axis_x;
    const V det = cross * cross;                // ma mc - mb mb without the cancellation
    const M parallel = det < 1e-8 * (ma * mc);  // within 1e-4 radians, as in MuJoCo 4
    const M crossed = near & ~parallel;
    if (any<W>(crossed)) {
      // Not in other lanes: 0/0 of exactly parallel links would reach their solver, past a weight of 0.
      V t1 = keep<W>(crossed, (mc * u - mb * w) / det), t2 = keep<W>(crossed, (ma * w - mb * u) / det);
      const M high = t1 > 1.0, low = t1 < -1.0;
      t2 = high ? (w - mb) / mc : (low ? (w + mb) / mc : t2);
      t1 = clip(t1, -1.0, 1.0);
      const M high2 = t2 > 1.0, low2 = t2 < -1.0;
      t1 = high2 ? clip((u - mb) / ma, -1.0, 1.0) : (low2 ? clip((u + mb) / ma, -1.0, 1.0) : t1);
      t2 = clip(t2, -1.0, 1.0);
      spheres(pair, a, b, t1, t2, crossed);
    }
    const M aligned = near & parallel;
    if (!any<W>(aligned)) return;
    const V one = broadcast<W>(1.0);
    const M first = spheres(pair, a, b, one, clip((w - mb) / mc, -1.0, 1.0), aligned);
    const M second = spheres(pair, a, b, -one, clip((w + mb) / mc, -1.0, 1.0), aligned);
    const M open = aligned & ~(first & second);
    const M third = spheres(pair, a, b, clip((u - mb) / ma, -1.0, 1.0), one, open);
    const M two = (first & second) | (first & third) | (second & third);
    spheres(pair, a, b, clip((u + mb) / ma, -1.0, 1.0), -one, open & ~two);
  }
};

// The cheap test, far more often the only one: centres further apart than the capsules reach.
template <class Tree, int W>
EVERGAIT_INLINE void find_pair_contacts(const Tree& tree, const PlanarModel& m, const Pose<Tree, W>& pose,
                                        const Lanes<W>* v, Rows<Tree, W>& rows) {
  rows.n_pair_contacts = 0;
  if (m.n_pairs == 0) return;
  PairFinder<Tree, W> finder{tree, pose, v, rows};
  for (int index = 0; index < m.n_pairs; ++index) finder.collide(m.pair[index]);
}

}  // namespace evergait::EVERGAIT_ISA
