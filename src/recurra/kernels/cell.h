#pragma once

#include "recurra/kernels/activation.h"

// The cell contract: what a time loop must know of one hidden unit of one sequence.
//
//   gates, phases, states   compile-time counts; state 0 is h, state 1 is c
//   first(p), count(p)      the gates of phase p, in the cell's own order
//   step<p>                 forward: x and r are the input part and the recurrent part of this phase's gates, unit the
//                           per-unit parameters, mh the masked h that entered. A phase before the last fills carry,
//                           which the next recurrent product multiplies; the last one replaces the states s.
//                           kept has what the training state holds of every gate; later phases find it there.
//   grad<p>                 the same backwards, p descending. ds holds the gradients of the new states and becomes,
//                           at p = 0, what reaches the old ones without passing R. dcarry is the gradient of carry.
//                           dx and dr are the gradients of x and r of this phase's gates.
//
//   output                  h from what the training state keeps
//
// Between the phases the loop multiplies R by carry going forward and R^T by dr going back. What passes R reaches the
// old h through the mask m; so does what a cell takes from mh.
namespace recurra {
inline namespace RECURRA_ISA {

// What a grad sees of one step, besides the gradients.
template <class V>
struct StepValues {
  V h_old, c_old, c_new;
  V mask;     // 1 without a mask
  V product;  // GRU with reset after: the recurrent product of the candidate, its bias included
};

}  // namespace RECURRA_ISA
}  // namespace recurra
