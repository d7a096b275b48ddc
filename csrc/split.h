#pragma once

#include "meeting.h"
#include "product.h"
#include "team.h"

// How a team divides the steps of a recurrence: rows of the batch, units of the state, or both.
namespace recurra {
inline namespace RECURRA_ISA {

// What a step costs, in nanoseconds of a core of about 4 GHz. Only ratios matter, and only to choose a split: no
// result depends on it.
struct StepCost {
  long rows;     // of the batch
  long vectors;  // of columns of the recurrent product, over all gates
  long words;    // of the inner dimension
  long word_vector_bytes;
  double cell;   // the rest of a step, per vector of units of one row
  long units;    // vectors of units
  int meetings;  // per step

  // `beside`: words of the inner dimension of other weights that the step reads too; their products are not counted.
  double of(int row_groups, int unit_groups, long beside = 0) const {
    const double mine = static_cast<double>(ceiling(rows, row_groups));
    const double columns = static_cast<double>(ceiling(vectors, unit_groups)), depth = static_cast<double>(words);
    // A lone row waits for its sums, and four chains of them fill half of what a core can do.
    const double busy = mine > 1 ? mine : 2;
    const double products = busy * columns * depth / 7.5;
    const double bytes = columns * (depth + static_cast<double>(beside)) * static_cast<double>(word_vector_bytes);
    const double near = 1 << 20;
    const double traffic = (bytes < near ? bytes : near) / 200 + (bytes > near ? (bytes - near) / 100 : 0);
    const double rest = mine * static_cast<double>(ceiling(units, unit_groups)) * cell;
    const double waits = unit_groups > 1 ? meetings * (150.0 + 10 * unit_groups) : 0;
    return (products > traffic ? products : traffic) + rest + waits;
  }
};

struct Split {
  int row_groups, unit_groups;
};

// The cheapest split of a team of `size`; the fewest unit groups, which must wait for each other, where it is equal.
inline Split split_of(const StepCost& cost, int size) {
  Split best{size, 1};
  double least_cost = cost.of(size, 1);
  for (int rows = size - 1; rows >= 1; --rows) {
    if (size % rows != 0) continue;
    const double here = cost.of(rows, size / rows);
    if (here < 0.97 * least_cost) {
      best = {rows, size / rows};
      least_cost = here;
    }
  }
  return best;
}

// How many of `most` threads shorten a call of so many steps, with `around` nanoseconds of work that splits evenly.
// Waking a team takes a microsecond or two, and much more on a busy machine.
constexpr double waking = 5000;
inline Team worthwhile_team(const StepCost& cost, long steps, double around, int most, long beside) {
  Team best{1, cost.of(1, 1, beside) * static_cast<double>(steps) + around};
  for (int size = 2; size <= most; size = size * 2 > most && size < most ? most : size * 2) {
    const Split split = split_of(cost, size);
    const double time =
        cost.of(split.row_groups, split.unit_groups, beside) * static_cast<double>(steps) + around / size + waking;
    if (time < 0.95 * best.expected) best = {size, time};
  }
  return best;
}

// A member's part of every step.
struct Part {
  int rank, size;     // in the team
  int first, count;   // the members that share its rows
  long row0, row1;    // of the batch
  long unit0, unit1;  // blocks of units
  long rows() const { return row1 - row0; }
};

inline Part part_of(Split split, int rank, int size, long rows, long unit_blocks) {
  const int group = rank / split.unit_groups, inside = rank % split.unit_groups;
  const Share r = share(rows, group, split.row_groups), u = share(unit_blocks, inside, split.unit_groups);
  return {rank, size, group * split.unit_groups, split.unit_groups, r.begin, r.end, u.begin, u.end};
}

// The team that a call gets: exactly -wanted threads, or at most `wanted`, as many as shorten it. `around` is what the
// projections and the packing cost, in the nanoseconds of StepCost.
inline Team team_for(const StepCost& cost, long steps, double around, int wanted, long beside = 0) {
  const int most = wanted < 0 ? -wanted : wanted < 1 ? 1 : wanted;
  const int bounded = most > 64 ? 64 : most;
  if (wanted < 0) return {bounded, 0};
  return worthwhile_team(cost, steps, around, is_crowded() ? 1 : bounded, beside);
}

// Nanoseconds that a product of so many multiplications takes a core.
template <class S>
double product_cost(long rows, long columns, long depth) {
  return static_cast<double>(rows) * static_cast<double>(ceiling(columns, L<S>)) *
         static_cast<double>(words<S>(depth)) / 7.0;
}

}  // namespace RECURRA_ISA
}  // namespace recurra
