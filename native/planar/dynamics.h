// Kinematics, inertia and smooth forces of a planar tree, in one sweep down and one up.
//
// R(phi)(x, z) = (x cos + z sin, -x sin + z cos) turns about +y; d/dphi of a vector r is (r_z, -r_x). Every joint i is
// a link with an anchor; `moment` is its augmented first moment (children's masses gathered at their anchors), which
// makes the subtree's first moment, second moment and velocity-product forces short sums.
#pragma once

#include "planar/topology.h"

namespace evergait::EVERGAIT_ISA {

template <class Tree, int W>
struct Pose {
  using V = Lanes<W>;
  static constexpr int N = Tree::capacity;
  V sine[N], cosine[N];
  V angle[N], spin[N];
  V slide_x[N], slide_z[N];  // displacement of the slides above; kept apart from x, z so that differences stay exact
  V arm_x[N], arm_z[N];      // anchor minus parent's anchor
  V x[N], z[N];              // anchor, without the slides' displacement
};

template <class Tree>
EVERGAIT_INLINE constexpr bool below_hinge(const Tree& tree, int i) {
  return tree.parent(i) >= 0 && tree.kind(tree.parent(i)) == kHinge;
}

template <class Tree, int W>
EVERGAIT_INLINE void move_links(const Tree& tree, const PlanarModel& m, const Lanes<W>* q, const Lanes<W>* v,
                                Pose<Tree, W>& pose) {
  using V = Lanes<W>;
  each_down(tree, [&](auto i) EVERGAIT_LAMBDA {
    const Dof& d = m.dof[i];
    const int p = tree.parent(i);
    const bool turned = below_hinge(tree, i);
    const V shift = q[i] - d.reference;
    if (p >= 0) {
      pose.slide_x[i] = pose.slide_x[p], pose.slide_z[i] = pose.slide_z[p];
    } else {
      pose.slide_x[i] = V{}, pose.slide_z[i] = V{};
    }
    if (turned) {
      pose.arm_x[i] = d.anchor_x * pose.cosine[p] + d.anchor_z * pose.sine[p];
      pose.arm_z[i] = d.anchor_z * pose.cosine[p] - d.anchor_x * pose.sine[p];
    } else {
      pose.arm_x[i] = broadcast<W>(d.anchor_x), pose.arm_z[i] = broadcast<W>(d.anchor_z);
    }
    if (p >= 0) {
      pose.x[i] = pose.x[p] + pose.arm_x[i], pose.z[i] = pose.z[p] + pose.arm_z[i];
    } else {
      pose.x[i] = pose.arm_x[i], pose.z[i] = pose.arm_z[i];
    }
    if (tree.kind(i) == kHinge) {
      pose.angle[i] = turned ? pose.angle[p] + shift : shift;
      pose.spin[i] = turned ? pose.spin[p] + v[i] : v[i];
      sine_cosine<W>(pose.angle[i], pose.sine[i], pose.cosine[i]);
    } else {
      if (tree.kind(i) == kSlideX) pose.slide_x[i] += shift;
      if (tree.kind(i) == kSlideZ) pose.slide_z[i] += shift;
      if (!Tree::is_static) pose.sine[i] = V{}, pose.cosine[i] = broadcast<W>(1.0);
    }
  });
}

// Force and moment of the fluid on one body, about its anchor; vx, vz is the anchor's velocity.
template <class Tree, int W, class I>
EVERGAIT_INLINE void fluid_force(const Dof& d, I i, const Pose<Tree, W>& pose, Lanes<W> vx, Lanes<W> vz, Lanes<W>& fx,
                                 Lanes<W>& fz, Lanes<W>& torque) {
  using V = Lanes<W>;
  const V cx = d.centre_x * pose.cosine[i] + d.centre_z * pose.sine[i];
  const V cz = d.centre_z * pose.cosine[i] - d.centre_x * pose.sine[i];
  const V ux = vx + pose.spin[i] * cz, uz = vz - pose.spin[i] * cx;
  // Axes of the inertia box in the world.
  const V ax = d.box_cos * pose.cosine[i] + d.box_sin * pose.sine[i];
  const V az = d.box_sin * pose.cosine[i] - d.box_cos * pose.sine[i];
  const V u1 = ax * ux + az * uz, u2 = ax * uz - az * ux;
  const V f1 = -d.drag_linear * u1 - d.drag_1 * absolute(u1) * u1;
  const V f2 = -d.drag_linear * u2 - d.drag_2 * absolute(u2) * u2;
  fx = ax * f1 - az * f2, fz = az * f1 + ax * f2;
  const V spin = pose.spin[i];
  torque = cz * fx - cx * fz - d.drag_spin * spin - d.drag_spin_quadratic * absolute(spin) * spin;
}

// mass: lower triangle on the tree's pattern. force: applied + passive - velocity products - weight.
template <class Tree, int W>
EVERGAIT_INLINE void inertia_and_force(const Tree& tree, const PlanarModel& m, const Pose<Tree, W>& pose,
                                       const Lanes<W>* q, const Lanes<W>* v, const Lanes<W>* applied,
                                       Lanes<W> (&mass)[Tree::capacity][Tree::capacity], Lanes<W>* force) {
  using V = Lanes<W>;
  constexpr int N = Tree::capacity;
  V hx[N], hz[N], second[N];  // subtree's first and second moment about the anchor
  V gx[N], gz[N], moment[N];  // subtree's velocity-product force without the anchor's acceleration; its moment
  V own_x[N], own_z[N], accel_x[N], accel_z[N], vx[N], vz[N];

  each_down(tree, [&](auto i) EVERGAIT_LAMBDA {
    const Dof& d = m.dof[i];
    const int p = tree.parent(i);
    if (below_hinge(tree, i)) {
      const V spin2 = pose.spin[p] * pose.spin[p];
      accel_x[i] = accel_x[p] - spin2 * pose.arm_x[i], accel_z[i] = accel_z[p] - spin2 * pose.arm_z[i];
    } else {
      accel_x[i] = broadcast<W>(-m.gravity_x), accel_z[i] = broadcast<W>(-m.gravity_z);
    }
    if (m.fluid) {
      vx[i] = p >= 0 ? vx[p] : V{}, vz[i] = p >= 0 ? vz[p] : V{};
      if (below_hinge(tree, i)) {
        vx[i] += pose.spin[p] * pose.arm_z[i], vz[i] -= pose.spin[p] * pose.arm_x[i];
      }
      if (tree.kind(i) == kSlideX) vx[i] += v[i];
      if (tree.kind(i) == kSlideZ) vz[i] += v[i];
    }
    gx[i] = V{}, gz[i] = V{}, moment[i] = V{};
    hx[i] = V{}, hz[i] = V{}, second[i] = V{};
    if (tree.kind(i) == kHinge) {
      const V ox = d.moment_x * pose.cosine[i] + d.moment_z * pose.sine[i];
      const V oz = d.moment_z * pose.cosine[i] - d.moment_x * pose.sine[i];
      const V spin2 = pose.spin[i] * pose.spin[i];
      own_x[i] = ox, own_z[i] = oz;
      hx[i] = ox, hz[i] = oz, second[i] = broadcast<W>(d.inertia);
      gx[i] = -(spin2 * ox), gz[i] = -(spin2 * oz);
      moment[i] = oz * accel_x[i] - ox * accel_z[i];
      if (m.fluid) {
        V fx, fz, torque;
        fluid_force<Tree, W>(d, i, pose, vx[i], vz[i], fx, fz, torque);
        gx[i] -= fx, gz[i] -= fz, moment[i] -= torque;
      }
    }
  });

  each_up(tree, [&](auto i) EVERGAIT_LAMBDA {
    const Dof& d = m.dof[i];
    const int p = tree.parent(i);
    V bias;
    if (!Tree::is_static && m.dense)
      for (int k = 0; k < i; ++k) mass[i][k] = V{};
    if (tree.kind(i) == kHinge) {
      bias = moment[i];
      V coupling = second[i];
      mass[i][i] = coupling + d.armature;
      auto below = pose.arm_x[i] * hx[i] + pose.arm_z[i] * hz[i];
      V sum = coupling + below;
      if (p >= 0 && below_hinge(tree, i)) {
        hx[p] += hx[i], hz[p] += hz[i];
        second[p] += sum + below;
        gx[p] += gx[i], gz[p] += gz[i];
        moment[p] += moment[i] + (pose.arm_z[i] * gx[i] - pose.arm_x[i] * gz[i]);
      } else if (p >= 0) {
        gx[p] += gx[i], gz[p] += gz[i];
      }
      V arm_x = pose.arm_x[i], arm_z = pose.arm_z[i];
      above(tree, i, [&](auto k) EVERGAIT_LAMBDA {
        if (tree.kind(k) == kHinge) {
          mass[i][k] = sum;
          arm_x = pose.arm_x[k], arm_z = pose.arm_z[k];
          sum += arm_x * hx[i] + arm_z * hz[i];
        } else {
          mass[i][k] = tree.kind(k) == kSlideX ? hz[i] : -hx[i];
        }
      });
    } else {
      bias = tree.kind(i) == kSlideX ? d.subtree_mass * accel_x[i] + gx[i] : d.subtree_mass * accel_z[i] + gz[i];
      mass[i][i] = broadcast<W>(d.subtree_mass + d.armature);
      if (p >= 0) gx[p] += gx[i], gz[p] += gz[i];
      above(tree, i, [&](auto k) EVERGAIT_LAMBDA {
        mass[i][k] = tree.kind(k) == tree.kind(i) ? broadcast<W>(d.subtree_mass) : V{};
      });
    }
    force[i] = applied[i] - d.damping * v[i] - bias;
    if (d.stiffness != 0.0) force[i] -= d.stiffness * (q[i] - d.spring_reference);
  });
}

}  // namespace evergait::EVERGAIT_ISA
