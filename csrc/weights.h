#pragma once

#include "direction.h"
#include "meeting.h"
#include "pack.h"

// The weights of one direction in the order in which the forward steps read them.
namespace recurra {
inline namespace RECURRA_ISA {

// A panel of a phase holds some vectors of units: the same units' rows of every gate of the phase, gate after gate.
template <class Cell, int P>
struct Panels {
  static constexpr int count = Cell::count(P), first = Cell::first(P);
  static constexpr int width = panel_vectors / count;  // vectors of units
  static constexpr int vectors = count * width;
};

// Vectors of units in a block: the smallest part that can be given to a thread, whole panels of every phase.
template <class Cell>
constexpr int block_vectors() {
  int most = Panels<Cell, 0>::width;
  if constexpr (Cell::phases > 1)
    if (Panels<Cell, 1>::width > most) most = Panels<Cell, 1>::width;
  return most;
}

template <class Cell, class S>
class Weights {
 public:
  Weights(const ForwardCall<S>& q, long direction)
      : d_{q, direction, Cell::gates},
        blocks_(ceiling(unit_vectors<S>(q.hidden), block_vectors<Cell>())),
        I_(q.input_weight == nullptr ? 0 : q.inputs) {}

  long blocks() const { return blocks_; }
  template <int P>
  long panels() const {
    return blocks_ * block_vectors<Cell>() / Panels<Cell, P>::width;
  }
  // Words of all phases.
  long size() const {
    long total = size_of<0>();
    if constexpr (Cell::phases > 1) total += size_of<1>();
    return total;
  }

  void place(Word<S>* at) {
    at_[0] = at;
    if constexpr (Cell::phases > 1) at_[1] = at + size_of<0>();
  }
  template <int P>
  const Word<S>* recurrent(long panel) const {
    return at_[P] + panel * panel_size<P>(d_.q.hidden);
  }
  template <int P>
  const Word<S>* input(long panel) const {
    return at_[P] + panels<P>() * panel_size<P>(d_.q.hidden) + panel * panel_size<P>(I_);
  }

  // A member's share of the packing.
  void pack(int rank, int size) const {
    pack_phase<0>(rank, size);
    if constexpr (Cell::phases > 1) pack_phase<1>(rank, size);
  }

 private:
  template <int P>
  static long panel_size(long K) {
    return words<S>(K) * Panels<Cell, P>::vectors * L<S>;
  }
  template <int P>
  long size_of() const {
    return panels<P>() * (panel_size<P>(d_.q.hidden) + panel_size<P>(I_));
  }

  template <int P>
  void pack_phase(int rank, int size) const {
    const Share mine = share(panels<P>(), rank, size);
    for (long p = mine.begin; p < mine.end; ++p) {
      pack_panel<P>(p, d_.q.hidden, true, const_cast<Word<S>*>(recurrent<P>(p)));
      if (I_ > 0) pack_panel<P>(p, I_, false, const_cast<Word<S>*>(input<P>(p)));
    }
  }

  template <int P>
  void pack_panel(long panel, long K, bool is_recurrent, Word<S>* to) const {
    using In = Panels<Cell, P>;
    for (int g = 0; g < In::count; ++g) {
      const S* weight = is_recurrent ? d_.recurrent(In::first + g) : d_.input(In::first + g);
      for (int v = 0; v < In::width; ++v) {
        const long u = (panel * In::width + v) * L<S>, rows = greatest(0L, least(L<S>, d_.q.hidden - u));
        pack_rows(weight + (rows > 0 ? u * K : 0), K, rows, K, to + (g * In::width + v) * L<S>, In::vectors * L<S>);
      }
    }
  }

  Direction<S> d_;
  long blocks_, I_;
  Word<S>* at_[2] = {};
};

}  // namespace RECURRA_ISA
}  // namespace recurra
