// Accelerations under soft constraints: minimise 1/2 a'Ma - f'a + sum over rows of 1/2 D min(0, Ja - target)^2.
//
// Newton's method. The cost is a different quadratic for every set of active rows, and each iteration jumps to the
// minimum of the current one: H a = f + J'D target over the active rows. If the same rows are active there, that is the
// exact minimum and there is nothing to tolerate. Lanes that are done keep or recompute the same bits until the last
// one is done. Should the active sets not settle within a few jumps, the jump becomes a direction for an exact line
// search, with which the cost falls at every iteration.
#pragma once

#include "planar/collision.h"

namespace evergait::EVERGAIT_ISA {

constexpr int kJumps = 8;        // iterations without a line search
constexpr int kIterations = 60;  // then accept what we have: only reached by rounding at a row's edge, or by NaN

// Root-ward elimination on a tree's pattern makes no fill: h = L'DL with unit L; x is solved in place.
template <class Tree, int W>
EVERGAIT_INLINE void factor_and_solve(const Tree& tree, Lanes<W> (&h)[Tree::capacity][Tree::capacity], Lanes<W>* x) {
  using V = Lanes<W>;
  V inverse[Tree::capacity];
  each_up(tree, [&](auto j) EVERGAIT_LAMBDA {
    inverse[j] = 1.0 / h[j][j];
    fill_above(tree, j, [&](auto k) EVERGAIT_LAMBDA {
      const V ratio = h[j][k] * inverse[j];
      x[k] -= ratio * x[j];
      fill_path(tree, k, [&](auto l) EVERGAIT_LAMBDA { h[k][l] -= ratio * h[j][l]; });
    });
  });
  each_down(tree, [&](auto j) EVERGAIT_LAMBDA {
    V sum = x[j];
    fill_above(tree, j, [&](auto k) EVERGAIT_LAMBDA { sum -= h[j][k] * x[k]; });
    x[j] = sum * inverse[j];
  });
}

template <class Tree, int W>
struct Solver {
  using V = Lanes<W>;
  using M = LaneMask<W>;
  static constexpr int N = Tree::capacity;
  const Tree& tree;
  Rows<Tree, W>& rows;
  const V (&mass)[N][N];
  const V* force;

  // Normal and tangential acceleration of a floor contact on link i.
  template <class I>
  EVERGAIT_INLINE void contact_acceleration(I i, const Contact<N, W>& c, const V* a, V& an, V& at) const {
    an = V{}, at = V{};
    path(tree, i, [&](auto k) EVERGAIT_LAMBDA {
      if (tree.kind(k) == kHinge) {
        an += c.normal[k] * a[k], at += c.tangent[k] * a[k];
      } else if (tree.kind(k) == kSlideX) {
        at += a[k];
      } else {
        an += a[k];
      }
    });
  }

  EVERGAIT_INLINE void pair_acceleration(const Contact<N, W>& c, const V* a, V& an, V& at) const {
    V n = V{}, t = V{};
    each_down(tree, [&](auto k) EVERGAIT_LAMBDA { n += c.normal[k] * a[k], t += c.tangent[k] * a[k]; });
    an = n, at = t;
  }

  template <class F>
  EVERGAIT_INLINE void each_floor_contact(F&& f) const {
    if (rows.n_contacts == 0) return;
    each_down(tree, [&](auto i) EVERGAIT_LAMBDA {
      for (int index = rows.first[i]; index < rows.last[i]; ++index) f(i, rows.contact[index]);
    });
  }

  // Marks the rows active at acceleration a; returns the lanes where the set changed.
  EVERGAIT_INLINE M mark(Contact<N, W>& c, V an, V at) const {
    const M plus = an + c.friction * at < c.target_plus;
    const M minus = an - c.friction * at < c.target_minus;
    const M middle = an < c.target_middle;
    // Rows without weight (absent in this lane) count as unchanged: they have no say in the result.
    const M edges = c.edge_weight > 0.0, centre = c.middle_weight > 0.0;
    const M changed = (((plus ^ c.plus) | (minus ^ c.minus)) & edges) | ((middle ^ c.middle) & centre);
    c.plus = plus, c.minus = minus, c.middle = middle;
    return changed;
  }

  EVERGAIT_INLINE M mark_active(const V* a) const {
    M changed = M{};
    if (rows.any_limit) {
      each_down(tree, [&](auto i) EVERGAIT_LAMBDA {
        LimitRow<W>& row = rows.limit[i];
        if (!row.present) return;
        const M active = row.direction * a[i] < row.target;
        changed |= (active ^ row.active) & (row.weight > 0.0);
        row.active = active;
      });
    }
    each_floor_contact([&](auto i, Contact<N, W>& c) EVERGAIT_LAMBDA {
      V an, at;
      contact_acceleration(i, c, a, an, at);
      changed |= mark(c, an, at);
    });
    for (int index = 0; index < rows.n_pair_contacts; ++index) {
      V an, at;
      pair_acceleration(rows.pair_contact[index], a, an, at);
      changed |= mark(rows.pair_contact[index], an, at);
    }
    return changed;
  }

  // The active rows of a contact as a quadratic in (normal, tangential) acceleration.
  struct Quadratic {
    V nn, nt, tt, n, t;
  };
  EVERGAIT_INLINE Quadratic quadratic(const Contact<N, W>& c) const {
    const V plus = keep<W>(c.plus, c.edge_weight), minus = keep<W>(c.minus, c.edge_weight);
    const V middle = keep<W>(c.middle, c.middle_weight);
    Quadratic s;
    const V both = plus + minus;
    s.nn = both + middle;
    s.nt = c.friction * (plus - minus);
    s.tt = (c.friction * c.friction) * both;
    const V pull_plus = plus * c.target_plus, pull_minus = minus * c.target_minus;
    s.n = (pull_plus + pull_minus) + middle * c.target_middle;
    s.t = c.friction * (pull_plus - pull_minus);
    return s;
  }

  // Jump: solve for the minimum of the current quadratic.
  EVERGAIT_INLINE void jump(V* a) const {
    V h[N][N];
    each_down(tree, [&](auto i) EVERGAIT_LAMBDA {
      a[i] = force[i];
      fill_path(tree, i, [&](auto k) EVERGAIT_LAMBDA { h[i][k] = mass[i][k]; });
    });
    if (rows.any_limit) {
      each_down(tree, [&](auto i) EVERGAIT_LAMBDA {
        const LimitRow<W>& row = rows.limit[i];
        if (!row.present) return;
        const V weight = keep<W>(row.active, row.weight);
        h[i][i] += weight;
        a[i] += row.direction * (weight * row.target);
      });
    }
    each_floor_contact([&](auto i, const Contact<N, W>& c) EVERGAIT_LAMBDA {
      const Quadratic s = quadratic(c);
      path(tree, i, [&](auto k) EVERGAIT_LAMBDA {
        V un, ut;
        if (tree.kind(k) == kHinge) {
          un = s.nn * c.normal[k] + s.nt * c.tangent[k], ut = s.nt * c.normal[k] + s.tt * c.tangent[k];
          a[k] += c.normal[k] * s.n + c.tangent[k] * s.t;
        } else if (tree.kind(k) == kSlideX) {
          un = s.nt, ut = s.tt;
          a[k] += s.t;
        } else {
          un = s.nn, ut = s.nt;
          a[k] += s.n;
        }
        path(tree, k, [&](auto l) EVERGAIT_LAMBDA {
          if (tree.kind(l) == kHinge) {
            h[k][l] += un * c.normal[l] + ut * c.tangent[l];
          } else {
            h[k][l] += tree.kind(l) == kSlideX ? ut : un;
          }
        });
      });
    });
    for (int index = 0; index < rows.n_pair_contacts; ++index) {
      const Contact<N, W>& c = rows.pair_contact[index];
      const Quadratic s = quadratic(c);
      each_down(tree, [&](auto i) EVERGAIT_LAMBDA {
        if (i != rows.pair_link[index]) return;
        fill_path(tree, i, [&](auto k) EVERGAIT_LAMBDA {
          const V un = s.nn * c.normal[k] + s.nt * c.tangent[k], ut = s.nt * c.normal[k] + s.tt * c.tangent[k];
          a[k] += c.normal[k] * s.n + c.tangent[k] * s.t;
          fill_path(tree, k, [&](auto l) EVERGAIT_LAMBDA { h[k][l] += un * c.normal[l] + ut * c.tangent[l]; });
        });
      });
    }
    factor_and_solve<Tree, W>(tree, h, a);
  }

  // One row of the line search: contributes weight * min(0, at0 + step * slope)^2 / 2.
  EVERGAIT_INLINE static void search_row(V weight, V at0, V slope, V step, V& first, V& second) {
    const V value = at0 + step * slope;
    const V w = keep<W>(value < 0.0, weight);
    first += w * value * slope, second += w * slope * slope;
  }

  // Derivatives of the cost along a + step * p.
  __attribute__((noinline)) void cost_slope(const V* a, const V* p, V step, V& first, V& second) const {
    V g = V{}, curve = V{};
    for (int i = 0; i < tree.size(); ++i) {
      V mp = mass[i][i] * p[i], ma = mass[i][i] * a[i];
      g += p[i] * (ma - force[i]), curve += p[i] * mp;
      for (int k = tree.fill_parent(i); k >= 0; k = tree.fill_parent(k)) {
        g += mass[i][k] * (p[i] * a[k] + a[i] * p[k]);
        curve += 2.0 * mass[i][k] * p[i] * p[k];
      }
    }
    first = g + step * curve, second = curve;
    each_down(tree, [&](auto i) EVERGAIT_LAMBDA {
      const LimitRow<W>& row = rows.limit[i];
      if (!row.present) return;
      search_row(row.weight, row.direction * a[i] - row.target, row.direction * p[i], step, first, second);
    });
    const auto add = [&](const Contact<N, W>& c, V an, V at, V pn, V pt) {
      const double mu = c.friction;
      search_row(c.edge_weight, an + mu * at - c.target_plus, pn + mu * pt, step, first, second);
      search_row(c.edge_weight, an - mu * at - c.target_minus, pn - mu * pt, step, first, second);
      search_row(c.middle_weight, an - c.target_middle, pn, step, first, second);
    };
    each_floor_contact([&](auto i, const Contact<N, W>& c) {
      V an, at, pn, pt;
      contact_acceleration(i, c, a, an, at), contact_acceleration(i, c, p, pn, pt);
      add(c, an, at, pn, pt);
    });
    for (int index = 0; index < rows.n_pair_contacts; ++index) {
      V an, at, pn, pt;
      pair_acceleration(rows.pair_contact[index], a, an, at), pair_acceleration(rows.pair_contact[index], p, pn, pt);
      add(rows.pair_contact[index], an, at, pn, pt);
    }
  }

  // The step in (0, 1] that minimises the cost along p: Newton on its piecewise linear derivative, kept inside a
  // bracket.
  __attribute__((noinline)) V line_search(const V* a, const V* p) const {
    V low = V{}, high = broadcast<W>(1.0), step = high;
    for (int n = 0; n < 40; ++n) {
      V first, second;
      cost_slope(a, p, step, first, second);
      low = first < 0.0 ? step : low;
      high = first < 0.0 ? high : step;
      const V next = step - first / second;
      const M inside = (next > low) & (next < high);
      step = first == 0.0 ? step : (inside ? next : 0.5 * (low + high));
    }
    return step;
  }

  // a: the last acceleration as a first guess, then the solution.
  EVERGAIT_INLINE void solve(V* a) const {
    if (rows.none()) {
      jump(a);
      return;
    }
    mark_active(a);
    jump(a);
    if (any<W>(mark_active(a))) iterate(a);
  }

  __attribute__((noinline)) void iterate(V* a) const {
    for (int n = 1; n < kJumps; ++n) {
      jump(a);
      if (!any<W>(mark_active(a))) return;
    }
    M settled = M{};  // what such a lane has must not depend on how long its neighbours search
    for (int n = kJumps; n < kIterations; ++n) {
      V target[N], p[N];
      jump(target);
      M done = ~mark_active_at(target, a);
      V largest = V{}, longest = V{};
      for (int i = 0; i < tree.size(); ++i) {
        p[i] = target[i] - a[i];
        largest = larger(largest, absolute(a[i])), longest = larger(longest, absolute(p[i]));
      }
      done |= longest <= 1e-13 * largest;  // a row at its edge by rounding: it may be active or not
      const V step = done ? broadcast<W>(1.0) : line_search(a, p);
      for (int i = 0; i < tree.size(); ++i) {
        const V next = done ? target[i] : a[i] + step * p[i];
        a[i] = settled ? a[i] : next;
      }
      settled |= done;
      mark_active(a);
      if (!any<W>(~settled)) return;
    }
  }

  // Whether the active set at `target` differs from that at the current a; leaves the marks at a.
  M mark_active_at(const V* target, const V* a) const {
    const M changed = mark_active(target);
    mark_active(a);
    return changed;
  }
};

}  // namespace evergait::EVERGAIT_ISA
