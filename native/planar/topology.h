// Which joint hangs below which. A StaticTree is known to the compiler, which then unrolls every loop over joints and
// keeps the robot in registers; a RuntimeTree serves any other planar robot from the same source, with the same bits.
#pragma once

#include "core/lanes.h"
#include "planar/model.h"

namespace evergait::EVERGAIT_ISA {

template <class Tree>
struct StaticTree {
  static constexpr bool is_static = true;
  static constexpr int capacity = Tree::n;
  explicit StaticTree(const PlanarModel&) {}
  static constexpr int size() { return Tree::n; }
  static constexpr int kind(int i) { return Tree::kind[i]; }
  static constexpr int parent(int i) { return Tree::parent[i]; }
  // The next column to the left in the factorisation's fill pattern: the parent, unless branches touch each other.
  static constexpr int fill_parent(int i) { return Tree::parent[i]; }

  static bool matches(const PlanarModel& m) {
    if (m.n_dof != Tree::n || m.dense) return false;
    for (int i = 0; i < Tree::n; ++i)
      if (m.dof[i].kind != Tree::kind[i] || m.dof[i].parent != Tree::parent[i]) return false;
    return true;
  }
};

struct RuntimeTree {
  static constexpr bool is_static = false;
  static constexpr int capacity = kMaxDof;
  const PlanarModel& model;
  explicit RuntimeTree(const PlanarModel& m) : model(m) {}
  int size() const { return model.n_dof; }
  int kind(int i) const { return model.dof[i].kind; }
  int parent(int i) const { return model.dof[i].parent; }
  int fill_parent(int i) const { return model.dense ? i - 1 : model.dof[i].parent; }
};

// A joint's number as a type. (Not std::integral_constant: see core/isa.h on standard templates.)
template <int I>
struct Index {
  static constexpr int value = I;
  constexpr EVERGAIT_INLINE operator int() const { return I; }
};

namespace detail {
template <int I, int End, class F>
EVERGAIT_INLINE void ascend(F&& f) {
  if constexpr (I < End) {
    f(Index<I>{});
    ascend<I + 1, End>(f);
  }
}
template <int I, class F>
EVERGAIT_INLINE void descend(F&& f) {
  if constexpr (I >= 0) {
    f(Index<I>{});
    descend<I - 1>(f);
  }
}
template <class Tree, int I, class F>
EVERGAIT_INLINE void climb(F&& f) {
  if constexpr (I >= 0) {
    f(Index<I>{});
    climb<Tree, Tree::parent(I)>(f);
  }
}
}  // namespace detail

// f(i) for every joint, root to leaves.
template <class Tree, class F>
EVERGAIT_INLINE void each_down(const Tree& tree, F&& f) {
  if constexpr (Tree::is_static) {
    detail::ascend<0, Tree::size()>(f);
  } else {
    for (int i = 0; i < tree.size(); ++i) f(i);
  }
}

// f(i) for every joint, leaves to root.
template <class Tree, class F>
EVERGAIT_INLINE void each_up(const Tree& tree, F&& f) {
  if constexpr (Tree::is_static) {
    detail::descend<Tree::size() - 1>(f);
  } else {
    for (int i = tree.size() - 1; i >= 0; --i) f(i);
  }
}

// f(k) for i and everything above it.
template <class Tree, class I, class F>
EVERGAIT_INLINE void path(const Tree& tree, I i, F&& f) {
  if constexpr (Tree::is_static) {
    detail::climb<Tree, I::value>(f);
  } else {
    for (int k = i; k >= 0; k = tree.parent(k)) f(k);
  }
}

// f(k) for i and every column to its left in the fill pattern.
template <class Tree, class I, class F>
EVERGAIT_INLINE void fill_path(const Tree& tree, I i, F&& f) {
  if constexpr (Tree::is_static) {
    detail::climb<Tree, I::value>(f);
  } else {
    for (int k = i; k >= 0; k = tree.fill_parent(k)) f(k);
  }
}

// f(k) for everything strictly left of i in the fill pattern.
template <class Tree, class I, class F>
EVERGAIT_INLINE void fill_above(const Tree& tree, I i, F&& f) {
  if constexpr (Tree::is_static) {
    detail::climb<Tree, Tree::parent(I::value)>(f);
  } else {
    for (int k = tree.fill_parent(i); k >= 0; k = tree.fill_parent(k)) f(k);
  }
}

// f(k) for everything strictly above i.
template <class Tree, class I, class F>
EVERGAIT_INLINE void above(const Tree& tree, I i, F&& f) {
  if constexpr (Tree::is_static) {
    detail::climb<Tree, Tree::parent(I::value)>(f);
  } else {
    for (int k = tree.parent(i); k >= 0; k = tree.parent(k)) f(k);
  }
}

// Gymnasium's robots: slide x, slide z, then hinges.
struct ChainOf5 {  // Swimmer
  static constexpr int n = 5;
  static constexpr int kind[] = {0, 1, 2, 2, 2};
  static constexpr int parent[] = {-1, 0, 1, 2, 3};
};
struct ChainOf6 {  // Hopper
  static constexpr int n = 6;
  static constexpr int kind[] = {0, 1, 2, 2, 2, 2};
  static constexpr int parent[] = {-1, 0, 1, 2, 3, 4};
};
struct TwoLegs {  // Walker2d, HalfCheetah
  static constexpr int n = 9;
  static constexpr int kind[] = {0, 1, 2, 2, 2, 2, 2, 2, 2};
  static constexpr int parent[] = {-1, 0, 1, 2, 3, 4, 2, 6, 7};
};

}  // namespace evergait::EVERGAIT_ISA
